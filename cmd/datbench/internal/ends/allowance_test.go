package ends

import (
	"testing"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// TestAllowance: a server grants less to a row if its user requests that.
func TestAllowance(t *testing.T) {
	row := plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 1 << 20, Depth: 8, Churn: 1 << 30, Busy: 17}}
	for want, a := range map[string]Allowance{
		"10.0 MiB of buffers is more than the 1 MiB of this server: ask for less of --size, --depth or --connections, or start it with --memory": {1 << 20, plan.ChurnSize, plan.MaxBusy},
		"--churn 1 GiB is more than the 64 MiB of this server: ask for less, or start it with --churn":                                           {plan.MaxBuffers, serverHeap, plan.MaxBusy},
		"--busy 17 is more than the 16 of this server: ask for less, or start it with --busy":                                                    {plan.MaxBuffers, plan.ChurnSize, serverBusy},
		"": FullAllowance,
	} {
		if err := a.permits(row); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%+v: got %v, want %q", a, err, want)
		}
	}
}
