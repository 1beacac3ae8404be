package doctor

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/driver"
	"github.com/datxdp/datxdp/internal/ianame"
	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/xdp"
)

// facts is the kernel's state of the process and the interface.
type facts struct {
	caps   uint64 // effective capabilities, one bit each
	kernel version

	link     netlink.Link // nil if there is no interface
	iface    route.Interface
	addrs    []netip.Addr // addresses of the interface that can be used
	address  netip.Addr   // the adapter's own address
	driver   string       // empty if the driver has no name
	features xdpFeatures
	channels ethtool.Channels
	// unmapped means a virtio device that bypasses the DMA API: see [mapsDMA].
	unmapped bool
	// stray means a driver that sends frames with a wrong header in zero-copy mode: see [driver.StrayHeader].
	stray bool

	// granted is the mode that Try was granted. lost are the offloads that were off while the adapter was open.
	granted string
	lost    []string
	// secure means that the adapter would be in secure mode.
	secure bool

	way
}

// way is what is known of the way to the peer.
type way struct {
	// routed means that there is a route to the peer. loops means that the peer is this host. linked means that the
	// next hop is resolved.
	routed, loops, linked bool
	// forbidden means that a rule of this host drops packets of kernel UDP to the peer's port. deaf means that a rule drops
	// those that come to our own port: see [hears]. filtered means that the kernel drops the peer's packets that arrive
	// through the adapter's interface, because its own route to the peer leaves by another one.
	forbidden, deaf, filtered bool
	from                      netip.Addr // source address of packets to the peer; the adapter's own address before checkRoute
	nextHop                   netip.Addr
	out                       netlink.Link // outgoing interface of the route
	probe                     probe
}

// learn reads the facts that several checks need. Facts that cannot be read stay zero.
func (x *exam) learn() {
	x.caps, x.kernel = effectiveCaps(), runningKernel()
	x.channels.CombinedCount = 1
	if x.HostOnly {
		return
	}
	x.link = x.find()
	x.address, x.from = x.addr, x.addr
	if x.link == nil {
		return
	}
	x.nameZones()
	x.iface, _ = route.ReadInterface(x.link.Attrs().Index) // empty on an error
	x.awaitAddress()
	for _, p := range x.iface.Addrs {
		x.addrs = append(x.addrs, p.Addr())
	}
	x.address = x.ownAddress()
	x.from = x.address
	x.features = featuresOf(x.link.Attrs().Index)
	if x.Peer.IsValid() && x.address.IsValid() {
		x.from = x.source()
	}
	e, err := ethtool.NewEthtool()
	if err != nil {
		return
	}
	defer e.Close()
	if name, err := e.DriverName(x.name()); err == nil {
		x.driver = name
	}
	if c, err := e.GetChannels(x.name()); err == nil {
		x.channels = c
	}
	x.unmapped = x.driver == driver.VirtioNet && !mapsDMA(virtioFeatures(x.link.Attrs()))
	x.stray = driver.StrayHeader(x.driver)
}

// nameZones writes the interface's own name, which package net needs, in place of another one in zones. A link-local peer
// without a zone has this one, as the link resolves it.
func (x *exam) nameZones() {
	if x.addr.Zone() != "" {
		x.addr = x.addr.WithZone(x.name())
		x.address, x.from = x.addr, x.addr
	}
	if x.Peer.IsLinkLocalUnicast() && (x.Peer.Zone() == "" || zoneID(x.Peer) == uint32(x.link.Attrs().Index)) {
		x.Peer = x.Peer.WithZone(x.name())
	}
}

// name returns the name of the interface.
func (x *exam) name() string { return x.link.Attrs().Name }

// queues returns the number of receive queues; the adapter has a socket on each.
func (x *exam) queues() int { return int(x.channels.RxCount + x.channels.CombinedCount) }

// find returns the interface with the name or the address.
func (x *exam) find() netlink.Link {
	if x.ifname != "" {
		ifi, err := xdp.FindInterface(x.ifname)
		if err != nil {
			return nil
		}
		l, _ := netlink.LinkByIndex(ifi.Index) // nil if it has gone meanwhile
		return l
	}
	links, _ := netlink.LinkList() // empty on an error
	addr, zone := x.addr.WithZone(""), zoneID(x.addr)
	for _, l := range links {
		if x.addr.Zone() != "" && zone != uint32(l.Attrs().Index) {
			continue
		}
		for _, p := range prefixes(l) {
			// All of 127.0.0.0/8 is local, but only one address is listed.
			if p.Addr() == addr || addr.IsLoopback() && p.Contains(addr) {
				return l
			}
		}
	}
	return nil
}

func prefixes(l netlink.Link) (all []netip.Prefix) {
	list, _ := netlink.AddrList(l, netlink.FAMILY_ALL) // empty on an error
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			bits, _ := a.Mask.Size()
			all = append(all, netip.PrefixFrom(ip.Unmap(), bits))
		}
	}
	return all
}

func addresses(l netlink.Link) (all []netip.Addr) {
	for _, p := range prefixes(l) {
		all = append(all, p.Addr())
	}
	return all
}

// tentativeWait is the time for which opening waits for duplicate address detection.
const tentativeWait = 3 * time.Second

// awaitAddress waits as opening does if the adapter's own address is tentative.
func (x *exam) awaitAddress() {
	switch usable := func(a netip.Addr) bool { return !a.IsLinkLocalUnicast() }; {
	case x.explaining:
		return
	case x.kind == ianame.UDP && slices.Contains(x.iface.Tentative, x.addr.WithZone("")):
		_ = route.AwaitAddress(x.addr, tentativeWait) // the state is read below
	case x.kind != ianame.UDP && slices.ContainsFunc(x.iface.Tentative, usable) &&
		!slices.ContainsFunc(x.iface.Addrs, func(p netip.Prefix) bool { return usable(p.Addr()) }):
		_, _ = xdp.LocalAddr(x.name())
	default:
		return
	}
	x.iface, _ = route.ReadInterface(x.link.Attrs().Index)
}

// ownAddress returns the adapter's own address, as the code that opens chooses it. It does not wait for a tentative one.
func (x *exam) ownAddress() netip.Addr {
	if x.kind == ianame.UDP {
		return x.addr
	}
	if !slices.ContainsFunc(x.addrs, func(a netip.Addr) bool { return !a.IsLinkLocalUnicast() }) {
		return netip.Addr{}
	}
	addr, _ := xdp.LocalAddr(x.name()) // invalid on an error
	return addr
}

// source returns the source address of the adapter's packets to the peer, as the code that connects chooses it.
func (x *exam) source() netip.Addr {
	if x.mayOnlyUDP() {
		return x.address
	}
	from, err := xdp.SourceAddr(x.name(), x.options(), x.at())
	if err != nil || !from.IsValid() {
		return x.address
	}
	if from.Is6() && from.IsLinkLocalUnicast() {
		from = from.WithZone(x.name())
	}
	return from
}

// serves reports whether the adapter has an address of the peer's family.
func (x *exam) serves() bool {
	if x.mayOnlyUDP() || !x.Peer.IsValid() {
		return x.address.IsValid()
	}
	return x.address.IsValid() && slices.ContainsFunc(x.addrs, func(a netip.Addr) bool { return a.Is4() == x.Peer.Is4() })
}

func isUp(a *netlink.LinkAttrs) bool { return a.Flags&net.FlagUp != 0 }

// candidates returns the interfaces that could have an adapter. With a peer this is the interface towards the peer.
// Without a peer these are the interfaces that are up or, if none is up, all.
func candidates(t Target) []string {
	if t.Peer.IsValid() {
		if name := outTo(netip.AddrPortFrom(netip.Addr{}, t.Port), netip.AddrPortFrom(t.Peer, t.remotePort())); name != "" {
			return []string{name}
		}
	}
	links, _ := netlink.LinkList() // empty on an error
	var up, down []string
	for _, l := range links {
		switch a := l.Attrs(); {
		case a.Flags&net.FlagLoopback != 0 || a.EncapType != "ether" || l.Type() == "dummy" || l.Type() == "ifb":
		case isUp(a):
			up = append(up, a.Name)
		default:
			down = append(down, a.Name)
		}
	}
	if len(up) == 0 {
		return down
	}
	return up
}

// outTo returns the interface through which the kernel would send UDP packets; empty without a route. Without an address
// of its own, the kernel chooses one.
func outTo(own, to netip.AddrPort) string {
	r, err := route.Find(0, own, to)
	if err != nil {
		return ""
	}
	l, err := netlink.LinkByIndex(r.Index)
	if err != nil {
		return ""
	}
	return l.Attrs().Name
}

// as returns a privileged command in the form that this user must type.
func as(command string) string {
	if unix.Geteuid() == 0 {
		return command
	}
	return "sudo " + strings.ReplaceAll(command, "&& ", "&& sudo ")
}
