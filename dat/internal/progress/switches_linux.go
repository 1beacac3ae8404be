package progress

import "syscall"

// rusageThread is RUSAGE_THREAD of getrusage(2), which package syscall does not have.
const rusageThread = 1

// Switches returns how often the calling thread has lost its processor: to another thread, because the quota of its
// control group was used up, or because it slept, as it does while the Go runtime stops all goroutines. A goroutine may
// call Switches twice on different threads, so only equal numbers say something.
//
// System calls: getrusage.
func Switches() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(rusageThread, &u) != nil {
		return 0
	}
	return uint64(u.Nivcsw + u.Nvcsw)
}
