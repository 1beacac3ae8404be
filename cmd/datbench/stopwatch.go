package main

import (
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// stopwatch leads a row of round trips through its phases, and records those of the measured one.
type stopwatch struct {
	c     *conn
	lat   latencies
	plan  schedule
	ended time.Time
}

func newStopwatch(c *conn) *stopwatch {
	return &stopwatch{c: c, lat: newLatencies(), plan: newSchedule(c.row)}
}

// lap notes round trip i, which are asked for in order, and says whether the row is over.
func (s *stopwatch) lap(i int64, start, now time.Time) (over bool) {
	m := s.c.meter
	if m != nil && !m.on && !now.Before(s.plan.measure) {
		m.turn(s.c, phaseMeasure, s.plan.measure)
	}
	switch s.plan.phaseOf(i, now) {
	case phaseMeasure:
		s.lat.record(now.Sub(start))
		m.record(now.Sub(start))
		m.look(s.c, now)
	case phaseEnd:
		m.turn(s.c, phaseEnd, now)
		s.ended = now
		return true
	}
	return false
}

// fill puts the round trips and their rate into a row that is over.
func (s *stopwatch) fill(r *result.Result) evidence {
	elapsed := s.ended.Sub(s.plan.measure)
	s.lat.fill(r, elapsed)
	return evidence{elapsed: elapsed}
}
