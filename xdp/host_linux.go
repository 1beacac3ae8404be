package xdp

import (
	"math/bits"
	"net/netip"
)

// host is the identity of the interface: its addresses, and how packets reach other hosts.
type host struct {
	mac    [6]byte
	local  netip.AddrPort
	addrs  []netip.Addr // every address of the interface; local comes first
	groups []netip.Addr // broadcast addresses of the interface's subnets
	mtu    int
	router router
	memory memory // consumers' memory that packets are sent from in place; nil without
}

func (h *host) owns(a netip.Addr) bool {
	for _, mine := range h.addrs {
		if a == mine {
			return true
		}
	}
	return false
}

// source chooses the source address for packets to an address. Our own address has priority if the family matches.
// Second is the source address that the kernel prefers, if the device serves it. Last is the served address with the
// longest common prefix (RFC 6724 §5, rule 8). The device does not serve addresses that were added after Open. source
// returns the zero Addr if no address fits.
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
