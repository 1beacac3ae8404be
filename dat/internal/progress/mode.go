package progress

import (
	"runtime"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// Mode says how long goroutines poll without a packet before they sleep.
type Mode uint8

// Modes of a group.
const (
	Adaptive   Mode = iota // they poll for some tens of microseconds
	Busy                   // a waiter polls until its event arrives, and keeps its thread and its processor meanwhile
	Interrupts             // they sleep after the first poll that finds nothing
)

// waitSpin returns how long a waiter polls without a packet before it parks.
func (m Mode) waitSpin() time.Duration {
	switch m {
	case Busy:
		return time.Duration(Forever)
	case Interrupts:
		return 0
	default:
		return waitSpin
	}
}

// idleSpin returns how long the background owner polls after the last packet before it sleeps, if it does not poll for
// several waiters.
func (m Mode) idleSpin() time.Duration {
	if m == Interrupts {
		return 0
	}
	return idleSpin
}

// maxPollers returns the number of waiters that may poll at the same time. In mode Busy, one processor of the Go
// scheduler is left for other goroutines.
func (m Mode) maxPollers() int32 {
	if m == Busy {
		return int32(min(maxPollers, runtime.GOMAXPROCS(0)-1))
	}
	return maxPollers
}

// sleeps reports whether a goroutine that polls in the given role sleeps when no packet comes for some time.
func (m Mode) sleeps(role wire.Role) bool { return role != Poller && m != Busy }
