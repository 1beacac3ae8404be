package measure

import (
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// ThreadCount counts the run delay and the involuntary switches of the threads of this process.
type ThreadCount struct {
	start  time.Time
	before map[string]threadStat // by thread ID
}

// threadStat is what the kernel has counted for a thread since it began.
type threadStat struct {
	runDelay    time.Duration
	involuntary int64
}

// CountThreads begins a count.
//
// System calls: those that read /proc/self/task.
func CountThreads() ThreadCount { return ThreadCount{time.Now(), threadStats()} }

// Since returns the count since CountThreads. It leaves out threads that have ended. It returns nil if the kernel counts
// nothing.
func (c ThreadCount) Since() *result.Threads {
	now := threadStats()
	if len(now) == 0 {
		return nil
	}
	t := &result.Threads{Elapsed: microseconds(time.Since(c.start))}
	var delay time.Duration
	for id, s := range now {
		delay += s.runDelay - c.before[id].runDelay
		t.Involuntary += s.involuntary - c.before[id].involuntary
	}
	t.RunDelay = microseconds(delay)
	return t
}

func microseconds(d time.Duration) result.Microseconds { return result.Microseconds(d.Microseconds()) }
