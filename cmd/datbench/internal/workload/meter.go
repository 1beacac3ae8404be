package workload

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// meter tells of a row while it runs, at an interval. Where a row reads the clock anyway, it looks.
// A nil meter does nothing.
type meter struct {
	every time.Duration
	// tell is called with each interval, by the goroutine that measures.
	tell func(result.Interval)
	told []result.Interval

	on          bool
	begin, from time.Time
	next        time.Time
	done        int64
	retransmits uint64
	// times are the interval's round trips, of a latency row.
	times *measure.Latencies
}

// newMeter is nil for a row that has no interval.
func newMeter(row plan.Spec, tell func(plan.Spec, result.Interval)) *meter {
	if row.Interval <= 0 || tell == nil {
		return nil
	}
	m := &meter{every: row.Interval, tell: func(i result.Interval) { tell(row, i) }}
	if result.Timed(row.Metric) {
		m.times = measure.NewLatencies()
	}
	return m
}

// turn begins or ends the measured part.
func (m *meter) turn(c *Conn, phase byte, now time.Time) {
	switch {
	case m == nil:
	case phase == measure.StageMeasure:
		m.on, m.begin = true, now
		m.mark(c, now)
	case m.on:
		m.on = false
		if now.Sub(m.from) > m.every/10 { // else it would be told of next to nothing
			m.report(c, now)
		}
	}
}

// look ends an interval when it is over.
func (m *meter) look(c *Conn, now time.Time) {
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

// mark is where the next interval begins. Its end is a multiple of the interval, even if this one is late.
func (m *meter) mark(c *Conn, now time.Time) {
	m.from, m.done, m.retransmits = now, c.done, c.losses().retransmits
	m.next = m.begin.Add((now.Sub(m.begin)/m.every + 1) * m.every)
}

func (m *meter) report(c *Conn, now time.Time) {
	i := result.Interval{
		Start: m.from.Sub(m.begin).Seconds(), End: now.Sub(m.begin).Seconds(),
		Msgs: c.done - m.done, Retransmits: c.losses().retransmits - m.retransmits,
	}
	if m.times != nil {
		m.timesOf(&i)
	}
	i.Bytes = i.Msgs * c.row.Size
	i.Gbps = float64(i.Bytes) * 8 / 1e9 / (i.End - i.Start)
	m.told = append(m.told, i)
	m.tell(i)
}

// timesOf is what the round trips of an interval say.
func (m *meter) timesOf(i *result.Interval) {
	i.Msgs = m.times.Count()
	if i.Msgs > 0 {
		var r result.Result
		r.SetTimes(m.times.Histogram())
		i.P50, i.Max = r.P50, r.Max
	}
	m.times.Reset()
}

// fill leaves the intervals in the row.
func (m *meter) fill(r *result.Result) {
	if m != nil {
		r.Intervals = m.told
	}
}
