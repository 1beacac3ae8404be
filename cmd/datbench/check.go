package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/datxdp/datxdp/internal/compare"
	"github.com/datxdp/datxdp/internal/result"
)

// boundsText is what datbench --full is judged by, unless a file says otherwise.
//
//go:embed bounds.json
var boundsText []byte

func (a *app) checkCommand() *cobra.Command {
	var bounds string
	c := &cobra.Command{
		Use:               "check RESULT.json",
		Short:             "Say whether results keep their bounds beside raw AF_XDP and kernel TCP of the same run",
		Long:              checkHelp,
		Example:           checkExamples,
		Args:              oneFile,
		ValidArgsFunction: jsonFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.check(args[0], bounds) },
	}
	c.Flags().StringVar(&bounds, "bounds", "", "`file` of bounds, instead of those of this program (cmd/datbench/bounds.json)")
	completeFiles(c, "bounds")
	return c
}

const checkHelp = `check judges what datbench --full has measured by ratios, so that hosts of any speed can be told the
same: each quantity of a row over that of raw AF_XDP frames or kernel TCP at the same MTU in the same
run. Of --repeat N it takes the median of the ratios of the rounds, in each of which both rows were
measured seconds apart: what slows the host down for a while slows both. More than half of the rounds
must be valid in both rows.

Bounds are {"bounds": [...]}, each with op, metric, size and mtu of the row, connections and churn_bytes
where it has them, of (p50_us, p99_us, p999_us, msgs_per_s or gbps), over (raw, tcp, ...), target and
bound. Times may be at most, rates must be at least as much. The target is what is aimed at; only the
bound fails a run. Without over the quantity itself is shown beside its target, and never judged.

Exit status: 0 all bounds hold, 1 one does not, or its rows are missing or not valid, 2 the files cannot
be used.`

const checkExamples = `  datbench --full --repeat 5 --json new.json; datbench check new.json    # make perf
  datbench check new.json --bounds my.json`

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return errors.New("check needs one file of datbench --full --json: datbench check RESULT.json")
}

// errBroken ends a check that found a bound that does not hold: exit status 1.
var errBroken = errors.New("do not hold")

func (a *app) check(name, boundsName string) error {
	bounds, err := readBounds(boundsName)
	if err != nil {
		return err
	}
	r, err := result.ReadFile(name)
	if err != nil {
		return err
	}
	if r.Env.Interrupted {
		return fmt.Errorf("%s is of a run that was ended early: measure again", name)
	}
	return a.renderCheck(compare.Judge(r, bounds))
}

// readBounds reads those of a file, or of the program if it has no name.
func readBounds(name string) ([]compare.Bound, error) {
	if name == "" {
		return compare.ParseBounds(boundsText)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--bounds: %w", err)
	}
	bounds, err := compare.ParseBounds(text)
	if err != nil {
		return nil, fmt.Errorf("--bounds: %s: %w", name, err)
	}
	return bounds, nil
}

// renderCheck prints the judgements and the verdict. It fits a terminal of 80 columns.
func (a *app) renderCheck(all []compare.Judgement) error {
	renderJudgements(a.stdout, all)
	judged, broken, met := 0, 0, 0
	for i := range all {
		judged += one(all[i].Judged())
		broken += one(all[i].Judged() && !all[i].Holds())
		met += one(all[i].Met())
	}
	renderUnknown(a.stdout, all)
	targets := fmt.Sprintf("%d of %d targets are met", met, len(all))
	if broken > 0 {
		fmt.Fprintf(a.stdout, "FAIL: %d of %d bounds do not hold; %s.\n", broken, judged, targets)
		return fmt.Errorf("%d of %d bounds %w", broken, judged, errBroken)
	}
	fmt.Fprintf(a.stdout, "PASS: %d of %d bounds hold; %s.\n", judged, judged, targets)
	return nil
}

func one(is bool) int { return int(bit(is)) }

// renderUnknown says why there is no figure for some bounds.
func renderUnknown(w io.Writer, all []compare.Judgement) {
	missing := false
	for i := range all {
		if j := &all[i]; !j.Known() {
			missing = missing || j.Missing != ""
			fmt.Fprintln(w, hanging(fmt.Sprintf("%s %s, %s: %s", verdict(j), j.Title(), quantity(j), j.Missing+j.Invalid)))
		}
	}
	if missing {
		fmt.Fprintln(w, "All rows are there after datbench --full --json FILE, as root and over AF_XDP.")
	}
}

func renderJudgements(w io.Writer, all []compare.Judgement) {
	for _, metric := range runMetrics {
		t := plainTable(w)
		t.SetColumnConfigs(judgementColumns())
		t.AppendHeader(table.Row{"op", "size", "MTU", "figure", "median", "of runs", "target", "", "bound", "verdict"})
		for i := range all {
			if all[i].Metric == metric {
				t.AppendRow(judgementRow(&all[i]))
			}
		}
		if t.Length() > 0 {
			fmt.Fprintln(w, result.MetricTitle(metric))
			t.Render()
			fmt.Fprintln(w)
		}
	}
}

func judgementColumns() (out []table.ColumnConfig) {
	for i, width := range []int{len("send churn"), 6, 5, len("p99.9÷raw"), 6, 11, 6, 3, 5, 7} {
		c := table.ColumnConfig{Number: i + 1, WidthMin: width, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if i == 0 || i == 3 || i == 7 || i == 9 {
			c.Align, c.AlignHeader = text.AlignLeft, text.AlignLeft
		}
		out = append(out, c)
	}
	return out
}

func judgementRow(j *compare.Judgement) table.Row {
	median, runs, met := "", "", ""
	if j.Known() {
		median = inUnit(j, j.Median)
		met = map[bool]string{true: "met", false: "no"}[j.Met()]
		if len(j.Values) > 1 {
			runs = inUnit(j, slices.Min(j.Values)) + "-" + inUnit(j, slices.Max(j.Values))
		}
	}
	limit := ""
	if j.Judged() {
		limit = sign(j) + inUnit(j, j.Limit)
	}
	return table.Row{boundName(j), result.FormatSize(j.Size), j.MTU, quantity(j), median, runs, sign(j) + inUnit(j, j.Target), met, limit, verdict(j)}
}

func verdict(j *compare.Judgement) string {
	switch {
	case j.Missing != "":
		return "MISSING"
	case j.Invalid != "":
		return "INVALID"
	case !j.Judged():
		return "shown"
	case j.Holds():
		return "holds"
	}
	return "FAILS"
}

// boundName is the row's operation and the first condition that tells it from the plain row: the column has no room
// for more.
func boundName(j *compare.Judgement) string {
	name, _, _ := strings.Cut(j.Label(), ",")
	return name
}

// quantity says what is judged of a row, and beside what.
func quantity(j *compare.Judgement) string {
	s := map[result.Quantity]string{result.P50: "p50", result.P99: "p99", result.P999: "p99.9", result.MsgsPerSec: "M/s", result.Gbps: "Gb/s"}[j.Of]
	switch {
	case j.Over != "":
		return s + "÷" + j.Over
	case j.Of.Time():
		return s + " µs"
	}
	return s
}

// inUnit is a ratio, or a figure in the unit of its quantity.
func inUnit(j *compare.Judgement, v float64) string {
	switch {
	case j.Over != "":
		return factor(v)
	case j.Of.Time():
		return brief(&v)
	case j.Of == result.MsgsPerSec:
		v /= 1e6
	}
	return factor(v)
}

func sign(j *compare.Judgement) string {
	if j.Of.Time() {
		return "≤"
	}
	return "≥"
}
