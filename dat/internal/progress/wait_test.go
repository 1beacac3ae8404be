package progress

import (
	"testing"
	"time"
)

// A waiter polls for waitSpin, then parks. In both states, three things end the wait: an event, the time limit, and
// closing the channel done.
func TestWait(t *testing.T) {
	const spin, long = waitSpin / 2, 10 * time.Millisecond
	for name, c := range map[string]struct {
		after, limit time.Duration
		interrupt    bool
		want         Outcome
		parks        int
	}{
		"an event while it polls":         {spin, long, false, Ready, 0},
		"an event while it is parked":     {time.Millisecond, long, false, Ready, 1},
		"the limit while it polls":        {long, spin, false, TimedOut, 0},
		"the limit while it is parked":    {long, time.Millisecond, false, TimedOut, 1},
		"an interrupt while it polls":     {spin, long, true, Interrupted, 0},
		"an interrupt while it is asleep": {time.Millisecond, long, true, Interrupted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, x *fake) {
				x.settle()
				e, done := newEvent(), make(chan struct{})
				defer time.AfterFunc(c.after, func() {
					if c.interrupt {
						close(done)
					} else {
						e.happen()
					}
				}).Stop()
				began := Now()
				if got := x.group.Wait(e, began.Add(c.limit), done); got != c.want {
					t.Errorf("outcome %d, want %d", got, c.want)
				}
				ends := min(c.after, c.limit)
				if took := Now().Sub(began); took < ends || took > ends+2*pollTime {
					t.Errorf("it took %v, want %v", took, ends)
				}
				if n := int(x.group.Parked()); n != c.parks {
					t.Errorf("parked %d times, want %d", n, c.parks)
				}
				if int(e.armed.Load()) != c.parks {
					t.Errorf("asked for a signal %d times, want %d", e.armed.Load(), c.parks)
				}
			})
		})
	}
}

// A waiter parks waitSpin after the last packet.
func TestPacketsKeepPolling(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		const packets = 1000 // of pollTime each: 100 µs
		x.packets.Store(packets)
		began := Now()
		x.group.Wait(newEvent(), began.Add(packets*pollTime+waitSpin/2), nil)
		if n := x.group.Parked(); n != 0 {
			t.Errorf("it parked %d times", n)
		}
	})
}

// An event that arrives before the waiter is armed raises no signal. The waiter sees it after Arm.
func TestEventBeforeArm(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		e := &late{event: newEvent()}
		if x.group.Wait(e, Now().Add(time.Second), nil) != Ready || x.group.Parked() != 0 {
			t.Errorf("the waiter parked %d times", x.group.Parked())
		}
	})
}

// late is a Waiting that becomes ready when it is armed.
type late struct{ *event }

func (l *late) Arm(on bool) {
	if on {
		l.ready.Store(true)
	}
}
