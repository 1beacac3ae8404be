package measure

import (
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/datxdp/datxdp/internal/result"
)

// Latencies records round trips between 1 ns and 10 s with three significant digits.
type Latencies struct{ h *hdr.Histogram }

func NewLatencies() *Latencies {
	return &Latencies{hdr.New(1, int64(10*time.Second), 3)}
}

// Record adds one round trip. A value outside the range counts as the nearest value inside.
func (l *Latencies) Record(d time.Duration) {
	// RecordValue only fails for a value out of range.
	_ = l.h.RecordValue(min(max(int64(d), 1), int64(10*time.Second)))
}

// Count returns the number of round trips. Reset removes them.
func (l *Latencies) Count() int64 { return l.h.TotalCount() }
func (l *Latencies) Reset()       { l.h.Reset() }

// Fill writes the distribution, its percentiles and the rate into a result.
func (l *Latencies) Fill(r *result.Result, elapsed time.Duration) {
	r.Count(l.Count(), elapsed)
	r.SetTimes(l.Histogram())
}

// Histogram returns the non-empty buckets, in µs.
func (l *Latencies) Histogram() (out result.Histogram) {
	for _, bar := range l.h.Distribution() {
		if bar.Count > 0 {
			out = append(out, result.Bucket{Upper: float64(bar.To) / 1e3, Count: bar.Count})
		}
	}
	return out
}
