package render

import (
	"io"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/internal/result"
)

// cell is a column of a table: its heading, and a function that returns its text for a row.
type cell struct {
	heading string
	of      func(*result.Result) string
}

// Columns of a group without a comparison.
var (
	aloneSize   = []cell{{"size", func(r *result.Result) string { return result.FormatSize(r.Size) }}}
	aloneSpread = []cell{{"±", spread}}
	aloneLast   = []cell{
		{"resent", func(r *result.Result) string { return count(r.Retransmits) }},
		{"drops", func(r *result.Result) string { return count(r.Drops) }},
		{"mode", func(r *result.Result) string { return modeOf(r) }},
	}
	aloneTimes = []cell{
		{"min µs", func(r *result.Result) string { return brief(r.Min) }},
		{"p50", func(r *result.Result) string { return brief(r.P50) }},
		{"p90", func(r *result.Result) string { return brief(r.P90) }},
		{"p99", func(r *result.Result) string { return brief(r.P99) }},
		{"p99.9", func(r *result.Result) string { return brief(r.P999) }},
		{"p99.99", func(r *result.Result) string { return brief(r.P9999) }},
		{"max", func(r *result.Result) string { return brief(r.Max) }},
	}
	aloneStream = []cell{
		{"M/s", func(r *result.Result) string { return millions(r) }},
		{"Gb/s", func(r *result.Result) string { return decimal(r.Gbps, 3, r.Samples) }},
		{"msg/s", func(r *result.Result) string { return perSecond(r) }},
		{"out", func(r *result.Result) string { return direction(r, true) }},
		{"in", func(r *result.Result) string { return direction(r, false) }},
	}
	aloneRequests = []cell{
		{"M/s", millions},
		{"p50 µs", func(r *result.Result) string { return brief(r.P50) }},
		{"p99", func(r *result.Result) string { return brief(r.P99) }},
		{"p99.9", func(r *result.Result) string { return brief(r.P999) }},
		{"max", func(r *result.Result) string { return brief(r.Max) }},
	}
)

// renderAlone prints a group without a comparison, with all columns that have a value.
func (g group) renderAlone(w io.Writer) {
	middle, runs := aloneStream, aloneSpread
	switch g.Metric {
	case result.Latency:
		middle, runs = aloneTimes, nil
	case result.Requests:
		middle = aloneRequests
	}
	cells := slices.DeleteFunc(slices.Concat([]cell{{"op", g.name}}, aloneSize, middle, untitled(), runs, aloneLast), func(c cell) bool {
		return !slices.ContainsFunc(g.rows, func(r result.Result) bool { return c.of(&r) != "" })
	})
	t := plainTable(w)
	t.SetColumnConfigs(aloneColumns(cells))
	head := table.Row{}
	for _, c := range cells {
		head = append(head, c.heading)
	}
	t.AppendHeader(head)
	for i := range g.rows {
		row := table.Row{}
		for _, c := range cells {
			row = append(row, c.of(&g.rows[i]))
		}
		t.AppendRow(row)
	}
	t.Render()
}

// untitled returns columns for the conditions that no title shows.
func untitled() (cells []cell) {
	for _, c := range result.Columns() {
		if c.Untitled {
			cells = append(cells, cell{c.Heading, c.Of})
		}
	}
	return cells
}

func aloneColumns(cells []cell) (out []table.ColumnConfig) {
	for i, c := range cells {
		col := table.ColumnConfig{Number: i + 1, WidthMin: min(5, 2+len(c.heading)), Align: text.AlignRight, AlignHeader: text.AlignRight}
		if c.heading == "op" || c.heading == "mode" {
			col.Align, col.AlignHeader = text.AlignLeft, text.AlignLeft
		}
		out = append(out, col)
	}
	return out
}

func modeOf(r *result.Result) string {
	if !r.Valid {
		return "INVALID"
	}
	return r.Mode
}

// brief formats a time in µs in at most five columns. Longer times get a larger unit.
func brief(v *float64) string {
	switch {
	case v == nil || *v < 99_999.5:
		return micros(v)
	case *v < 999_500:
		return strconv.FormatFloat(*v/1e3, 'f', 0, 64) + "ms"
	}
	return strconv.FormatFloat(*v/1e6, 'f', 1, 64) + "s"
}

// decimal formats a number; it returns "" if nothing was measured.
func decimal(v float64, digits int, samples int64) string {
	if samples == 0 {
		return ""
	}
	if v >= 10 && digits > 2 {
		digits = 2
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// millions formats the rate of small messages in millions per second; perSecond formats the rate of large messages.
func millions(r *result.Result) string {
	if r.Metric != result.Rate && r.Metric != result.Requests {
		return ""
	}
	return decimal(r.MsgsPerSec/1e6, 3, r.Samples)
}

func perSecond(r *result.Result) string {
	if r.Metric == result.Rate || r.Metric == result.Requests {
		return ""
	}
	return decimal(r.MsgsPerSec, 0, r.Samples)
}

// direction formats one direction of a bidirectional row, in Gb/s.
func direction(r *result.Result, out bool) string {
	switch {
	case r.Bidir == nil:
		return ""
	case out:
		return decimal(r.Bidir.OutGbps, 3, r.Samples)
	}
	return decimal(r.Bidir.InGbps, 3, r.Samples)
}

// spread returns the largest deviation of a run from the row's figure, in percent.
func spread(r *result.Result) string {
	if len(r.Runs) < 2 || r.Figure() == 0 {
		return ""
	}
	far := max(slices.Max(r.Runs)-r.Figure(), r.Figure()-slices.Min(r.Runs))
	return strconv.FormatFloat(100*far/r.Figure(), 'f', 0, 64) + "%"
}
