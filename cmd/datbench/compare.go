package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/internal/compare"
	"github.com/datxdp/datxdp/internal/result"
)

func (a *app) compareCommand() *cobra.Command {
	percent := -1.0
	c := &cobra.Command{
		Use:               "compare OLD.json NEW.json",
		Short:             "Say what has changed between two sets of results, and whether that can be chance",
		Long:              compareHelp,
		Example:           compareExamples,
		Args:              twoSets,
		ValidArgsFunction: jsonFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("fail-on-regression") && !(percent >= 0 && percent <= 100) {
				return fmt.Errorf("--fail-on-regression: %g is not a percentage from 0 to 100", percent)
			}
			return a.compare(args[0], args[1], percent)
		},
	}
	c.Flags().Float64Var(&percent, "fail-on-regression", percent, "exit with status 1 if a row is worse by more than `PERCENT`, and not by chance")
	c.Flags().Lookup("fail-on-regression").DefValue = "0" // which the help leaves out
	return c
}

const compareHelp = `compare matches rows by operation, metric, size, transport, MTU and all other conditions, and prints the
medians of their runs, old and new, the change, and the probability p that runs differ so much by chance
(Mann-Whitney U test, as benchstat does). A change counts if p is below 0.05.

Runs come from --repeat N. Several files of a side, with commas between, are pooled. A row whose result
is not valid adds its valid runs only.

Exit status: 0 compared, 1 worse than --fail-on-regression allows, 2 it could not be compared.`

const compareExamples = `  datbench --repeat 10 --json old.json; make build; datbench --repeat 10 --json new.json
  datbench compare old.json new.json
  datbench compare old1.json,old2.json new1.json,new2.json --fail-on-regression 5`

func twoSets(_ *cobra.Command, args []string) error {
	if len(args) == 2 {
		return nil
	}
	return errors.New("compare needs two sets of files: datbench compare OLD.json NEW.json, each a file or several with commas between")
}

// errWorse ends a comparison that found what it was told to fail on: exit status 1.
var errWorse = errors.New("worse than --fail-on-regression allows")

func (a *app) compare(before, after string, percent float64) error {
	old, err := readSet(before)
	if err != nil {
		return err
	}
	recent, err := readSet(after)
	if err != nil {
		return err
	}
	rows := compare.Files(old, recent)
	renderComparison(a.stdout, rows)
	if bad := compare.Worsened(rows, percent); percent >= 0 && len(bad) > 0 {
		return fmt.Errorf("%d of %d rows are %w: more than %g %%", len(bad), len(rows), errWorse, percent)
	}
	return nil
}

func readSet(names string) (out []*result.Report, err error) {
	for name := range strings.SplitSeq(names, ",") {
		r, err := result.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// renderComparison prints a block for each metric. It fits a terminal of 100 columns.
func renderComparison(w io.Writer, rows []compare.Row) {
	for _, metric := range runMetrics {
		t := plainTable(w)
		t.AppendHeader(table.Row{"op", "size", "", "MTU", "old " + unit(metric), "new", "change", "p", "runs", "verdict"})
		t.SetColumnConfigs(comparisonColumns())
		for _, r := range rows {
			if r.Metric == metric {
				t.AppendRow(comparisonRow(r))
			}
		}
		if t.Length() > 0 {
			fmt.Fprintln(w, result.MetricTitle(metric))
			t.Render()
			fmt.Fprintln(w)
		}
	}
	if few := compare.Enough(rows); few != "" {
		fmt.Fprintln(w, few+".")
	}
}

func comparisonColumns() (out []table.ColumnConfig) {
	for i, width := range []int{len(result.RawAsavie), 7, 3, 5, 9, 7, 8, 6, 5, 14} {
		c := table.ColumnConfig{Number: i + 1, WidthMin: width, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if i == 0 || i == 2 || i == 9 {
			c.Align, c.AlignHeader = text.AlignLeft, text.AlignLeft
		}
		out = append(out, c)
	}
	return out
}

func comparisonRow(r compare.Row) table.Row {
	return table.Row{r.Label(), result.FormatSize(r.Size), r.Transport, r.MTU, comparisonFigure(r, r.Old), comparisonFigure(r, r.New),
		number("%+.1f%%", r.Delta), number("%.3f", r.P), fmt.Sprintf("%d+%d", r.OldRuns, r.NewRuns), r.Verdict}
}

// number is empty for one that is none.
func number(format string, v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return fmt.Sprintf(format, v)
}

func comparisonFigure(r compare.Row, v float64) string {
	switch {
	case v == 0:
		return ""
	case r.Metric == result.Latency:
		return micros(&v)
	case r.Metric == result.Rate, r.Metric == result.Requests:
		return fmt.Sprintf("%.3f", v/1e6)
	}
	return fmt.Sprintf("%.2f", v)
}
