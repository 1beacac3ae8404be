package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/datxdp/datxdp/internal/result"
)

// job is one run over agents of its own. Each element of labs has a pair of them for itself.
type job struct {
	*app
	cfg  *config
	labs func(*config, link) [][]phase
}

// run is the main job: over XDP where this host can, else over UDP, saying why.
func (j *job) run(ctx context.Context) error {
	if err := j.cfg.validate(); err != nil {
		return err
	}
	if err := oneOf("transport", []string{j.cfg.transport}, transports); err != nil {
		return err
	}
	if err := j.cfg.validateFilters(); err != nil {
		return err
	}
	out, err := openOutput(j.cfg.json, j.stdout)
	if err != nil {
		return err
	}
	defer out.close()
	report, err := j.measure(ctx)
	return out.finish(report, err)
}

func (j *job) measure(ctx context.Context) (*result.Report, error) {
	files, err := j.openFiles()
	if err != nil {
		return nil, err
	}
	defer files.close() // the agent holds what it was handed
	if j.cfg.transport == transportUDP {
		return j.overUDP(ctx, files, "")
	}
	report, err := j.overXDP(ctx, files)
	var cannot *cannotError
	if errors.As(err, &cannot) && j.cfg.transport == transportAuto && ctx.Err() == nil {
		fmt.Fprintf(j.stderr, "datbench: %s: measuring over UDP between 127.0.0.1 and 127.0.0.2 instead\n", cannot.why)
		return j.overUDP(ctx, files, cannot.why)
	}
	return report, err
}

// cannotError says why this host cannot run the job over XDP, and what would help.
type cannotError struct{ why, help string }

func (e *cannotError) Error() string { return e.why + ": " + e.help }

// openFiles makes what an agent is handed.
func (j *job) openFiles() (files handed, err error) {
	if files.pcap, err = createPcap(j.cfg.pcap); err != nil {
		return files, err
	}
	if files.metrics, err = j.listenMetrics(); err != nil {
		return files, errors.Join(err, files.close())
	}
	return files, nil
}

// listenMetrics makes the socket that an agent serves metrics on: it stays in this namespace.
func (j *job) listenMetrics() (*os.File, error) {
	if j.cfg.metrics == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", j.cfg.metrics)
	if err != nil {
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	defer l.Close() // File duplicates the socket
	fmt.Fprintf(j.stderr, "datbench: metrics on http://%s/metrics\n", l.Addr())
	return l.(*net.TCPListener).File()
}

var errNoRows = errors.New("nothing to measure: no row has that --op, --metric and --mtu")

// plan is what to measure over a link.
func (j *job) plan(l link) ([][]phase, error) {
	labs := j.labs(j.cfg, l)
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
	tell := j.newTeller(countRows(slices.Concat(labs...))*j.cfg.repeat, j.cfg.json == "-")
	defer tell.end()
	report, all := &result.Report{Env: newEnv(l.name)}, runs{}
	report.Env.Pcap = j.cfg.pcap
	for _, in := range rounds(j.cfg.repeat) {
		results, err := runLabs(ctx, labs, in, tell, start)
		all.add(results)
		if err != nil {
			return partial(report, all), interrupted(ctx, err)
		}
	}
	return finished(report, all), nil
}

// runLabs is one round through the labs.
func runLabs(ctx context.Context, labs [][]phase, in round, tell *teller, start func() (*pair, error)) (results []result.Result, err error) {
	for _, phases := range labs {
		p, err := start()
		if err != nil {
			return results, err
		}
		results = append(results, p.runPhases(ctx, phases, in, tell)...)
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
	compareImpaired(report.Results)
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

// interrupted tells an interrupt from a failure.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

var errInterrupted = errors.New("interrupted; nothing is left behind")
