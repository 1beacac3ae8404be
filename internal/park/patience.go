package park

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Patience lets another thread go on, in a loop that cannot. At first it only yields. But a thread with a real-time
// priority (SCHED_FIFO) keeps its processor when it yields, so a thread of lower priority on that processor would never
// go on. Therefore a loop must also sleep, and every loop that waits for another thread uses a Patience:
//
//   - A loop that waits for what the other thread does soon calls Wait.
//   - A loop that has work, or waits for what may take long, but depends on another thread, calls Nap.
//
// The zero value is ready to use. Several goroutines may share one; then it counts the yields of all of them.
type Patience struct{ turns atomic.Int32 }

// Wait yields or, after 64 calls, sleeps, for longer and longer times. So it sleeps at most twice as long as the wait
// takes, and the time between two calls is at most some milliseconds.
func (p *Patience) Wait() {
	if p.yield() {
		return
	}
	n := p.turns.Add(1) - patientYields
	if n > mostDoublings {
		p.turns.Store(patientYields + mostDoublings) // the counter does not overflow
	}
	time.Sleep(min(ShortestSleep<<min(n-1, mostDoublings), longestSleep))
}

// Nap yields or, once in 65 calls, sleeps for ShortestSleep.
func (p *Patience) Nap() {
	if p.Spent() {
		time.Sleep(ShortestSleep)
	}
}

// Spent is Nap for a loop that has a better way to sleep. It yields and returns false or, once in 65 calls, returns true.
// The caller then sleeps, for at least ShortestSleep or until the other thread has gone on.
func (p *Patience) Spent() bool {
	if p.yield() {
		return false
	}
	p.Reset()
	return true
}

// Reset says that the other thread has gone on. The next calls yield again.
func (p *Patience) Reset() {
	if p.turns.Load() != 0 { // do not take the cache line from other processors
		p.turns.Store(0)
	}
}

// yield lets other goroutines run, at most patientYields times in a row.
func (p *Patience) yield() bool {
	if p.turns.Load() >= patientYields {
		return false
	}
	p.turns.Add(1)
	runtime.Gosched()
	return true
}
