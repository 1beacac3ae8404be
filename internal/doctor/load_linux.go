package doctor

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

const (
	// spinTime is the length of one spin. It is many time slices, which are 3 to 4 ms.
	spinTime = 60 * time.Millisecond
	// spins is the number of attempts: other work that lasts for a moment does not matter.
	spins = 3
	// mayWait is the part of the time that a thread may wait for a core while it polls. A host without other work has
	// less than 0.01 of it, and two busy loops on two cores take a third.
	mayWait = 0.1
)

// checkLoad measures how long a thread that spins waits for a core because of other work.
//
// System calls: those that read /proc/thread-self/schedstat.
func checkLoad(ctx context.Context, x *exam) []Finding {
	if x.explaining {
		return nil // it explains no failure
	}
	least, known := 1.0, false
	for range spins {
		waited, ok := waitedInSpin(spinTime)
		if !ok || ctx.Err() != nil {
			break
		}
		known = true
		if least = min(least, waited); least <= mayWait {
			break
		}
	}
	if !known {
		return nil
	}
	return loadFinding(least)
}

// loadFinding says what it means that a thread waits for a core for a part of its time.
func loadFinding(waits float64) []Finding {
	if waits <= mayWait {
		return ok("other work leaves a core to poll on")
	}
	return warning(fmt.Sprintf("other work leaves no core to poll on: a thread that spins waits for one for %.0f %% of its time", waits*100),
		"Threads do not poll then: a packet wakes them, and some round trips wait for time slices of 3 to 4 ms. Mode busy is slower still.",
		"move the other work away (taskset, CPUAffinity= of a unit, cpusets) or lower its priority (nice), and do not open the adapter with progress=busy; "+
			"datbench --busy measures what it costs", "")
}

// waitedInSpin spins for some time, and returns the part of it in which this thread was runnable without a core (its run
// delay). ok is false if the kernel does not count it.
func waitedInSpin(d time.Duration) (part float64, ok bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, ok := ownRunDelay()
	if !ok {
		return 0, false
	}
	start := time.Now()
	for time.Since(start) < d { //nolint:revive // it must use its core
	}
	elapsed := time.Since(start)
	after, ok := ownRunDelay()
	return float64(after-before) / float64(elapsed), ok
}

// ownRunDelay returns the run delay of the calling thread since it began.
func ownRunDelay() (delay time.Duration, ok bool) {
	var run time.Duration
	text, _ := os.ReadFile("/proc/thread-self/schedstat") // empty on an error
	_, err := fmt.Sscan(string(text), &run, &delay)
	return delay, err == nil
}
