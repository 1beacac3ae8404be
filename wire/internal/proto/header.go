// Package proto defines the byte layout of protocol version 2, as functions without state. docs/WIRE.md specifies it.
// All numbers are big-endian. No function allocates, and no function panics if its input has a length that the comment
// of the function allows.
package proto

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/wire/internal/crc32c"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Version is the protocol version in the upper half of the first byte.
const Version = 2

// Type is the type of a packet, in the lower half of the first byte.
type Type uint8

// Packet types. Only Data takes a packet sequence number.
const (
	Data      Type = 1 + iota // chunks of an established connection
	Ack                       // no chunks; acknowledgement and credit are in the header
	Connect                   // requests a connection from a service
	Accept                    // accepts a Connect
	Reject                    // refuses a Connect
	Close                     // ends a connection; repeated until Closed arrives
	Closed                    // confirms Close
	Reset                     // answers a packet of an unknown connection
	Challenge                 // answers a Connect without a valid cookie
	Probe                     // padding only; its size is being probed
	Probed                    // answers Probe
	Versions                  // answers a Connect of another protocol version
	numTypes
)

// Established reports whether packets of this type belong to an established connection.
func (t Type) Established() bool { return t <= Ack || t == Probe || t == Probed }

// Flags of the header.
type Flags uint8

const (
	AckRequest Flags = 1 << iota // acknowledge without delay
	HasSACK                      // a SACK block follows the header
	KeyPhase                     // secure mode: key phase modulo 2
	Epoch                        // epoch of the packet, see docs/WIRE.md
	NoCredit                     // the credit field is void (shared receive queue)
	EpochSeen                    // the peer's epoch as the sender knows it
	NotReady                     // receiver not ready: the packet with PSN Ack found no receive
	SourcePort                   // the sender receives at the source port of this packet
)

// Offsets and sizes of the header and the trailer.
const (
	offType    = 0
	offFlags   = 1
	offCE      = 2
	offCID     = 4
	offPSN     = 8
	offAck     = 12
	offCredit  = 16
	offTS      = 20
	offEcho    = 24
	offTag     = 28
	HeaderSize = 32
	// OffFlags and OffCounter are the offsets of the bytes that package seal changes.
	OffFlags   = offFlags
	OffCounter = offTag
	// TrailerSize is the size of the trailer, the CRC32C of all bytes before it.
	TrailerSize = 4
)

// MaxWindow is the largest receive window in packets. A PSN that differs from the expected PSN by more than MaxWindow
// is implausible. A SACK block covers at most MaxWindow packets.
const MaxWindow = 1024

// A SACK block has one bit for each packet after the packet with the PSN Ack. Bit i is set if the packet with the PSN
// Ack+1+i has arrived. Bit 0 is the least significant bit of the first byte. The last 4-byte word of the block contains
// the last bit that is set.
const (
	SACKWord    = 4 // bytes
	MaxSACKSize = MaxWindow / 8
)

// SACKSize returns the size in bytes of a SACK block whose last set bit is bit last.
func SACKSize(last int) int { return (last/8/SACKWord + 1) * SACKWord }

// SACKFits reports whether a SACK block may be n bytes long.
func SACKFits(n int) bool { return n > 0 && n <= MaxSACKSize && n%SACKWord == 0 }

// Header is the parsed header of a packet.
type Header struct {
	Type   Type
	Flags  Flags
	CE     uint16  // number of congestion marks that the sender has received; wraps
	CID    uint32  // the receiver's ID of the connection
	PSN    seq.Num // Data: number of this packet; other types: number of the next new packet
	Ack    seq.Num // PSN that the sender expects next
	Credit seq.Num // number of messages that the peer may send, counted from the beginning of the connection
	TS     uint32  // time stamp: sender's clock in units of 64 ns
	Echo   uint32  // newest time stamp received, plus the time since then; 0: none
	// Tag is the verification tag that the receiver has chosen (RFC 9260 §8.5). It is 0 in Connect. Closed and Reset
	// return the tag of the packet that they answer. In a sealed packet, Tag is the lower half of the counter.
	Tag uint32
}

// Put writes h into the first HeaderSize bytes of b.
func (h *Header) Put(b []byte) {
	p := (*[HeaderSize]byte)(b)
	p[offType] = Version<<4 | byte(h.Type)
	p[offFlags] = byte(h.Flags)
	binary.BigEndian.PutUint16(p[offCE:], h.CE)
	binary.BigEndian.PutUint32(p[offCID:], h.CID)
	binary.BigEndian.PutUint32(p[offPSN:], uint32(h.PSN))
	binary.BigEndian.PutUint32(p[offAck:], uint32(h.Ack))
	binary.BigEndian.PutUint32(p[offCredit:], uint32(h.Credit))
	binary.BigEndian.PutUint32(p[offTS:], h.TS)
	binary.BigEndian.PutUint32(p[offEcho:], h.Echo)
	binary.BigEndian.PutUint32(p[offTag:], h.Tag)
}

// Parse reads the header at the start of b. It reports false for a short packet, another version or an unknown type.
func (h *Header) Parse(b []byte) bool {
	if len(b) < HeaderSize {
		return false
	}
	p := (*[HeaderSize]byte)(b)
	h.Type = Type(p[offType] & 0xf)
	h.Flags = Flags(p[offFlags])
	h.CE = binary.BigEndian.Uint16(p[offCE:])
	h.CID = binary.BigEndian.Uint32(p[offCID:])
	h.PSN = seq.Num(binary.BigEndian.Uint32(p[offPSN:]))
	h.Ack = seq.Num(binary.BigEndian.Uint32(p[offAck:]))
	h.Credit = seq.Num(binary.BigEndian.Uint32(p[offCredit:]))
	h.TS = binary.BigEndian.Uint32(p[offTS:])
	h.Echo = binary.BigEndian.Uint32(p[offEcho:])
	h.Tag = binary.BigEndian.Uint32(p[offTag:])
	return p[offType]>>4 == Version && h.Type >= Data && h.Type < numTypes
}

// Peek returns type and connection ID of a packet of any version. It reports false for a short packet.
func Peek(b []byte) (t Type, cid uint32, ok bool) {
	if len(b) < HeaderSize {
		return 0, 0, false
	}
	return Type(b[offType] & 0xf), binary.BigEndian.Uint32(b[offCID:]), true
}

// TypeMask has the bits of the first byte of a packet that are its type.
const TypeMask = 0xf

// minForeign is the least size of a Connect of another version. Connects of all versions have these fields at the same
// offsets: version and type in byte 0, SourcePort in byte 1, the PSN in the header, and the sender's CID and tag after
// the header. An answer needs only these fields.
const minForeign = HeaderSize + 8 + TrailerSize

// Foreign parses a Connect of another protocol version. It reads only the fields that have the same offsets in all
// versions. It returns the version and the flags of the Connect, and fills in h as the header of the answer. It reports
// false for any other packet.
func Foreign(b []byte, h *Header) (version byte, flags Flags, ok bool) {
	if len(b) < minForeign || Type(b[offType]&0xf) != Connect || b[offType]>>4 == Version {
		return 0, 0, false
	}
	*h = Header{Type: Versions,
		CID: binary.BigEndian.Uint32(b[HeaderSize:]),
		Ack: seq.Num(binary.BigEndian.Uint32(b[offPSN:])),
		Tag: binary.BigEndian.Uint32(b[HeaderSize+4:])}
	return b[offType] >> 4, Flags(b[offFlags]), true
}

// PutVersions writes the body of a Versions packet into b: one byte for each version that this side speaks. It returns
// the size of the body. The packet answers a Connect of another version, which is the argument asked. The caller has
// written the header of the answer with Put. PutVersions replaces the version in this header by that of the Connect.
func PutVersions(header, b []byte, asked byte) int {
	header[offType] = asked<<4 | byte(Versions)
	b[0] = Version
	return 1
}

// CRC updates checksum crc with the bytes in b. The checksum of no bytes is 0.
func CRC(crc uint32, b []byte) uint32 { return crc32c.Update(crc, b) }

// PutTrailer writes the trailer into the first TrailerSize bytes of b.
func PutTrailer(b []byte, crc uint32) { binary.BigEndian.PutUint32(b, crc) }

// Trailer reads the trailer from the first TrailerSize bytes of b.
func Trailer(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
