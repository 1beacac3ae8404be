package progress

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// ownedBelow returns a fake whose engine is owned by a post, on a thread of lower priority that shares the processor of
// all other threads. When begin is called, the post gives the engine up as soon as that thread runs again.
func ownedBelow(t *testing.T) (x *fake, begin func()) {
	x = newFake()
	owned := make(chan struct{})
	var begun atomic.Bool
	labtest.OtherPriority(t, func() {
		x.token.TryOwn(Poster)
		close(owned)
		for !begun.Load() { // it needs the processor, as a post that sends packets does
		}
		x.disown(Poster)
	})
	<-owned
	return x, func() { begun.Store(true) }
}

// wantServed checks the time that f takes.
func wantServed(t *testing.T, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if d := time.Since(start); d > labtest.Starved {
		t.Errorf("the engine was free after %v", d)
	}
}

// Own must let an owner of lower priority go on.
func TestRealTimeOwn(t *testing.T) {
	labtest.RealTime(t, func(t *testing.T) {
		x, begin := ownedBelow(t)
		wantServed(t, func() {
			begin()
			x.Own()
		})
	})
}

// A program that polls must let an owner of lower priority go on.
func TestRealTimeDequeue(t *testing.T) {
	labtest.RealTime(t, func(t *testing.T) {
		x, begin := ownedBelow(t)
		wantServed(t, func() {
			begin()
			for x.polls(Poller) == 0 {
				x.group.Poll()
			}
		})
	})
}

// A waiter that never parks must let an owner of lower priority go on.
func TestRealTimeBusyWaiter(t *testing.T) {
	labtest.RealTime(t, func(t *testing.T) {
		x, begin := ownedBelow(t)
		x.group.Mode = Busy
		c := &counting{last: 1 << 30}
		c.start = func(int32) {
			if x.polls(Waiter) > 0 {
				c.looks.Store(c.last)
			}
		}
		wantServed(t, func() {
			begin()
			x.group.Wait(c, Now().Add(10*time.Second), nil)
		})
	})
}

// The background owner must let an owner of lower priority go on.
func TestRealTimeBackground(t *testing.T) {
	labtest.RealTime(t, func(t *testing.T) {
		x, begin := ownedBelow(t)
		x.group.Start()
		wantServed(t, func() {
			begin()
			for x.polls(Background) == 0 {
				time.Sleep(time.Millisecond)
			}
		})
		x.group.Close()
	})
}
