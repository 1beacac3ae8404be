package xdp

import (
	"math/bits"
	"net/netip"
)

// host is the identity of the interface: the addresses that its sockets serve, and how they reach others.
type host struct {
	mac    [6]byte
	local  netip.AddrPort
	addrs  []netip.Addr // every address of the interface, local first
	groups []netip.Addr // the broadcast addresses of its subnets
	mtu    int
	router router
	memory memory // what packets may be sent from in place; nil without
}

func (h *host) owns(a netip.Addr) bool {
	for _, mine := range h.addrs {
		if a == mine {
			return true
		}
	}
	return false
}

// source is the address that packets to an address leave from: our own where the family fits, else the one that the
// kernel would take, if it is served, else the served address that shares the longest prefix (RFC 6724, rule 8). An
// address that the interface was given after the adapter was opened is not served. The zero Addr says that
// no address fits.
func (h *host) source(to, kernel netip.Addr) (best netip.Addr) {
	if h.local.Addr().Is4() == to.Is4() {
		return h.local.Addr()
	}
	if h.owns(kernel) {
		return kernel
	}
	for _, a := range h.addrs {
		if a.Is4() == to.Is4() && (!best.IsValid() || commonBits(a, to) > commonBits(best, to)) {
			best = a
		}
	}
	return best
}

// commonBits is how many bits two addresses of one family begin with that are the same.
func commonBits(a, b netip.Addr) int {
	x, y := a.As16(), b.As16()
	for i := range x {
		if d := x[i] ^ y[i]; d != 0 {
			return 8*i + bits.LeadingZeros8(d)
		}
	}
	return 128
}
