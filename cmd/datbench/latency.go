package main

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/datxdp/datxdp/internal/result"
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

// fill puts the distribution, its percentiles and the rate into a row.
func (l latencies) fill(r *result.Result, elapsed time.Duration) {
	r.Count(l.h.TotalCount(), elapsed)
	r.SetTimes(l.histogram())
}

// histogram is the buckets that are not empty, in µs.
func (l latencies) histogram() (out result.Histogram) {
	for _, bar := range l.h.Distribution() {
		if bar.Count > 0 {
			out = append(out, result.Bucket{Upper: float64(bar.To) / 1e3, Count: bar.Count})
		}
	}
	return out
}
