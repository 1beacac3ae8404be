package xdp

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// Offsets and sizes in bytes of the headers before the UDP payload.
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

var _ [headRoom - headers6]struct{} // compile-time check: the largest header that we write fits into the headroom

const (
	typeIPv4, typeIPv6, typeVLAN, typeQinQ = 0x0800, 0x86dd, 0x8100, 0x88a8
	groupBit                               = 1      // in the first byte of a MAC address
	vlanID                                 = 0x0fff // VLAN ID in the tag; ID 0 carries a priority only

	protocolUDP  = 17
	hops         = 64
	ecnMask      = 3
	ecnCE        = 3
	ecnCapable   = 2 // ECT(0): switches mark instead of dropping
	dontFragment = 0x40
)

var be = binary.BigEndian

// layout holds the offsets of the parts of a received packet.
type layout struct {
	ip      int // offset of the IP header
	payload int // offset of the UDP payload
	size    int // UDP payload of the packet in bytes, over all its frames
	v6, ce  bool
}

// parse reads the headers at the beginning of a packet. b is the packet's first frame. total is the size of the whole
// packet in bytes; parse checks every length against it. ok is true for UDP without fragmentation, with a non-zero TTL
// and, over IPv4, with a correct header checksum. The source MAC address must not be a group address (IEEE 802). The packet may have a VLAN tag with ID 0, which gives only a
// priority. With another ID it belongs to another network, and ok is false. parse does not verify the UDP checksum,
// because packets between interfaces of one host have only a partial checksum.
func parse(b []byte, total int) (l layout, ok bool) {
	if len(b) < headers4 || b[ethSrc]&groupBit != 0 {
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

// sound4 reports whether the checksum of an IPv4 header is correct. The ones' complement sum does not depend on the
// byte order (RFC 1071 §2), so a header without options is added up in large words of the native byte order.
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

// parseUDP reads the UDP header at the beginning of u. room is the number of bytes that the IP header leaves for UDP.
func parseUDP(u []byte, room int, l layout, at int) (layout, bool) {
	length := int(be.Uint16(u[udpLength:]))
	if length < udpSize || length > room {
		return l, false
	}
	l.payload, l.size = at+udpSize, length-udpSize
	return l, true
}

// sourceOf returns the source address of the IP header at the beginning of h.
func sourceOf(h []byte) netip.Addr {
	if h[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(h[v6Src : v6Src+16]))
	}
	return netip.AddrFrom4([4]byte(h[v4Src : v4Src+4]))
}

// targetOf returns the destination address of the IP header at the beginning of h.
func targetOf(h []byte) netip.Addr {
	if h[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(h[v6Dst:]))
	}
	return netip.AddrFrom4([4]byte(h[v4Dst:]))
}

// fill4 writes the lengths and the header checksum of the IPv4 and UDP headers in h. size is the length of the payload
// in bytes. The UDP checksum becomes 0, which means that there is no checksum: the protocol above UDP has a stronger
// checksum.
func fill4(h []byte, ihl, size int) {
	be.PutUint16(h[v4Length:], uint16(ihl+udpSize+size))
	be.PutUint16(h[v4Sum:], 0)
	be.PutUint16(h[v4Sum:], ^fold(sum(h[:ihl], 0)))
	be.PutUint16(h[ihl+udpLength:], uint16(udpSize+size))
	be.PutUint16(h[ihl+udpSum:], 0)
}

// fill6 writes the lengths of the IPv6 and UDP headers in h. size is the length of the payload in bytes. It sets the
// UDP checksum to 0. IPv6 requires this checksum; seal6 computes it when the payload is known.
func fill6(h []byte, size int) {
	be.PutUint16(h[v6Length:], uint16(udpSize+size))
	be.PutUint16(h[v6Size+udpLength:], uint16(udpSize+size))
	be.PutUint16(h[v6Size+udpSum:], 0)
}

// pseudo6 returns the sum over the UDP header and the IPv6 pseudo-header (RFC 8200 §8.1) at h.
func pseudo6(h []byte) uint64 {
	s := sum(h[v6Src:v6Size+udpSize], 0)
	return s + uint64(be.Uint16(h[v6Length:])) + protocolUDP
}

// seal6 writes the UDP checksum into the header at h. s is the sum over all bytes that the checksum covers.
func seal6(h []byte, s uint64) {
	c := ^fold(s)
	if c == 0 {
		c = 0xffff // 0 would mean no checksum
	}
	be.PutUint16(h[v6Size+udpSum:], c)
}

// seal computes the UDP checksum of a packet and writes it into the IPv6 and UDP headers at h.
func seal(h []byte, packet []link.Buf) {
	total, odd := pseudo6(h), false
	for i := range packet {
		part := uint64(fold(sum(packet[i].Data, 0)))
		if odd { // after an odd number of bytes, a part's sum has its bytes swapped
			part = part<<8&0xff00 | part>>8
		}
		total += part
		odd = odd != (len(packet[i].Data)&1 == 1)
	}
	seal6(h, total)
}

// sum adds the big-endian 16-bit words of b to s, without folding. An odd last byte is the high half of a word.
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

// fold reduces a sum of 16- and 32-bit words to the 16-bit ones' complement sum.
func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}
