package plan

import (
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Spec asks for one measurement: a row, and for how long and how closely it is measured. Of the row, 0 for Depth and
// Signal takes the default of the metric, and the MTU is 0 where the plan leaves the link alone.
type Spec struct {
	result.Row
	// Count ends the measured part after so many operations; 0 leaves it to Duration, which bounds it
	// either way.
	Count int64 `json:"count,omitempty"`
	// Interval is how often the row tells how far it is; 0 for never.
	Interval time.Duration `json:"interval,omitempty" peer:"-"`
	// Bytes is how much a sha256 row moves.
	Bytes int64 `json:"bytes"`
	// Duration is measured; Warmup comes before it and is left out.
	Duration time.Duration `json:"duration"`
	Warmup   time.Duration `json:"warmup"`
	// More is whether another row of the same job follows: a server stays the job's.
	More bool `json:"more,omitempty"`
	// WantMode is the mode that was asked for by name; empty if any will do.
	WantMode string `json:"want_mode" peer:"-"`
}

// MaxTime is the longest time that the row runs with a peer that answers at once.
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

// Limit is how long the row may take in all, with waiting for an absent peer, before it counts as
// stuck.
func (r Spec) Limit() time.Duration {
	return r.MaxTime() + 4*Patience
}

// QueueDepth is the number of operations outstanding on each connection.
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

// SignalEvery is the number of requests for one completion event, which reports those before it too.
func (r Spec) SignalEvery() int {
	switch {
	case r.Metric != result.Rate || r.Count > 0: // a count is exact
		return 1
	case r.Signal > 0:
		return min(r.Signal, r.QueueDepth()) // or nothing would tell of what is outstanding
	}
	return max(min(RateSignal, r.QueueDepth()/4), 1)
}

// ConnectionCount is the number of connections, at least one.
func (r Spec) ConnectionCount() int { return max(r.Connections, 1) }

// Window is the number of operations outstanding on all connections.
func (r Spec) Window() int { return r.QueueDepth() * r.ConnectionCount() }

// Total is the number of operations that the row has to measure; 0 for any.
func (r Spec) Total() int64 {
	if r.BothWays {
		return 2 * r.Count
	}
	return r.Count
}

// Streams is whether operations follow one another without waiting: what has a depth, connections and
// directions to choose.
func Streams(metric string) bool { return metric == result.Rate || metric == result.Bandwidth }

// deep is whether several operations may be outstanding.
func deep(metric string) bool { return Streams(metric) || metric == result.Requests }

// Identity is the row that the spec measures, without values that are the default.
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
