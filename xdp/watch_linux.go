package xdp

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/internal/route"
	"github.com/datxdp/datxdp/link"
)

// Keeper receives the events of an open device. All calls come from one goroutine, and Device.Close waits for its end.
type Keeper interface {
	// Exclude runs f while the owner of the queue's socket does not use the socket. If the device is about to be
	// closed, Exclude may return without running f.
	Exclude(queue int, f func())
	// Changed reports a change as text. queue is -1 if the change concerns the whole device. harmful is true if the
	// change disturbs the traffic.
	Changed(queue int, harmful bool, text string)
	// Ended reports that the device no longer works, and why. The device makes no call after it.
	Ended(err error)
}

// watching is the state of a device that its watcher shares with other goroutines.
type watching struct {
	watcher      sync.WaitGroup
	closing      sync.Once
	quit         chan struct{}          // closed to stop watcher
	renamed      atomic.Pointer[string] // the interface's new name; nil if it was not renamed
	addressGrace atomic.Int32           // ticks that the address may be missing
}

// Watch follows changes of the interface and revives stalled transmit rings, until Close. Call it once.
func (d *Device) Watch(k Keeper) {
	w := &watch{d: d, keeper: k, last: d.routes.Interface(), rings: make([]ringWatch, len(d.sockets))}
	for _, p := range w.last.Addrs {
		w.addrs = append(w.addrs, p.Addr())
	}
	w.slots = d.nic.ring(d.Name())
	w.missed(d.served.now.Load())
	d.watcher.Go(w.run)
}

// watch supervises a device on a goroutine of its own. Ten times a second it reads ring words that are shared with the
// kernel; in between, netlink messages wake the goroutine. The data path is not affected.
type watch struct {
	d      *Device
	keeper Keeper
	last   route.Interface
	addrs  []netip.Addr
	slots  int // slots of the NIC's receive ring
	rings  []ringWatch
	ticks  int
	gone   int // ticks since the device's address was last seen
}

// ringWatch is the state of the transmit ring of one queue.
type ringWatch struct {
	was   txState
	still int // ticks for which packets have waited without movement
}

func (w *watch) run() {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-w.d.quit:
			return
		case <-w.d.routes.Changes():
			err = w.interfaceChanged(w.d.routes.Interface())
		case <-tick.C:
			err = w.checkPeriodic()
		}
		if err != nil {
			w.d.refusePaths(err)
			w.keeper.Ended(err)
			return
		}
	}
}

// checkPeriodic does the periodic checks.
func (w *watch) checkPeriodic() error {
	if w.ticks++; w.ticks%watchSlow == 0 {
		if err := w.checkSlow(); err != nil {
			return err
		}
	}
	if !w.owned() {
		if w.gone++; w.gone > int(w.d.addressGrace.Load()) {
			return w.fault("its address %v was removed", w.d.local)
		}
	} else {
		w.gone = 0
	}
	for q := range w.rings {
		if err := w.checkRing(q); err != nil {
			return err
		}
	}
	return nil
}

// fault returns the error that a device ends with.
func (w *watch) fault(format string, args ...any) error {
	text := fmt.Sprintf("xdp: %s: %s: close the adapter and open it again", w.d.Name(), fmt.Sprintf(format, args...))
	return &openError{text, []error{link.ErrUnreachable}}
}

func (w *watch) changed(harmful bool, format string, args ...any) {
	w.keeper.Changed(-1, harmful, fmt.Sprintf(format, args...))
}

// owned reports whether the interface still has the device's own address.
func (w *watch) owned() bool {
	return slices.Contains(w.last.Tentative, w.d.local) ||
		slices.ContainsFunc(w.last.Addrs, func(p netip.Prefix) bool { return p.Addr() == w.d.local })
}

// interfaceChanged compares the interface with its last state.
func (w *watch) interfaceChanged(now route.Interface) error {
	was := w.last
	w.last = now
	switch {
	case now.Gone == route.Deleted:
		return w.fault("the interface was deleted")
	case now.Gone == route.Moved:
		return w.fault("the interface was moved to another network namespace")
	case now.MAC != was.MAC:
		return w.fault("its Ethernet address was changed from % x to % x", was.MAC, now.MAC)
	}
	if now.Name != was.Name {
		w.d.rename(now.Name)
		w.changed(false, "the interface was renamed from %s to %s", was.Name, now.Name)
	}
	if now.MTU != was.MTU {
		w.mtuChanged(was.MTU, now.MTU)
	}
	w.stateChanged(was, now)
	w.addressesChanged(now)
	return nil
}

// mtuChanged reports a change of the MTU.
func (w *watch) mtuChanged(was, now int) {
	if now < smallestMTU {
		w.changed(true, "the MTU was changed from %d to %d, below %d: larger packets of open connections are lost until it is raised", was, now, smallestMTU)
		return
	}
	w.changed(false, "the MTU was changed from %d to %d; packets have at most %d bytes", was, now, min(now, w.d.mtu))
}

// stateChanged reports changes of the carrier. When the carrier returns, it kicks the packets that waited for it.
func (w *watch) stateChanged(was, now route.Interface) {
	switch {
	case was.Up && !now.Up:
		w.changed(true, "the interface was taken down")
	case was.Carrier && !now.Carrier:
		w.changed(true, "the interface lost its carrier: plug the cable in")
	case !was.Carrier && now.Carrier:
		w.changed(false, "the interface has its carrier again")
		for _, s := range w.d.sockets {
			s.poke()
		}
	}
}

// addressesChanged serves the addresses that the interface has now, and reports new and removed ones. If the device's
// own address is missing for addressTicks ticks, checkPeriodic ends the device. The delay is needed because an interface
// that goes down loses its IPv6 addresses until they are configured again.
func (w *watch) addressesChanged(now route.Interface) {
	var addrs []netip.Addr
	for _, p := range now.Addrs {
		addrs = append(addrs, p.Addr())
	}
	if slices.Equal(addrs, w.addrs) {
		return
	}
	serves, err := w.d.follow(now.Addrs)
	if err != nil {
		w.changed(true, "the program still redirects the old addresses: %v", err)
	}
	for _, a := range addrs {
		if !slices.Contains(w.addrs, a) && serves.owns(a) {
			w.changed(false, "the address %v was added, and is served", a)
		}
	}
	w.missed(serves)
	for _, a := range w.addrs {
		if !slices.Contains(addrs, a) {
			w.changed(a == w.d.local, "the address %v was removed", a)
		}
	}
	w.addrs = addrs
}

// missed reports addresses that are not served: because there are too many, or because their port cannot be bound.
func (w *watch) missed(s *served) {
	for _, why := range s.refused {
		w.changed(true, "%s", why)
	}
	if n := len(s.missed); n > 0 {
		w.changed(true, "the interface has more than %d addresses: %d are not served, such as %v", len(s.addrs), n, s.missed[0])
	}
}

// checkSlow checks what netlink does not report: the program, the ring size and the number of queues.
func (w *watch) checkSlow() error {
	d := w.d
	if on, err := d.steer.Attached(); err == nil && !on {
		return w.fault("its XDP program was detached by another program")
	}
	name := d.Name()
	if n := d.nic.ring(name); n != w.slots {
		w.changed(false, "the receive ring was changed from %d to %d slots", w.slots, n)
		w.slots = n
	}
	c, err := d.nic.channels(name)
	if n := c.receive(); err == nil && (n < len(d.sockets) || d.all && n > len(d.sockets)) {
		return w.fault("the number of receive queues was changed from %d to %d", len(d.sockets), n)
	}
	return nil
}

// checkRing checks the transmit ring of a queue. Without carrier the ring does not move, and that is no stall.
func (w *watch) checkRing(q int) error {
	r, s := &w.rings[q], w.d.sockets[q]
	now := s.transmitting()
	stands := now.waits && now.taken == r.was.taken && now.done == r.was.done && w.last.Carrier
	r.was = now
	if !stands {
		if r.still = 0; s.health.stalled.Swap(false) {
			w.keeper.Changed(q, false, "the transmit ring moves again")
		}
		return nil
	}
	switch r.still++; {
	case r.still < stallTicks:
		return nil
	case r.still == stallTicks:
		s.health.stalled.Store(true)
		s.health.stalls.Add(1)
		w.keeper.Changed(q, true, fmt.Sprintf("the transmit ring has not moved for %v and packets wait: kicking the driver", stallTicks*watchTick))
	case r.still < reviveTicks:
	case !now.held:
		r.still = 0
		return w.revive(q)
	case r.still == reviveTicks: // the kernel keeps the queue of a closed socket busy until all its packets are freed
		w.keeper.Changed(q, true, fmt.Sprintf("receivers hold %d packets: the queue cannot be opened again before they free them", now.taken-now.done))
	}
	s.poke()
	return nil
}

// revive reopens the socket of a queue in its current mode. If this fails in zero-copy mode and the device was opened
// in Auto mode, revive tries copy mode. That fails if the socket had packets of several frames in zero-copy mode and
// copy mode does not support them.
func (w *watch) revive(q int) error {
	d := w.d
	mode := Mode(d.sockets[q].Caps().Mode)
	err := w.reopenQueue(q, mode)
	if err == nil {
		w.keeper.Changed(q, true, fmt.Sprintf("the queue was opened again in %s mode, since a kick did not help", mode))
		return nil
	}
	if d.asked == Auto && mode == ZeroCopy {
		if lower := w.reopenQueue(q, Copy); lower == nil {
			w.keeper.Changed(q, true, fmt.Sprintf("the queue was opened again in %s mode, since it did not transmit in %s mode: %v", Copy, mode, err))
			return nil
		}
	}
	return w.fault("queue %d does not transmit, and opening it again did not help: %v", q, err)
}

// reopenQueue reopens the socket of a queue and checks that the socket transmits. If the device is about to be closed,
// reopenQueue may do nothing and return nil.
func (w *watch) reopenQueue(q int, mode Mode) (err error) {
	d, s := w.d, w.d.sockets[q]
	w.keeper.Exclude(q, func() {
		s.health.reopens.Add(1)
		if err = d.ns.run(func() error { return s.reopen(mode) }); err != nil {
			return
		}
		if err = d.steer.Register(q, s.fd); err != nil {
			return
		}
		if dead := silentSockets([]*Socket{s}, proofTimeout); len(dead) > 0 && d.routes.Refresh().Carrier {
			err = silentError(d.Name(), mode, []int{q})
		}
	})
	return err
}
