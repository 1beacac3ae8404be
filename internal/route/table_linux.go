package route

import (
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

// Table holds the kernel's routing state of one interface. Its goroutines keep it current until Close.
type Table struct {
	index     int
	handle    *netlink.Handle
	events    *nl.NetlinkSocket
	solicitor *solicitor
	iface     atomic.Pointer[Interface]
	news      chan struct{} // has a token after iface was stored
	read      sync.Mutex    // held while the interface is read and stored, so that an older state never replaces a newer one
	poke      chan struct{} // wakes keep
	done      chan struct{}
	closed    sync.Once
	all       sync.WaitGroup
	life      sync.RWMutex // read-locked while a caller uses handle, which Close releases

	answering

	mu         sync.Mutex // guards the rest
	hops       map[flow]*Hop
	neighbours map[netip.Addr]*neighbour // neighbours that hops use
	requests   plan                      // for neighbours
	seen       map[netip.Addr]sighting   // the kernel's neighbour entries of this interface
	resolving
	rerouting
}

// rerouting plans the lookups of all routes.
type rerouting struct {
	routesAt time.Time // time of the next lookup of all routes, if lookups permits it
	lookups  budget    // for the lookups of all routes
}

// Open reads the state of an interface in the network namespace of the calling thread and keeps it current.
//
// System calls: socket, bind, sendto, recvfrom (netlink).
func Open(ifindex int) (*Table, error) {
	t := &Table{
		index:      ifindex,
		news:       make(chan struct{}, 1),
		poke:       make(chan struct{}, 1),
		done:       make(chan struct{}),
		answering:  newAnswering(),
		hops:       make(map[flow]*Hop),
		neighbours: make(map[netip.Addr]*neighbour),
		seen:       make(map[netip.Addr]sighting),
		resolving:  newResolving(),
		rerouting:  rerouting{routesAt: time.Now().Add(recheck)},
	}
	t.query = t.lookup
	if err := t.open(); err != nil {
		t.closeSockets()
		return nil, err
	}
	t.all.Go(t.watch)
	t.all.Go(t.keep)
	t.all.Go(t.resolve)
	if t.prober = openProber(t.index); t.prober != nil {
		t.listen(t.prober.v4, parseARP)
		t.listen(t.prober.v6, parseAdvertisement)
	}
	t.all.Go(t.probe)
	return t, nil
}

// open opens the sockets and reads the state of the interface. The subscription must precede the first dump, so that no
// change is missed.
func (t *Table) open() (err error) {
	if err = t.openSockets(); err != nil {
		return err
	}
	if err = t.readInterface(false); err != nil {
		return err
	}
	if err = t.readPrefixes(); err != nil {
		return err
	}
	if err = t.readNeighbours(); err != nil {
		return err
	}
	t.solicitor, err = openSolicitor(t.Interface().Name)
	return err
}

func (t *Table) openSockets() (err error) {
	if t.handle, err = netlink.NewHandle(syscall.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("route: open netlink socket: %w", err)
	}
	if err := t.handle.SetSocketTimeout(requestTimeout); err != nil {
		return fmt.Errorf("route: set netlink timeout: %w", err)
	}
	if t.asker, err = openAsker(); err != nil {
		return err
	}
	t.events, err = nl.Subscribe(syscall.NETLINK_ROUTE,
		syscall.RTNLGRP_LINK, syscall.RTNLGRP_NEIGH,
		syscall.RTNLGRP_IPV4_IFADDR, syscall.RTNLGRP_IPV6_IFADDR,
		syscall.RTNLGRP_IPV4_ROUTE, syscall.RTNLGRP_IPV6_ROUTE,
		syscall.RTNLGRP_IPV4_RULE, syscall.RTNLGRP_IPV6_RULE)
	if err != nil {
		return fmt.Errorf("route: subscribe to netlink: %w", err)
	}
	return nil
}

func (t *Table) closeSockets() {
	if t.events != nil {
		t.events.Close()
	}
	if t.handle != nil {
		t.handle.Close()
	}
	t.asker.close()
}

// Close ends the goroutines and waits for them, but at most closeWait. Hops keep their last state. A second Close does
// nothing.
func (t *Table) Close() error {
	t.closed.Do(func() {
		t.mu.Lock()
		close(t.done) // with mu, so that ask starts no goroutine afterwards
		t.mu.Unlock()
		t.events.Close() // ends watch
		t.prober.close()
		within(closeWait, func() {
			t.all.Wait()
			t.life.Lock()
			defer t.life.Unlock()
			t.handle.Close()
			t.asker.close()
			t.solicitor.close()
		})
	})
	return nil
}

// within runs f, which waits for goroutines and then closes their netlink sockets. It returns when f has returned, or
// after d. A goroutine that waits for the kernel in a system call cannot be ended. f then ends when the kernel has
// answered. This affects only the goroutines of one Table or Reach, because opening another one needs the kernel's
// answers too.
func within(d time.Duration, f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	pause(over, d)
}

// Changes returns a channel that has a token when the state of the interface was read again. One goroutine at a time
// receives the tokens, and compares the results of Interface. Several changes in quick succession give one token.
func (t *Table) Changes() <-chan struct{} { return t.news }

// Interface returns the current state of the interface.
func (t *Table) Interface() Interface { return *t.iface.Load() }

// Refresh reads the state of the interface now and returns it. It is for callers that cannot wait for the kernel's
// message about a change. It puts no token into Changes.
//
// System calls: sendto, recvfrom (netlink).
func (t *Table) Refresh() Interface {
	t.life.RLock()
	defer t.life.RUnlock()
	select {
	case <-t.done:
	default:
		_ = t.readInterface(false)
	}
	return t.Interface()
}

// routesDue schedules a new lookup of all routes after the settle delay. The caller holds mu.
func (t *Table) routesDue(now time.Time) {
	if at := now.Add(settle); at.Before(t.routesAt) {
		t.routesAt = at
	}
	t.pokeKeeper()
}

func (t *Table) pokeKeeper() {
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// keep sends requests for neighbours and looks up routes, when they are due.
func (t *Table) keep() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-t.done:
			return
		case <-t.poke:
		case <-timer.C:
		}
		now := time.Now()
		t.checkDue(now)
		t.lookupDue(now)
		timer.Reset(t.kickDue(now))
	}
}

// lookupAt returns the time of the next lookup of all routes. The caller holds mu.
func (t *Table) lookupAt() time.Time { return later(t.routesAt, t.lookups.paid) }

// lookupDue reads the interface again and looks up every route again, if that is due. Any host of the link can make the
// kernel report changes of addresses and routes, with router advertisements (RFC 4861 §4.2). So the processor time of the
// lookups is limited.
func (t *Table) lookupDue(now time.Time) {
	t.mu.Lock()
	due := !now.Before(t.lookupAt())
	var all []flow
	if due {
		t.routesAt = now.Add(recheck)
		for f := range t.hops {
			all = append(all, f)
		}
	}
	t.mu.Unlock()
	if !due {
		return
	}
	cost := costOf(func() {
		t.readAddrs(now)
		_ = t.readPrefixes() // if the kernel did not answer, the known state stays
		for _, f := range all {
			t.learn(f, true)
		}
	})
	t.mu.Lock()
	t.lookups.charge(cost, time.Now())
	t.mu.Unlock()
}

// readAddrs reads the interface again. If its addresses have changed, unresolved neighbours are due at once. After an
// error the known state stays.
func (t *Table) readAddrs(now time.Time) {
	was := t.Interface().Addrs
	if t.readInterface(true) == nil && !slices.Equal(was, t.Interface().Addrs) {
		t.mu.Lock()
		t.kickUnlisted(now)
		t.mu.Unlock()
	}
}
