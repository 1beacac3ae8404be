package route

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
)

// maxPrefixes bounds the routes of one family that prefixes takes in, in the kernel's order, which is that of addresses.
const maxPrefixes = 4096

// prefixes are the unicast routes through the interface, of every table but the local one; it does not change.
type prefixes struct {
	bits4, bits6 []int // lengths that there are, the longest first
	gateways     map[netip.Prefix]gateway
}

// gateway is what one route leads to.
type gateway struct {
	addr     netip.Addr // not valid: the destination itself
	table    int
	priority int
}

// via is the next hop to dst by the longest prefix; ok is false without a route.
func (p *prefixes) via(dst netip.Addr) (hop netip.Addr, ok bool) {
	lengths := p.bits6
	if dst.Is4() {
		lengths = p.bits4
	}
	for _, n := range lengths {
		prefix, err := dst.Prefix(n)
		if err != nil {
			continue
		}
		if g, ok := p.gateways[prefix]; ok {
			if g.addr.IsValid() {
				return g.addr, true
			}
			return dst, true
		}
	}
	return netip.Addr{}, false
}

// add takes a route in. Of several with one prefix that of the main table counts, then that of the lowest priority.
func (p *prefixes) add(dst netip.Prefix, g gateway) {
	was, ok := p.gateways[dst]
	if ok && rank(was) <= rank(g) {
		return
	}
	p.gateways[dst] = g
	lengths := &p.bits6
	if dst.Addr().Is4() {
		lengths = &p.bits4
	}
	if !slices.Contains(*lengths, dst.Bits()) {
		*lengths = append(*lengths, dst.Bits())
		slices.SortFunc(*lengths, func(a, b int) int { return b - a })
	}
}

func rank(g gateway) int64 {
	r := int64(uint32(g.priority))
	if g.table != syscall.RT_TABLE_MAIN {
		r += 1 << 32
	}
	return r
}

// readPrefixes takes over the kernel's routes through the interface.
//
// System calls: sendto, recvfrom (netlink).
func (t *Table) readPrefixes() error {
	p := &prefixes{gateways: make(map[netip.Prefix]gateway)}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		left := maxPrefixes
		all := &netlink.Route{Table: syscall.RT_TABLE_UNSPEC}
		err := t.handle.RouteListFilteredIter(family, all, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
			g, ok := t.gatewayOf(&r)
			if ok {
				p.add(prefixOf(family, r.Dst), g)
				left--
			}
			return left > 0
		})
		// After an interrupted dump a change is announced, and everything is read again.
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return fmt.Errorf("route: list routes through %s: %w", t.Interface().Name, err)
		}
	}
	t.prefixes.Store(p)
	return nil
}

// gatewayOf is where a route through the interface leads to; ok is false for any other route.
func (t *Table) gatewayOf(r *netlink.Route) (g gateway, ok bool) {
	if r.Type != syscall.RTN_UNICAST || r.Table == syscall.RT_TABLE_LOCAL {
		return g, false
	}
	g = gateway{table: r.Table, priority: r.Priority}
	if r.LinkIndex == t.index {
		g.addr = gatewayAddr(r.Gw, r.Via)
		return g, true
	}
	for _, n := range r.MultiPath {
		if n.LinkIndex == t.index {
			g.addr = gatewayAddr(n.Gw, n.Via)
			return g, true
		}
	}
	return g, false
}

// gatewayAddr is the address of a gateway, which may be of another family than the route; not valid without one.
func gatewayAddr(gw net.IP, other netlink.Destination) netip.Addr {
	if a := address(gw); a.IsValid() {
		return a
	}
	if via, ok := other.(*netlink.Via); ok && via != nil {
		return address(via.Addr)
	}
	return netip.Addr{}
}

// prefixOf is the destination of a route; none is the default route.
func prefixOf(family int, n *net.IPNet) netip.Prefix {
	if n == nil {
		if family == netlink.FAMILY_V4 {
			return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		}
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(address(n.IP), bits).Masked()
}
