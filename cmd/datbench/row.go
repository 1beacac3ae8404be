package main

import (
	"fmt"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Operations, as they stand in the JSON.
const (
	opSend      = result.Send
	opWrite     = result.Write
	opRead      = result.Read
	opRaw       = result.Raw
	opRawAsavie = result.RawAsavie
	opTCP       = result.TCP
)

// Metrics, as they stand in the JSON.
const (
	metricLatency   = result.Latency
	metricRate      = result.Rate
	metricRequests  = result.Requests
	metricBandwidth = result.Bandwidth
	metricSHA256    = result.SHA256
)

// Row asks for one measurement.
type Row struct {
	Op     string `json:"op"`
	Metric string `json:"metric"`
	// Transport is xdp, udp or tcp.
	Transport string `json:"transport"`
	// Size is the bytes of one operation; 0 for raw bandwidth: the largest frame.
	Size int64 `json:"size"`
	// MTU is the link's, as the plan set it; 0 where the plan leaves it alone.
	MTU int `json:"mtu"`
	// Depth is how many operations are outstanding; 0 takes the default for the metric.
	Depth int `json:"depth"`
	// Signal is of how many requests of a rate row one completes with an event; 0 takes the default.
	Signal int `json:"signal,omitempty"`
	// Connections is how many carry a rate or bw row, posted to in turn by one thread; 0 is one.
	Connections int `json:"connections,omitempty"`
	// Churn is bytes of heap whose objects are replaced all the time while the row runs, in the process of
	// each end; 0 for none.
	Churn int64 `json:"churn,omitempty"`
	// Realtime is whether the initiator's measuring thread goes before others.
	Realtime bool `json:"realtime,omitempty"`
	// Bidir is both directions at once, of rate and bw.
	Bidir bool `json:"bidir,omitempty"`
	// Count ends the measured part after so many operations; 0 leaves it to Duration, which bounds it
	// either way.
	Count int64 `json:"count,omitempty"`
	// Interval is how often the row tells how far it is; 0 for never.
	Interval time.Duration `json:"interval,omitempty"`
	// Bytes is how much a sha256 row moves.
	Bytes int64 `json:"bytes"`
	// Duration is measured; Warmup comes before it and is left out.
	Duration time.Duration `json:"duration"`
	Warmup   time.Duration `json:"warmup"`
	// More is whether another row of the same job follows: a server stays the job's.
	More bool `json:"more,omitempty"`
	// WantMode is the mode that was asked for by name; empty if any will do.
	WantMode string `json:"want_mode"`
	// Impair is what is done to the packets, as package tap writes it; empty if nothing is.
	Impair string `json:"impair,omitempty"`
}

// time is how long the row runs at most, with a peer that answers at once.
func (r Row) time() time.Duration {
	d := r.Warmup + r.Duration
	if r.Metric == metricSHA256 {
		d += sha256Limit
	}
	if r.Churn > 0 {
		d += churnLimit
	}
	return d
}

// limit is how long the row may take in all, with waiting for an absent peer, before it counts as
// stuck.
func (r Row) limit() time.Duration {
	return r.time() + 4*patience
}

// title names the row for a progress line.
func (r Row) title() string {
	s := fmt.Sprintf("%s %s", metricTitle(r.Metric), r.Op)
	if r.Size > 0 {
		s += " " + formatSize(r.Size)
	}
	if r.Connections > 1 {
		s += fmt.Sprintf(" × %d", r.Connections)
	}
	if r.Bidir {
		s += " both ways"
	}
	if r.MTU > 0 {
		s += fmt.Sprintf(" at MTU %d", r.MTU)
	}
	s += besideNote(r.Churn, r.Realtime)
	if r.Impair != "" {
		s += ", impaired"
	}
	return s
}

// name is a row's operation, and over how many connections. It is no longer than raw_asavie.
func name(r *Result) string {
	if r.Connections > 1 {
		return fmt.Sprintf("%s × %d", r.Op, r.Connections)
	}
	return r.Op
}

// besideNote ends a title: beside what, and how, a row is measured. It is empty where that is as usual.
func besideNote(churn int64, realtime bool) (s string) {
	if churn > 0 {
		s = fmt.Sprintf(", beside %s of churned heap", formatSize(churn))
	}
	if realtime {
		s += ", at real-time priority"
	}
	return s
}

func metricTitle(metric string) string {
	switch metric {
	case metricLatency:
		return "round trip"
	case metricRate:
		return "message rate"
	case metricRequests:
		return "requests"
	case metricBandwidth:
		return "bandwidth"
	case metricSHA256:
		return "SHA-256"
	}
	return metric
}

// depth is how many operations the row keeps outstanding.
func (r Row) depth() int {
	switch {
	case r.Depth > 0:
		return r.Depth
	case r.Metric == metricLatency:
		return 1
	case r.Metric == metricRate && r.Op == opRead:
		return rateDepthRead
	case r.Metric == metricRate:
		return rateDepth
	case r.Metric == metricRequests:
		return requestDepth
	}
	return bandwidthDepth
}

// signal is of how many requests one completes with an event, which tells of those before it too.
func (r Row) signal() int {
	switch {
	case r.Metric != metricRate || r.Count > 0: // a count is exact
		return 1
	case r.Signal > 0:
		return min(r.Signal, r.depth()) // or nothing would tell of what is outstanding
	}
	return max(min(rateSignal, r.depth()/4), 1)
}

// connections is how many the row has.
func (r Row) connections() int { return max(r.Connections, 1) }

// window is how many operations are outstanding on all connections.
func (r Row) window() int { return r.depth() * r.connections() }

// total is how many operations a row is asked to measure; 0 for any number.
func (r Row) total() int64 {
	if r.Bidir {
		return 2 * r.Count
	}
	return r.Count
}

// streams is whether operations follow one another without waiting: what has a depth, connections and
// directions to choose.
func streams(metric string) bool { return metric == metricRate || metric == metricBandwidth }

// deep is whether several operations may be outstanding.
func deep(metric string) bool { return streams(metric) || metric == metricRequests }
