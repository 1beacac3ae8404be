package congestion

import "github.com/datxdp/datxdp/wire/internal/clock"

// slowdown empties the queue in the network from time to time, to measure the base delay (LEDBAT++, periodic slowdown).
// A connection that starts late has never seen the queue empty. Without slowdowns, the base delay of such a connection
// would include the queue of the other connections. The connection would then accept too much delay, so its window
// would grow at the cost of the other connections.
type slowdown struct {
	nextAt clock.Time // when the next slowdown begins
	rounds int        // remaining rounds; 0: no slowdown now
	window float64    // window to restore at the end
}

func (s *slowdown) active() bool { return s.rounds > 0 }

// shouldBegin reports whether a slowdown should begin. Normally a slowdown begins at nextAt. In the slowdownEvery/2
// before that time, a slowdown also begins if the round trip decreases suddenly, which the argument dip says. Such a
// dip suggests that another connection slows down, and two slowdowns at the same time drain more of the queue (BBR,
// ProbeRTT).
func (s *slowdown) shouldBegin(now clock.Time, dip bool) bool {
	return now >= s.nextAt || dip && now >= s.nextAt.Add(-slowdownEvery/2)
}
