package ends

import (
	"fmt"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// Allowance limits the memory in bytes that a target provides for one row, and its busy loops. The field Buffers limits
// the buffers for data. The field Heap limits the heap of small objects that a row with --churn replaces continuously.
// The kernel commits the pages of the buffers only when they are used, but it commits the pages of the heap immediately.
type Allowance struct {
	Buffers, Heap plan.ByteSize
	Busy          int
}

// FullAllowance is the allowance of the main job's own targets.
var FullAllowance = Allowance{plan.MaxBuffers, plan.ChurnSize, plan.MaxBusy}

// DefaultAllowance is the allowance of a server, whose clients are not trusted.
var DefaultAllowance = Allowance{plan.MaxBuffers, serverHeap, serverBusy}

// permits returns an error if a row needs more than the allowance. The error says how to reduce the need.
func (a Allowance) permits(r plan.Spec) error {
	n, err := workload.TargetBuffers(r)
	if err != nil {
		return err
	}
	if n > int64(a.Buffers) {
		return fmt.Errorf("%s of buffers is more than the %s of this server: ask for less of --size, --depth or --connections, or start it with --memory",
			result.RoughSize(float64(n)), result.FormatSize(int64(a.Buffers)))
	}
	if r.Churn > int64(a.Heap) {
		return fmt.Errorf("--churn %s is more than the %s of this server: ask for less, or start it with --churn",
			result.FormatSize(r.Churn), result.FormatSize(int64(a.Heap)))
	}
	if r.Busy > a.Busy {
		return fmt.Errorf("--busy %d is more than the %d of this server: ask for less, or start it with --busy", r.Busy, a.Busy)
	}
	return nil
}
