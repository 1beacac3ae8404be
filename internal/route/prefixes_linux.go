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

// prefixes maps destination prefixes of one family to gateways: it is one routing table. It is immutable. In a Table, it
// has the unicast routes through the interface, and the routes that refuse packets.
type prefixes struct {
	bits     []int // existing prefix lengths, longest first
	gateways map[netip.Prefix]gateway
}

// gateway is the next hop of one route.
type gateway struct {
	addr     netip.Addr // invalid if the next hop is the destination itself
	mtu      int        // of the route; 0 if it has none. In a Reach, the minimum of this and the MTU of the interface
	free     bool       // packets do not wait for a neighbour; used by Reach only
	refuses  bool       // the route refuses packets; used by Table only
	throws   bool       // the search continues with the next rule
	local    bool       // packets stay on this host; used by Table only
	priority int
}

// find returns the gateway of the longest prefix; ok is false without a route of at least shortest bits.
func (p *prefixes) find(dst netip.Addr, shortest int) (g gateway, ok bool) {
	for _, n := range p.bits {
		if n < shortest {
			return g, false
		}
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

// add adds a route. Of several routes with one prefix, the one with the lowest priority value has precedence.
func (p *prefixes) add(dst netip.Prefix, g gateway) {
	was, ok := p.gateways[dst]
	if ok && uint32(was.priority) <= uint32(g.priority) {
		return
	}
	p.gateways[dst] = g
	if !slices.Contains(p.bits, dst.Bits()) {
		p.bits = append(p.bits, dst.Bits())
		slices.SortFunc(p.bits, func(a, b int) int { return b - a })
	}
}

// readPrefixes reads the kernel's rules, and its routes through the interface.
//
// System calls: sendto, recvfrom (netlink).
func (t *Table) readPrefixes() error {
	f, err := readFIB(t.handle, t.asker, scope{device: t.Interface().Name, vrf: t.vrf()}, t.gatewayOf)
	if err != nil {
		return fmt.Errorf("route: routes through %s: %w", t.Interface().Name, err)
	}
	t.fib.Store(f)
	return nil
}

// vrf returns the routing table of the VRF that the interface belongs to, or 0.
//
// System calls: sendto, recvfrom (netlink).
func (t *Table) vrf() int {
	if t.Interface().Master == 0 {
		return 0
	}
	master, err := t.handle.LinkByIndex(t.Interface().Master)
	if v, ok := master.(*netlink.Vrf); err == nil && ok {
		return int(v.Table)
	}
	return 0
}

// listPrefixes returns the kernel's routes of one family for which gatewayOf returns true, by table.
//
// System calls: sendto, recvfrom (netlink).
func listPrefixes(h *netlink.Handle, family int, gatewayOf func(*netlink.Route) (gateway, bool)) (map[int]*prefixes, error) {
	tables := make(map[int]*prefixes)
	left := maxPrefixes
	all := &netlink.Route{Table: syscall.RT_TABLE_UNSPEC}
	err := h.RouteListFilteredIter(family, all, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
		g, ok := gatewayOf(&r)
		if !ok {
			return true
		}
		if tables[r.Table] == nil {
			tables[r.Table] = newPrefixes()
		}
		tables[r.Table].add(prefixOf(family, r.Dst), g)
		left--
		return left > 0
	})
	// After an interrupted dump the kernel reports a change, and everything is read again.
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, err
	}
	return tables, nil
}

func newPrefixes() *prefixes { return &prefixes{gateways: make(map[netip.Prefix]gateway)} }

// gatewayOf returns the gateway of a route through the interface, or of a route that refuses packets or ends the search
// in its table; ok is false for any other route.
func (t *Table) gatewayOf(r *netlink.Route) (g gateway, ok bool) {
	switch r.Type {
	case syscall.RTN_UNREACHABLE, syscall.RTN_PROHIBIT, syscall.RTN_BLACKHOLE,
		syscall.RTN_BROADCAST, syscall.RTN_MULTICAST: // a path leads to one host
		return gateway{priority: r.Priority, refuses: true}, true
	case syscall.RTN_LOCAL:
		return gateway{priority: r.Priority, local: true}, true
	case syscall.RTN_THROW:
		return gateway{priority: r.Priority, throws: true}, true
	}
	if r.Type != syscall.RTN_UNICAST || r.Table == syscall.RT_TABLE_LOCAL {
		return g, false
	}
	g = gateway{priority: r.Priority, mtu: r.MTU}
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
