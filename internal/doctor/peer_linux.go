package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/datxdp/datxdp/dat"
	"github.com/datxdp/datxdp/internal/ianame"
)

// checkRoute looks up the route that the adapter will use. An AF_XDP link sends only through its own interface, even if
// another interface has a better route.
func checkRoute(_ context.Context, x *exam) []Finding {
	r, err := x.route()
	if err != nil {
		return x.noRoute(err)
	}
	x.routed, x.nextHop, x.out = true, x.peerAddr(), x.link
	if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil {
		x.out = l
	}
	if gw, valid := netip.AddrFromSlice(r.Gw); valid {
		x.nextHop = gw.Unmap()
	}
	switch {
	case r.Type == syscall.RTN_LOCAL:
		x.loops = true
		return ok("%v is an address of this host: packets go round in the adapter", x.Peer)
	case x.nextHop != x.peerAddr():
		return ok("%v is reached by way of %v", x.Peer, x.nextHop)
	}
	return ok("%v is on the network of %s", x.Peer, x.out.Attrs().Name)
}

// peerAddr returns the address of the peer as the kernel's tables and commands have it, without a zone.
func (x *exam) peerAddr() netip.Addr { return x.Peer.WithZone("") }

// route returns the kernel's route to the peer. It makes two requests. The first (FIBMatch) shows whether the routing
// tables have a route. The second returns the route, but it cannot show whether one exists: if a request names an
// interface and there is no route, the kernel invents an on-link route.
func (x *exam) route() (r netlink.Route, err error) {
	if x.owns(x.peerAddr()) {
		return netlink.Route{Type: syscall.RTN_LOCAL}, nil
	}
	o := &netlink.RouteGetOptions{}
	if x.kind != ianame.UDP || x.Peer.IsLinkLocalUnicast() {
		o = &netlink.RouteGetOptions{OifIndex: x.link.Attrs().Index, FIBMatch: true}
	}
	if _, err := netlink.RouteGetWithOptions(x.Peer.AsSlice(), o); err != nil {
		return r, err
	}
	o.FIBMatch = false
	routes, err := netlink.RouteGetWithOptions(x.Peer.AsSlice(), o)
	if err != nil {
		return r, err
	}
	if len(routes) == 0 {
		return r, syscall.ENETUNREACH
	}
	return routes[0], nil
}

func (x *exam) owns(a netip.Addr) bool {
	for _, mine := range x.addrs {
		if a == mine {
			return true
		}
	}
	return false
}

func (x *exam) noRoute(err error) []Finding {
	if other := outTo(x.Peer); other != "" && other != x.name() && !x.Peer.IsLinkLocalUnicast() {
		return failure(fmt.Sprintf("the route to %v leaves by %s, not by %s", x.Peer, other, x.name()),
			"An adapter sends through its own interface.", fmt.Sprintf("use %s, or add a route", other),
			fmt.Sprintf("datbench doctor --ia %s:%s --peer %v", x.kind, other, x.Peer))
	}
	if !noWay(err) {
		return x.routeUnread(err)
	}
	return failure(fmt.Sprintf("no route leads to %v through %s", x.Peer, x.name()), "Nothing can be sent to it.",
		"check the address; or add a route: this one if it is on the same network, with \"via GATEWAY\" before dev if it is not",
		as(fmt.Sprintf("ip route add %v/%d dev %s", x.peerAddr(), x.Peer.BitLen(), x.name())))
}

func (x *exam) routeUnread(err error) []Finding {
	return failure(fmt.Sprintf("the route to %v cannot be read: %v", x.Peer, err), "",
		"ask the kernel by hand, and mend what it says", fmt.Sprintf("ip route get %v oif %s", x.peerAddr(), x.name()))
}

func noWay(err error) bool {
	for _, none := range []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.EACCES, syscall.EINVAL, syscall.ENETDOWN, syscall.ESRCH} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
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
	asks := "ARP"
	if x.nextHop.Is6() {
		asks = "neighbour discovery"
	}
	return failure(fmt.Sprintf("%v does not answer %s on %s", x.nextHop, asks, a.Name),
		"No host on this network has the address now, or it is down, or in another VLAN.",
		"check the address, and that the interface of that host is up; on it, run: datbench doctor", "")
}

// neighbour waits until the kernel has resolved the next hop, or neighbourLimit is over.
func (x *exam) neighbour(ctx context.Context) (n netlink.Neigh) {
	ctx, cancel := context.WithTimeout(ctx, neighbourLimit)
	defer cancel()
	nudge(x.local(), netip.AddrPortFrom(x.Peer, x.Port))
	for {
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

// checkReach reports the answer from the peer's port. It reports a missing answer only if there was enough time to
// wait.
func checkReach(ctx context.Context, x *exam) []Finding {
	x.probe.run(ctx, x)
	at := netip.AddrPortFrom(x.Peer, x.Port)
	switch {
	case x.probe.adapter:
		return ok("an adapter answers at %v", at)
	case ctx.Err() != nil && !x.probe.refused:
		return nil
	case x.probe.busy && !x.probe.refused:
		return info("whether an adapter answers at %v cannot be heard: UDP port %d is taken here", at, x.Port)
	case x.loops:
		return info("no adapter answers at %v, which is this host", at)
	case x.probe.refused:
		return failure(fmt.Sprintf("%v is up, but no adapter has UDP port %d open there", x.Peer, x.Port),
			"Its kernel answers that the port is closed.", "start the program there, such as",
			fmt.Sprintf("datbench server --ia auto:INTERFACE%s", x.portFlag()))
	case x.probe.echoed > 0:
		return failure(fmt.Sprintf("%v is up, but UDP port %d does not answer", x.Peer, x.Port),
			"A firewall drops the packets on their way, or a program that is not a DAT adapter has the port.",
			"on that host, look with: datbench doctor; and let the port through its firewall, as with",
			fmt.Sprintf("iptables -I INPUT -p udp --dport %d -j ACCEPT", x.Port))
	}
	return failure(fmt.Sprintf("%v does not answer, neither on UDP port %d nor to ping", x.Peer, x.Port),
		"It is down, or a firewall drops what is sent to it.",
		"check that the host is up; on it, run: datbench doctor", "")
}

func (x *exam) portFlag() string {
	if x.Port == dat.DefaultPort {
		return ""
	}
	return fmt.Sprintf(" --port %d", x.Port)
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
	return warning(fmt.Sprintf("packets of %d bytes pass to %v, those of MTU %d do not", x.probe.echoed, x.Peer, mtu),
		"The MTU differs along the path. DAT finds the size that passes, at the cost of speed; other programs may hang.",
		fmt.Sprintf("make it the same on both hosts and what is between: raise it there, or lower it on %s", out),
		as(fmt.Sprintf("ip link set dev %s mtu %d", out, x.probe.echoed)))
}
