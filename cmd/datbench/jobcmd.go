package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/datxdp/datxdp/internal/result"
)

// mainJob is a job of the command line: what it measures is shown and written.
type mainJob struct {
	*app
	cfg  *config
	labs func(*options, link) [][]phase
}

// run is the main job: over XDP where this host can, else over UDP, saying why.
func (j *mainJob) run(ctx context.Context) error {
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

func (j *mainJob) measure(ctx context.Context) (*result.Report, error) {
	files, err := j.openFiles()
	if err != nil {
		return nil, err
	}
	defer files.close() // the agent holds what it was handed
	work := &job{
		options: &j.cfg.options, labs: j.labs, files: files, pcap: j.cfg.pcap,
		tell: func(steps int) observer { return newTeller(j.stdout, j.stderr, steps, j.cfg.json == "-") },
		warn: func(text string) { fmt.Fprintf(j.stderr, "datbench: %s\n", text) },
	}
	return work.measure(ctx)
}

// openFiles makes what an agent is handed.
func (j *mainJob) openFiles() (files handed, err error) {
	if files.pcap, err = createPcap(j.cfg.pcap); err != nil {
		return files, err
	}
	if files.metrics, err = j.listenMetrics(); err != nil {
		return files, errors.Join(err, files.close())
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
