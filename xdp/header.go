package xdp

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// Offsets and sizes of what lies in front of UDP payload, in bytes.
const (
	ethDst, ethSrc, ethType = 0, 6, 12
	ethSize, vlanSize       = 14, 4

	v4TOS, v4Length, v4Fragment, v4TTL, v4Protocol, v4Sum, v4Src, v4Dst = 1, 2, 6, 8, 9, 10, 12, 16
	v4Size                                                              = 20

	v6Length, v6Next, v6Hops, v6Src, v6Dst = 4, 6, 7, 8, 24
	v6Size                                 = 40

	udpSrc, udpDst, udpLength, udpSum = 0, 2, 4, 6
	udpSize                           = 8

	headers4 = ethSize + v4Size + udpSize
	headers6 = ethSize + v6Size + udpSize
)

var _ [headRoom - headers6]struct{} // the largest header that we write fits in front of a frame

const (
	typeIPv4, typeIPv6, typeVLAN, typeQinQ = 0x0800, 0x86dd, 0x8100, 0x88a8
	vlanID                                 = 0x0fff // of a tag; 0 is no VLAN, only a priority

	protocolUDP  = 17
	hops         = 64
	ecnMask      = 3
	ecnCE        = 3
	ecnCapable   = 2 // ECT(0): routers mark instead of dropping
	dontFragment = 0x40
)

var be = binary.BigEndian

// layout says where the parts of a received packet lie.
type layout struct {
	ip      int // where the IP header begins
	payload int // where UDP payload begins
	size    int // bytes of UDP payload, all fragments together
	v6, ce  bool
}

// parse reads the headers of a packet that begins with b and is total bytes long. It trusts no
// length: ok is false for a packet that is not whole, unfragmented UDP inside b's packet, is in a VLAN with a number,
// has no hop left or a wrong IPv4 header checksum. UDP checksums are not verified: those of packets that never left a
// host are partial.
func parse(b []byte, total int) (l layout, ok bool) {
	if len(b) < headers4 {
		return l, false
	}
	l.ip = ethSize
	kind := be.Uint16(b[ethType:])
	if kind == typeVLAN || kind == typeQinQ {
		if be.Uint16(b[ethSize:])&vlanID != 0 {
			return l, false
		}
		kind = be.Uint16(b[ethType+vlanSize:])
		l.ip += vlanSize
	}
	switch kind {
	case typeIPv4:
		return parse4(b, total, l)
	case typeIPv6:
		return parse6(b, total, l)
	}
	return l, false
}

func parse4(b []byte, total int, l layout) (layout, bool) {
	h := b[l.ip:]
	if len(h) < v4Size+udpSize || h[0]>>4 != 4 {
		return l, false
	}
	size, length := int(h[0]&15)*4, int(be.Uint16(h[v4Length:]))
	fragment := be.Uint16(h[v4Fragment:]) &^ (dontFragment << 8)
	if size < v4Size || len(h) < size+udpSize || length > total-l.ip || h[v4Protocol] != protocolUDP || fragment != 0 {
		return l, false
	}
	if h[v4TTL] == 0 || !sound4(h[:size]) {
		return l, false
	}
	l.ce = h[v4TOS]&ecnMask == ecnCE
	return parseUDP(h[size:], length-size, l, l.ip+size)
}

// sound4 reports whether the checksum of an IPv4 header, options included, is right. The sum does not depend on the
// order of bytes (RFC 1071); one without options takes four additions.
func sound4(h []byte) bool {
	if len(h) != v4Size {
		return fold(sum(h, 0)) == 0xffff
	}
	s, carry := bits.Add64(binary.NativeEndian.Uint64(h), binary.NativeEndian.Uint64(h[8:]), 0)
	s, carry = bits.Add64(s, uint64(binary.NativeEndian.Uint32(h[16:])), carry)
	s = s>>32 + s&0xffffffff + carry
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return s>>16+s&0xffff == 0xffff
}

func parse6(b []byte, total int, l layout) (layout, bool) {
	h := b[l.ip:]
	if len(h) < v6Size+udpSize || h[0]>>4 != 6 {
		return l, false
	}
	length := int(be.Uint16(h[v6Length:]))
	if length > total-l.ip-v6Size || h[v6Next] != protocolUDP || h[v6Hops] == 0 {
		return l, false
	}
	l.v6 = true
	l.ce = h[1]>>4&ecnMask == ecnCE
	return parseUDP(h[v6Size:], length, l, l.ip+v6Size)
}

// parseUDP reads the UDP header at the head of u, in room bytes that IP says are there.
func parseUDP(u []byte, room int, l layout, at int) (layout, bool) {
	length := int(be.Uint16(u[udpLength:]))
	if length < udpSize || length > room {
		return l, false
	}
	l.payload, l.size = at+udpSize, length-udpSize
	return l, true
}

// sourceOf is the source address in the IP header at the head of h.
func sourceOf(h []byte) netip.Addr {
	if h[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(h[v6Src : v6Src+16]))
	}
	return netip.AddrFrom4([4]byte(h[v4Src : v4Src+4]))
}

// fill4 completes the lengths and the checksum of an IPv4 and a UDP header, in h, for size bytes
// of payload. The UDP checksum is 0, "none": the protocol carries a stronger one.
func fill4(h []byte, ihl, size int) {
	be.PutUint16(h[v4Length:], uint16(ihl+udpSize+size))
	be.PutUint16(h[v4Sum:], 0)
	be.PutUint16(h[v4Sum:], ^fold(sum(h[:ihl], 0)))
	be.PutUint16(h[ihl+udpLength:], uint16(udpSize+size))
	be.PutUint16(h[ihl+udpSum:], 0)
}

// fill6 completes the lengths of an IPv6 and a UDP header. The UDP checksum, which IPv6 demands,
// is put in by seal6 when the payload is known.
func fill6(h []byte, size int) {
	be.PutUint16(h[v6Length:], uint16(udpSize+size))
	be.PutUint16(h[v6Size+udpLength:], uint16(udpSize+size))
	be.PutUint16(h[v6Size+udpSum:], 0)
}

// pseudo6 is the sum over the UDP header and IPv6 pseudo header at h.
func pseudo6(h []byte) uint64 {
	s := sum(h[v6Src:v6Size+udpSize], 0)
	return s + uint64(be.Uint16(h[v6Length:])) + protocolUDP
}

// seal6 puts a UDP checksum into the header at h; s is the sum over all that it covers.
func seal6(h []byte, s uint64) {
	c := ^fold(s)
	if c == 0 {
		c = 0xffff // 0 means none
	}
	be.PutUint16(h[v6Size+udpSum:], c)
}

// seal puts the UDP checksum of a packet into the IPv6 and UDP headers at h.
func seal(h []byte, packet []link.Buf) {
	total, odd := pseudo6(h), false
	for i := range packet {
		part := uint64(fold(sum(packet[i].Data, 0)))
		if odd { // what begins on an odd byte counts with its bytes swapped
			part = part<<8&0xff00 | part>>8
		}
		total += part
		odd = odd != (len(packet[i].Data)&1 == 1)
	}
	seal6(h, total)
}

// sum adds the big-endian 16-bit words of b to s, without folding; an odd last byte counts as the
// high half of a word.
func sum(b []byte, s uint64) uint64 {
	for len(b) >= 8 {
		v := be.Uint64(b)
		s += v>>32 + v&0xffffffff
		b = b[8:]
	}
	for len(b) >= 2 {
		s += uint64(be.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

// fold makes the 16-bit ones' complement sum of a sum of 16- and 32-bit words.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
