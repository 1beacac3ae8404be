package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/internal/result"
)

// stopwatch leads a row of round trips through its phases, and records those of the measured one.
type stopwatch struct {
	c     *Conn
	lat   *measure.Latencies
	plan  measure.Schedule
	ended time.Time
}

func newStopwatch(c *Conn) *stopwatch {
	return &stopwatch{c: c, lat: measure.NewLatencies(), plan: measure.NewSchedule(c.row)}
}

// lap notes round trip i, which are asked for in order, and says whether the row is over.
func (s *stopwatch) lap(i int64, start, now time.Time) (over bool) {
	m := s.c.meter
	if m != nil && !m.on && !now.Before(s.plan.Measure) {
		m.turn(s.c, measure.StageMeasure, s.plan.Measure)
	}
	switch s.plan.StageOf(i, now) {
	case measure.StageMeasure:
		s.lat.Record(now.Sub(start))
		m.record(now.Sub(start))
		m.look(s.c, now)
	case measure.StageEnd:
		m.turn(s.c, measure.StageEnd, now)
		s.ended = now
		return true
	}
	return false
}

// fill puts the round trips and their rate into a row that is over.
func (s *stopwatch) fill(r *result.Result) measure.Evidence {
	elapsed := s.ended.Sub(s.plan.Measure)
	s.lat.Fill(r, elapsed)
	return measure.Evidence{Elapsed: elapsed}
}
