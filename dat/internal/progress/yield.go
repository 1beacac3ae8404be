package progress

import (
	"runtime"

	"github.com/datxdp/datxdp/wire"
)

// yield lets other goroutines or threads run after a poll. The argument busy is true if the poll moved packets. There
// are three cases:
//
//   - The poll of a Waiter moved no packets: other goroutines run (runtime.Gosched). Otherwise a goroutine of the
//     consumer, such as one that just got a message, would have to wait for a scheduling quantum. In mode Busy the
//     waiter keeps its processor.
//   - The poll was made by the background owner: other goroutines run, such as one that waited for the received
//     packets.
//   - The argument thread is true: other threads that wait for this core run (sched_yield). It is true after emptyPolls
//     consecutive empty polls by callers, and after emptyPasses consecutive empty passes of the background owner. It is
//     also true if the background owner finds that a post owns the engine. The post has woken the background owner, which
//     may have taken the core that the thread of the post needs.
func yield(g *Group, role wire.Role, busy, thread bool) {
	switch {
	case !thread:
	case g.Mode.sleeps(role):
		g.cores.yieldThread()
	default:
		yieldThread()
	}
	switch {
	case role == Waiter && !busy && g.Mode != Busy, role == Background:
		runtime.Gosched()
	}
}

// emptyRun is a number of consecutive empty polls.
type emptyRun int

// count counts a poll. The argument busy is true if the poll moved packets. The result is true after every n-th
// consecutive empty poll; the thread should yield then.
func (r *emptyRun) count(busy bool, n emptyRun) (yieldThread bool) {
	if busy {
		*r = 0
		return false
	}
	*r++
	return *r%n == 0
}
