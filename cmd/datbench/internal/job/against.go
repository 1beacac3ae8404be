package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/ends"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// Against measures every row against a server. If an impairment is configured, it then measures every row again with
// the impairment. After an error it returns the results so far.
func Against(ctx context.Context, h *workload.Host, cfg *plan.Options, peer netip.Addr, newObserver func(steps int) Observer) (*result.Report, error) {
	report := &result.Report{Env: result.NewEnv(fmt.Sprintf("%s to %v", cfg.Adapter(), peer))}
	rows, passes := cfg.Rows(""), cfg.Impair.Passes()
	for i := range rows {
		rows[i].Interval = cfg.IntervalOf(rows[i])
	}
	left := len(rows) * len(passes) * cfg.Repeat
	obs := newObserver(left)
	defer obs.End()
	h.Job = rand.Uint64()
	for _, impair := range passes {
		ph := plan.Phase{Rows: slices.Clone(rows),
			Initiator: plan.Station{Kind: plan.KindDAT, IA: cfg.Adapter(), Peer: peer, PeerKey: cfg.PeerKey, Port: cfg.Port, Qualifier: cfg.Qualifier, CPUs: cfg.CPUs}}
		all, err := measurePass(ctx, h, ph.Impaired(impair), cfg.Repeat, obs, &left)
		if err != nil {
			return partial(report, all), err
		}
		report.Results = append(report.Results, all.Pooled()...)
	}
	return finished(report, nil), nil
}

// runBesideLoops measures a row beside its busy loops on this host. The server starts those on its own host.
func runBesideLoops(ctx context.Context, i ends.Initiator, row plan.Spec) (result.Result, error) {
	stop, err := agent.StartLoops(row.Busy)
	if err != nil {
		return result.Result{}, err
	}
	defer stop()
	return i.Run(ctx, row)
}

// measurePass measures the rows of a phase in rounds. *left is the number of measurements that the job still has to do;
// each measurement reduces it by one. measurePass stops at the first row that cannot be measured, because the other
// rows would wait for the same absent peer.
func measurePass(ctx context.Context, h *workload.Host, ph plan.Phase, repeat int, obs Observer, left *int) (all plan.Runs, err error) {
	i, err := ends.NewInitiator(h, ph.Initiator)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	for _, in := range plan.Rounds(repeat) {
		all.Add(measurePhase(ph, in, obs, func(row plan.Spec) (r result.Result, ok bool) {
			*left--
			row.More = *left > 0
			err = plan.Within(row.Limit()+h.Wait, row.Title(), func() (err error) {
				r, err = runBesideLoops(ctx, i, row)
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
