package measure

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// NewResult returns the result of a row before it is measured.
func NewResult(s plan.Spec) result.Result {
	return result.Result{Row: s.Identity(), Valid: true}
}

// Failed returns the result of a row that could not be measured.
func Failed(row plan.Spec, err error) result.Result {
	r := NewResult(row)
	r.Invalidate("%s", result.OneLine(err.Error()))
	return r
}

// Evidence is the data by which Judge decides whether a row is valid.
type Evidence struct {
	Spec    plan.Spec
	Elapsed time.Duration
	// CoreShare is the part of a core that each spinning side got; negative if it does not spin.
	CoreShare []float64
	// Lost is frames that were sent and did not arrive, counted those of them that a counter of
	// the link or of the kernel accounts for.
	Lost, Counted uint64
	// Tally is the target's, if the workload has asked for it already.
	Tally *Tally
}

// Judge invalidates the row for each rule that the evidence breaks.
func Judge(r *result.Result, e Evidence) {
	if e.Spec.WantMode != "" && r.Mode != e.Spec.WantMode {
		r.Invalidate("asked for mode %s, got %s", e.Spec.WantMode, r.Mode)
	}
	if r.Samples == 0 {
		r.Invalidate("nothing arrived")
	} else if result.Timed(r.Metric) && r.Samples < plan.MinLatencySamples {
		few(r)
	}
	if n := e.Spec.Total(); n > 0 && r.Samples < n {
		r.Invalidate("measured %d of %d operations", r.Samples, n)
	}
	if asked := e.Spec.Duration; e.Spec.Count == 0 && r.Samples > 0 && r.Metric != result.SHA256 && e.Elapsed < time.Duration(minElapsedShare*float64(asked)) {
		r.Invalidate("measured for %s of %s", e.Elapsed.Round(time.Millisecond), asked)
	}
	if least, ok := leastShare(e.CoreShare); ok && least < minCoreShare && spins(r) {
		r.Invalidate("not saturated: a side had %.0f %% of a core, the host is busy with something else", least*100)
	}
	if r.Samples > 0 && e.Lost > e.Counted {
		r.Invalidate("%d frames were lost and no counter tells where", e.Lost-e.Counted)
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
	if r.Samples < MinTailSamples {
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
