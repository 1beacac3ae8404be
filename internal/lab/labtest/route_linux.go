package labtest

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
)

// sourceTable is the routing table that RouteBySource uses.
const sourceTable = 1001

// RouteBySource makes packets from an address find the peer through an interface only by a rule for that address, as
// hosts with several NICs have it. It moves the routes of the interface for this address family to a table that the rule
// selects.
func RouteBySource(name string, from netip.Addr) error {
	return onLink(name, func(l netlink.Link) error {
		family := netlink.FAMILY_V6
		if from.Is4() {
			family = netlink.FAMILY_V4
		}
		rule := netlink.NewRule()
		rule.Family, rule.Table = family, sourceTable
		rule.Src = &net.IPNet{IP: from.AsSlice(), Mask: net.CIDRMask(from.BitLen(), from.BitLen())}
		routes, err := netlink.RouteList(l, family)
		errs := []error{err, netlink.RuleAdd(rule)}
		for _, r := range routes {
			moved := netlink.Route{LinkIndex: r.LinkIndex, Dst: r.Dst, Table: sourceTable, Scope: r.Scope}
			if r.Type == syscall.RTN_UNICAST {
				errs = append(errs, netlink.RouteDel(&r), netlink.RouteAdd(&moved))
			}
		}
		return errors.Join(errs...)
	})
}
