package wire

import "time"

// Time is a moment on a monotonic clock, in nanoseconds. The caller of Poll supplies it; the engine
// never reads a clock.
type Time int64

// Add is the moment d after t; one too far off to be told is never.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); s >= t || d < 0 {
		return s
	}
	return never
}

// Sub is the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// never is later than every deadline.
const never Time = 1<<63 - 1

// stampShift turns nanoseconds into the unit of time stamps on the wire, 64 ns.
const stampShift = 6

// stamp is t on the wire; 0 is kept for "none".
func (t Time) stamp() uint32 { return max(uint32(t>>stampShift), 1) }
