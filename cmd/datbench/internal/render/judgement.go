package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/cmd/datbench/internal/compare"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Judgements prints the judgements and the verdict, at most 80 columns wide. It returns how many bounds were judged,
// and how many of them do not hold.
func Judgements(w io.Writer, all []compare.Judgement) (judged, broken int) {
	renderJudgements(w, all)
	met := 0
	for i := range all {
		judged += boolToInt(all[i].Judged())
		broken += boolToInt(all[i].Judged() && !all[i].Holds())
		met += boolToInt(all[i].Met())
	}
	renderUnknown(w, all)
	targets := fmt.Sprintf("%d of %d targets are met", met, len(all))
	if broken > 0 {
		fmt.Fprintf(w, "FAIL: %d of %d bounds do not hold; %s.\n", broken, judged, targets)
		return judged, broken
	}
	fmt.Fprintf(w, "PASS: %d of %d bounds hold; %s.\n", judged, judged, targets)
	return judged, broken
}

func boolToInt(is bool) int {
	if is {
		return 1
	}
	return 0
}

// renderUnknown prints why some bounds have no figure.
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
	for _, metric := range plan.RunMetrics {
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

// boundName returns the name of the row: its operation and the first condition that differs from the default row. The
// column has no room for other conditions. An impairment is told without its seed.
func boundName(j *compare.Judgement) string {
	name, _, _ := strings.Cut(j.Label(), ",")
	if j.OverUDP() {
		name += " udp"
	}
	if rates, _, _ := strings.Cut(j.Impair, ",seed="); rates != "" {
		name += " " + rates
	}
	return name
}

// quantity returns which quantity of a row is judged, and what it is divided by.
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

// inUnit formats a ratio, or a figure in the unit of its quantity.
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
