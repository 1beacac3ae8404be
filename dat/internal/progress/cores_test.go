package progress

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// After a yield that took long, nobody polls for as long. If the loss comes again soon, the time grows until the loss is
// 1 %.
func TestLossStopsPolling(t *testing.T) {
	const slice = 3 * time.Millisecond
	var c cores
	now := wire.Time(time.Second)
	lose := func(took, want time.Duration) {
		t.Helper()
		if !c.free(now) {
			t.Fatal("goroutines do not poll")
		}
		end := now.Add(took)
		c.measured(now, end)
		if want > 0 {
			c.measured(end, end.Add(slice)) // a thread that does not poll loses nothing
		}
		if want > 0 && c.free(end.Add(want-1)) || !c.free(end.Add(want)) {
			t.Errorf("after a loss of %v, goroutines do not poll again exactly %v later", took, want)
		}
		now = end.Add(want)
	}
	lose(0, 0)
	lose(longYield, 0)
	lose(slice, slice)
	now = now.Add(slice) // the next loss may be by chance too
	lose(slice, slice)
	for pause := 2 * slice; pause < lossFactor*slice; pause *= 2 {
		lose(slice, pause)
	}
	lose(slice, lossFactor*slice)
	lose(slice, lossFactor*slice)
}

// While nobody polls, a waiter parks after one poll, and the background owner sleeps after the first poll without a
// packet. Afterwards both poll again.
func TestNobodyPolls(t *testing.T) {
	virtual(t, func(t *testing.T, x *fake) {
		x.settle()
		wait := func() (waiter, background int) {
			waiter, background = x.polls(Waiter), x.polls(Background)
			e := newEvent()
			time.AfterFunc(time.Millisecond, func() { x.arrive(); e.happen() })
			if outcome := x.group.Wait(e, Forever, nil); outcome != Ready {
				t.Errorf("outcome %d", outcome)
			}
			x.settle()
			return x.polls(Waiter) - waiter, x.polls(Background) - background
		}
		now := Now()
		x.group.cores.measured(now, now.Add(time.Millisecond))
		if w, b := wait(); w != 1 || b > 5 {
			t.Errorf("%d polls by the waiter, %d by the background owner", w, b)
		}
		x.group.silences.measured(0, 1) // otherwise the waits of this test stop polling
		time.Sleep(2 * time.Millisecond)
		if w, b := wait(); w < int(waitSpin/pollTime) || b < int(idleSpin/pollTime) {
			t.Errorf("after the pause: %d polls by the waiter, %d by the background owner", w, b)
		}
	})
}
