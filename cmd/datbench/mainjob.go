package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/datxdp/datxdp/cmd/datbench/internal/agent"
	"github.com/datxdp/datxdp/cmd/datbench/internal/job"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/cmd/datbench/internal/render"
	"github.com/datxdp/datxdp/cmd/datbench/internal/workload"
	"github.com/datxdp/datxdp/internal/result"
)

// mainJob is a job that the command line started. It prints and writes the results.
type mainJob struct {
	*app
	cfg  *config
	labs func(*plan.Options, plan.Link) [][]plan.Phase
	// show prints the results; nil for render.Report.
	show func(io.Writer, *result.Report)
}

// run runs the job over XDP if this host supports it. Otherwise the job runs over UDP, and the report has the reason.
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
	if out.show = j.show; j.cfg.Full {
		out.show = render.Detailed
	}
	report, err := j.measure(ctx)
	return out.finish(report, err)
}

func (j *mainJob) measure(ctx context.Context) (*result.Report, error) {
	files, err := j.openFiles()
	if err != nil {
		return nil, err
	}
	defer files.Close() // the agent has its own descriptors
	work := &job.Job{
		Options: &j.cfg.Options, Labs: j.labs, Files: files, Pcap: j.cfg.pcap,
		NewObserver: func(steps int) job.Observer {
			return render.NewProgressPrinter(j.stdout, j.stderr, steps, j.cfg.json == "-")
		},
		Warn: func(text string) { fmt.Fprintf(j.stderr, "datbench: %s\n", text) },
	}
	return work.Measure(ctx)
}

// openFiles opens the files that an agent inherits.
func (j *mainJob) openFiles() (files agent.InheritedFiles, err error) {
	if files.Pcap, err = workload.CreatePcap(j.cfg.pcap); err != nil {
		return files, err
	}
	if files.Metrics, err = j.listenMetrics(); err != nil {
		return files, errors.Join(err, files.Close())
	}
	return files, nil
}

// listenMetrics opens the socket on which an agent serves metrics. The socket belongs to the network namespace of this
// process, not of the agent.
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
