package usage

import (
	"syscall"
	"time"
)

// Usage measures the processor time of a thread since Start. Share of the zero value is 1.
type Usage struct {
	start time.Time
	cpu   time.Duration
}

// Start begins the measurement of the calling thread. The goroutine must be locked to it.
func Start() Usage { return Usage{time.Now(), threadTime()} }

// Share returns the fraction of a core that the thread has had since Start; a negative value means unknown.
func (u Usage) Share() float64 {
	wall := time.Since(u.start)
	if u.start.IsZero() || wall <= 0 {
		return 1
	}
	return float64(threadTime()-u.cpu) / float64(wall)
}

// threadTime returns the user and system time of the calling thread.
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
