package route

import "slices"

// limitMTU returns the MTU of a route through an interface; the MTU of the route is 0 if it has none.
func limitMTU(device, route int) int {
	if route > 0 {
		return min(device, route)
	}
	return device
}

// routeTo asks the kernel for the route of a flow. With an index, packets leave through that interface.
//
// It makes two requests. The first (fibMatch) returns the entry of the routing tables, with its MTU and its gateways.
// The second returns the source address and the interface, but it cannot show whether a route exists: if a request names
// an interface and there is no route, the kernel invents an on-link IPv4 route. The MTU and the gateway in the second
// answer may come from a route exception, which an ICMP message made: "packet too big" (RFC 1191, RFC 8201) or a
// redirect (RFC 1122 §3.2.2.2, RFC 4861 §8.3). Any host can forge these messages, and the kernel accepts messages about
// the packets of any socket, and about ICMP packets without a socket. So the MTU and the gateway of the entry are used.
//
// System calls: sendto, recvfrom (netlink).
func (a *asker) routeTo(f flow, index int) (kernelRoute, error) {
	entry, err := a.get(f, index, fibMatch)
	if err != nil {
		return entry, err
	}
	r, err := a.get(f, index, 0)
	r.mtu = entry.mtu
	r.hops = []nextHop{configuredHop(entry.hops, r.hop())}
	return r, err
}

// configuredHop returns used if the entry has it, and otherwise the first hop of the entry through the interface of used.
// With the setting net.ipv4.nexthop_compat_mode=0, an entry with a nexthop object has no interface and no gateway; then
// configuredHop returns used.
func configuredHop(entry []nextHop, used nextHop) nextHop {
	here := slices.IndexFunc(entry, func(h nextHop) bool { return h.index == used.index })
	if here < 0 || slices.Contains(entry, used) {
		return used
	}
	return entry[here]
}
