package doctor

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/route"
)

// asymmetric warns if the kernel sends to the peer through another interface than an adapter over AF_XDP does. It notes
// whether the kernel would drop the peer's packets that arrive through the adapter's interface.
func (x *exam) asymmetric() []Finding {
	index := x.link.Attrs().Index
	if accepted, err := route.Accepts(index, x.at(), x.own()); err == nil && !x.onlyHolds() {
		x.filtered = !accepted && x.reversePathFilter() != "0"
	}
	if x.mayOnlyUDP() || x.Peer.IsLinkLocalUnicast() {
		return nil // the answers to a probe show whether the way back is another
	}
	r, err := route.Find(0, x.own(), x.at())
	if err != nil || r.Local || r.Index == index {
		return nil
	}
	return warning(fmt.Sprintf("the kernel sends to %v through %s, and an adapter over AF_XDP through %s", x.Peer, linkName(r.Index), x.name()),
		"The adapter does not take the better route. Packets of the peer must arrive through "+x.name()+".",
		"make the routes of both hosts symmetric, or use the adapter of "+linkName(r.Index), fmt.Sprintf("ip route get %v from %v", x.peerAddr(), x.from.WithZone("")))
}

// onlyHolds reports whether the interface only holds addresses, and packets to them arrive through others.
func (x *exam) onlyHolds() bool {
	return x.link.Attrs().Flags&net.FlagLoopback != 0 || x.link.Type() == "dummy"
}

// reversePathFilter returns the value of rp_filter that holds for the adapter's interface. IPv6 has none.
func (x *exam) reversePathFilter() string {
	return max("0", sysctl("net/ipv4/conf/all/rp_filter"), sysctl("net/ipv4/conf/"+x.name()+"/rp_filter"))
}

func linkName(index int) string {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return fmt.Sprintf("interface %d", index)
	}
	return l.Attrs().Name
}

// elsewhere reports that the answers of the peer arrive through another interface than packets to it leave by.
func (x *exam) elsewhere() []Finding {
	arrived := x.probe.arrived
	switch {
	case x.loops || arrived == 0 || arrived == x.out.Attrs().Index || arrived == x.out.Attrs().MasterIndex:
		return nil
	case x.mayOnlyUDP():
		return warning(fmt.Sprintf("packets to %v leave through %s, and its answers arrive through %s", x.Peer, x.out.Attrs().Name, linkName(arrived)),
			"A stateful firewall, or a strict reverse path filter (rp_filter) of a router, drops such packets. Rate and MTU of both ways count.",
			"make the routes of both hosts symmetric", "")
	}
	return failure(fmt.Sprintf("the answers of %v arrive through %s, not through %s", x.Peer, linkName(arrived), x.name()),
		"An adapter over AF_XDP hears only what arrives through its own interface.",
		fmt.Sprintf("make the routes of the peer symmetric; or, if both interfaces are in one network, let each answer ARP for its own address only (sysctl arp_ignore=1, arp_announce=2); or use kernel UDP: --ia udp:%v", x.from), "")
}

// filters reports that the reverse path filter of this host drops what the peer sends.
func (x *exam) filters() []Finding {
	return failure(fmt.Sprintf("rp_filter of this host drops what %v sends to %v through %s", x.Peer, x.from, x.name()),
		fmt.Sprintf("The way back to the peer leaves by another interface, %s.", x.out.Attrs().Name),
		"make the routes of both hosts symmetric, or let the filter be loose",
		as(fmt.Sprintf("sysctl -w net/ipv4/conf/%s/rp_filter=2", x.name())))
}
