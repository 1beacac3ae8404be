package job

import (
	"testing"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// TestEndedEarly: an interrupted job has a report with the rows that it has measured, marked as incomplete. If the job
// has not measured any row yet, it has no report.
func TestEndedEarly(t *testing.T) {
	if r := partial(&result.Report{}, nil); r != nil {
		t.Errorf("of nothing: %+v", r)
	}
	r := partial(&result.Report{}, plan.Runs{{{Row: result.Row{Op: result.Send, Metric: result.Rate}, Valid: true}}})
	if r == nil || !r.Env.Interrupted || len(r.Results) != 1 {
		t.Errorf("of one row: %+v", r)
	}
}
