package main

import (
	"syscall"
	"time"
)

// usage is the processor time of a thread since some moment.
type usage struct {
	start time.Time
	cpu   time.Duration
}

// startUsage begins to measure the calling thread, to which the goroutine must be locked.
func startUsage() usage { return usage{time.Now(), threadTime()} }

// share is the part of a core that the thread has had since.
func (u usage) share() float64 {
	wall := time.Since(u.start)
	if wall <= 0 {
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
