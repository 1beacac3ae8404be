package main

import (
	"fmt"
	"strings"
	"time"
)

// Result is one row of the report, and the JSON contract of it. Times and rates are those of the
// measured part; a percentile is nil where a row has none.
type Result struct {
	Op          string   `json:"op"`
	Metric      string   `json:"metric"`
	Size        int64    `json:"size"`
	Transport   string   `json:"transport"`
	Mode        string   `json:"mode"`
	MTU         int      `json:"mtu"`
	P50         *float64 `json:"p50_us"`
	P99         *float64 `json:"p99_us"`
	P999        *float64 `json:"p999_us"`
	MsgsPerSec  float64  `json:"msgs_per_s"`
	Gbps        float64  `json:"gbps"`
	Samples     int64    `json:"samples"`
	Retransmits uint64   `json:"retransmits"`
	Drops       uint64   `json:"drops"`
	Valid       bool     `json:"valid"`
	Reason      string   `json:"reason"`
	// Impair is what was done to the packets of the row; empty if nothing was. Beside a row of the
	// same run without it, Kept is the part of the throughput that is left, in percent, and P99Ratio
	// what the p99 of a latency has become, times what it was.
	Impair   string   `json:"impair,omitempty"`
	Kept     *float64 `json:"kept_percent,omitempty"`
	P99Ratio *float64 `json:"p99_ratio,omitempty"`
}

// newResult is the row with nothing measured yet.
func newResult(row Row) Result {
	return Result{Op: row.Op, Metric: row.Metric, Size: row.Size,
		Transport: row.Transport, MTU: row.MTU, Valid: true, Impair: row.Impair}
}

// failed is the row that could not be measured.
func failed(row Row, err error) Result {
	r := newResult(row)
	r.invalid("%s", oneLine(err.Error()))
	return r
}

// count fills in a throughput: n operations in elapsed.
func (r *Result) count(n int64, elapsed time.Duration) {
	r.Samples = n
	if elapsed <= 0 {
		return
	}
	r.MsgsPerSec = float64(n) / elapsed.Seconds()
	r.Gbps = r.MsgsPerSec * float64(r.Size) * 8 / 1e9
}

func (r *Result) invalid(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if r.Reason != "" {
		reason = r.Reason + "; " + reason
	}
	r.Valid, r.Reason = false, reason
}

// evidence is what shows that a row is a measurement and not an accident.
type evidence struct {
	row     Row
	elapsed time.Duration
	// coreShare is the part of a core that each spinning side got; negative if it does not spin.
	coreShare []float64
	// lost is frames that were sent and did not arrive, counted those of them that a counter of
	// the link or of the kernel accounts for.
	lost, counted uint64
	// tally is the target's, if the workload has asked for it already.
	tally *tally
}

// judge marks the row invalid for every rule that the evidence breaks.
func (r *Result) judge(e evidence) {
	if e.row.WantMode != "" && r.Mode != e.row.WantMode {
		r.invalid("asked for mode %s, got %s", e.row.WantMode, r.Mode)
	}
	if r.Samples == 0 {
		r.invalid("nothing arrived")
	} else if r.Metric == metricLatency && r.Samples < minLatencySamples {
		r.few()
	}
	if asked := e.row.Duration; r.Samples > 0 && r.Metric != metricSHA256 && e.elapsed < time.Duration(minElapsedShare*float64(asked)) {
		r.invalid("measured for %s of %s", e.elapsed.Round(time.Millisecond), asked)
	}
	if least, ok := leastShare(e.coreShare); ok && least < minCoreShare && r.Metric != metricSHA256 {
		r.invalid("not saturated: a side had %.0f %% of a core, the host is busy with something else", least*100)
	}
	if r.Samples > 0 && e.lost > e.counted {
		r.invalid("%d frames were lost and no counter tells where", e.lost-e.counted)
	}
}

// few is for a latency of few samples. Kernel TCP waits 0.2 s for a lone packet that was lost, and has
// no more of them in a row that loses packets: what they cannot tell is left out.
func (r *Result) few() {
	if r.Op != opTCP || r.Impair == "" || r.Samples < minMedianSamples {
		r.invalid("%d samples are too few for a p99.9", r.Samples)
		return
	}
	r.P999 = nil
	if r.Samples < minTailSamples {
		r.P99 = nil
	}
}

// leastShare is the smallest share of the sides that spin, if any does.
func leastShare(shares []float64) (least float64, ok bool) {
	for _, share := range shares {
		if share >= 0 && (!ok || share < least) {
			least, ok = share, true
		}
	}
	return least, ok
}

// oneLine makes any error fit for one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func ptr(v float64) *float64 { return &v }
