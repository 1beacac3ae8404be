package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Each of consecutive retransmission timeouts must be twice as long as the one before, up to minBackoff, or up to
// silentInterval for each silent connection if that is more, but not more than maxRTO. No timeout may be longer than a
// quarter of GiveUp or shorter than the probe timeout.
func TestRTO(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	c, _ := w.pair(plain)
	e := c.eng
	backoff := func(count int) time.Duration {
		c.rtx.count = int32(count)
		return c.rto()
	}
	if got := backoff(0); got != c.rtt.PTO() {
		t.Errorf("the first timeout comes after %v, want %v", got, c.rtt.PTO())
	}
	if got := backoff(1); got != 2*minRTO {
		t.Errorf("the second comes after %v, want %v", got, 2*minRTO)
	}
	for count := 2; count < 100; count++ {
		if got := backoff(count); got < backoff(count-1) || got > minBackoff {
			t.Fatalf("timeout %d comes after %v, the one before after %v", count, got, backoff(count-1))
		}
	}
	for _, tc := range []struct {
		silent int
		want   time.Duration
	}{{0, minBackoff}, {1, minBackoff}, {3000, 3000 * silentInterval}, {20_000, maxRTO}} {
		for slot := range tc.silent {
			e.timers.silent.Set(int32(slot+100), int64(never-1))
		}
		if got := backoff(1 << 20); got != tc.want {
			t.Errorf("with %d silent connections the longest is %v, want %v", tc.silent, got, tc.want)
		}
	}
	c.host.limits.GiveUp = 40 * time.Millisecond
	if got := backoff(1 << 20); got != 10*time.Millisecond {
		t.Errorf("the longest is %v, want a quarter of 40ms", got)
	}
}

func TestRtxTimerState(t *testing.T) {
	timer := rtxTimer{count: 3, firedAt: 20, lastAckAt: 10, silent: true}
	if got := timer.startTime(15); got != 20 {
		t.Errorf("it counts from %d, want the last timeout", got)
	}
	if timer.acked(30); timer.count != 0 || timer.startTime(15) != 30 || !timer.silent {
		t.Errorf("after an acknowledgement: %+v", timer)
	}
}
