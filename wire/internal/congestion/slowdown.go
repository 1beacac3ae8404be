package congestion

import "github.com/datxdp/datxdp/wire/internal/clock"

// slowdown empties the queue in the network from time to time, to measure the base delay (LEDBAT++, periodic slowdown).
// A late connection has never seen the queue empty: it would include the queue of others in its base delay and take
// their share of the path.
type slowdown struct {
	next   clock.Time
	rounds int     // rounds left; 0: no slowdown now
	window float64 // to restore at the end
}

func (s *slowdown) active() bool { return s.rounds > 0 }

// due reports whether a slowdown should begin. A dip, a sudden decrease of the round trip, makes it begin earlier:
// another connection may have slowed down, and together both see more of the queue drained (BBR, ProbeRTT).
func (s *slowdown) due(now clock.Time, dip bool) bool {
	return now >= s.next || dip && now >= s.next.Add(-slowdownEvery/2)
}
