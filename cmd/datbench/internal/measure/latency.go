package measure

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/datxdp/datxdp/internal/result"
)

// Latencies collects round trips between 1 ns and 10 s to three digits.
type Latencies struct{ h *hdr.Histogram }

func NewLatencies() *Latencies {
	return &Latencies{hdr.New(1, int64(10*time.Second), 3)}
}

// Record adds one round trip. A value outside the range counts as the nearest inside it.
func (l *Latencies) Record(d time.Duration) {
	// The only error is a value out of range, and the range is enforced here.
	_ = l.h.RecordValue(min(max(int64(d), 1), int64(10*time.Second)))
}

// Count returns the number of round trips. Reset removes them.
func (l *Latencies) Count() int64 { return l.h.TotalCount() }
func (l *Latencies) Reset()       { l.h.Reset() }

// Fill puts the distribution, its percentiles and the rate into a row.
func (l *Latencies) Fill(r *result.Result, elapsed time.Duration) {
	r.Count(l.Count(), elapsed)
	r.SetTimes(l.Histogram())
}

// Histogram is the buckets that are not empty, in µs.
func (l *Latencies) Histogram() (out result.Histogram) {
	for _, bar := range l.h.Distribution() {
		if bar.Count > 0 {
			out = append(out, result.Bucket{Upper: float64(bar.To) / 1e3, Count: bar.Count})
		}
	}
	return out
}
