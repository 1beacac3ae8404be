package main

import (
	"context"
	"errors"
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// observer is told how far a job is. One goroutine uses it.
type observer interface {
	// begin announces a row, measured says what a round of it has measured.
	begin(title string)
	measured(row Spec, in round, r *result.Result)
	// end comes last.
	end()
}

// runPhases measures every row of every phase. A row that cannot be measured is a result too: it
// says why.
func runPhases(ctx context.Context, p *pair, phases []phase, in round, tell observer) []result.Result {
	var results []result.Result
	for _, ph := range phases {
		results = append(results, runPhase(ctx, p, ph, in, tell)...)
	}
	return results
}

func runPhase(ctx context.Context, p *pair, ph phase, in round, tell observer) []result.Result {
	if ctx.Err() != nil {
		return nil
	}
	err := p.openPhase(ctx, ph)
	results := measurePhase(ph, in, tell, func(row Spec) (result.Result, bool) {
		if err != nil {
			return failed(row, err), ctx.Err() == nil
		}
		r := p.runRow(ctx, row)
		return r, ctx.Err() == nil
	})
	if closeErr := errors.Join(p.closePhase(ctx), p.offloads(ph, true)); closeErr != nil && err == nil && ctx.Err() == nil {
		explain(results, closeErr)
	}
	return results
}

// measurePhase measures each row. When one says that it has no result, the rest is left out.
func measurePhase(ph phase, in round, tell observer, one func(Spec) (result.Result, bool)) (results []result.Result) {
	for _, row := range ph.rows {
		tell.begin(row.Title() + in.note())
		r, ok := one(row)
		if !ok {
			return results
		}
		tell.measured(row, in, &r)
		results = append(results, r)
	}
	return results
}

// explain adds what the ends said when they were closed to the rows that have no measurement. If
// all have one, they all ended badly.
func explain(results []result.Result, err error) {
	all := !slices.ContainsFunc(results, unmeasured)
	for i := range results {
		if all || unmeasured(results[i]) {
			results[i].Invalidate("at its end: %s", result.OneLine(err.Error()))
		}
	}
}

func unmeasured(r result.Result) bool { return r.Samples == 0 }
