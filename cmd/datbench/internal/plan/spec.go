package plan

import (
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Spec requests one measurement: a row, its duration and its progress reports. In the row, Depth 0 and Signal 0 mean
// the metric's default, and MTU 0 means that the link's MTU is not changed.
type Spec struct {
	result.Row
	// Count is the number of operations in the measured stage; 0 means no limit. The stage ends after Count operations
	// or after Duration, whichever is first.
	Count int64 `json:"count,omitempty"`
	// Interval is the time between progress reports; 0 for none.
	Interval time.Duration `json:"interval,omitempty" peer:"-"`
	// Bytes is the number of bytes that a sha256 row transfers.
	Bytes int64 `json:"bytes"`
	// Duration is the measured time. Warmup precedes it and is not measured.
	Duration time.Duration `json:"duration"`
	Warmup   time.Duration `json:"warmup"`
	// More means that another row of the same job follows: a server stays reserved for the job.
	More bool `json:"more,omitempty"`
	// WantMode is the requested mode; empty if any mode will do.
	WantMode string `json:"want_mode" peer:"-"`
}

// MaxTime returns the longest time that the row takes if the peer responds immediately.
func (r Spec) MaxTime() time.Duration {
	d := r.Warmup + r.Duration
	if r.Metric == result.SHA256 {
		d += sha256Limit
	}
	if r.Churn > 0 {
		d += ChurnLimit
	}
	return d
}

// Limit returns the longest time that the row may take in all, including waits for an absent peer.
func (r Spec) Limit() time.Duration {
	return r.MaxTime() + 4*PeerTimeout
}

// QueueDepth returns the number of outstanding operations on each connection.
func (r Spec) QueueDepth() int {
	switch {
	case r.Depth > 0:
		return r.Depth
	case r.Metric == result.Latency:
		return 1
	case r.Metric == result.Rate && r.Op == result.Read:
		return rateDepthRead
	case r.Metric == result.Rate:
		return RateDepth
	case r.Metric == result.Requests:
		return requestDepth
	}
	return bandwidthDepth
}

// SignalEvery returns the number of requests per completion event. The event of a request also completes earlier
// requests that have no event of their own (selective signaling).
func (r Spec) SignalEvery() int {
	switch {
	case r.Metric != result.Rate || r.Count > 0: // every operation must be counted
		return 1
	case r.Signal > 0:
		return min(r.Signal, r.QueueDepth()) // otherwise no outstanding request would signal its completion
	}
	return max(min(RateSignal, r.QueueDepth()/4), 1)
}

// ConnectionCount returns the number of connections, at least one.
func (r Spec) ConnectionCount() int { return max(r.Connections, 1) }

// Window returns the number of outstanding operations on all connections.
func (r Spec) Window() int { return r.QueueDepth() * r.ConnectionCount() }

// Total returns the number of operations that the row must measure; 0 for no number.
func (r Spec) Total() int64 {
	if r.BothWays {
		return 2 * r.Count
	}
	return r.Count
}

// Streams reports whether a row of this metric keeps the queue full. Such a row posts an operation without waiting
// until the earlier operations have completed. Only such a row can have several connections or both directions.
func Streams(metric string) bool { return metric == result.Rate || metric == result.Bandwidth }

// deep reports whether several operations may be outstanding.
func deep(metric string) bool { return Streams(metric) || metric == result.Requests }

// Identity returns the row that the spec measures, with default values set to zero.
func (r Spec) Identity() result.Row {
	id := r.Row
	usual := Spec{Row: result.Row{Op: r.Op, Metric: r.Metric}}
	if !deep(r.Metric) || r.QueueDepth() == usual.QueueDepth() {
		id.Depth = 0
	}
	usual.Depth, usual.Count = r.Depth, r.Count
	if id.Signal = r.SignalEvery(); id.Signal == usual.SignalEvery() {
		id.Signal = 0
	}
	if id.Connections <= 1 {
		id.Connections = 0
	}
	return id
}
