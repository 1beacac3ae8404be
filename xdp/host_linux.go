package xdp

import (
	"math/bits"
	"net/netip"
)

// host is the identity of the interface: its addresses, and how packets reach other hosts.
type host struct {
	mac     [6]byte
	local   netip.AddrPort
	pinned  bool         // the opener has named the address of local
	sources []uint16     // ports from which packets leave to other hosts, a power of two of them; nil: that of local
	served  *servedAddrs // the addresses of the interface; local comes first
	mtu     int
	router  router
	memory  memory // the consumers' memory; nil if there is none
}

// sourcePort chooses the source port of a path.
func (h *host) sourcePort(entropy uint16) uint16 {
	if len(h.sources) == 0 {
		return h.local.Port()
	}
	return h.sources[int(entropy)&(len(h.sources)-1)]
}

func (h *host) owns(a netip.Addr) bool { return h.served.now.Load().owns(a) }

// at returns our port at an address.
func (h *host) at(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, h.local.Port()) }

// sourceFor returns the source address for packets to an address. It is not valid if the device serves no address of
// this family. Of several, the kernel chooses, as for a socket that is not bound: by the source of the route (src of
// ip-route(8)), the network of the gateway, or RFC 6724. So the peer can answer if it can answer kernel TCP.
func (h *host) sourceFor(to netip.AddrPort) netip.Addr {
	var preferred netip.Addr
	if h.choice(to.Addr()) {
		if next, err := h.router.Resolve(h.at(netip.Addr{}), to); err == nil {
			preferred = next.Source()
			h.router.Release(next)
		}
	}
	return h.source(to.Addr(), preferred)
}

// source chooses a source address of dst's family for packets to dst. The order of preference is:
//
//   - the device's own address, if it is pinned
//   - the source address that the kernel prefers, if the device serves it
//   - the device's own address
//   - the served address that has the longest common prefix with dst (RFC 6724 §5, rule 8)
//   - the zero Addr, if the device serves no address of this family
func (h *host) source(dst, preferred netip.Addr) (best netip.Addr) {
	own := h.local.Addr()
	sameFamily := own.Is4() == dst.Is4()
	switch {
	case sameFamily && h.pinned:
		return own
	case preferred.IsValid() && preferred.Is4() == dst.Is4() && h.owns(preferred):
		return preferred
	case sameFamily:
		return own
	}
	for _, a := range h.served.now.Load().addrs {
		if a.Is4() == dst.Is4() && (!best.IsValid() || commonBits(a, dst) > commonBits(best, dst)) {
			best = a
		}
	}
	return best
}

// choice reports whether the kernel's choice matters for the source of packets to dst: the device serves several
// addresses of its family.
func (h *host) choice(dst netip.Addr) bool {
	if h.pinned && h.local.Addr().Is4() == dst.Is4() {
		return false
	}
	n := 0
	for _, a := range h.served.now.Load().addrs {
		if a.Is4() == dst.Is4() {
			n++
		}
	}
	return n > 1
}

// commonBits returns the length in bits of the common prefix of two addresses of one family.
func commonBits(a, b netip.Addr) int {
	x, y := a.As16(), b.As16()
	for i := range x {
		if d := x[i] ^ y[i]; d != 0 {
			return 8*i + bits.LeadingZeros8(d)
		}
	}
	return 128
}
