package progress

import (
	"sync"
	"testing"
	"time"
)

// share makes more goroutines wait than may poll, and returns when the background owner polls for all of them. A packet
// with each poll keeps it polling. The function end ends the waits.
func share(t *testing.T, x *fake) (end func()) {
	x.packets.Store(1 << 30)
	var waiters sync.WaitGroup
	events := make([]*event, maxPollers+1)
	for i := range events {
		events[i] = newEvent()
	}
	for _, e := range events {
		waiters.Go(func() {
			if outcome := x.group.Wait(e, Forever, nil); outcome != Ready {
				t.Errorf("outcome %d", outcome)
			}
		})
	}
	for x.group.Parked() < maxPollers+1 || x.Phase() != Polling {
		time.Sleep(pollTime)
	}
	return func() {
		for _, e := range events {
			e.happen()
		}
		waiters.Wait()
		x.packets.Store(0)
	}
}

// If more than maxPollers goroutines wait, they park at once, and the background owner polls for all of them.
func TestSharedWaiters(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		began := Now()
		end := share(t, x)
		if took := Now().Sub(began); took > waitSpin/2 {
			t.Errorf("the waiters parked after %v", took)
		}
		waiter, background := x.polls(Waiter), x.polls(Background)
		time.Sleep(waitSpin)
		if n := x.polls(Waiter) - waiter; n != 0 {
			t.Errorf("%d polls by waiters", n)
		}
		if n := x.polls(Background) - background; n < int(waitSpin/pollTime)/2 {
			t.Errorf("%d polls by the background owner", n)
		}
		end()
	})
}

// While the background owner polls for several waiters, a post leaves the packet to it. If the background owner has not
// polled for some time, because it has no processor, the post polls.
func TestPostOfSharedWaiters(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		x.due = true
		end := share(t, x)
		x.Post(nil)
		if x.rings.Load() != 1 || x.polls(Poster) != 0 {
			t.Errorf("%d doorbells, %d polls", x.rings.Load(), x.polls(Poster))
		}
		waits := true
		for i := 0; waits && i < 1000; i++ { // the background owner may poll between the two calls
			x.servedAt.Store(int64(Now().Add(-starvedAfter)))
			waits = x.pollsSoon()
		}
		if waits {
			t.Error("a post waits for a background owner without a processor")
		}
		end()
		x.settle() // a sleeping background owner does not answer a doorbell
		x.group.shared.Store(true)
		polls := x.polls(Poster)
		if x.Post(nil); x.polls(Poster) == polls {
			t.Error("the post waits for the end of the sleep")
		}
	})
}

// The background owner polls for several waiters until packets stop, or until checkInterval has passed in which no
// waiter found another one that polls.
func TestSharedEnds(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		share(t, x)()
		x.settle()
		e := newEvent()
		defer time.AfterFunc(waitSpin/2, e.happen).Stop()
		was := x.polls(Waiter)
		if x.group.Wait(e, Forever, nil); x.polls(Waiter) == was {
			t.Error("after the packets stopped, the waiter did not poll")
		}
	})
	inVirtualTime(t, func(t *testing.T) {
		x := newFake()
		b := background{Driver: &x.Driver, reviewed: Now()}
		x.packets.Store(1 << 30)
		x.group.shared.Store(true)
		if b.runPass(Now()); !x.group.shared.Load() {
			t.Error("it ends before checkInterval has passed")
		}
		if b.runPass(Now().Add(checkInterval)); x.group.shared.Load() {
			t.Error("it does not end after checkInterval")
		}
	})
}

// While a waiter is parked, a post of a caller that takes completions does not count as driving: the caller may be
// parked too, and then the background owner must poll.
func TestPostBesideParkedWaiter(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		x.due, x.active = true, true
		var waiter sync.WaitGroup
		e := newEvent()
		waiter.Go(func() { x.group.Wait(e, Forever, nil) })
		for x.group.Parked() == 0 {
			time.Sleep(pollTime)
		}
		was := x.Polls()
		if x.Post(nil); x.Polls() != was || x.polls(Poster) == 0 {
			t.Errorf("%d polls of the driver, %d of the engine", x.Polls()-was, x.polls(Poster))
		}
		x.settle()
		e.happen()
		waiter.Wait()
	})
}
