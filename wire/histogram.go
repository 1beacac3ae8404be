package wire

import (
	"math"
	"math/bits"
	"time"
)

// Sizes of a Histogram.
const (
	// histogramBase is the binary logarithm of the lowest bucket bound in nanoseconds: 1024 ns.
	histogramBase = 10
	// histogramOctaves is the number of doublings up to the highest bucket bound, about 4.3 s.
	histogramOctaves = 22
	histogramBuckets = 1 + 2*histogramOctaves + 1
)

// Histogram counts durations in buckets, two for each doubling. The last bucket has no upper bound.
type Histogram struct {
	Buckets [histogramBuckets]uint64
	Sum     uint64 // of all durations, in nanoseconds
}

// observe counts a duration n times.
func (h *Histogram) observe(d time.Duration, n uint64) {
	h.Buckets[bucketOf(uint64(d))] += n
	h.Sum += uint64(d) * n
}

// bucketOf returns the index of the bucket for a duration in nanoseconds. It depends on the two highest bits.
func bucketOf(ns uint64) int {
	if ns < 1<<histogramBase {
		return 0
	}
	top := bits.Len64(ns) - 1
	return min(1+2*(top-histogramBase)+int(ns>>(top-1)&1), histogramBuckets-1)
}

// Bound returns the exclusive upper bound of bucket i. It returns 0 if i is negative, and math.MaxInt64 for the last
// bucket and beyond.
func (h *Histogram) Bound(i int) time.Duration {
	switch {
	case i < 0:
		return 0
	case i >= histogramBuckets-1:
		return math.MaxInt64
	}
	octave := time.Duration(1) << (histogramBase + i/2)
	return octave + octave/2*time.Duration(i%2)
}

// A run is a series of requests whose first packets left in the same Poll. The requests of a run are counted together
// to save time.
type run struct {
	began Time
	n     uint64
}

// count adds the latency of the requests, which complete now. began is 0 for binds, which send nothing.
func (r run) count(e *Engine) {
	if r.began != 0 {
		e.stats.Latency.observe(e.now.Sub(r.began), r.n)
	}
}
