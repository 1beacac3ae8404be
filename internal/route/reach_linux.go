package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
)

// Reach tells whether the kernel can send to a destination at once, or first has to resolve the neighbour while the
// packet waits in a queue. It covers all interfaces of a network namespace. It only listens to the kernel's messages,
// so it needs no privilege. It resolves nothing itself: the kernel resolves a neighbour when a packet is sent to it.
//
// Known, MTU, ByPort, Version and Ask make no system call and take no lock. Only an Ask that returns true allocates. Any
// goroutine may call Known, MTU, ByPort and Version; one goroutine at a time may call Ask.
type Reach struct {
	source   netip.AddrPort // of all packets
	handle   *netlink.Handle
	events   *nl.NetlinkSocket
	fib      atomic.Pointer[fib]
	macs     *macTable // resolved neighbours of all interfaces; their MAC addresses are not stored
	version  atomic.Uint64
	asks     bucket    // for Ask; only its caller uses it
	attempts *macTable // unresolved neighbours that Ask has admitted
	presence

	poke   chan struct{} // has a token if routes have changed
	done   chan struct{}
	closed sync.Once
	all    sync.WaitGroup

	on map[netip.Addr][]int // interfaces on which a neighbour is resolved; used by OpenReach, then by watch
}

// OpenReach reads rules, routes and neighbours in the network namespace of the calling thread. Two goroutines keep them
// current until Close. The packets have the given source.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func OpenReach(source netip.AddrPort) (*Reach, error) {
	r := &Reach{
		source:   source,
		macs:     newMACTable(),
		asks:     bucket{tokens: resolveBurst, at: time.Now()},
		attempts: newMACTable(),
		presence: presence{news: make(chan struct{}, 1)},
		poke:     make(chan struct{}, 1),
		done:     make(chan struct{}),
	}
	if err := r.open(); err != nil {
		r.closeSockets()
		return nil, err
	}
	r.all.Go(r.watch)
	r.all.Go(r.keep)
	return r, nil
}

// open opens the sockets and reads the state. The subscription must precede the first dump, so that no change is missed.
func (r *Reach) open() (err error) {
	if r.handle, err = netlink.NewHandle(syscall.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("route: open netlink socket: %w", err)
	}
	if err = r.handle.SetSocketTimeout(requestTimeout); err != nil {
		return fmt.Errorf("route: set netlink timeout: %w", err)
	}
	r.events, err = nl.Subscribe(syscall.NETLINK_ROUTE, syscall.RTNLGRP_LINK, syscall.RTNLGRP_NEIGH,
		syscall.RTNLGRP_IPV4_IFADDR, syscall.RTNLGRP_IPV6_IFADDR,
		syscall.RTNLGRP_IPV4_ROUTE, syscall.RTNLGRP_IPV6_ROUTE,
		syscall.RTNLGRP_IPV4_RULE, syscall.RTNLGRP_IPV6_RULE)
	if err != nil {
		return fmt.Errorf("route: subscribe to netlink: %w", err)
	}
	if err = r.readRoutes(); err != nil {
		return err
	}
	if err = r.readNeighbours(); err != nil {
		return err
	}
	return r.openPresence()
}

func (r *Reach) closeSockets() {
	if r.events != nil {
		r.events.Close()
	}
	if r.handle != nil {
		r.handle.Close()
	}
}

// Close ends the goroutines and waits for them, but at most closeWait. A second Close does nothing.
func (r *Reach) Close() {
	r.closed.Do(func() {
		close(r.done)
		r.events.Close() // ends watch
		within(closeWait, func() {
			r.all.Wait()
			r.handle.Close()
		})
	})
}

// Known reports whether the kernel sends a packet to dst at once. It does in these cases:
//
//   - The neighbour is resolved.
//   - No neighbour is needed, as on loopback and point-to-point interfaces.
//   - dst is behind a gateway. A gateway cannot be forged, and all packets that wait for it are in one queue.
//   - There is no route to dst. The kernel then refuses the packet.
func (r *Reach) Known(dst netip.AddrPort) bool {
	f := flowOf(r.source, dst)
	g, ok := r.fib.Load().find(f)
	return !ok || g.free || r.macs.find(f.dst.Addr()) != nil
}

// MTU returns the largest IP packet in bytes for the route to dst. It is the minimum of the MTUs of the route and of its
// interface. It does not depend on ICMP messages, which any host can forge. It returns 0 if it knows no unicast route.
func (r *Reach) MTU(dst netip.AddrPort) int {
	g, _ := r.fib.Load().find(flowOf(r.source, dst))
	return g.mtu
}

// ByPort reports whether the route to dst depends on the source port.
func (r *Reach) ByPort(dst netip.AddrPort) bool {
	f := r.fib.Load()
	own, _ := f.find(flowOf(r.source, dst))
	other, _ := f.find(flowOf(netip.AddrPortFrom(r.source.Addr(), 0), dst))
	return own != other
}

// Version changes when a destination that was Known may no longer be.
func (r *Reach) Version() uint64 { return r.version.Load() }

// Ask reports whether an answer that belongs to no connection may be sent to dst, a neighbour that is not Known. The
// kernel then resolves the neighbour. A token bucket limits the rate of these answers, as a Table limits its own
// resolutions. If Ask admitted the same neighbour within resolveMemory and it is still unresolved, it may use only half
// of the tokens. Forged addresses of a small subnet therefore leave tokens for a new host.
func (r *Reach) Ask(dst netip.Addr, now time.Time) bool {
	reserved := 0
	dst = dst.WithZone("")
	if e := r.attempts.find(dst); e != nil && now.Sub(e.at) < resolveMemory {
		reserved = resolveBurst / 2
	}
	if !r.asks.take(now, reserved) {
		return false
	}
	r.attempts.put(&macEntry{addr: dst, at: now})
	return true
}

// watch applies the kernel's messages until the socket is closed.
//
// System calls: recvfrom (netlink).
func (r *Reach) watch() {
	follow(r.events, r.done, r.apply, func() {
		_ = r.readNeighbours() // on an error the known state stays; the next message corrects it
		r.routesChanged()
	})
}

// apply handles one message. It skips a message that cannot be parsed, which the kernel does not send.
func (r *Reach) apply(m *syscall.NetlinkMessage) {
	switch m.Header.Type {
	case syscall.RTM_NEWNEIGH, syscall.RTM_DELNEIGH:
		if n, err := netlink.NeighDeserialize(m.Data); err == nil {
			r.sight(n, m.Header.Type == syscall.RTM_DELNEIGH)
		}
	case syscall.RTM_NEWROUTE, syscall.RTM_DELROUTE, syscall.RTM_NEWLINK, syscall.RTM_DELLINK,
		syscall.RTM_NEWRULE, syscall.RTM_DELRULE, syscall.RTM_NEWADDR, syscall.RTM_DELADDR:
		r.routesChanged()
	}
}

func (r *Reach) routesChanged() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// sight applies an entry of the kernel's neighbour table.
func (r *Reach) sight(m *netlink.Neigh, gone bool) {
	addr, ok := neighbourOf(m)
	if !ok {
		return
	}
	on := r.on[addr]
	at := slices.Index(on, m.LinkIndex)
	switch usable := !gone && m.State&nudUsable != 0; {
	case usable:
		if at < 0 {
			r.on[addr] = append(on, m.LinkIndex)
		}
		r.macs.put(&macEntry{addr: addr})
		r.attempts.remove(addr)
	case at < 0:
	case len(on) > 1:
		r.on[addr] = slices.Delete(on, at, at+1)
	default:
		delete(r.on, addr)
		r.macs.remove(addr)
		r.version.Add(1) // last, for readers that read the version before the tables
	}
}

// neighbourOf returns the address of an entry. ok is false if the entry is not a host on the link.
func neighbourOf(m *netlink.Neigh) (addr netip.Addr, ok bool) {
	addr = address(m.IP)
	return addr, addr.IsValid() && m.Flags&netlink.NTF_PROXY == 0 && m.Family != syscall.AF_BRIDGE
}

// readNeighbours replaces the neighbours by the kernel's tables.
//
// System calls: sendto, recvfrom (netlink).
func (r *Reach) readNeighbours() error {
	list, err := r.handle.NeighList(0, 0)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // the kernel reports a change that interrupts the dump
		return fmt.Errorf("route: list neighbours: %w", err)
	}
	r.on = make(map[netip.Addr][]int)
	for i := range list {
		r.sight(&list[i], false)
	}
	r.macs.retain(func(addr netip.Addr) bool { return len(r.on[addr]) > 0 })
	r.version.Add(1)
	return nil
}

// keep reads the routes and addresses again after a change, when the settle delay is over and the budget permits it.
func (r *Reach) keep() {
	var lookups budget
	for {
		select {
		case <-r.done:
			return
		case <-r.poke:
		}
		if !pause(r.done, max(settle, time.Until(lookups.paid))) {
			return
		}
		cost := costOf(func() { _, _ = r.readRoutes(), r.readPresence() }) // on an error the known state stays
		lookups.charge(cost, time.Now())
	}
}

// readRoutes replaces the routes by those of all kernel tables.
//
// System calls: sendto, recvfrom (netlink).
func (r *Reach) readRoutes() error {
	links, err := r.handle.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("route: list interfaces: %w", err)
	}
	devices := make(map[int]device)
	for _, l := range links {
		const noNeighbours = syscall.IFF_NOARP | syscall.IFF_LOOPBACK | syscall.IFF_POINTOPOINT
		devices[l.Attrs().Index] = device{direct: l.Attrs().RawFlags&noNeighbours != 0, mtu: l.Attrs().MTU}
	}
	f, err := readFIB(r.handle, nil, scope{}, func(route *netlink.Route) (gateway, bool) { return reachOf(route, devices), true })
	if err != nil {
		return fmt.Errorf("route: %w", err)
	}
	r.fib.Store(f)
	r.version.Add(1)
	return nil
}

// device is an interface of a Reach.
type device struct {
	direct bool // it has no neighbours
	mtu    int
}

// reachOf returns the gateway of a route. The gateway is free if packets along the route never wait for a neighbour.
// Routes to local addresses are free, and so are routes that refuse packets.
func reachOf(route *netlink.Route, devices map[int]device) gateway {
	g := gateway{free: true, throws: route.Type == syscall.RTN_THROW, priority: route.Priority}
	if route.Type != syscall.RTN_UNICAST {
		return g
	}
	hops := route.MultiPath
	if len(hops) == 0 {
		hops = []*netlink.NexthopInfo{{LinkIndex: route.LinkIndex, Gw: route.Gw, Via: route.Via}}
	}
	for _, n := range hops {
		g.mtu = limitMTU(limitMTU(devices[n.LinkIndex].mtu, g.mtu), route.MTU)
		if !devices[n.LinkIndex].direct && !gatewayAddr(n.Gw, n.Via).IsValid() {
			g.free = false
		}
	}
	return g
}
