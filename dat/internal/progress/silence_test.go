package progress

import (
	"testing"
	"time"
)

// Silences count if the waiter, or the packets that came for others meanwhile, had to wait for long.
func TestSilences(t *testing.T) {
	type wait struct {
		waited time.Duration
		passes uint64
	}
	long, short := wait{time.Millisecond, 1}, wait{longSilence, 1}
	for _, tt := range []struct {
		name  string
		waits []wait
		want  bool
	}{
		{"none", nil, true},
		{"one", []wait{long}, true},
		{"two", []wait{long, long}, false},
		{"two, not in a row", []wait{long, short, long}, true},
		{"many", []wait{long, long, long, long, long, long}, false},
		{"a short one after many", []wait{long, long, long, long, long, short}, true},
		{"packets for other waiters", []wait{{time.Millisecond, 32}, {time.Millisecond, 32}}, true},
		{"no packet", []wait{{time.Millisecond, 0}, {time.Millisecond, 0}}, false},
	} {
		var s silences
		for _, w := range tt.waits {
			s.measured(w.waited, w.passes)
		}
		if got := s.soon(); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

// If a packet comes each millisecond, a waiter parks after one poll, and the background owner sleeps after the first poll
// without a packet. When packets come within a round trip to a peer that sleeps, both poll again.
func TestPollsStopInSilence(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		wait := func(packet time.Duration) (waiter, background int) {
			x.settle()
			waiter, background = x.polls(Waiter), x.polls(Background)
			e := newEvent()
			time.AfterFunc(packet, func() { x.arrive(); e.happen() })
			if outcome := x.group.Wait(e, Forever, nil); outcome != Ready {
				t.Errorf("outcome %d", outcome)
			}
			x.settle()
			return x.polls(Waiter) - waiter, x.polls(Background) - background
		}
		for range longSilences {
			if w, _ := wait(time.Millisecond); w < int(waitSpin/pollTime) {
				t.Errorf("at first: %d polls by the waiter", w)
			}
		}
		if w, b := wait(time.Millisecond); w != 1 || b > 5 {
			t.Errorf("in silence: %d polls by the waiter, %d by the background owner", w, b)
		}
		wait(longSilence / 2)
		if w, b := wait(time.Millisecond); w < int(waitSpin/pollTime) || b < int(idleSpin/pollTime) {
			t.Errorf("after a packet that came soon: %d polls by the waiter, %d by the background owner", w, b)
		}
	})
}
