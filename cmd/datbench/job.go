package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// job is one run over agents of its own. Each element of labs has a pair of them for itself.
type job struct {
	options *options
	labs    func(*options, link) [][]phase
	// files are what the agents are handed, pcap is the name of the capture among them.
	files handed
	pcap  string
	// tell makes the observer of so many rows, each round counted; warn tells of what is not as it was meant.
	tell func(steps int) observer
	warn func(text string)
}

// measure runs the job over XDP where this host can, else over UDP, and tells why.
func (j *job) measure(ctx context.Context) (*result.Report, error) {
	if j.options.transport == transportUDP {
		return j.overUDP(ctx, "")
	}
	report, err := j.overXDP(ctx)
	var cannot *cannotError
	if errors.As(err, &cannot) && j.options.transport == transportAuto && ctx.Err() == nil {
		j.warn(fmt.Sprintf("%s: measuring over UDP between 127.0.0.1 and 127.0.0.2 instead", cannot.why))
		return j.overUDP(ctx, cannot.why)
	}
	return report, err
}

// cannotError says why this host cannot run the job over XDP, and what would help.
type cannotError struct{ why, help string }

func (e *cannotError) Error() string { return e.why + ": " + e.help }

var errNoRows = errors.New("nothing to measure: no row has that --op, --metric and --mtu")

// plan is what to measure over a link.
func (j *job) plan(l link) ([][]phase, error) {
	labs := j.labs(j.options, l)
	if len(labs) == 0 {
		return nil, errNoRows
	}
	return labs, nil
}

// execute runs each lab's phases over a pair of its own and reports. Rounds go through all of them, so that
// what is compared is measured at one time. Ended early, it returns what it has with the error.
func (j *job) execute(ctx context.Context, l link, start func() (*pair, error)) (*result.Report, error) {
	labs, err := j.plan(l)
	if err != nil {
		return nil, err
	}
	tell := j.tell(countRows(slices.Concat(labs...)) * j.options.repeat)
	defer tell.end()
	report, all := &result.Report{Env: result.NewEnv(l.name)}, runs{}
	report.Env.Pcap = j.pcap
	for _, in := range rounds(j.options.repeat) {
		results, err := runLabs(ctx, labs, in, tell, start)
		all.add(results)
		if err != nil {
			return partial(report, all), interrupted(ctx, err)
		}
	}
	return finished(report, all), nil
}

// runLabs is one round through the labs.
func runLabs(ctx context.Context, labs [][]phase, in round, tell observer, start func() (*pair, error)) (results []result.Result, err error) {
	for _, phases := range labs {
		p, err := start()
		if err != nil {
			return results, err
		}
		results = append(results, runPhases(ctx, p, phases, in, tell)...)
		if err := errors.Join(ctx.Err(), p.close()); err != nil {
			return results, err
		}
	}
	return results, nil
}

// finished is the report of a job that has made its runs: each row of all of them, beside others.
func finished(report *result.Report, all runs) *result.Report {
	report.Results = append(report.Results, all.pooled()...)
	report.SetRawRatios()
	result.CompareImpaired(report.Results)
	return report
}

// partial is what a job that was ended has so far, nil if that is nothing.
func partial(report *result.Report, all runs) *result.Report {
	if finished(report, all); len(report.Results) == 0 {
		return nil
	}
	report.Env.Interrupted = true
	return report
}
