package ends

import (
	"fmt"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// Allowance is what a target gives to one row: bytes of buffers, and of heap to churn. Buffers are committed as they are
// used, the heap at once.
type Allowance struct{ Buffers, Heap plan.ByteSize }

// FullAllowance is the allowance of the main job's own targets.
var FullAllowance = Allowance{plan.MaxBuffers, plan.ChurnSize}

// DefaultAllowance is the allowance of a server, whoever its clients are.
var DefaultAllowance = Allowance{plan.MaxBuffers, serverHeap}

// permits says what a row asks for beyond the allowance, and how to get it.
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
	return nil
}
