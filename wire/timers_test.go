package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// timed is a set of timers that records which have fired.
type timed struct {
	timers
	queue []int32
	fired map[int32]int
}

func newTimed() *timed {
	x := &timed{fired: map[int32]int{}}
	x.timers = newTimers(0, func(slot int32) { x.queue = append(x.queue, slot) }, x.work, func(slot int32) { x.fired[slot]++ })
	return x
}

// work fires timers that are due. Each does work.
func (x *timed) work(left int) int {
	for ; left > 0 && len(x.queue) > 0; left -= idleTimers {
		x.fired[x.queue[0]]++
		x.queue = x.queue[1:]
	}
	return left
}

// count returns the number of timers from slot first to slot last that have fired.
func (x *timed) count(first, last int32) (n int) {
	for slot := first; slot <= last; slot++ {
		n += x.fired[slot]
	}
	return n
}

// The timers of silent peers must not delay other timers, however many there are. They must go on firing while other
// timers use up the bound of each Poll.
func TestTimersOfSilentPeers(t *testing.T) {
	for _, prompt := range []int32{maxTimers / 2, 100 * maxTimers} {
		x := newTimed()
		const silent = 100
		for slot := range int32(silent) {
			x.set(slot, 1, silentAfter)
		}
		for slot := range prompt {
			x.set(silent+slot, 2, silentAfter-1)
		}
		const now = Time(1e9)
		for polls := 1; polls <= 10; polls++ {
			x.run(now)
			total, quiet := x.count(0, silent+prompt), x.count(0, silent-1)
			if first := min(int(prompt), polls*(maxTimers-1)); total-quiet != first || quiet < polls || total != polls*maxTimers {
				t.Errorf("%d polls: %d prompt timers of %d, %d silent timers of %d have fired", polls, total-quiet, prompt, quiet, silent)
			}
			if next, ok := x.next(); !ok || next > now {
				t.Errorf("the next timer fires at %d", next)
			}
		}
	}
}

// A timer that is armed again must fire once, whether its peer has become silent, or was silent and is not any more.
func TestTimerChangesWheel(t *testing.T) {
	for _, unanswered := range [][2]int{{0, silentAfter}, {silentAfter, 0}} {
		x := newTimed()
		x.set(1, 100, unanswered[0])
		x.set(1, 200, unanswered[1])
		x.set(2, 300, unanswered[0])
		if x.stop(2); x.armed() != 1 {
			t.Errorf("%d timers", x.armed())
		}
		for now := Time(0); now < 1e6; now += 1000 {
			x.run(now)
		}
		if x.fired[1] != 1 || x.fired[2] != 0 || x.armed() != 0 {
			t.Errorf("%v: fired %v, %d armed", unanswered, x.fired, x.armed())
		}
		if _, ok := x.next(); ok {
			t.Error("a timer is left")
		}
	}
}

// A connection may arm its timer when it has just become a linger. The linger still repeats Close and ends.
func TestTimerOfLinger(t *testing.T) {
	w := newWorld(t, simlink.Config{Seed: 1, Delay: 5 * time.Microsecond}, 2)
	_, cb := w.pair(plain)
	a, b := w.nodes[0], w.nodes[1]
	w.net.SetLoss(b.addr, a.addr, 1)
	slot := cb.slot
	if err := b.eng.Disconnect(cb, false); err != nil {
		t.Fatal(err)
	}
	b.eng.timers.set(slot, b.eng.now.Add(time.Millisecond), 0)
	w.until("the end of the linger", time.Minute, func() bool { return b.eng.table.slots[slot].linger == nil })
}
