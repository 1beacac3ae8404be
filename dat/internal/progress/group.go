package progress

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Group has the drivers of one adapter. Its methods work on all drivers.
type Group struct {
	Mode     Mode // set it before Start
	drivers  []*Driver
	parked   atomic.Uint64 // number of times that a waiter parked
	asleep   atomic.Int32  // number of waiters that are parked
	pollers  atomic.Int32  // number of waiters that poll
	shared   atomic.Bool   // several goroutines wait, and the background owners poll for all of them
	cores    cores
	silences silences
	network  network
}

// Add adds a driver. Call it before Start.
func (g *Group) Add(d *Driver) {
	d.group = g
	g.drivers = append(g.drivers, d)
}

// Start starts the background owners.
func (g *Group) Start() {
	g.network.open()
	for _, d := range g.drivers {
		go d.run()
	}
}

// Close closes every driver: it ends all connections and keeps the tokens of all engines. The drivers wait for their
// peers at the same time. Call Close once, after Start.
func (g *Group) Close() {
	var closing sync.WaitGroup
	for _, d := range g.drivers {
		closing.Go(d.close)
	}
	closing.Wait()
	g.network.close()
}

// servesWaiters reports whether the background owners poll for several waiters. In mode Busy, servesWaiters returns
// true while any waiter is parked, because a waiter parks only if too many goroutines wait.
func (g *Group) servesWaiters() bool {
	return g.shared.Load() || g.Mode == Busy && g.asleep.Load() > 0
}

// spinTime returns how long goroutines poll without a packet before they sleep: the given time, or 0 while they may not
// poll.
func (g *Group) spinTime(now wire.Time, spin time.Duration) time.Duration {
	if g.Mode == Adaptive && !(g.cores.free(now) && g.silences.soon()) {
		return 0
	}
	return spin
}

// Poll polls every engine once, for a call of Dequeue.
func (g *Group) Poll() {
	busy, yieldThread := g.pass(Now(), Poller)
	yield(g, Poller, busy, yieldThread)
}

// The method pass polls, in the given role, every engine that is not owned. The result busy is true if packets moved in
// one of these polls. The result yieldThread is true if the calling thread should yield.
func (g *Group) pass(now wire.Time, role wire.Role) (busy, yieldThread bool) {
	for _, d := range g.drivers {
		b, y := d.poll(now, role)
		busy, yieldThread = busy || b, yieldThread || y
	}
	return busy, yieldThread
}

// Halt calls f while it owns every engine. If the group is closed, Halt returns false and does not call f.
func (g *Group) Halt(f func()) bool {
	for i, d := range g.drivers {
		if !d.Own() {
			g.resume(i)
			return false
		}
	}
	defer g.resume(len(g.drivers))
	f()
	return true
}

// resume gives up the first n engines.
func (g *Group) resume(n int) {
	for _, d := range g.drivers[:n] {
		d.Disown()
	}
}

// Barrier waits until each goroutine that owned an engine at the time of the call has given the engine up.
func (g *Group) Barrier() {
	for _, d := range g.drivers {
		d.barrier()
	}
}

// served returns the number of passes of the background owners that moved packets.
func (g *Group) served() (n uint64) {
	for _, d := range g.drivers {
		n += d.served.Load()
	}
	return n
}

// Parked returns the number of times that a waiter parked.
func (g *Group) Parked() uint64 { return g.parked.Load() }
