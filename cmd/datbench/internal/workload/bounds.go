package workload

import (
	"fmt"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// CheckBounds returns an error for a row whose queues or buffers exceed a bound.
func CheckBounds(r plan.Spec) error {
	if r.Signal > r.QueueDepth() {
		return fmt.Errorf("--signal %d is more than the depth of %d: no outstanding request would signal its completion", r.Signal, r.QueueDepth())
	}
	if n := r.Window(); n > plan.MaxWindow {
		return fmt.Errorf("depth %d × connections %d is %d outstanding, more than %d: ask for less of one of them",
			r.QueueDepth(), r.ConnectionCount(), n, plan.MaxWindow)
	}
	w, err := workloadFor(r.Op, r.Metric, r.BothWays)
	if err != nil {
		return nil // there is no such workload, hence nothing to bound
	}
	i, t := w.shape(r)
	if n := max(buffers(r, i), buffers(r, t)); n > plan.MaxBuffers {
		return fmt.Errorf("%s × depth %d × connections %d needs %s of buffers, more than %s: ask for less of one of them",
			result.FormatSize(r.Size), r.QueueDepth(), r.ConnectionCount(), result.RoughSize(float64(n)), result.FormatSize(plan.MaxBuffers))
	}
	return nil
}

// buffers returns the bytes of buffers that a side with this shape needs.
func buffers(r plan.Spec, sh shape) int64 { return sh.bytes(int(r.Size), r.ConnectionCount()) }

// TargetBuffers returns the bytes of buffers that a row needs at its target.
func TargetBuffers(r plan.Spec) (int64, error) {
	w, err := workloadFor(r.Op, r.Metric, r.BothWays)
	if err != nil {
		return 0, err
	}
	_, sh := w.shape(r)
	return buffers(r, sh), nil
}
