package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/datxdp/datxdp/internal/progressbar"
)

// compare measures everything and prints the report.
func compare(ctx context.Context, cfg *config, stdout, stderr io.Writer) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root, for network namespaces and AF_XDP")
	}
	rows := plan(cfg, os.Args[0])
	if len(rows) == 0 {
		return errors.New("nothing to measure: no row has that --peer and --metric")
	}
	for _, f := range cfg.files() {
		if err := f.try(); err != nil {
			return err
		}
	}
	r := &runner{cfg: cfg, rows: rows, pr: progressbar.New(stderr, cfg.repeat*steps(rows))}
	ended := r.run(ctx)
	r.pr.End()
	r.env.Command = strings.Join(append([]string{"bench/peers.sh"}, os.Args[1:]...), " ")
	r.env.Interrupted = ended != nil
	report := newReport(cfg, rows, r.env)
	report.print(stdout)
	for _, f := range cfg.files() {
		if err := f.write(report); err != nil {
			return err
		}
	}
	return cmp.Or(ended, report.verdict())
}

// file is a file for the report, in addition to standard output.
type file struct {
	flag, name string
	text       func(*Report) ([]byte, error)
}

func (c *config) files() (out []file) {
	for _, f := range []file{
		{"markdown", c.markdown, func(r *Report) ([]byte, error) { return r.markdown(), nil }},
		{"json", c.json, (*Report).JSON},
	} {
		if f.name != "" {
			out = append(out, f)
		}
	}
	return out
}

// try opens the file before the measurement, so that a wrong name fails early. It does not change an existing file.
func (f file) try() error {
	o, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err == nil {
		err = o.Close()
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", f.flag, err)
	}
	return nil
}

func (f file) write(r *Report) error {
	text, err := f.text(r)
	if err == nil {
		err = os.WriteFile(f.name, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", f.flag, err)
	}
	return nil
}
