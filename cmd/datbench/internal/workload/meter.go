package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// meter reports the progress of a running row at intervals. Its methods are called only where the row reads the clock
// for other reasons too. A nil meter does nothing.
type meter struct {
	every time.Duration
	// emit is called with each interval, by the goroutine that measures.
	emit      func(result.Interval)
	intervals []result.Interval

	on          bool
	begin, from time.Time
	next        time.Time
	done        int64
	retransmits uint64
	// times holds the round trips of the current interval, in latency rows.
	times *measure.Latencies
}

// newMeter returns nil for a row without intervals.
func newMeter(row plan.Spec, tell func(plan.Spec, result.Interval)) *meter {
	if row.Interval <= 0 || tell == nil {
		return nil
	}
	m := &meter{every: row.Interval, emit: func(i result.Interval) { tell(row, i) }}
	if result.Timed(row.Metric) {
		m.times = measure.NewLatencies()
	}
	return m
}

// setStage begins or ends the measured stage.
func (m *meter) setStage(c *Conn, stage byte, now time.Time) {
	switch {
	case m == nil:
	case stage == measure.StageMeasure:
		m.on, m.begin = true, now
		m.mark(c, now)
	case m.on:
		m.on = false
		if now.Sub(m.from) > m.every/10 { // a shorter remainder would be no meaningful interval
			m.report(c, now)
		}
	}
}

// check ends an interval when its time is over.
func (m *meter) check(c *Conn, now time.Time) {
	if m != nil && m.on && !now.Before(m.next) {
		m.report(c, now)
		m.mark(c, now)
	}
}

// record adds a round trip.
func (m *meter) record(d time.Duration) {
	if m != nil {
		m.times.Record(d)
	}
}

// mark begins the next interval. Intervals end at multiples of their length, even after an interval that ended late.
func (m *meter) mark(c *Conn, now time.Time) {
	m.from, m.done, m.retransmits = now, c.done, c.Losses().Retransmits
	m.next = m.begin.Add((now.Sub(m.begin)/m.every + 1) * m.every)
}

func (m *meter) report(c *Conn, now time.Time) {
	i := result.Interval{
		Start: m.from.Sub(m.begin).Seconds(), End: now.Sub(m.begin).Seconds(),
		Msgs: c.done - m.done, Retransmits: c.Losses().Retransmits - m.retransmits,
	}
	if m.times != nil {
		m.timesOf(&i)
	}
	i.Bytes = i.Msgs * c.row.Size
	i.Gbps = float64(i.Bytes) * 8 / 1e9 / (i.End - i.Start)
	m.intervals = append(m.intervals, i)
	m.emit(i)
}

// timesOf writes the statistics of the interval's round trips.
func (m *meter) timesOf(i *result.Interval) {
	i.Msgs = m.times.Count()
	if i.Msgs > 0 {
		var r result.Result
		r.SetTimes(m.times.Histogram())
		i.P50, i.Max = r.P50, r.Max
	}
	m.times.Reset()
}

// fill stores the intervals in the result.
func (m *meter) fill(r *result.Result) {
	if m != nil {
		r.Intervals = m.intervals
	}
}
