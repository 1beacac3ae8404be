package render

import (
	"fmt"
	"io"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/cmd/datbench/internal/compare"
	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Comparison prints a block for each metric, at most 100 columns wide.
func Comparison(w io.Writer, rows []compare.Row) {
	for _, metric := range plan.RunMetrics {
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

// number formats a number; it returns "" for NaN.
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
