package progress

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// inMode runs f in virtual time, with a fake in the given mode whose background owner runs.
func inMode(t *testing.T, m Mode, f func(t *testing.T, x *fake)) {
	inVirtualTime(t, func(t *testing.T) {
		x := newFake()
		x.group.Mode = m
		x.group.Start()
		defer x.group.Close()
		x.settle()
		f(t, x)
		x.settle()
	})
}

// A busy waiter polls until its event arrives. It does not park.
func TestBusyWaiter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	inMode(t, Busy, func(t *testing.T, x *fake) {
		e := newEvent()
		time.AfterFunc(10*waitSpin, e.happen)
		was := x.polls(Waiter)
		if outcome := x.group.Wait(e, Forever, nil); outcome != Ready || x.group.Parked() != 0 {
			t.Errorf("outcome %d; parked %d times", outcome, x.group.Parked())
		}
		if n := x.polls(Waiter) - was; n < int(9*waitSpin/pollTime) {
			t.Errorf("%d polls", n)
		}
	})
}

// A busy waiter that may not poll parks. The background owner polls for it, and does not sleep until its event arrives.
func TestBusyWaiterParks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so no waiter may poll
	inMode(t, Busy, func(t *testing.T, x *fake) {
		e := newEvent()
		was := x.polls(Background)
		time.AfterFunc(10*checkInterval, e.happen)
		if outcome := x.group.Wait(e, Forever, nil); outcome != Ready || x.group.Parked() != 1 || x.polls(Waiter) != 0 {
			t.Errorf("outcome %d; parked %d times; %d polls", outcome, x.group.Parked(), x.polls(Waiter))
		}
		if n := x.polls(Background) - was; n < int(9*checkInterval/pollTime) {
			t.Errorf("%d polls by the background owner", n)
		}
	})
}

// In mode Interrupts a waiter parks after one poll, and the background owner sleeps after the first poll without a
// packet.
func TestInterrupts(t *testing.T) {
	inMode(t, Interrupts, func(t *testing.T, x *fake) {
		e := newEvent()
		waiter, background := x.polls(Waiter), x.polls(Background)
		var all sync.WaitGroup
		all.Go(func() { x.group.Wait(e, Forever, nil) })
		for x.group.Parked() == 0 {
			time.Sleep(pollTime)
		}
		x.settle()
		x.arrive()
		x.settle()
		if n := x.polls(Waiter) - waiter; n != 1 {
			t.Errorf("%d polls by the waiter", n)
		}
		if n := x.polls(Background) - background; n > 5 { // a pass after the hand-over, one for the packet, an empty one after each
			t.Errorf("%d polls by the background owner", n)
		}
		if x.packets.Load() != 0 {
			t.Error("the packet was not polled")
		}
		e.happen()
		all.Wait()
	})
}
