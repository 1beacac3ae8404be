package main

import (
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// newResult is the row with nothing measured yet.
func newResult(s Spec) result.Result {
	return result.Result{Row: s.identity(), Valid: true}
}

// failed is the row that could not be measured.
func failed(row Spec, err error) result.Result {
	r := newResult(row)
	r.Invalidate("%s", result.OneLine(err.Error()))
	return r
}

// evidence is what shows that a row is a measurement and not an accident.
type evidence struct {
	row     Spec
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
func judge(r *result.Result, e evidence) {
	if e.row.WantMode != "" && r.Mode != e.row.WantMode {
		r.Invalidate("asked for mode %s, got %s", e.row.WantMode, r.Mode)
	}
	if r.Samples == 0 {
		r.Invalidate("nothing arrived")
	} else if result.Timed(r.Metric) && r.Samples < minLatencySamples {
		few(r)
	}
	if n := e.row.total(); n > 0 && r.Samples < n {
		r.Invalidate("measured %d of %d operations", r.Samples, n)
	}
	if asked := e.row.Duration; e.row.Count == 0 && r.Samples > 0 && r.Metric != result.SHA256 && e.elapsed < time.Duration(minElapsedShare*float64(asked)) {
		r.Invalidate("measured for %s of %s", e.elapsed.Round(time.Millisecond), asked)
	}
	if least, ok := leastShare(e.coreShare); ok && least < minCoreShare && spins(r) {
		r.Invalidate("not saturated: a side had %.0f %% of a core, the host is busy with something else", least*100)
	}
	if r.Samples > 0 && e.lost > e.counted {
		r.Invalidate("%d frames were lost and no counter tells where", e.lost-e.counted)
	}
}

// spins is whether a row's sides are to have a core each. Bytes that are compared may come slowly, and
// beside a churned heap a side shares its core with its own collector.
func spins(r *result.Result) bool { return r.Metric != result.SHA256 && r.Churn == 0 }

// few is for a latency of few samples. Kernel TCP waits 0.2 s for a lone packet that was lost, and has
// no more of them in a row that loses packets: what they cannot tell is left out.
func few(r *result.Result) {
	if r.Op != result.TCP || r.Impair == "" || r.Samples < minMedianSamples {
		r.Invalidate("%d samples are too few for a p99.9", r.Samples)
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
