package congestion

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// slowdown takes the packets of a connection out of the queue from time to time, to measure the base delay (LEDBAT++,
// periodic slowdown). A connection that starts while others have a queue takes this queue for a part of its base delay. It
// would then tolerate more delay, at the cost of the others.
type slowdown struct {
	nextAt clock.Time // when the next slowdown begins; 0: no round has ended
	last   int32      // shortest sample of the last round in µs
	rounds int8       // remaining rounds; 0: no slowdown now
}

func (s *slowdown) active() bool { return s.rounds > 0 }

// putOff sets the time of the next slowdown. It runs when a slowdown begins, and after a round of delay d in which no packet
// waited for the window: such a connection keeps no queue.
func (s *slowdown) putOff(now clock.Time, d time.Duration) {
	s.nextAt = now.Add(max(slowdownEvery, slowdownRest*d))
}

// begin reports whether a slowdown begins in a round that ends now. d is its shortest sample, and base is the base delay. A
// sudden decrease of the queue makes a slowdown begin up to three quarters of the interval earlier: another connection may
// slow down, and two at a time drain more of the queue (BBR, ProbeRTT).
func (s *slowdown) begin(now clock.Time, d, base time.Duration) bool {
	if s.nextAt == 0 {
		s.putOff(now, d)
	}
	dip := d-base < (time.Duration(s.last)*time.Microsecond-base)*3/4
	s.last = int32(min(d.Microseconds(), math.MaxInt32))
	if now < s.nextAt && !(dip && now >= s.nextAt.Add(-slowdownEvery*3/4)) {
		return false
	}
	s.putOff(now, d)
	s.rounds = slowdownRounds
	return true
}
