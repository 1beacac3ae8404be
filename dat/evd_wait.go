package dat

import (
	"runtime"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Tunables of waiting.
const (
	// waitSpin is how long a waiter drives the engines without anything happening before it sleeps:
	// about what a sleep and a wake-up cost.
	waitSpin = 50 * time.Microsecond
	// yieldEvery is how many empty polls pass between two yields to other goroutines.
	yieldEvery = 256
)

// Wait takes the first event out, waiting until at least threshold events are there
// (dat_evd_wait). A negative timeout waits for ever, zero does not wait. more is the number of
// events left.
//
// While it waits it drives the adapter's engines; after some tens of microseconds without any
// event it sleeps. Only one goroutine may wait: others get ErrInvalidState. Other errors:
// ErrTimeoutExpired (nothing was taken), ErrAbort (the adapter was closed), ErrInvalidParameter.
func (e *EVD) Wait(timeout time.Duration, threshold int, ev *Event) (more int, err error) {
	if err := e.usable(); err != nil {
		return 0, err
	}
	if threshold < 1 || threshold > e.QLen() {
		return 0, fail(ErrInvalidParameter, "threshold %d; it may be 1 to %d", threshold, e.QLen())
	}
	if !e.waiting.CompareAndSwap(false, true) {
		return 0, ErrInvalidState
	}
	defer e.waiting.Store(false)
	limit := wire.Time(1<<63 - 1)
	if timeout >= 0 {
		limit = clock().Add(timeout)
	}
	for {
		if err := e.await(limit, threshold); err != nil {
			return e.Len(), err
		}
		if e.pop(ev) {
			return e.Len(), nil
		} // else a Dequeue that began before this call took it
	}
}

// await returns when threshold events are there.
func (e *EVD) await(limit wire.Time, threshold int) error {
	now := clock()
	quiet := now // since when nothing has happened
	for spins := 0; ; spins++ {
		if e.Len() >= threshold {
			return nil
		}
		if e.state.Load() != 0 {
			return ErrAbort
		}
		if e.drive(now) {
			quiet = now
		}
		if e.Len() >= threshold {
			return nil
		}
		if spins%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
		switch now = clock(); {
		case now >= limit:
			return ErrTimeoutExpired
		case now.Sub(quiet) > waitSpin:
			e.sleep(limit, threshold)
			now = clock()
			quiet = now
		}
	}
}

// drive polls every engine and reports whether anything happened.
func (e *EVD) drive(now wire.Time) (busy bool) {
	for _, d := range e.ia.a.drivers {
		_, b := d.poll(now)
		busy = busy || b
	}
	return busy
}

// sleep parks until an event arrives, the dispatcher ends, or the limit. The background owners
// drive the engines meanwhile.
func (e *EVD) sleep(limit wire.Time, threshold int) {
	e.armed.Store(true)
	defer e.armed.Store(false)
	for _, q := range e.queues {
		q.Arm()
	}
	if e.Len() >= threshold || e.state.Load() != 0 {
		return
	}
	for _, d := range e.ia.a.drivers {
		d.handOver()
	}
	d := limit.Sub(clock())
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-e.wake:
	case <-timer.C:
	}
}
