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

// maxPrefixes is the largest number of routes per family in prefixes. The kernel lists routes in the order of their
// addresses; prefixes leaves out the last ones.
const maxPrefixes = 4096

// prefixes maps destination prefixes to gateways. It is immutable. The prefixes of a Table are the unicast routes
// through its interface, from all routing tables except the local one, and the routes of the main table that refuse
// packets.
type prefixes struct {
	bits4, bits6 []int // existing prefix lengths, longest first
	gateways     map[netip.Prefix]gateway
}

// gateway is the next hop of one route.
type gateway struct {
	addr     netip.Addr // invalid if the next hop is the destination itself
	mtu      int        // of the route; 0 if it has none. In a Reach, the minimum of this and the MTU of the interface
	free     bool       // packets do not wait for a neighbour; used by Reach only
	refuses  bool       // the route refuses packets; used by Table only
	table    int
	priority int
}

// via returns the next hop to dst by the longest prefix; ok is false without a route.
func (p *prefixes) via(dst netip.Addr) (hop netip.Addr, ok bool) {
	w, ok := p.way(dst)
	return w.via, ok
}

// way returns the route to dst by the longest prefix, without a source address; ok is false without a route.
func (p *prefixes) way(dst netip.Addr) (w way, ok bool) {
	g, ok := p.find(dst)
	if ok && !g.addr.IsValid() {
		g.addr = dst
	}
	return way{via: g.addr, mtu: g.mtu}, ok && !g.refuses
}

// find returns the gateway of the longest prefix; ok is false without a route.
func (p *prefixes) find(dst netip.Addr) (g gateway, ok bool) {
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
			return g, true
		}
	}
	return g, false
}

// add adds a route. Of several routes with one prefix, the main table has precedence, then the lowest priority value.
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

// readPrefixes reads the kernel's routes through the interface.
//
// System calls: sendto, recvfrom (netlink).
func (t *Table) readPrefixes() error {
	p, err := listPrefixes(t.handle, t.gatewayOf)
	if err != nil {
		return fmt.Errorf("route: list routes through %s: %w", t.Interface().Name, err)
	}
	t.prefixes.Store(p)
	return nil
}

// listPrefixes returns the kernel's routes for which gatewayOf returns true.
//
// System calls: sendto, recvfrom (netlink).
func listPrefixes(h *netlink.Handle, gatewayOf func(*netlink.Route) (gateway, bool)) (*prefixes, error) {
	p := &prefixes{gateways: make(map[netip.Prefix]gateway)}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		left := maxPrefixes
		all := &netlink.Route{Table: syscall.RT_TABLE_UNSPEC}
		err := h.RouteListFilteredIter(family, all, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
			g, ok := gatewayOf(&r)
			if ok {
				p.add(prefixOf(family, r.Dst), g)
				left--
			}
			return left > 0
		})
		// After an interrupted dump the kernel reports a change, and everything is read again.
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, err
		}
	}
	return p, nil
}

// gatewayOf returns the gateway of a route through the interface, or of a route that refuses packets; ok is false for any
// other route.
func (t *Table) gatewayOf(r *netlink.Route) (g gateway, ok bool) {
	switch r.Type {
	case syscall.RTN_UNREACHABLE, syscall.RTN_PROHIBIT, syscall.RTN_BLACKHOLE:
		return gateway{table: r.Table, priority: r.Priority, refuses: true}, r.Table == syscall.RT_TABLE_MAIN
	}
	if r.Type != syscall.RTN_UNICAST || r.Table == syscall.RT_TABLE_LOCAL {
		return g, false
	}
	g = gateway{table: r.Table, priority: r.Priority, mtu: r.MTU}
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

// gatewayAddr returns the address of a route's gateway, which may be of another family than the route. Without a
// gateway it returns the zero Addr.
func gatewayAddr(gw net.IP, other netlink.Destination) netip.Addr {
	if a := address(gw); a.IsValid() {
		return a
	}
	if via, ok := other.(*netlink.Via); ok && via != nil {
		return address(via.Addr)
	}
	return netip.Addr{}
}

// prefixOf returns the destination of a route. No destination means the default route.
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
