package wire

import (
	"math"
	"math/bits"
	"time"
)

// Buckets of a Histogram.
const (
	// histogramBase is the binary logarithm of the first bound in nanoseconds: about a microsecond.
	histogramBase = 10
	// histogramOctaves is how often the bound doubles, to about four seconds.
	histogramOctaves = 22
	histogramBuckets = 1 + 2*histogramOctaves + 1
)

// Histogram counts durations. There are two buckets an octave; the last has no bound.
type Histogram struct {
	Buckets [histogramBuckets]uint64
	Sum     uint64 // nanoseconds
}

// observe counts a duration n times.
func (h *Histogram) observe(d time.Duration, n uint64) {
	h.Buckets[bucketOf(uint64(d))] += n
	h.Sum += uint64(d) * n
}

// bucketOf is the bucket of a duration in nanoseconds: found by its highest two bits.
func bucketOf(ns uint64) int {
	if ns < 1<<histogramBase {
		return 0
	}
	top := bits.Len64(ns) - 1
	return min(1+2*(top-histogramBase)+int(ns>>(top-1)&1), histogramBuckets-1)
}

// Bound is what every duration in bucket i is shorter than, i being an index of Buckets. The last bucket has
// none: it is math.MaxInt64, as for any index above. Below 0 it is 0.
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

// run is a number of requests in a row that began together, as those of one packet do: counted as one,
// they cost a comparison each.
type run struct {
	began Time
	n     uint64
}

// count counts the latency of requests that complete now. Binds never began.
func (r run) count(e *Engine) {
	if r.began != 0 {
		e.stats.Latency.observe(e.now.Sub(r.began), r.n)
	}
}
