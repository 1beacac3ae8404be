package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// pair is two agents and what lies between them.
type pair struct {
	target, initiator *remote
	// setMTU is nil where there is nothing to set.
	setMTU      func(mtu int) error
	setOffloads func(on bool) error
	// close ends both agents and takes the link away.
	close func() error
}

// runPhases measures every row of every phase. A row that cannot be measured is a result too: it
// says why.
func (p *pair) runPhases(ctx context.Context, phases []phase, in round, tell *teller) []result.Result {
	var results []result.Result
	for _, ph := range phases {
		results = append(results, p.runPhase(ctx, ph, in, tell)...)
	}
	return results
}

func (p *pair) runPhase(ctx context.Context, ph phase, in round, tell *teller) []result.Result {
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
func measurePhase(ph phase, in round, tell *teller, one func(Spec) (result.Result, bool)) (results []result.Result) {
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
			results[i].Invalidate("at its end: %s", oneLine(err.Error()))
		}
	}
}

func unmeasured(r result.Result) bool { return r.Samples == 0 }

func (p *pair) openPhase(ctx context.Context, ph phase) error {
	if ph.mtu != 0 && p.setMTU != nil {
		if err := within(openLimit, "setting the MTU of the link", func() error { return p.setMTU(ph.mtu) }); err != nil {
			return err
		}
	}
	if err := p.offloads(ph, false); err != nil {
		return err
	}
	if _, err := p.target.call(ctx, command{Do: doServe, Station: &ph.target}); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if _, err := p.initiator.call(ctx, command{Do: doOpen, Station: &ph.initiator}); err != nil {
		return fmt.Errorf("initiator: %w", err)
	}
	return nil
}

// offloads switches them for a plain phase, where there is something to switch.
func (p *pair) offloads(ph phase, on bool) error {
	if !ph.plain || p.setOffloads == nil {
		return nil
	}
	return within(openLimit, "switching the offloads of the link", func() error { return p.setOffloads(on) })
}

func (p *pair) runRow(ctx context.Context, row Spec) result.Result {
	r, err := p.initiator.call(ctx, command{Do: doRun, Spec: &row})
	if err != nil {
		return failed(row, err)
	}
	return *r
}

// closePhase closes what is open at either end, also after a failure.
func (p *pair) closePhase(ctx context.Context) error {
	_, err := p.initiator.call(ctx, command{Do: doClose})
	if _, stopErr := p.target.call(ctx, command{Do: doStop}); err == nil {
		err = stopErr
	}
	return err
}
