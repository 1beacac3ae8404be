// Package clock has moments of a monotonic clock that is passed in: the protocol reads no clock itself.
package clock

import "time"

// Time is a moment on a monotonic clock, in nanoseconds.
type Time int64

// Never is later than every deadline.
const Never Time = 1<<63 - 1

// Add is the moment d after t; Never if that is too far away to be represented.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); s >= t || d < 0 {
		return s
	}
	return Never
}

// Sub is the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// StampShift turns nanoseconds into the unit of time stamps on the wire, 64 ns.
const StampShift = 6

// Stamp is t on the wire, modulo 2^32. It is never 0, which means "none" there.
func (t Time) Stamp() uint32 { return max(uint32(t>>StampShift), 1) }
