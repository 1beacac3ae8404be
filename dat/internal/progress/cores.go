package progress

import (
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// cores decides whether the goroutines of a group poll before they sleep, and whether their threads yield meanwhile.
//
// A thread that polls on a core that others need must yield it (sched_yield). If the others only handle packets, such
// as ksoftirqd and the peer, the yield is short, and polling pays. If one of them computes, the yield takes the rest of
// the time slice of each, and a packet does not end it. A thread that does not yield blocks the peer, or loses its core
// for as long. But a thread that sleeps gets its core as soon as a packet arrives. So each yield is measured. After a
// long one, the goroutines of the group sleep at once, for some time. Then they poll again.
type cores struct {
	resume atomic.Int64 // wire.Time until which nobody polls
	pause  atomic.Int64 // the last such time.Duration
}

// free reports whether goroutines poll at the time now.
func (c *cores) free(now wire.Time) bool { return now >= wire.Time(c.resume.Load()) }

// yieldThread yields the core, if goroutines poll.
//
// System calls: sched_yield.
func (c *cores) yieldThread() {
	start := Now()
	if !c.free(start) {
		return
	}
	yieldThread()
	c.measured(start, Now())
}

// measured is told when a yield began and ended. If it was long, polling stops for as long, because any thread computes
// for once. If polling is stopped again within the length of the last pause, the next pause is twice as long, and at most
// lossFactor times the loss.
func (c *cores) measured(start, end wire.Time) {
	took := end.Sub(start)
	if took <= longYield || !c.free(start) {
		return
	}
	pause, last := took, time.Duration(c.pause.Load())
	if start.Sub(wire.Time(c.resume.Load())) < last {
		pause = min(max(pause, 2*last), lossFactor*took)
	}
	c.pause.Store(int64(pause))
	c.resume.Store(int64(end.Add(pause)))
}
