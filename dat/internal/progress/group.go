package progress

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// Group has the drivers of one adapter. Its callers poll all of them together.
type Group struct {
	drivers []*Driver
	parked  atomic.Uint64 // number of times that a waiter parked
}

// Add adds a driver. Call it before Start.
func (g *Group) Add(d *Driver) { g.drivers = append(g.drivers, d) }

// Start starts the background owners.
func (g *Group) Start() {
	for _, d := range g.drivers {
		go d.run()
	}
}

// Close ends every connection and keeps the tokens of all engines. It is called once, after Start.
func (g *Group) Close() {
	for _, d := range g.drivers {
		d.close()
	}
}

// Poll polls every engine once, for a call of Dequeue.
func (g *Group) Poll() {
	busy, thread := g.pass(Now(), Poller)
	yield(Poller, busy, thread)
}

// pass polls every engine that is not owned. busy reports whether packets moved, thread whether the calling thread is
// to yield.
func (g *Group) pass(now wire.Time, as wire.Role) (busy, thread bool) {
	for _, d := range g.drivers {
		b, t := d.poll(now, as)
		busy, thread = busy || b, thread || t
	}
	return busy, thread
}

// Halt calls f while it owns every engine. It returns false, and does not call f, if the group is closed.
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

// Barrier returns when the owners at the time of the call have given their engines up.
func (g *Group) Barrier() {
	for _, d := range g.drivers {
		d.barrier()
	}
}

// Parked returns the number of times that a waiter parked.
func (g *Group) Parked() uint64 { return g.parked.Load() }
