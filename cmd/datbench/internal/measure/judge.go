package measure

import (
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// NewResult returns the empty result of a row.
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
	// CoreShare is the fraction of a core that each spinning side had; negative if the side does not spin.
	CoreShare []float64
	// Lost is the number of frames that were sent and did not arrive. Counted is the number of frames that the link's
	// and the kernel's counters report as dropped.
	Lost, Counted uint64
	// Tally is the target's tally, if the workload has already received it.
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
		checkSamples(r)
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

// spins reports whether each side of the row polls and so needs a core of its own. Some rows need no such core: sha256
// rows, and rows with --churn and --busy, in which the garbage collector and the busy loops use the same core.
func spins(r *result.Result) bool { return r.Metric != result.SHA256 && r.Churn == 0 && r.Busy == 0 }

// checkSamples is called for a latency row with too few samples for a p99.9, and normally invalidates the row. A kernel
// TCP row with packet loss is an exception, because it cannot have more samples: TCP waits 0.2 s for each lost packet.
// Such a row keeps the percentiles for which it has enough samples.
func checkSamples(r *result.Result) {
	if r.Op != result.TCP || r.Impair == "" || r.Samples < minMedianSamples {
		r.Invalidate("%d samples are too few for a p99.9", r.Samples)
		return
	}
	r.P999 = nil
	if r.Samples < MinTailSamples {
		r.P99 = nil
	}
}

// leastShare returns the smallest core share of the sides that spin; ok is false if none spins.
func leastShare(shares []float64) (least float64, ok bool) {
	for _, share := range shares {
		if share >= 0 && (!ok || share < least) {
			least, ok = share, true
		}
	}
	return least, ok
}
