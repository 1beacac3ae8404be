package progress

import (
	"sync/atomic"
	"time"
)

// silences decides whether waiters of a group poll before they park: polls pay only if packets come soon.
//
// A waiter that polls for waitSpin finds nothing if its peer sends a request each millisecond. So the silence of each
// waiter that parked is measured, as KVM does to adapt the polls of an idle processor (halt polling). After longSilences
// long ones in a row, waiters park and background owners sleep after one poll, until a packet comes sooner. A peer that
// sleeps answers late, but within longSilence. So two ends that sleep begin to poll again when their packets follow each
// other.
type silences struct {
	long atomic.Int32 // number of consecutive long silences
}

// soon reports whether the next packet is likely to come soon.
func (s *silences) soon() bool { return s.long.Load() < longSilences }

// measured is told how long a waiter waited, and how many passes of the background owners moved packets meanwhile.
func (s *silences) measured(waited time.Duration, passes uint64) {
	long := s.long.Load()
	switch {
	case waited/time.Duration(max(passes, 1)) <= longSilence:
		if long != 0 { // a store takes the cache line from the other waiters
			s.long.Store(0)
		}
	case long < longSilences:
		s.long.Store(long + 1)
	}
}
