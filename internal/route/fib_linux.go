package route

import (
	"errors"
	"slices"
	"syscall"
)

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
		return entry, a.refusal(f, err)
	}
	r, err := a.get(f, index, 0)
	r.mtu = entry.mtu
	r.hops = []nextHop{configuredHop(entry.hops, r.hop())}
	if err == nil && index != 0 && len(entry.hops) > 1 {
		a.spread(f, &entry, &r)
	}
	return r, err
}

// refusal returns the error number with which the kernel refuses a flow, such as EACCES of a rule that prohibits it. err is
// that of a request with an interface, which is EHOSTUNREACH for most refusals. If the flow has a route through another
// interface, the network is unreachable from this one.
//
// System calls: sendto, recvfrom (netlink).
func (a *asker) refusal(f flow, err error) error {
	if !errors.Is(err, syscall.EHOSTUNREACH) {
		return err
	}
	if _, why := a.get(f, 0, 0); why != nil {
		return why
	}
	return syscall.ENETUNREACH
}

// spread replaces the hop of r by the one that the kernel takes for this flow, of those that the entry has through the same
// interface. If a request names an interface, the kernel returns the first hop: it neither divides flows among the hops of
// a multipath route by their weights, nor passes by one whose neighbour has failed (net.ipv4.fib_multipath_use_neigh).
//
// System calls: sendto, recvfrom (netlink).
func (a *asker) spread(f flow, entry, r *kernelRoute) {
	free, err := a.get(f, 0, 0)
	if err == nil && free.hop().index == r.hop().index && slices.Contains(entry.hops, free.hop()) {
		r.hops = []nextHop{free.hop()}
	}
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
