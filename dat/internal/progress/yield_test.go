package progress

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/wire"
)

// counting is a Waiting that becomes ready after a number of calls of Ready. Each call of Ready calls start.
type counting struct {
	looks atomic.Int32
	last  int32
	start func(look int32)
}

func (c *counting) Ready() bool {
	look := c.looks.Add(1)
	c.start(look)
	return look >= c.last
}
func (c *counting) Arm(bool) {}

// Signal returns a signal that is always raised, so parking ends immediately.
func (c *counting) Signal() Signal {
	s := NewSignal()
	s.Raise()
	return s
}

// TestWaiterYields: while a waiter's polls are empty, another goroutine becomes runnable. That goroutine runs before one
// of the waiter's next polls, even on one processor. The scheduler may choose the waiter a few times before.
func TestWaiterYields(t *testing.T) {
	x := newFake()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const begin = 10
	var ran atomic.Int32
	c := &counting{last: 100}
	c.start = func(look int32) {
		if look == begin {
			go func() { ran.Store(c.looks.Load()) }()
		}
	}
	x.group.Wait(c, Forever, nil)
	if at := ran.Load(); at == 0 || at > 2*begin {
		t.Errorf("the goroutine ran at look %d, want %d at the latest", at, 2*begin)
	}
}

// The thread yields after every n-th consecutive empty poll.
func TestThreadYields(t *testing.T) {
	const n = 16
	var r emptyRun
	for range 3 {
		if r.count(true, n) {
			t.Error("the thread yields after a poll that moved packets")
		}
		for i := 1; i <= 2*n; i++ {
			if yields := r.count(false, n); yields != (i%n == 0) {
				t.Errorf("empty poll %d: the thread yields: %v", i, yields)
			}
		}
	}
}

// A goroutine that never sleeps always yields its thread, because other threads would not get its core otherwise.
func TestWhoMeasuresYields(t *testing.T) {
	for _, c := range []struct {
		mode   Mode
		role   wire.Role
		sleeps bool
	}{
		{Adaptive, Waiter, true}, {Adaptive, Background, true}, {Adaptive, Poller, false},
		{Interrupts, Waiter, true}, {Interrupts, Background, true}, {Interrupts, Poller, false},
		{Busy, Waiter, false}, {Busy, Background, false}, {Busy, Poller, false},
	} {
		if got := c.mode.sleeps(c.role); got != c.sleeps {
			t.Errorf("mode %d, role %d: sleeps: %v", c.mode, c.role, got)
		}
	}
}
