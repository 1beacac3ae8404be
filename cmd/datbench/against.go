package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// measureAgainst measures every row against a server, and again impaired if that is asked for. Ended early, it returns
// what it has with the error.
func measureAgainst(ctx context.Context, h *host, cfg *options, peer netip.Addr, newTell func(steps int) observer) (*result.Report, error) {
	report := &result.Report{Env: result.NewEnv(fmt.Sprintf("%s to %v", cfg.ia, peer))}
	rows, passes := cfg.rows(""), cfg.impair.passes()
	for i := range rows {
		rows[i].Interval = cfg.intervalOf(rows[i])
	}
	left := len(rows) * len(passes) * cfg.repeat
	t := newTell(left)
	defer t.end()
	h.job = rand.Uint64()
	for _, impair := range passes {
		ph := phase{rows: slices.Clone(rows),
			initiator: station{Kind: kindDAT, IA: cfg.ia, Peer: peer, Port: cfg.port, CPUs: cfg.cpus}}
		all, err := measurePass(ctx, h, ph.impaired(impair), cfg.repeat, t, &left)
		if err != nil {
			return partial(report, all), err
		}
		report.Results = append(report.Results, all.pooled()...)
	}
	return finished(report, nil), nil
}

// measurePass measures the rows of a phase, in rounds, and counts down how many are left. The first that cannot be measured ends it: the
// rest would wait for the same absent peer.
func measurePass(ctx context.Context, h *host, ph phase, repeat int, tell observer, left *int) (all runs, err error) {
	i, err := newInitiator(h, ph.initiator)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.close()) }()
	for _, in := range rounds(repeat) {
		all.add(measurePhase(ph, in, tell, func(row Spec) (r result.Result, ok bool) {
			*left--
			row.More = *left > 0
			err = within(row.limit()+h.wait, row.Title(), func() (err error) {
				r, err = i.run(ctx, row)
				return err
			})
			return r, err == nil
		}))
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
