package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Job is one run over its own agents. Each element of Labs gets a new pair of agents.
type Job struct {
	Options *plan.Options
	Labs    func(*plan.Options, plan.Link) [][]plan.Phase
	// Files are passed to the agents. Pcap is the name of the capture file among them.
	Files agent.InheritedFiles
	Pcap  string
	// The function NewObserver returns the observer of a job; steps is the number of rows times the number of rounds.
	// The function Warn reports that the job runs over UDP because XDP is unavailable.
	NewObserver func(steps int) Observer
	Warn        func(text string)
}

// Measure runs the job over XDP. If XDP is unavailable and the transport is auto, the job runs over UDP and the report
// has the reason.
func (j *Job) Measure(ctx context.Context) (*result.Report, error) {
	if j.Options.Transport == plan.TransportUDP {
		return j.overUDP(ctx, "")
	}
	report, err := j.overXDP(ctx)
	var cannot *UnavailableError
	if errors.As(err, &cannot) && j.Options.Transport == plan.TransportAuto && ctx.Err() == nil {
		j.Warn(fmt.Sprintf("%s: measuring over UDP between 127.0.0.1 and 127.0.0.2 instead", cannot.why))
		return j.overUDP(ctx, cannot.why)
	}
	return report, err
}

// UnavailableError reports that the job cannot run over XDP on this host. It has the reason and the remedy.
type UnavailableError struct{ why, help string }

func (e *UnavailableError) Error() string { return e.why + ": " + e.help }

var errNoRows = errors.New("nothing to measure: no row has that --op, --metric and --mtu")

// plan returns the phases to measure over a link.
func (j *Job) plan(l plan.Link) ([][]plan.Phase, error) {
	labs := j.Labs(j.Options, l)
	if len(labs) == 0 {
		return nil, errNoRows
	}
	return labs, nil
}

// execute measures the rows of a job in rounds. The rows are in phases. The phases of a lab use the same pair of agents,
// which startPair makes. Each round measures all labs once, so that rows to be compared are
// measured close in time. After an error execute returns the results so far.
func (j *Job) execute(ctx context.Context, l plan.Link, startPair func() (*agent.Pair, error)) (*result.Report, error) {
	if j.Options.Secure {
		remove, err := makeKeys(&l)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	labs, err := j.plan(l)
	if err != nil {
		return nil, err
	}
	obs := j.NewObserver(plan.CountRows(slices.Concat(labs...)) * j.Options.Repeat)
	defer obs.End()
	report, all := &result.Report{Env: result.NewEnv(l.Name)}, plan.Runs{}
	report.Env.Pcap = j.Pcap
	for _, in := range plan.Rounds(j.Options.Repeat) {
		results, err := runLabs(ctx, labs, in, obs, startPair)
		all.Add(results)
		if err != nil {
			return partial(report, all), agent.Interrupted(ctx, err)
		}
	}
	return finished(report, all), nil
}

// runLabs runs one round of all labs.
func runLabs(ctx context.Context, labs [][]plan.Phase, in plan.Round, obs Observer, start func() (*agent.Pair, error)) (results []result.Result, err error) {
	for _, phases := range labs {
		p, err := start()
		if err != nil {
			return results, err
		}
		results = append(results, runPhases(ctx, p, phases, in, obs)...)
		if err := errors.Join(ctx.Err(), p.Close()); err != nil {
			return results, err
		}
	}
	return results, nil
}

// finished fills in the report: the pooled runs of each row, and the ratios to other rows.
func finished(report *result.Report, all plan.Runs) *result.Report {
	report.Results = append(report.Results, all.Pooled()...)
	report.SetRawRatios()
	result.CompareImpaired(report.Results)
	return report
}

// partial fills in the report of an interrupted job. It returns nil if there are no results.
func partial(report *result.Report, all plan.Runs) *result.Report {
	if finished(report, all); len(report.Results) == 0 {
		return nil
	}
	report.Env.Interrupted = true
	return report
}
