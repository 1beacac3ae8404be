package progress

import (
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Waiting is a condition that a goroutine waits for. An engine or another goroutine makes it true.
type Waiting interface {
	// Ready reports whether the condition is true.
	Ready() bool
	// Arm with true asks for Signal to be raised when Ready becomes true; with false it ends that.
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

// Wait polls the engines until w is ready, the limit has passed or done is closed. After waitSpin (some tens of
// microseconds) without a packet it parks; the background owners then poll the engines.
func (g *Group) Wait(w Waiting, limit wire.Time, done <-chan struct{}) Outcome {
	now := Now()
	quiet := now // when packets last moved
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
		if received(done) {
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

// park sleeps until w is ready, the limit has passed or done is closed.
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
