package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/internal/result"
)

// stopwatch moves a row of round trips through its stages and records the measured ones.
type stopwatch struct {
	c     *Conn
	lat   *measure.Latencies
	plan  measure.Schedule
	ended time.Time
}

func newStopwatch(c *Conn) *stopwatch {
	return &stopwatch{c: c, lat: measure.NewLatencies(), plan: measure.NewSchedule(c.row)}
}

// lap records round trip number i and reports whether the row is over. i must increase from call to call.
func (s *stopwatch) lap(i int64, start, now time.Time) (over bool) {
	m := s.c.meter
	if m != nil && !m.on && !now.Before(s.plan.Measure) {
		m.setStage(s.c, measure.StageMeasure, s.plan.Measure)
	}
	switch s.plan.StageOf(i, now) {
	case measure.StageMeasure:
		s.lat.Record(now.Sub(start))
		m.record(now.Sub(start))
		m.check(s.c, now)
	case measure.StageEnd:
		m.setStage(s.c, measure.StageEnd, now)
		s.ended = now
		return true
	}
	return false
}

// fill writes the round trips and their rate into the result.
func (s *stopwatch) fill(r *result.Result) measure.Evidence {
	elapsed := s.ended.Sub(s.plan.Measure)
	s.lat.Fill(r, elapsed)
	return measure.Evidence{Elapsed: elapsed}
}
