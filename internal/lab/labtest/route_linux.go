package labtest

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// ruleTable is the routing table that RouteBySource and RouteByPort use.
const ruleTable = 1001

// RouteBySource makes packets from an address find the peer through an interface only by a rule for that address, as
// hosts with several NICs have it. It moves the routes of the interface for this address family to a table that the rule
// selects.
func RouteBySource(name string, from netip.Addr) error {
	rule := netlink.NewRule()
	rule.Src = &net.IPNet{IP: from.AsSlice(), Mask: net.CIDRMask(from.BitLen(), from.BitLen())}
	return routeBy(name, from.Is6(), rule)
}

// RouteByPort does the same with a rule for UDP packets from or to a port. A port of 0 is not selected.
func RouteByPort(name string, v6 bool, from, to uint16) error {
	rule := netlink.NewRule()
	rule.IPProto = syscall.IPPROTO_UDP
	if from != 0 {
		rule.Sport = netlink.NewRulePortRange(from, from)
	}
	if to != 0 {
		rule.Dport = netlink.NewRulePortRange(to, to)
	}
	return routeBy(name, v6, rule)
}

// routeBy moves the routes of an interface to the table of a rule.
func routeBy(name string, v6 bool, rule *netlink.Rule) error {
	return onLink(name, func(l netlink.Link) error {
		family := netlink.FAMILY_V4
		if v6 {
			family = netlink.FAMILY_V6
		}
		rule.Family, rule.Table = family, ruleTable
		routes, err := netlink.RouteList(l, family)
		errs := []error{err, netlink.RuleAdd(rule)}
		for _, r := range routes {
			moved := netlink.Route{LinkIndex: r.LinkIndex, Dst: r.Dst, Table: ruleTable, Scope: r.Scope}
			if r.Type == syscall.RTN_UNICAST {
				errs = append(errs, netlink.RouteDel(&r), netlink.RouteAdd(&moved))
			}
		}
		return errors.Join(errs...)
	})
}

// RefuseByRule makes the kernel refuse packets to a network by a rule. kind is RTN_PROHIBIT, RTN_BLACKHOLE or
// RTN_UNREACHABLE.
func RefuseByRule(to netip.Prefix, kind int) error {
	rule := netlink.NewRule()
	rule.Dst, rule.Type, rule.Family = networkOf(to), uint8(kind), netlink.FAMILY_V4
	if to.Addr().Is6() {
		rule.Family = netlink.FAMILY_V6
	}
	return netlink.RuleAdd(rule)
}

// RefuseByRoute does the same with a route.
func RefuseByRoute(to netip.Prefix, kind int) error {
	return netlink.RouteAdd(&netlink.Route{Dst: networkOf(to), Type: kind})
}

func networkOf(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// AddDefaultRoute makes a router the next hop to every other network of its family.
func AddDefaultRoute(name string, router netip.Addr) error {
	return onLink(name, func(l netlink.Link) error {
		all := &net.IPNet{IP: make(net.IP, router.BitLen()/8), Mask: net.CIDRMask(0, router.BitLen())}
		return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: all, Gw: router.AsSlice()})
	})
}
