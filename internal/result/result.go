package result

import (
	"fmt"
	"time"
)

// Result is a row with what was measured. The fields that are not omitted when they are empty are the contract: they
// are always there and keep their names. Times and rates are those of the measured part; a percentile is nil where a
// row has none.
type Result struct {
	// Row is what was measured. A depth or a number of connections that is the default is 0.
	Row
	// Mode is how packets moved, as granted.
	Mode string `json:"mode"`
	// Percentiles of the full round trip, in µs.
	P50  *float64 `json:"p50_us"`
	P99  *float64 `json:"p99_us"`
	P999 *float64 `json:"p999_us"`
	// MsgsPerSec is operations, Gbps 10⁹ bits of payload, each of a second.
	MsgsPerSec float64 `json:"msgs_per_s"`
	Gbps       float64 `json:"gbps"`
	// Samples is operations measured.
	Samples int64 `json:"samples"`
	// Retransmits is packets sent again, Drops packets known to be lost, both at both sides.
	Retransmits uint64 `json:"retransmits"`
	Drops       uint64 `json:"drops"`
	// Valid is whether this is a measurement; Reason says why not.
	Valid  bool   `json:"valid"`
	Reason string `json:"reason"`

	// The rest is there where a row has it.

	// Min, P90, P9999 and Max of the full round trip, in µs. P9999 needs ten thousand of them.
	Min   *float64 `json:"min_us,omitempty"`
	P90   *float64 `json:"p90_us,omitempty"`
	P9999 *float64 `json:"p9999_us,omitempty"`
	Max   *float64 `json:"max_us,omitempty"`
	// Histogram is every round trip, as [upper_us, count] of each bucket that is not empty.
	Histogram Histogram `json:"histogram_us,omitempty"`
	// Runs are the figures of the valid runs of a row that was repeated: p50_us, msgs_per_s or gbps.
	Runs []float64 `json:"runs,omitempty"`
	// Parts are the figures of the parts of a row that was measured once, where it was measured in parts.
	Parts []float64 `json:"parts,omitempty"`
	// Rounds are all runs of a row that was repeated, in the order in which they were made: the runs of one
	// round, in all rows of a report, follow one another.
	Rounds []Round `json:"rounds,omitempty"`
	// Bidir is each direction of a row that went both ways at once; the row's own figures are the sums.
	Bidir *Bidir `json:"bidir,omitempty"`
	// Intervals are the parts of the row's time that were asked for.
	Intervals []Interval `json:"intervals,omitempty"`
	// RawRatio is the row's figure over that of raw frames in the same place, RawP99Ratio its p99 over
	// theirs; of a row that was repeated, the median over the rounds.
	RawRatio    *float64 `json:"raw_ratio,omitempty"`
	RawP99Ratio *float64 `json:"raw_p99_ratio,omitempty"`
	// Kept and P99Ratio compare an impaired row with the same row of the same run without impairment: Kept is
	// the part of the throughput that is left, in percent, P99Ratio the p99 over that of the other row.
	Kept     *float64 `json:"kept_percent,omitempty"`
	P99Ratio *float64 `json:"p99_ratio,omitempty"`
}

// Bidir is the two directions of a row: out is away from the client.
type Bidir struct {
	OutMsgsPerSec float64 `json:"out_msgs_per_s"`
	InMsgsPerSec  float64 `json:"in_msgs_per_s"`
	OutGbps       float64 `json:"out_gbps"`
	InGbps        float64 `json:"in_gbps"`
}

// Interval is a part of a row's measured time, as the client saw it.
type Interval struct {
	// Start and End are seconds from the beginning of the measured part.
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
	// Msgs is operations completed, Bytes their payload, Gbps 10⁹ bits of it a second.
	Msgs  int64   `json:"msgs"`
	Bytes int64   `json:"bytes"`
	Gbps  float64 `json:"gbps"`
	// Retransmits is packets that the client sent again.
	Retransmits uint64 `json:"retransmits"`
	// P50 and Max are of the interval's round trips in µs, of a latency row.
	P50 *float64 `json:"p50_us,omitempty"`
	Max *float64 `json:"max_us,omitempty"`
}

// Figure is what a row is measured for, and compared by: the median in µs, operations a second, or Gb/s.
func (r *Result) Figure() float64 {
	switch {
	case r.Metric == Rate || r.Metric == Requests:
		return r.MsgsPerSec
	case r.Metric != Latency:
		return r.Gbps
	case r.P50 != nil:
		return *r.P50
	}
	return 0
}

// Count fills in a throughput: n operations in elapsed.
func (r *Result) Count(n int64, elapsed time.Duration) {
	r.Samples = n
	if elapsed <= 0 {
		return
	}
	r.MsgsPerSec = float64(n) / elapsed.Seconds()
	r.Gbps = r.MsgsPerSec * float64(r.Size) * 8 / 1e9
}

// minExtreme is the samples that give a p99.99 a meaning.
const minExtreme = 10_000

// SetTimes fills in what a distribution says, with the distribution.
func (r *Result) SetTimes(h Histogram) {
	us := func(percent float64) *float64 { v := h.Quantile(percent); return &v }
	if len(h) == 0 {
		return
	}
	r.Histogram, r.Min, r.Max = h, us(0), us(100)
	r.P50, r.P90, r.P99, r.P999 = us(50), us(90), us(99), us(99.9)
	if h.Total() >= minExtreme {
		r.P9999 = us(99.99)
	}
}

// Invalidate adds a reason why the row is not a measurement.
func (r *Result) Invalidate(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if r.Reason != "" {
		reason = r.Reason + "; " + reason
	}
	r.Valid, r.Reason = false, reason
}
