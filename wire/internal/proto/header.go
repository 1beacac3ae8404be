// Package proto is the byte layout of protocol version 2: accessors without state. docs/WIRE.md is
// the reference. All numbers are big-endian. No function here panics on any input whose length its
// doc comment allows, and none allocates.
package proto

import (
	"encoding/binary"

	"github.com/datxdp/datxdp/wire/internal/crc32c"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Version is the protocol version in the upper half of the first byte.
const Version = 2

// Type is what a packet is for, the lower half of the first byte.
type Type uint8

// Packet types. Only Data takes a packet sequence number.
const (
	Data      Type = 1 + iota // chunks of an established connection
	Ack                       // no chunks; the header's acknowledgement and credit
	Connect                   // asks a service for a connection
	Accept                    // answers Connect
	Reject                    // refuses Connect
	Close                     // ends a connection; repeated until Closed comes
	Closed                    // acknowledges Close
	Reset                     // the connection that a packet named is not known here
	Challenge                 // answers a Connect without a valid cookie
	Probe                     // padding only: does a packet of this size arrive?
	Probed                    // answers Probe
	Versions                  // answers a Connect of a version that is not spoken here
	numTypes
)

// Established reports whether packets of this type belong to an established connection.
func (t Type) Established() bool { return t <= Ack || t == Probe || t == Probed }

// Flags of the header.
type Flags uint8

const (
	AckRequest Flags = 1 << iota // acknowledge without delay
	HasSACK                      // a SACK block follows the header
	KeyPhase                     // secure mode: which of two keys
	Epoch                        // path MTU epoch
	NoCredit                     // the credit field means nothing (shared receive queue)
	EpochSeen                    // the epoch of the peer's data that this end takes
	NotReady                     // the packet that Ack names came, and found no receive: send it later
	SourcePort                   // the sender receives at the UDP port that this packet left from
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
	// TrailerSize is the CRC32C of all bytes before it.
	TrailerSize = 4
)

// MaxWindow is the largest distance between two packets of one direction that the protocol can tell:
// PSNs further from the one expected are implausible, and a SACK block covers as many.
const MaxWindow = 1024

// A SACK block has a bit for each packet after Ack: bit i, from the least significant bit of the first
// byte, is set when packet Ack+1+i has arrived. It is cut after the last bit that is set, to whole words.
const (
	SACKWord    = 4 // bytes
	MaxSACKSize = MaxWindow / 8
)

// SACKSize is the size of a SACK block whose last bit is number last.
func SACKSize(last int) int { return (last/8/SACKWord + 1) * SACKWord }

// SACKFits reports whether a SACK block may be n bytes long.
func SACKFits(n int) bool { return n > 0 && n <= MaxSACKSize && n%SACKWord == 0 }

// Header is the fixed header of every packet, as numbers.
type Header struct {
	Type   Type
	Flags  Flags
	CE     uint16  // congestion marks seen so far on this connection
	CID    uint32  // the receiver's name of the connection
	PSN    seq.Num // Data: this packet's number; else the next to be sent
	Ack    seq.Num // next packet expected
	Credit seq.Num // messages the peer may send, counted from the first
	TS     uint32  // sender's clock, units of 64 ns
	Echo   uint32  // newest TS received plus the time since, same unit; 0: none
	// Tag is the receiver's verification tag (RFC 9260 §8.5), 0 in Connect. Closed and Reset reflect the tag of
	// the packet that they answer. Secure mode: the low half of the nonce.
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

// Parse reads the header at the start of b. It reports false for a short packet, another version or
// an unknown type.
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

// Connect packets of every version have the fields that an answer to another version needs at these
// offsets: the version and type in byte 0, the PSN, and behind the header the sender's CID and tag.
const minForeign = HeaderSize + 8 + TrailerSize

// Foreign reads what all versions have in common of a whole packet that is a Connect of another version.
// It reports false for every other packet. h is the header of the answer then.
func Foreign(b []byte, h *Header) (version byte, ok bool) {
	if len(b) < minForeign || Type(b[offType]&0xf) != Connect || b[offType]>>4 == Version {
		return 0, false
	}
	*h = Header{Type: Versions,
		CID: binary.BigEndian.Uint32(b[HeaderSize:]),
		Ack: seq.Num(binary.BigEndian.Uint32(b[offPSN:])),
		Tag: binary.BigEndian.Uint32(b[HeaderSize+4:])}
	return b[offType] >> 4, true
}

// PutVersions writes the body of Versions, the versions that are spoken here, a byte each, into b and
// returns its size. It makes the header in front, which Put wrote, one of the version asked.
func PutVersions(header, b []byte, asked byte) int {
	header[offType] = asked<<4 | byte(Versions)
	b[0] = Version
	return 1
}

// CRC extends the checksum crc (0 at first) of a packet by b.
func CRC(crc uint32, b []byte) uint32 { return crc32c.Update(crc, b) }

// PutTrailer writes the trailer into the first TrailerSize bytes of b.
func PutTrailer(b []byte, crc uint32) { binary.BigEndian.PutUint32(b, crc) }

// Trailer reads the trailer from the first TrailerSize bytes of b.
func Trailer(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
