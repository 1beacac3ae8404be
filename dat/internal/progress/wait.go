package progress

import (
	"runtime"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Waiting is a condition for which a goroutine waits. An engine or another goroutine makes it true.
type Waiting interface {
	// Ready reports whether the condition is true.
	Ready() bool
	// Arm(true) requests that Signal is raised when Ready becomes true. Arm(false) cancels the request.
	Arm(on bool)
	Signal() Signal
}

// Outcome is the result of a wait.
type Outcome uint8

// Outcomes of waits.
const (
	Ready Outcome = iota
	TimedOut
	Interrupted
)

// Wait waits until w is ready, the time limit has passed or the channel done is closed. At first, Wait polls the
// engines. When no packet has arrived for a time that depends on the Mode, Wait parks, and the background owners poll
// the engines. If more than maxPollers goroutines would poll, all waiters park immediately, and the background owners
// poll for all of them. A goroutine that calls Wait in this period also parks immediately. The period ends when packets
// stop, and at the latest after checkInterval. In mode Busy, the period does not end while a goroutine is parked.
func (g *Group) Wait(w Waiting, limit wire.Time, done <-chan struct{}) Outcome {
	for {
		outcome, ended := g.spin(w, limit, done)
		if ended {
			return outcome
		}
		start, served := Now(), g.served()
		g.park(w, limit, done)
		now := Now()
		g.silences.measured(now.Sub(start), g.served()-served)
		if outcome, ended = ending(w, now, limit, done); ended {
			return outcome
		}
	}
}

// ending reports whether a wait ends now, and with which outcome.
func ending(w Waiting, now, limit wire.Time, done <-chan struct{}) (outcome Outcome, ended bool) {
	switch {
	case w.Ready():
		return Ready, true
	case received(done):
		return Interrupted, true
	case now >= limit:
		return TimedOut, true
	}
	return 0, false
}

// The method spin polls the engines until the wait ends, and returns true with the outcome. It returns false if the
// caller must park instead: no packet has come for some time, or too many goroutines wait.
func (g *Group) spin(w Waiting, limit wire.Time, done <-chan struct{}) (outcome Outcome, ended bool) {
	if w.Ready() {
		return Ready, true
	}
	if g.servesWaiters() {
		return 0, false
	}
	defer g.pollers.Add(-1)
	if g.pollers.Add(1) > g.Mode.maxPollers() {
		g.shared.Store(true)
		return 0, false
	}
	if g.Mode == Busy {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	now := Now()
	spin := g.spinTime(now, g.Mode.waitSpin())
	for quiet := now; now.Sub(quiet) <= spin && !g.servesWaiters(); {
		busy, yieldThread := g.pass(now, Waiter)
		if busy {
			quiet = now
		}
		if outcome, ended = ending(w, now, limit, done); ended {
			return outcome, ended
		}
		if yield(g, Waiter, busy, yieldThread); g.Mode != Busy {
			g.network.look(now, &g.cores)
		}
		now = Now()
	}
	return 0, false
}

// park sleeps until w is ready, the time limit has passed or done is closed.
func (g *Group) park(w Waiting, limit wire.Time, done <-chan struct{}) {
	g.asleep.Add(1)
	defer g.asleep.Add(-1)
	w.Arm(true)
	defer w.Arm(false)
	if w.Ready() {
		return
	}
	for _, d := range g.drivers {
		d.handOver()
	}
	g.parked.Add(1)
	if limit == Forever {
		select {
		case <-w.Signal():
		case <-done:
		}
		return
	}
	timer := time.NewTimer(limit.Sub(Now()))
	defer timer.Stop()
	select {
	case <-w.Signal():
	case <-timer.C:
	case <-done:
	}
}
