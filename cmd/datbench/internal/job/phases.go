package job

import (
	"context"
	"errors"
	"slices"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/measure"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Observer follows the progress of a job. One goroutine uses it.
type Observer interface {
	// Begin announces a row. Measured reports the result of one round of this row.
	Begin(title string)
	Measured(row plan.Spec, in plan.Round, r *result.Result)
	// End is the last call.
	End()
}

// runPhases measures every row of every phase. The result of a row that cannot be measured contains the reason.
func runPhases(ctx context.Context, p *agent.Pair, phases []plan.Phase, in plan.Round, obs Observer) []result.Result {
	var results []result.Result
	for _, ph := range phases {
		results = append(results, runPhase(ctx, p, ph, in, obs)...)
	}
	return results
}

func runPhase(ctx context.Context, p *agent.Pair, ph plan.Phase, in plan.Round, obs Observer) []result.Result {
	if ctx.Err() != nil {
		return nil
	}
	err := p.OpenPhase(ctx, ph)
	results := measurePhase(ph, in, obs, func(row plan.Spec) (result.Result, bool) {
		if err != nil {
			return measure.Failed(row, err), ctx.Err() == nil
		}
		r := p.RunRow(ctx, row)
		return r, ctx.Err() == nil
	})
	if closeErr := errors.Join(p.ClosePhase(ctx), p.Offloads(ph, true)); closeErr != nil && err == nil && ctx.Err() == nil {
		explain(results, closeErr)
	}
	return results
}

// measurePhase measures each row. It stops at the first row without a result.
func measurePhase(ph plan.Phase, in plan.Round, obs Observer, one func(plan.Spec) (result.Result, bool)) (results []result.Result) {
	for _, row := range ph.Rows {
		obs.Begin(row.Title() + in.Note())
		r, ok := one(row)
		if !ok {
			return results
		}
		obs.Measured(row, in, &r)
		results = append(results, r)
	}
	return results
}

// explain handles err, an error that occurred when the ends were closed. It invalidates the rows that have no
// measurement, with err as the reason. If every row has a measurement, it invalidates all rows, because each
// measurement may be wrong.
func explain(results []result.Result, err error) {
	all := !slices.ContainsFunc(results, unmeasured)
	for i := range results {
		if all || unmeasured(results[i]) {
			results[i].Invalidate("at its end: %s", result.OneLine(err.Error()))
		}
	}
}

func unmeasured(r result.Result) bool { return r.Samples == 0 }
