package route

import (
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
)

// limitMTU returns the MTU of a route through an interface; the MTU of the route is 0 if it has none.
func limitMTU(device, route int) int {
	if route > 0 {
		return min(device, route)
	}
	return device
}

// routeTo asks the kernel for the route to an address.
//
// It makes two requests. The first (FIBMatch) returns the entry of the routing tables, with its MTU and its gateways.
// The second returns the source address and the interface, but it cannot show whether a route exists: if a request names
// an interface and there is no route, the kernel invents an on-link IPv4 route. The MTU and the gateway in the second
// answer may come from a route exception, which an ICMP message made: "packet too big" (RFC 1191, RFC 8201) or a
// redirect (RFC 1122 §3.2.2.2, RFC 4861 §8.3). Any host can forge these messages, and the kernel accepts messages about
// the packets of any socket, and about ICMP packets without a socket. So the MTU and the gateway of the entry are used.
//
// System calls: sendto, recvfrom (netlink).
func routeTo(h *netlink.Handle, dst netip.Addr, o netlink.RouteGetOptions) (netlink.Route, error) {
	o.FIBMatch = true
	entry, err := routeGet(h, dst, &o)
	if err != nil {
		return entry, err
	}
	o.FIBMatch = false
	r, err := routeGet(h, dst, &o)
	r.MTU = entry.MTU
	r.Gw, r.Via = configuredGateway(&entry, &r)
	return r, err
}

// configuredGateway returns the gateway of r if the entry has it, and otherwise the first gateway of the entry through
// the interface of r. With the setting net.ipv4.nexthop_compat_mode=0, an entry with a nexthop object has no interface
// and no gateway; then configuredGateway returns the gateway of r.
func configuredGateway(entry, r *netlink.Route) (gw net.IP, via netlink.Destination) {
	hops := nextHops(entry)
	hops = slices.DeleteFunc(hops, func(n *netlink.NexthopInfo) bool { return n.LinkIndex != r.LinkIndex })
	used := gatewayAddr(r.Gw, r.Via)
	if len(hops) == 0 || slices.ContainsFunc(hops, func(n *netlink.NexthopInfo) bool { return gatewayAddr(n.Gw, n.Via) == used }) {
		return r.Gw, r.Via
	}
	return hops[0].Gw, hops[0].Via
}

// nextHops returns the next hops of a route; a route with one next hop gives a slice of one.
func nextHops(r *netlink.Route) []*netlink.NexthopInfo {
	if len(r.MultiPath) > 0 {
		return r.MultiPath
	}
	return []*netlink.NexthopInfo{{LinkIndex: r.LinkIndex, Gw: r.Gw, Via: r.Via}}
}

// routeGet makes one request. It fails with ESRCH if the answer is empty.
func routeGet(h *netlink.Handle, dst netip.Addr, o *netlink.RouteGetOptions) (netlink.Route, error) {
	routes, err := h.RouteGetWithOptions(dst.AsSlice(), o)
	if err == nil && len(routes) == 0 {
		err = syscall.ESRCH
	}
	if err != nil {
		return netlink.Route{}, err
	}
	return routes[0], nil
}
