package progress

import (
	"runtime"

	"github.com/datxdp/datxdp/wire"
)

// yield lets other goroutines or threads run after a poll. The role and the result of the poll decide which:
//
//	Waiter, empty pass           runnable goroutines (Gosched). Otherwise a goroutine of the consumer, such as one that
//	                             just got a message, would wait for a scheduling quantum.
//	Background, packets moved    runnable goroutines (Gosched), such as one that waited for these packets.
//	emptyPolls consecutive       other threads that wait for this core (sched_yield); thread is true then.
//	 empty polls by callers
func yield(as wire.Role, busy, thread bool) {
	if thread {
		yieldThread()
	}
	switch {
	case as == Waiter && !busy, as == Background && busy:
		runtime.Gosched()
	}
}

// countEmpty counts consecutive empty polls by callers. It reports whether the thread is to yield now. Only the owner
// may call it.
func (d *Driver) countEmpty(busy bool) (yield bool) {
	if busy {
		d.empty = 0
		return false
	}
	d.empty++
	return d.empty%emptyPolls == 0
}
