package result

import (
	"fmt"
	"time"
)

// Result is a row with its measured values. The fields without omitempty are a contract: they are always present and
// keep their names. Times and rates are those of the measured stage. A percentile without a value is nil.
type Result struct {
	// Row is the identity of the measurement. A default depth or number of connections is 0.
	Row
	// Mode is the granted mode.
	Mode string `json:"mode"`
	// Percentiles of the full round trip, in µs.
	P50  *float64 `json:"p50_us"`
	P99  *float64 `json:"p99_us"`
	P999 *float64 `json:"p999_us"`
	// MsgsPerSec is operations per second, Gbps is 10⁹ bits of payload per second.
	MsgsPerSec float64 `json:"msgs_per_s"`
	Gbps       float64 `json:"gbps"`
	// Samples is the number of measured operations.
	Samples int64 `json:"samples"`
	// Retransmits is the number of retransmitted packets. Drops is the number of packets known to be lost. Both include
	// both sides.
	Retransmits uint64 `json:"retransmits"`
	Drops       uint64 `json:"drops"`
	// Valid means that the result is a measurement; Reason says why it is not.
	Valid  bool   `json:"valid"`
	Reason string `json:"reason"`

	// The other fields are present only if they apply.

	// Min, P90, P9999 and Max of the full round trip, in µs. P9999 needs at least 10 000 samples.
	Min   *float64 `json:"min_us,omitempty"`
	P90   *float64 `json:"p90_us,omitempty"`
	P9999 *float64 `json:"p9999_us,omitempty"`
	Max   *float64 `json:"max_us,omitempty"`
	// Histogram holds every round trip, as [upper_us, count] of each non-empty bucket.
	Histogram Histogram `json:"histogram_us,omitempty"`
	// Runs are the figures of the valid runs of a repeated row: p50_us, msgs_per_s or gbps.
	Runs []float64 `json:"runs,omitempty"`
	// Parts are the figures of the parts of a row that was measured once, in parts.
	Parts []float64 `json:"parts,omitempty"`
	// Rounds are all runs of a repeated row, in order. All rows of a report are measured in round n before any row is
	// measured in round n+1.
	Rounds []Round `json:"rounds,omitempty"`
	// Bidir holds the two directions of a bidirectional row; the row's own figures are the sums.
	Bidir *Bidir `json:"bidir,omitempty"`
	// Intervals are the requested intervals of the row's time.
	Intervals []Interval `json:"intervals,omitempty"`
	// Client and Server are what the kernel has counted for the threads of the processes at both ends. Server is missing in
	// rows of raw frames, kernel TCP and streams.
	Client *Threads `json:"client_threads,omitempty"`
	Server *Threads `json:"server_threads,omitempty"`
	// RawRatio is the row's figure divided by the figure of raw frames under the same conditions. RawP99Ratio is the
	// same ratio of the p99. For a repeated row both are medians over the rounds.
	RawRatio    *float64 `json:"raw_ratio,omitempty"`
	RawP99Ratio *float64 `json:"raw_p99_ratio,omitempty"`
	// Kept and P99Ratio compare an impaired row with the same row of the same run without impairment. Kept is the
	// remaining throughput in percent. P99Ratio is the p99 divided by the p99 without impairment.
	Kept     *float64 `json:"kept_percent,omitempty"`
	P99Ratio *float64 `json:"p99_ratio,omitempty"`
}

// Bidir holds the two directions of a row. Out is from the client to the server, In from the server to the client.
type Bidir struct {
	OutMsgsPerSec float64 `json:"out_msgs_per_s"`
	InMsgsPerSec  float64 `json:"in_msgs_per_s"`
	OutGbps       float64 `json:"out_gbps"`
	InGbps        float64 `json:"in_gbps"`
}

// Interval is a part of a row's measured time, as seen by the client.
type Interval struct {
	// Start and End are in seconds from the beginning of the measured stage.
	Start float64 `json:"start_s"`
	End   float64 `json:"end_s"`
	// Msgs is the number of completed operations, Bytes their payload, Gbps 10⁹ bits of it per second.
	Msgs  int64   `json:"msgs"`
	Bytes int64   `json:"bytes"`
	Gbps  float64 `json:"gbps"`
	// Retransmits is the number of packets that the client retransmitted.
	Retransmits uint64 `json:"retransmits"`
	// P50 and Max are of the interval's round trips in µs, in latency rows.
	P50 *float64 `json:"p50_us,omitempty"`
	Max *float64 `json:"max_us,omitempty"`
}

// Figure returns the main value of a row, by which rows are compared: the median in µs, operations per second, or Gb/s.
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

// Count fills in a throughput of n operations in elapsed.
func (r *Result) Count(n int64, elapsed time.Duration) {
	r.Samples = n
	if elapsed <= 0 {
		return
	}
	r.MsgsPerSec = float64(n) / elapsed.Seconds()
	r.Gbps = r.MsgsPerSec * float64(r.Size) * 8 / 1e9
}

// minExtreme is the minimum number of samples for a p99.99.
const minExtreme = 10_000

// SetTimes fills in a distribution and its percentiles.
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

// Invalidate marks the row as invalid and adds a reason.
func (r *Result) Invalidate(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if r.Reason != "" {
		reason = r.Reason + "; " + reason
	}
	r.Valid, r.Reason = false, reason
}
