package xdp

import (
	"fmt"
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// hop is the next hop to a destination, and how to reach it. MAC is called for each packet and does not lock.
type hop interface {
	MAC() (mac [6]byte, ok bool)
	Source() netip.Addr
	MTU() int
	// Failures counts how often the kernel has given up the neighbour while it was unknown.
	Failures() uint32
}

// router resolves hops. The source port is that of the device, as for a UDP socket that is bound to it: policy rules may
// select ports. The source port in a packet is entropy, which no rule can mean.
type router interface {
	// Resolve returns the kernel's route for packets from src. If the address of src is not valid, the kernel chooses the
	// source. Resolve waits for the kernel for at most resolveWait, and then uses what Known returns.
	Resolve(src, dst netip.AddrPort) (hop, error)
	// Known returns a route from what is known, without waiting.
	Known(src, dst netip.AddrPort) (hop, error)
	Release(hop)
	// InZone reports whether a zone names the interface, by its name or its index (RFC 4007).
	InZone(zone string) bool
	// Local reports whether packets stay on this host.
	Local(src, dst netip.AddrPort) bool
	// Answer returns the MAC address for the reply to a received packet, from its destination address own to its source
	// address peer, which may be forged. ethSource is the packet's source MAC address. Answer is called for each reply and
	// does not lock.
	Answer(own, peer netip.AddrPort, ethSource [6]byte) (mac [6]byte, ok bool)
}

// path is one resolved destination. It is immutable once it is in the table.
type path struct {
	hop      hop    // nil when the destination is this host
	failures uint32 // of hop, when the path was made
	guard    *guard // sends packets to other programs of this host
	to       netip.AddrPort
	template [headers6]byte
	size     int // bytes of template: headers4 or headers6
	sum4     uint64
}

func (p *path) v6() bool { return p.size == headers6 }

// newPath builds the header template of a path from src to dst.
func newPath(mac [6]byte, src, dst netip.AddrPort, h hop) (*path, error) {
	if src.Addr().Is4() != dst.Addr().Is4() {
		return nil, fmt.Errorf("xdp: from %v to %v: %w", src, dst, link.ErrUnreachable)
	}
	p := &path{hop: h, size: headers6, to: dst}
	if dst.Addr().Is4() {
		p.size = headers4
	}
	if h != nil {
		p.failures = h.Failures()
	}
	b := p.template[:p.size]
	putTemplate(b, mac, src, dst)
	if !p.v6() {
		p.sum4 = sum(b[ethSize:ethSize+v4Size], 0)
	}
	return p, nil
}

// putTemplate writes headers without lengths and checksums into b, which is as long as they are.
func putTemplate(b []byte, mac [6]byte, src, dst netip.AddrPort) {
	clear(b)
	copy(b[ethSrc:], mac[:])
	ip := b[ethSize:]
	if dst.Addr().Is6() {
		be.PutUint16(b[ethType:], typeIPv6)
		be.PutUint32(ip, 6<<28|ecnCapable<<20)
		ip[v6Next], ip[v6Hops] = protocolUDP, hops
		copy(ip[v6Src:], src.Addr().AsSlice())
		copy(ip[v6Dst:], dst.Addr().AsSlice())
	} else {
		be.PutUint16(b[ethType:], typeIPv4)
		ip[0], ip[v4TOS] = 4<<4|v4Size/4, ecnCapable
		ip[v4Fragment], ip[v4TTL], ip[v4Protocol] = dontFragment, hops, protocolUDP
		copy(ip[v4Src:], src.Addr().AsSlice())
		copy(ip[v4Dst:], dst.Addr().AsSlice())
	}
	udp := b[len(b)-udpSize:]
	be.PutUint16(udp[udpSrc:], src.Port())
	be.PutUint16(udp[udpDst:], dst.Port())
}

// writeHeaders writes the headers for a payload of size bytes into h. The length of h is p.size. writeHeaders does not
// compute the UDP checksum of IPv6. It returns false while the neighbour is unresolved.
func (p *path) writeHeaders(h []byte, size int) (ok bool) {
	copy(h, p.template[:p.size])
	if p.hop != nil {
		mac, known := p.hop.MAC()
		if !known {
			return false
		}
		copy(h[ethDst:], mac[:])
	}
	ip := h[ethSize:]
	if p.v6() {
		fill6(ip, size)
		return true
	}
	length := uint16(v4Size + udpSize + size)
	be.PutUint16(ip[v4Length:], length)
	be.PutUint16(ip[v4Sum:], ^fold(p.sum4+uint64(length)))
	be.PutUint16(ip[v4Size+udpLength:], length-v4Size)
	return true
}
