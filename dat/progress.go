package dat

import (
	"runtime"

	"github.com/datxdp/datxdp/dat/internal/progress"
)

// Progress says how goroutines that wait for events use the processor (docs/PROGRESS.md). It does not change what
// EVD.Dequeue does, which polls once.
type Progress uint8

// Modes of progress. In the name of an adapter they are the option "progress=", as in "xdp:eth0 progress=interrupts".
const (
	// ProgressAdaptive: EVD.Wait and CNO.Wait poll for some 50 µs after the last packet, and then sleep. While they poll,
	// other goroutines run first. While other threads need the core and polling would lose time, they sleep after one
	// poll. This is the default.
	ProgressAdaptive Progress = iota
	// ProgressBusy: EVD.Wait and CNO.Wait poll until an event arrives. The goroutine keeps its thread and a processor of
	// the Go scheduler for the time of the wait. This has the lowest latency if the thread has a core of its own. At most
	// two goroutines poll, and at most GOMAXPROCS - 1. If more wait, a goroutine of the adapter polls for all of them.
	// Open and OpenLink return ErrInvalidParameter if GOMAXPROCS is 1.
	ProgressBusy
	// ProgressInterrupts: EVD.Wait and CNO.Wait sleep after one poll, and the adapter sleeps until the kernel reports a
	// packet. It suits idle programs: each packet costs a wake-up, so it saves processor time only if packets come seldom.
	// A request each millisecond took 260 µs of processor time, and 290 µs with ProgressAdaptive (BenchmarkModes).
	ProgressInterrupts
)

var progressNames = [...]string{ProgressAdaptive: "adaptive", ProgressBusy: "busy", ProgressInterrupts: "interrupts"}

// String returns the name that the option "progress=" uses.
func (p Progress) String() string {
	if int(p) < len(progressNames) {
		return progressNames[p]
	}
	return enumName("", "Progress", p)
}

// mode returns the mode of the progress engine.
func (p Progress) mode() (progress.Mode, error) {
	switch p {
	case ProgressAdaptive:
		return progress.Adaptive, nil
	case ProgressBusy:
		if runtime.GOMAXPROCS(0) == 1 {
			return 0, fail(ErrInvalidParameter, "progress=busy occupies a processor of the Go scheduler, and GOMAXPROCS is 1; "+
				"use progress=adaptive, or a larger GOMAXPROCS")
		}
		return progress.Busy, nil
	case ProgressInterrupts:
		return progress.Interrupts, nil
	default:
		return 0, fail(ErrInvalidParameter, "Options.Progress is %v; use ProgressAdaptive, ProgressBusy or ProgressInterrupts", p)
	}
}
