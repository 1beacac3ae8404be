package usage

import (
	"syscall"
	"time"
)

// Usage is the processor time of a thread since Start. The zero value has had a whole core.
type Usage struct {
	start time.Time
	cpu   time.Duration
}

// Start begins to measure the calling thread, to which the goroutine must be locked.
func Start() Usage { return Usage{time.Now(), threadTime()} }

// Share is the part of a core that the thread has had since Start; negative where that is not known.
func (u Usage) Share() float64 {
	wall := time.Since(u.start)
	if u.start.IsZero() || wall <= 0 {
		return 1
	}
	return float64(threadTime()-u.cpu) / float64(wall)
}

// threadTime is user and system time of the calling thread.
//
// System calls: getrusage(RUSAGE_THREAD).
func threadTime() time.Duration {
	const rusageThread = 1
	var ru syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
