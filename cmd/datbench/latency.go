package main

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// latencies collects round trips between 1 ns and 10 s to three digits.
type latencies struct{ h *hdr.Histogram }

func newLatencies() latencies {
	return latencies{hdr.New(1, int64(10*time.Second), 3)}
}

// record adds one round trip. What lies beyond the range counts as its end.
func (l latencies) record(d time.Duration) {
	// The only error is a value out of range, and the range is enforced here.
	_ = l.h.RecordValue(min(max(int64(d), 1), int64(10*time.Second)))
}

// fill puts percentiles and rate into a row.
func (l latencies) fill(r *Result, elapsed time.Duration) {
	r.count(l.h.TotalCount(), elapsed)
	if r.Samples == 0 {
		return
	}
	us := func(q float64) *float64 { return ptr(float64(l.h.ValueAtQuantile(q)) / 1e3) }
	r.P50, r.P99, r.P999 = us(50), us(99), us(99.9)
}
