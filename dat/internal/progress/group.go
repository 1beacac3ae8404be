package progress

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// Group is the drivers of one adapter, which its callers drive together.
type Group struct {
	drivers []*Driver
	parked  atomic.Uint64 // times that a waiter parked
}

// Add puts a driver into the group, before Start.
func (g *Group) Add(d *Driver) { g.drivers = append(g.drivers, d) }

// Start begins the background owners.
func (g *Group) Start() {
	for _, d := range g.drivers {
		go d.run()
	}
}

// Close ends every connection and keeps the ownership of every engine. It is called once, after Start.
func (g *Group) Close() {
	for _, d := range g.drivers {
		d.close()
	}
}

// Poll drives every engine once, for a caller that looks for events.
func (g *Group) Poll() {
	busy, thread := g.pass(Now(), Poller)
	yield(Poller, busy, thread)
}

// pass drives every engine that is not owned. It reports whether anything happened, and whether the thread is to yield.
func (g *Group) pass(now wire.Time, as wire.Role) (busy, thread bool) {
	for _, d := range g.drivers {
		b, t := d.poll(now, as)
		busy, thread = busy || b, thread || t
	}
	return busy, thread
}

// Halt calls f with every engine owned. It reports false, and does not call f, when the group is closed.
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

// resume gives the first n engines up.
func (g *Group) resume(n int) {
	for _, d := range g.drivers[:n] {
		d.Disown()
	}
}

// Barrier returns when the owners at the call have given the engines up.
func (g *Group) Barrier() {
	for _, d := range g.drivers {
		d.barrier()
	}
}

// Parked counts the times that a waiter parked.
func (g *Group) Parked() uint64 { return g.parked.Load() }
