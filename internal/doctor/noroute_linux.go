package doctor

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink"
)

// unreachableName reports an address that no adapter of this name can connect to, whatever the routes are.
func (x *exam) unreachableName() []Finding {
	switch {
	case x.Peer.IsUnspecified():
		return failure(fmt.Sprintf("%v is the address of no host", x.Peer), "", "name the host by an address of its interface", "")
	case x.mayOnlyUDP() && x.address.Is4() != x.Peer.Is4():
		return failure(fmt.Sprintf("%v and the adapter's address %v are not of the same version of IP", x.Peer, x.address),
			"An adapter over kernel UDP connects to addresses of its own version.",
			fmt.Sprintf("use the adapter's other address, such as %s, or the peer's", x.otherFamily()), "")
	case x.Peer.Zone() != "" && zoneID(x.Peer) != uint32(x.link.Attrs().Index):
		return failure(fmt.Sprintf("the zone of %v is not %s", x.Peer, x.name()), "An adapter sends through its own interface.",
			"write the zone of the adapter's interface, or none", fmt.Sprintf("datbench doctor --ia %s --peer %v%%%s", x.IA, x.peerAddr(), x.name()))
	case x.broadcast():
		return failure(fmt.Sprintf("%v is the broadcast address of a network", x.Peer), "An adapter connects to one host.", "name one host", "")
	}
	return nil
}

// otherFamily returns the name of an adapter over kernel UDP that has an address of the peer's version of IP.
func (x *exam) otherFamily() string {
	for _, a := range x.addrs {
		if a.Is4() == x.Peer.Is4() && !a.IsLinkLocalUnicast() {
			return "udp:" + a.String()
		}
	}
	if x.Peer.Is4() {
		return "udp:IPV4-ADDRESS"
	}
	return "udp:IPV6-ADDRESS"
}

// broadcast reports whether the peer is the broadcast address of a network of this host.
func (x *exam) broadcast() bool {
	routes, err := netlink.RouteGet(x.peerAddr().AsSlice())
	return err == nil && len(routes) > 0 && routes[0].Type == syscall.RTN_BROADCAST
}

// isDown reports whether an interface exists and is down.
func isDown(name string) bool {
	l, err := netlink.LinkByName(name)
	return err == nil && !isUp(l.Attrs())
}

// refusingRoutes are the errors of a lookup that ends at a route, or at a rule, which refuses packets (ip-route(8)).
var refusingRoutes = []struct {
	err  syscall.Errno
	kind string
}{
	{syscall.EINVAL, "blackhole"}, {syscall.EHOSTUNREACH, "unreachable"}, {syscall.EACCES, "prohibit"},
}

// refusingRoute names the kind of route or rule that refuses packets to the peer; nil if there is none. A new route does
// not mend it.
func (x *exam) refusingRoute() []Finding {
	_, err := netlink.RouteGetWithOptions(x.peerAddr().AsSlice(), &netlink.RouteGetOptions{SrcAddr: x.from.AsSlice()})
	for _, r := range refusingRoutes {
		if errors.Is(err, r.err) {
			return failure(fmt.Sprintf("a route or a rule of this host, of type %s, refuses packets to %v", r.kind, x.Peer),
				"Nothing can be sent to it.", "find the route or the rule, and delete it (ip route del, ip rule del)",
				fmt.Sprintf("ip rule list; ip route show table all type %s", r.kind))
		}
	}
	return nil
}
