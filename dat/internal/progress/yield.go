package progress

import (
	"runtime"

	"github.com/datxdp/datxdp/wire"
)

// yield lets others run after a poll, or a pass over all engines, in a role:
//
//	after                                 runs first
//	an empty pass of a waiter             runnable goroutines; the consumer's own, as one to which it handed the last
//	                                       message, would wait for a scheduling quantum otherwise
//	a poll in the background that moved   runnable goroutines, as one that waited for these packets
//	 packets
//	emptyPolls empty polls of an engine   threads that wait for this core
//	 in a row, in calls
//
// thread says that the last of these is due.
func yield(as wire.Role, busy, thread bool) {
	if thread {
		yieldThread()
	}
	switch {
	case as == Waiter && !busy, as == Background && busy:
		runtime.Gosched()
	}
}

// fruitless counts empty polls by callers and reports when the thread is to yield. The owner calls it.
func (d *Driver) fruitless(busy bool) (yield bool) {
	if busy {
		d.empty = 0
		return false
	}
	d.empty++
	return d.empty%emptyPolls == 0
}
