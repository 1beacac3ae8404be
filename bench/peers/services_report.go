package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/internal/result"
)

// serviceReport is the content of the JSON file of the command services.
type serviceReport struct {
	Env      result.Env `json:"env"`
	Rounds   int        `json:"rounds"`
	Duration string     `json:"duration"`
	Realtime bool       `json:"realtime"`
	Cells    []*cell    `json:"cells"`
}

func newServiceReport(cfg *servicesConfig, cells []*cell) *serviceReport {
	env := result.NewEnv("")
	env.Command = "bench/peers.sh " + strings.Join(os.Args[1:], " ")
	return &serviceReport{env, cfg.rounds, cfg.duration.String(), cfg.realtime, cells}
}

// of returns one figure of every sample.
func of(samples []sample, get func(sample) float64) (out []float64) {
	for _, s := range samples {
		out = append(out, get(s))
	}
	return out
}

func p50(s sample) float64 { return s.P50 }
func p99(s sample) float64 { return s.P99 }
func cpu(s sample) float64 { return s.CPU }

// ratios returns ours divided by TCP's, for each round.
func (c *cell) ratios(get func(sample) float64) (out []float64) {
	for i := range c.TCP {
		out = append(out, get(c.XDP[i])/get(c.TCP[i]))
	}
	return out
}

// aboveFloor returns, for each round, what the p50 of ours is above the floor, divided by what that of TCP is above it.
func (c *cell) aboveFloor() (out []float64) {
	for i := range c.TCP {
		out = append(out, (c.XDP[i].P50-c.Floor[i].P50)/(c.TCP[i].P50-c.Floor[i].P50))
	}
	return out
}

// target returns what the targets of the cell are, and whether they are met.
func (c *cell) target() string {
	verdict := func(what string, limit, got float64) string {
		if got <= limit {
			return fmt.Sprintf("%s ≤ %g: met", what, limit)
		}
		return fmt.Sprintf("%s ≤ %g: missed", what, limit)
	}
	switch s := c.service; {
	case len(c.TCP) == 0:
		return ""
	case c.Loss == 0 && s.aboveFloor > 0:
		return verdict("above floor", s.aboveFloor, median(c.aboveFloor()))
	case c.Loss == 1 && s.tail > 0:
		return verdict("p99", s.tail, median(c.ratios(p99)))
	}
	return ""
}

// table returns the table of all cells. A figure is the median of the rounds; behind that of TCP, whose p50 has several
// modes, are its smallest and its largest.
func (r *serviceReport) table() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	s := t.Style()
	s.Format.Header = text.FormatDefault
	s.Options = table.Options{SeparateHeader: true}
	t.SuppressTrailingSpaces()
	t.AppendHeader(table.Row{"service", "loss", "floor p50", "TCP p50 (range)", "p99", "CPU", "ours p50", "p99", "CPU",
		"p50 ÷ TCP's", "above floor ÷ TCP's", "p99 ÷ TCP's", "CPU ÷ TCP's", "target"})
	for _, c := range r.Cells {
		row := table.Row{c.Service, fmt.Sprintf("%g %%", c.Loss)}
		if len(c.TCP) == 0 {
			t.AppendRow(append(row, "(!)"))
			continue
		}
		tcp := of(c.TCP, p50)
		us := func(samples []sample, get func(sample) float64) string {
			return fmt.Sprintf("%.0f", median(of(samples, get)))
		}
		ratio := func(values []float64) string { return fmt.Sprintf("%.2f", median(values)) }
		floor, above := us(c.Floor, p50), ratio(c.aboveFloor())
		if !c.service.floor {
			floor, above = "–", "–"
		}
		t.AppendRow(append(row, floor,
			fmt.Sprintf("%.0f (%.0f–%.0f)", median(tcp), slices.Min(tcp), slices.Max(tcp)), us(c.TCP, p99), us(c.TCP, cpu),
			us(c.XDP, p50), us(c.XDP, p99), us(c.XDP, cpu),
			ratio(c.ratios(p50)), above, ratio(c.ratios(p99)), ratio(c.ratios(cpu)), c.target()))
	}
	return t
}

// write writes the files that were asked for.
func (r *serviceReport) write(cfg *servicesConfig) error {
	var errs []error
	if cfg.json != "" {
		out, err := json.MarshalIndent(r, "", "  ")
		errs = append(errs, err, os.WriteFile(cfg.json, append(out, '\n'), 0o644))
	}
	if cfg.markdown != "" {
		errs = append(errs, os.WriteFile(cfg.markdown, []byte(r.table().RenderMarkdown()+"\n"), 0o644))
	}
	return errors.Join(errs...)
}

// verdict returns nil if every run has figures.
func (r *serviceReport) verdict() error {
	var errs []error
	for _, c := range r.Cells {
		if len(c.Faults) > 0 {
			errs = append(errs, fmt.Errorf("%s at %g %% loss, %d of %d rounds: %s", c.Service, c.Loss, len(c.Faults), r.Rounds, c.Faults[0]))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", errInvalid, errors.Join(errs...))
}
