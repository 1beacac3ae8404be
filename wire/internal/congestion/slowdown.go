package congestion

import "github.com/datxdp/datxdp/wire/internal/clock"

// slowdown empties the network's queue from time to time, to see the base delay: the periodic slowdown of LEDBAT++. A
// connection that came late has never seen the queue empty. It would take the queue of others for part of its base delay,
// and push them aside.
type slowdown struct {
	next   clock.Time
	rounds int     // rounds that are left of it; 0: none is under way
	window float64 // to go back to then
}

func (s *slowdown) active() bool { return s.rounds > 0 }

// due reports whether it is time. A round trip that becomes shorter all at once, which is a dip, brings the time
// forward: another connection may have slowed down, and together they see more of the queue (BBR, ProbeRTT).
func (s *slowdown) due(now clock.Time, dip bool) bool {
	return now >= s.next || dip && now >= s.next.Add(-slowdownEvery/2)
}
