package rawbench

import (
	"encoding/binary"
	"math"
	"net"
	"time"
)

// Layout of a frame: Ethernet, IPv4, UDP, then our header. Offsets are in bytes.
const (
	ethSrc   = 6
	ethType  = 12
	ipStart  = 14
	ipLength = ipStart + 2
	ipTTL    = ipStart + 8
	ipSum    = ipStart + 10
	ipSrc    = ipStart + 12
	ipDst    = ipStart + 16
	udpStart = ipStart + 20
	udpLen   = udpStart + 4
	payload  = udpStart + 8

	atMagic = payload
	atKind  = payload + 2
	atRun   = payload + 4
	atSeq   = payload + 8
	headLen = payload + 16

	// A result follows the header of the frame that requested it.
	resultLen = 6 * 8
	askLen    = headLen + resultLen

	magic = 0xda7b
)

// MinFrame is the smallest Ethernet frame, in bytes.
const MinFrame = 64

// kind is the purpose of a frame.
type kind byte

const (
	ping   kind = 1 + iota // is answered with pong
	pong                   //
	warm                   // is not counted
	data                   // is counted
	ask                    // is answered with result
	result                 //
)

// template returns a header in which only kind, run, sequence number and lengths are missing.
func template(cfg Config, localMAC net.HardwareAddr) (h [headLen]byte) {
	copy(h[:], cfg.PeerMAC)
	copy(h[ethSrc:], localMAC)
	binary.BigEndian.PutUint16(h[ethType:], 0x0800)
	h[ipStart], h[ipTTL], h[ipTTL+1] = 0x45, 64, 17
	local, peer := cfg.Local.As4(), cfg.Peer.As4()
	copy(h[ipSrc:], local[:])
	copy(h[ipDst:], peer[:])
	binary.BigEndian.PutUint16(h[udpStart:], cfg.Port)
	binary.BigEndian.PutUint16(h[udpStart+2:], cfg.Port)
	binary.BigEndian.PutUint16(h[atMagic:], magic)
	return h
}

// setSize writes the lengths of a frame of size bytes and the IP checksum.
func setSize(h []byte, size int) {
	binary.BigEndian.PutUint16(h[ipLength:], uint16(size-ipStart))
	binary.BigEndian.PutUint16(h[udpLen:], uint16(size-udpStart))
	binary.BigEndian.PutUint16(h[ipSum:], 0)
	binary.BigEndian.PutUint16(h[ipSum:], checksum(h[ipStart:udpStart]))
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > math.MaxUint16 {
		sum = sum>>16 + sum&math.MaxUint16
	}
	return ^uint16(sum)
}

// ours reports whether a header is one of this package.
func ours(h []byte) bool {
	return len(h) >= headLen && binary.BigEndian.Uint16(h[atMagic:]) == magic
}

func kindOf(h []byte) kind     { return kind(h[atKind]) }
func runOf(h []byte) uint32    { return binary.BigEndian.Uint32(h[atRun:]) }
func seqOf(h []byte) uint64    { return binary.BigEndian.Uint64(h[atSeq:]) }
func setKind(h []byte, k kind) { h[atKind] = byte(k) }

func setRun(h []byte, run uint32) { binary.BigEndian.PutUint32(h[atRun:], run) }
func setSeq(h []byte, seq uint64) { binary.BigEndian.PutUint64(h[atSeq:], seq) }

// turn sends a frame back by swapping the addresses. The swap does not change the checksums.
func turn(h []byte) {
	for i := range ethSrc {
		h[i], h[ethSrc+i] = h[ethSrc+i], h[i]
	}
	for i := range 4 {
		h[ipSrc+i], h[ipDst+i] = h[ipDst+i], h[ipSrc+i]
	}
}

// count is a server's record of a run.
type count struct {
	run     uint32
	frames  uint64
	bytes   uint64
	elapsed time.Duration
	// first and last are the arrival times of the first and the latest counted frame.
	first, last time.Time
	// dropped is the number of losses that counters at the server report.
	dropped   uint64
	coreShare float64
}

func (c *count) encode(b []byte) {
	for i, v := range []uint64{c.frames, c.bytes, uint64(c.last.Sub(c.first)), c.dropped, math.Float64bits(c.coreShare)} {
		binary.BigEndian.PutUint64(b[8*i:], v)
	}
}

func decodeCount(b []byte) count {
	v := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return count{frames: v(0), bytes: v(1), elapsed: time.Duration(v(2)), dropped: v(3), coreShare: math.Float64frombits(v(4))}
}
