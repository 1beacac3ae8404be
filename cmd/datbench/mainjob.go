package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/job"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// mainJob is a job of the command line: what it measures is shown and written.
type mainJob struct {
	*app
	cfg  *config
	labs func(*plan.Options, plan.Link) [][]plan.Phase
}

// run is the main job: over XDP where this host can, else over UDP, saying why.
func (j *mainJob) run(ctx context.Context) error {
	if err := j.cfg.Validate(); err != nil {
		return err
	}
	if err := plan.OneOf("transport", []string{j.cfg.Transport}, plan.Transports); err != nil {
		return err
	}
	if err := j.cfg.ValidateFilters(); err != nil {
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

func (j *mainJob) measure(ctx context.Context) (*result.Report, error) {
	files, err := j.openFiles()
	if err != nil {
		return nil, err
	}
	defer files.Close() // the agent holds what it was handed
	work := &job.Job{
		Options: &j.cfg.Options, Labs: j.labs, Files: files, Pcap: j.cfg.pcap,
		Tell: func(steps int) job.Observer { return render.NewTeller(j.stdout, j.stderr, steps, j.cfg.json == "-") },
		Warn: func(text string) { fmt.Fprintf(j.stderr, "datbench: %s\n", text) },
	}
	return work.Measure(ctx)
}

// openFiles makes what an agent is handed.
func (j *mainJob) openFiles() (files agent.Handed, err error) {
	if files.Pcap, err = workload.CreatePcap(j.cfg.pcap); err != nil {
		return files, err
	}
	if files.Metrics, err = j.listenMetrics(); err != nil {
		return files, errors.Join(err, files.Close())
	}
	return files, nil
}

// listenMetrics makes the socket that an agent serves metrics on: it stays in this namespace.
func (j *mainJob) listenMetrics() (*os.File, error) {
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
