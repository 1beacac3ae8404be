package route

import (
	"runtime"
	"syscall"
	"time"
)

// budget limits the processor time of repeated work, by the generic cell rate algorithm (ITU-T I.371). The cost of the
// work is its processor time.
type budget struct{ paid time.Time } // time from which more work is permitted

// charge adds the cost of work that ended at time now.
func (b *budget) charge(cost time.Duration, now time.Time) {
	b.paid = later(b.paid, now.Add(-lookupBurst)).Add(lookupShare * cost)
}

// costOf does work, and returns its processor time. Time in which the work waits is free: for the kernel's lock of network
// settings (RTNL), or for a processor.
func costOf(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	work()
	return threadTime() - before
}

// threadTime returns the user and system time of the calling thread.
//
// System calls: getrusage.
func threadTime() time.Duration {
	const rusageThread = 1 // RUSAGE_THREAD
	var ru syscall.Rusage
	if syscall.Getrusage(rusageThread, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
