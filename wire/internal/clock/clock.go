// Package clock defines the time type of the protocol. The protocol reads no clock: it gets the time as an argument.
package clock

import "time"

// Time is a moment on a monotonic clock, in nanoseconds.
type Time int64

// Never is later than every deadline.
const Never Time = 1<<63 - 1

// Add returns t+d, or Never if the sum overflows.
func (t Time) Add(d time.Duration) Time {
	if s := t + Time(d); s >= t || d < 0 {
		return s
	}
	return Never
}

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// StampShift is the binary logarithm of the unit of time stamps on the wire in nanoseconds: 64 ns.
const StampShift = 6

// Stamp returns the time stamp of t on the wire, modulo 2^32. It is never 0, which means "no time stamp" on the wire.
func (t Time) Stamp() uint32 { return max(uint32(t>>StampShift), 1) }
