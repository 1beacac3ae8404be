package progress

import (
	"runtime"
	"time"
)

// Patience lets another thread go on, in a loop that waits for something that this thread does soon. At first it only
// yields. But a thread with a real-time priority (SCHED_FIFO) keeps its processor when it yields, so a thread of lower
// priority on that processor would never go on. Therefore Patience then sleeps, for longer and longer times.
//
// The zero value is ready to use. It has one owner.
type Patience int

// Wait yields or sleeps.
func (p *Patience) Wait() {
	n := *p - patientYields
	*p++
	if n < 0 {
		runtime.Gosched()
		return
	}
	time.Sleep(min(shortestSleep<<min(n, 16), longestSleep))
}
