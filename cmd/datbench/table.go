package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Notes on kernel TCP: on any link, and on veth.
const (
	tcpNote     = "Latency and rate of tcp are those of Go's net package, blocking, one call per message."
	tcpVethNote = `TCP on veth moves 64 KiB super-frames that are never cut to the MTU: its bandwidth compares fairly
with the rows at MTU 65000 only.`
)

// group is the rows that may be compared with one another.
type group struct {
	metric string
	mtu    int
	rows   []Result
}

// groups sorts results by metric and MTU, in the order in which a reader asks for them.
func groups(results []Result) []group {
	var out []group
	for _, metric := range []string{metricLatency, metricRate, metricBandwidth, metricSHA256} {
		first := len(out)
		for _, r := range results {
			if r.Metric != metric {
				continue
			}
			i := slices.IndexFunc(out[first:], func(g group) bool { return g.mtu == r.MTU })
			if i < 0 {
				out = append(out, group{metric: metric, mtu: r.MTU})
				i = len(out) - 1 - first
			}
			out[first+i].rows = append(out[first+i].rows, r)
		}
	}
	for _, g := range out {
		slices.SortStableFunc(g.rows, func(a, b Result) int { return rank(a.Op) - rank(b.Op) })
	}
	return out
}

// rank is where an operation stands in its group.
func rank(op string) int {
	return slices.Index([]string{opRaw, opRawAsavie, opSend, opWrite, opRead, opTCP}, op)
}

// find is the group's valid row of one operation.
func (g group) find(op string) *Result {
	for i := range g.rows {
		if g.rows[i].Op == op && g.rows[i].Valid {
			return &g.rows[i]
		}
	}
	return nil
}

// figure is what the group's rows are compared by.
func (g group) figure(r *Result) float64 {
	switch g.metric {
	case metricLatency:
		if r.P50 == nil {
			return 0
		}
		return *r.P50
	case metricRate:
		return r.MsgsPerSec
	}
	return r.Gbps
}

// ratio is a row's figure over that of another operation in its group, as "1.42".
func (g group) ratio(r *Result, op string) string {
	base := g.find(op)
	if base == nil || r.Op == op || !r.Valid || g.figure(base) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", g.figure(r)/g.figure(base))
}

func renderTable(w io.Writer, r *Report) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatDefault
	t.Style().Options.SeparateRows = false
	t.AppendHeader(table.Row{"", "op", "size", "result", "p99", "p99.9", "× raw", "× tcp", "resent", "drops", "mode"})
	t.SetColumnConfigs(columns())
	for _, g := range groups(r.Results) {
		appendGroup(t, g)
	}
	t.Render()
	renderNotes(w, r)
}

func columns() []table.ColumnConfig {
	var out []table.ColumnConfig
	for n := 3; n <= 10; n++ {
		out = append(out, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	return out
}

func appendGroup(t table.Writer, g group) {
	for i := range g.rows {
		title := ""
		switch i {
		case 0:
			title = metricTitle(g.metric) + ", " + unit(g.metric)
		case 1:
			title = mtuTitle(g.mtu)
		}
		t.AppendRow(g.row(title, &g.rows[i]))
	}
	if len(g.rows) == 1 && g.mtu > 0 {
		t.AppendRow(table.Row{mtuTitle(g.mtu)})
	}
	t.AppendSeparator()
}

// unit is that of a group's results.
func unit(metric string) string {
	switch metric {
	case metricLatency:
		return "p50 µs"
	case metricRate:
		return "M/s"
	}
	return "Gb/s"
}

func mtuTitle(mtu int) string {
	if mtu == 0 {
		return ""
	}
	return fmt.Sprintf("MTU %d", mtu)
}

func (g group) row(title string, r *Result) table.Row {
	mode := r.Mode
	if !r.Valid {
		mode = "INVALID"
	}
	return table.Row{title, r.Op, formatSize(r.Size), g.result(r), micros(r.P99), micros(r.P999),
		g.ratio(r, opRaw), g.ratio(r, opTCP), count(r.Retransmits), count(r.Drops), mode}
}

// result is the figure that a row is measured for.
func (g group) result(r *Result) string {
	if r.Samples == 0 {
		return ""
	}
	switch g.metric {
	case metricLatency:
		return micros(r.P50)
	case metricRate:
		return strconv.FormatFloat(r.MsgsPerSec/1e6, 'f', 3, 64)
	}
	return strconv.FormatFloat(r.Gbps, 'f', 2, 64)
}

func micros(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', 1, 64)
}

func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// renderNotes says below the table what the table cannot say.
func renderNotes(w io.Writer, r *Report) {
	fmt.Fprintf(w, "%s; %d × %s, kernel %s, %s\n", r.Env.Link, r.Env.CPUs, r.Env.CPU, r.Env.Kernel, r.Env.Go)
	if slices.ContainsFunc(r.Results, func(res Result) bool { return res.Op == opTCP }) {
		fmt.Fprintln(w, tcpNote)
		if strings.HasPrefix(r.Env.Link, "veth") {
			fmt.Fprintln(w, tcpVethNote)
		}
	}
	for _, res := range r.Results {
		if !res.Valid {
			fmt.Fprintf(w, "INVALID %s %s at MTU %d: %s\n", metricTitle(res.Metric), res.Op, res.MTU, res.Reason)
		}
	}
}
