package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Each of consecutive retransmission timeouts must be twice as long as the one before, up to busyRTO while packets
// arrive at the engine, and otherwise up to maxRTO. No timeout may be longer than a quarter of GiveUp or shorter than
// the probe timeout.
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
		if got := backoff(count); got < backoff(count-1) || got > busyRTO {
			t.Fatalf("timeout %d comes after %v, the one before after %v", count, got, backoff(count-1))
		}
	}
	if got := backoff(1 << 20); got != busyRTO {
		t.Errorf("the longest is %v on a busy engine, want %v", got, busyRTO)
	}
	e.now = e.receivedAt.Add(2 * busyRTO)
	if got := backoff(1 << 20); got != maxRTO {
		t.Errorf("the longest is %v on a silent engine, want %v", got, maxRTO)
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
