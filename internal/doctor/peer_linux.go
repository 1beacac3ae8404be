package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/route"
)

// checkRoute looks up the route that the adapter will use. An AF_XDP link sends only through its own interface, even if
// another interface has a better route.
func checkRoute(_ context.Context, x *exam) []Finding {
	if f := x.unreachableName(); f != nil {
		return f
	}
	if x.mayOnlyUDP() {
		x.from = x.address
	}
	r, err := x.route()
	if err != nil {
		return x.noRoute(err)
	}
	x.routed, x.nextHop, x.out = true, r.Via, x.link
	if l, err := netlink.LinkByIndex(r.Index); err == nil {
		x.out = l
	}
	switch {
	case r.Local && isDown("lo") && (x.kind == ianame.UDP || !slices.Contains(x.addrs, x.peerAddr())):
		return failure(fmt.Sprintf("%v is an address of this host, and lo is down", x.Peer), "Packets to it cross the loopback interface.",
			"bring it up", as("ip link set dev lo up"))
	case r.Local:
		x.loops = true
		return ok("%v is an address of this host: packets do not leave it", x.Peer)
	case x.nextHop != x.peerAddr():
		return append(ok("%v is reached by way of %v%s", x.Peer, x.nextHop, x.fromText()), x.asymmetric()...)
	}
	return append(ok("%v is on the network of %s%s", x.Peer, x.out.Attrs().Name, x.fromText()), x.asymmetric()...)
}

// fromText names the source address of packets to the peer, unless it is the adapter's own.
func (x *exam) fromText() string {
	if x.from == x.address {
		return ""
	}
	return fmt.Sprintf(", from %v", x.from)
}

// peerAddr returns the address of the peer as the kernel's tables and commands have it, without a zone.
func (x *exam) peerAddr() netip.Addr { return x.Peer.WithZone("") }

// route returns the route that packets of the adapter take.
func (x *exam) route() (route.Found, error) {
	index := 0
	if x.kind != ianame.UDP || x.Peer.IsLinkLocalUnicast() {
		index = x.link.Attrs().Index
	}
	return route.Find(index, x.own(), x.at())
}

// own is the source of packets to the peer. at is the peer as the kernel's tables have it: without a zone.
func (x *exam) own() netip.AddrPort { return netip.AddrPortFrom(x.from, x.Port) }
func (x *exam) at() netip.AddrPort  { return netip.AddrPortFrom(x.peerAddr(), x.remotePort()) }

// leaves returns where packets to the peer leave this host.
func (x *exam) leaves() origin {
	if x.loops || x.mayOnlyUDP() || x.isPart() {
		return origin{x.own(), ""}
	}
	return origin{x.own(), x.name()}
}

// isPart reports whether the kernel gives packets of the interface to the bridge or bond that it belongs to.
func (x *exam) isPart() bool {
	if x.iface.Master == 0 {
		return false
	}
	l, err := netlink.LinkByIndex(x.iface.Master)
	return err != nil || l.Type() != "vrf"
}

func (x *exam) noRoute(err error) []Finding {
	if other := outTo(x.own(), x.at()); other != "" && other != x.name() && !x.Peer.IsLinkLocalUnicast() {
		return failure(fmt.Sprintf("the route to %v leaves by %s, not by %s", x.Peer, other, x.name()),
			"An adapter sends through its own interface.", fmt.Sprintf("use %s, or add a route", other),
			fmt.Sprintf("datbench doctor --ia %s:%s --peer %v", x.kind, other, x.Peer))
	}
	if !errors.Is(err, route.ErrUnreachable) {
		return x.routeUnread(err)
	}
	if f := x.refusingRoute(); f != nil {
		return f
	}
	return failure(fmt.Sprintf("no route leads to %v through %s", x.Peer, x.name()), "Nothing can be sent to it.",
		"check the address; or add a route: this one if it is on the same network, with \"via GATEWAY\" before dev if it is not",
		as(fmt.Sprintf("ip route add %v/%d dev %s", x.peerAddr(), x.Peer.BitLen(), x.name())))
}

func (x *exam) routeUnread(err error) []Finding {
	return failure(fmt.Sprintf("the route to %v cannot be read: %v", x.Peer, err), "",
		"ask the kernel by hand, and mend what it says", fmt.Sprintf("ip route get %v oif %s", x.peerAddr(), x.name()))
}

// resolved is the set of neighbour states in which the MAC address is known.
const resolved = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE | netlink.NUD_PERMANENT | netlink.NUD_NOARP

// checkNeighbour sends a byte to the peer, which makes the kernel resolve the next hop.
func checkNeighbour(ctx context.Context, x *exam) []Finding {
	a := x.out.Attrs()
	if x.loops || a.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 || a.RawFlags&syscall.IFF_NOARP != 0 {
		x.linked = true
		return nil // there is no neighbour to resolve
	}
	n := x.neighbour(ctx)
	if x.linked = n.State&resolved != 0; x.linked {
		return ok("%v is at %v", x.nextHop, n.HardwareAddr)
	}
	if ctx.Err() != nil {
		return nil // the neighbour had no time to answer
	}
	if x.forbidden && x.mayOnlyUDP() {
		x.linked = true // nothing was sent, so nothing is known about the neighbour
		return x.forbids()
	}
	asks := "ARP"
	if x.nextHop.Is6() {
		asks = "neighbour discovery"
	}
	return failure(fmt.Sprintf("%v does not answer %s on %s", x.nextHop, asks, a.Name),
		"No host on this network has the address now, or it is down, or in another VLAN.",
		"check the address, and that the interface of that host is up; on it, run: datbench doctor", "")
}

// forbids reports that a rule of this host drops what the adapter sends.
func (x *exam) forbids() []Finding {
	return failure(fmt.Sprintf("a rule of this host forbids to send to UDP port %d of %v", x.remotePort(), x.Peer),
		"Its packet filter drops the packets of kernel UDP before they leave. AF_XDP passes it by.",
		"let the port through, as with", as(fmt.Sprintf("iptables -I OUTPUT -p udp --dport %d -j ACCEPT", x.remotePort())))
}

// hop resolves the next hop as an adapter over AF_XDP does. It returns nil for kernel UDP, and without the privilege.
func (x *exam) hop() (h *route.Hop, closeTable func()) {
	if x.kind == ianame.UDP {
		return nil, func() {}
	}
	t, err := route.Open(x.link.Attrs().Index)
	if err != nil {
		return nil, func() {}
	}
	if h, err = t.Resolve(x.own(), x.at(), neighbourLimit); err != nil {
		h = nil
	}
	return h, func() { _ = t.Close() } // it has nothing to flush
}

// neighbour waits until the kernel has resolved the next hop, or neighbourLimit is over.
func (x *exam) neighbour(ctx context.Context) (n netlink.Neigh) {
	ctx, cancel := context.WithTimeout(ctx, neighbourLimit)
	defer cancel()
	x.forbidden = errors.Is(x.leaves().nudge(x.peerAt()), syscall.EPERM)
	hop, closeTable := x.hop()
	defer closeTable()
	for {
		if hop != nil {
			if mac, ok := hop.MAC(); ok {
				return netlink.Neigh{State: netlink.NUD_REACHABLE, HardwareAddr: mac[:]}
			}
		}
		list, err := netlink.NeighList(x.out.Attrs().Index, 0)
		for _, n = range list {
			a, valid := netip.AddrFromSlice(n.IP)
			if valid && a.Unmap() == x.nextHop && n.State&resolved != 0 {
				return n
			}
		}
		if err != nil || ctx.Err() != nil {
			return netlink.Neigh{}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// checkPathMTU compares the largest packet that was answered with the interface's MTU.
func checkPathMTU(_ context.Context, x *exam) []Finding {
	mtu, out := x.out.Attrs().MTU, x.out.Attrs().Name
	switch {
	case x.loops:
		return nil
	case x.probe.echoErr != nil:
		return info("the path MTU cannot be measured (%v)", x.probe.echoErr)
	case x.probe.echoed == 0:
		if x.probe.answered() {
			return info("%v does not answer to ping: the path MTU is not known before there is traffic", x.Peer)
		}
		return nil
	case x.probe.echoed >= min(mtu, largestEcho(x.Peer)):
		return ok("packets of %d bytes pass to %v", x.probe.echoed, x.Peer)
	}
	if least := min(mtu, leastMTU); x.probe.echoed < least {
		return failure(fmt.Sprintf("packets of %d bytes pass to %v, those of %d do not", x.probe.echoed, x.Peer, least),
			fmt.Sprintf("A connection is established, and moves nothing: the protocol needs packets of %d bytes on every path.", least),
			"raise the MTU of what is between, or let large packets through its firewall", "")
	}
	return warning(fmt.Sprintf("packets of %d bytes pass to %v, those of MTU %d do not", x.probe.echoed, x.Peer, mtu),
		"The MTU differs along the path. DAT finds the size that passes, at the cost of speed; other programs may hang.",
		fmt.Sprintf("make it the same on both hosts and what is between: raise it there, or lower it on %s", out),
		as(fmt.Sprintf("ip link set dev %s mtu %d", out, x.probe.echoed)))
}
