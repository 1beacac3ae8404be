package render

import (
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

const linksNote = `Round trips and messages are sends of 64 B, 1 MiB are writes at MTU 1500 and
9000. "TCP beside it" is kernel TCP at MTU 1500 while an adapter is open at both
ends, "÷ alone" is this figure divided by that of TCP without adapters. A veth
has no zero-copy mode: measure xdp:eth0,zero-copy on two hosts (datbench run).
* or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF`

// Links prints a table of the links of a lab, with the costs of each, at most 80 columns wide.
func Links(w io.Writer, r *result.Report) {
	t := plainTable(w)
	t.AppendHeader(table.Row{"link", "round trip\np50 µs", "messages\nM/s", "1 MiB\nGb/s 1500", "1 MiB\nGb/s 9000", "TCP Gb/s\nbeside it", "÷ alone", "needs"})
	var columns []table.ColumnConfig
	for i := 2; i <= 7; i++ {
		columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	for _, mode := range []string{plan.ModeCopy, plan.ModeGeneric, plan.TransportUDP} {
		t.AppendRow(linkRow(r.Results, mode))
	}
	if tcp := linkResult(r.Results, result.TCP, result.Bandwidth, 1500, ""); tcp != nil {
		t.AppendRow(table.Row{"no adapter", "", "", "", "", figureOf(tcp), "1.00", ""})
	}
	t.Render()
	fmt.Fprintf(w, "\n%s\n%d × %s, kernel %s, %s\n%s\n", r.Env.Link, r.Env.CPUs, r.Env.CPU, r.Env.Kernel, r.Env.Go, linksNote)
	if n := repeats(r.Results); n > 1 {
		fmt.Fprintf(w, "Figures are of %d runs taken together, ratios the medians of each round's.\n", n)
	}
	renderReasons(w, r.Results)
}

// linkRow returns the figures of one link, which is named by its mode.
func linkRow(rows []result.Result, mode string) table.Row {
	name, needs := "xdp, "+mode, "root *"
	if mode == plan.TransportUDP {
		name, needs = mode, "nothing"
	}
	of := func(op, metric string, mtu int) string { return figureOf(linkResult(rows, op, metric, mtu, mode)) }
	ratio := ""
	if shared := linkResult(rows, result.TCPShared, result.Bandwidth, 1500, mode); shared != nil {
		ratio = factorOf(result.FigureRatio(rows, shared, result.TCP))
	}
	return table.Row{name, of(result.Send, result.Latency, 1500), of(result.Send, result.Rate, 1500), of(result.Write, result.Bandwidth, 1500),
		of(result.Write, result.Bandwidth, 9000), of(result.TCPShared, result.Bandwidth, 1500), ratio, needs}
}

// linkResult returns a row of a link; nil if there is none.
func linkResult(rows []result.Result, op, metric string, mtu int, mode string) *result.Result {
	i := slices.IndexFunc(rows, func(r result.Result) bool {
		of := r.AskedMode
		if r.OverUDP() {
			of = plan.TransportUDP
		}
		return r.Op == op && r.Metric == metric && r.MTU == mtu && of == mode
	})
	if i < 0 {
		return nil
	}
	return &rows[i]
}

// figureOf formats the figure of a row in the unit of its metric.
func figureOf(r *result.Result) string {
	switch {
	case r == nil:
		return ""
	case !r.Valid && r.ValidRuns() == 0:
		return "INVALID"
	}
	return group{Row: r.Row}.result(r)
}
