package progress

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Waiting is a condition that an engine or another goroutine brings about.
type Waiting interface {
	// Ready reports that there is nothing to wait for any more.
	Ready() bool
	// Arm asks for Signal to be raised when Ready turns true, or ends that.
	Arm(on bool)
	Signal() Signal
}

// Outcome is how a wait ended.
type Outcome uint8

// Outcomes of waits.
const (
	Ready Outcome = iota
	TimedOut
	Interrupted
)

// Wait drives the engines until w is ready, the limit has passed or done is closed. When nothing has happened for some tens
// of microseconds it parks, and the background owners drive the engines.
func (g *Group) Wait(w Waiting, limit wire.Time, done <-chan struct{}) Outcome {
	now := Now()
	quiet := now // since when nothing has happened
	for {
		if w.Ready() {
			return Ready
		}
		busy, thread := g.pass(now, Waiter)
		if busy {
			quiet = now
		}
		if w.Ready() {
			return Ready
		}
		if over(done) {
			return Interrupted
		}
		yield(Waiter, busy, thread)
		switch now = Now(); {
		case now >= limit:
			return TimedOut
		case now.Sub(quiet) > waitSpin:
			g.park(w, limit, done)
			now = Now()
			quiet = now
		}
	}
}

// park sleeps until w is ready, the limit, or done.
func (g *Group) park(w Waiting, limit wire.Time, done <-chan struct{}) {
	w.Arm(true)
	defer w.Arm(false)
	if w.Ready() {
		return
	}
	for _, d := range g.drivers {
		d.handOver()
	}
	rest := limit.Sub(Now())
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	g.parked.Add(1)
	select {
	case <-w.Signal():
	case <-timer.C:
	case <-done:
	}
}
