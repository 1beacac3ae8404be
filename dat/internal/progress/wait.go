package progress

import (
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

// Wait waits until w is ready, the time limit has passed or the channel done is closed. At first, it polls the engines.
// After waitSpin (some tens of microseconds) without a packet, it parks, and the background owners poll the engines.
func (g *Group) Wait(w Waiting, limit wire.Time, done <-chan struct{}) Outcome {
	now := Now()
	quiet := now // when packets last moved
	for {
		if w.Ready() {
			return Ready
		}
		busy, yieldThread := g.pass(now, Waiter)
		if busy {
			quiet = now
		}
		if w.Ready() {
			return Ready
		}
		if received(done) {
			return Interrupted
		}
		if now.Sub(quiet) > waitSpin {
			g.park(w, limit, done)
			quiet = Now()
		} else {
			yield(Waiter, busy, yieldThread)
			g.network.look(now)
		}
		if now = Now(); now >= limit {
			return TimedOut
		}
	}
}

// park sleeps until w is ready, the time limit has passed or done is closed.
func (g *Group) park(w Waiting, limit wire.Time, done <-chan struct{}) {
	w.Arm(true)
	defer w.Arm(false)
	if w.Ready() {
		return
	}
	for _, d := range g.drivers {
		d.handOver()
	}
	remaining := limit.Sub(Now())
	if remaining <= 0 {
		return
	}
	timer := time.NewTimer(remaining)
	defer timer.Stop()
	g.parked.Add(1)
	select {
	case <-w.Signal():
	case <-timer.C:
	case <-done:
	}
}
