package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Notes below the table on kernel TCP: on any link, on veth, and without offloads.
const (
	tcpNote = `Latency and rate of tcp are those of Go's net package, blocking, one call per
message. They depend on where the scheduler puts its threads.`
	tcpVethNote = `TCP on veth moves 64 KiB super-frames that are never cut to the MTU: its
bandwidth compares fairly with the rows at MTU 65000 only.`
	secureNote   = `Rows named +aes are in secure mode: each packet is authenticated and encrypted.`
	udpNote      = `Rows named udp are over kernel UDP, with no XDP program on the interfaces.`
	tcpPlainNote = `TCP runs without TSO, GSO, GRO and checksum offload here; where the rows are
impaired its sockets lose as many of their packets.`
)

func vethNote(r *result.Report) string {
	if slices.ContainsFunc(r.Results, func(res result.Result) bool { return res.Op == result.TCP && res.Impair != "" }) {
		return tcpPlainNote
	}
	return tcpVethNote
}

// group is the set of rows that may be compared with one another.
type group struct {
	result.Row // conditions that all its rows have in common
	rows       []result.Result
	// all holds all rows of the report, because a row may be compared with one of another group.
	all []result.Result
	// mixed means that the report has rows over XDP and over kernel UDP, so that names of rows must tell which.
	mixed bool
}

// mixed reports whether a report has DAT rows over XDP and over kernel UDP.
func mixed(rows []result.Result) bool {
	udp := slices.ContainsFunc(rows, func(r result.Result) bool { return r.OverUDP() })
	return udp && slices.ContainsFunc(rows, func(r result.Result) bool { return !r.OverUDP() && !r.Baseline() })
}

// name returns the name of a row in the table: the operation, the connections if there are several, aes in secure mode,
// and udp if there are also rows over XDP.
func (g group) name(r *result.Result) string {
	name := r.Name()
	if r.Secure {
		name += "+aes"
	}
	if g.mixed && r.OverUDP() {
		name += " udp"
	}
	return name
}

// place returns the part of the identity that all rows of a table share. Rows in secure mode stand beside the others.
func place(r result.Row) result.Row {
	p := r.Place()
	p.Secure = false
	return p
}

// groups sorts results by metric and MTU.
func groups(results []result.Result) []group {
	var out []group
	for _, metric := range plan.RunMetrics {
		first := len(out)
		for _, r := range results {
			if r.Metric != metric {
				continue
			}
			i := slices.IndexFunc(out[first:], func(g group) bool { return g.Row == place(r.Row) })
			if i < 0 {
				out = append(out, group{Row: place(r.Row), all: results, mixed: mixed(results)})
				i = len(out) - 1 - first
			}
			out[first+i].rows = append(out[first+i].rows, r)
		}
	}
	for _, g := range out {
		slices.SortStableFunc(g.rows, func(a, b result.Result) int { return result.Rank(a.Op) - result.Rank(b.Op) })
	}
	return out
}

// ratio returns a row's figure over that of another operation under the same conditions, as "1.42".
func (g group) ratio(r *result.Result, op string) string {
	return factorOf(result.FigureRatio(g.all, r, op))
}

func factorOf(v *float64) string {
	if v == nil {
		return ""
	}
	return factor(*v)
}

// factor formats a ratio, in at most five columns if it is below 100 000.
func factor(v float64) string {
	if v >= 99.995 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Report prints a block for each group, at most 80 columns wide.
func Report(w io.Writer, r *result.Report) { report(w, r, false) }

// Detailed prints what Report prints, and for every group what kept its threads from a core.
func Detailed(w io.Writer, r *result.Report) { report(w, r, true) }

func report(w io.Writer, r *result.Report, detailed bool) {
	alone := !slices.ContainsFunc(r.Results, compared)
	for _, g := range groups(r.Results) {
		fmt.Fprintln(w, g.title())
		if alone {
			g.renderAlone(w)
		} else {
			g.renderCompared(w)
		}
		if line := g.threadsLine(); line != "" && (detailed || g.besideLoops()) {
			fmt.Fprintln(w, hanging(line))
		}
		fmt.Fprintln(w)
	}
	renderNotes(w, r)
}

// compared reports whether a row is a baseline or is compared with one.
func compared(r result.Result) bool {
	return r.Baseline() || r.Impair != ""
}

func (g group) renderCompared(w io.Writer) {
	t := plainTable(w)
	t.SetColumnConfigs(columns())
	t.AppendHeader(g.header())
	for i := range g.rows {
		t.AppendRow(g.row(&g.rows[i]))
	}
	t.Render()
	if line := g.tcpSpread(); line != "" {
		fmt.Fprintln(w, hanging(line))
	}
}

// tcpSpread returns a line with the spread of the kernel TCP figures, and of the ratios to them. The line is empty if
// the table has no ratio to kernel TCP, or if the spread is unknown.
func (g group) tcpSpread() string {
	var ratios []string
	for i := range g.rows {
		r := &g.rows[i]
		if s, ok := result.RatioSpread(g.all, r, result.TCP); ok {
			ratios = append(ratios, fmt.Sprintf("%s %s to %s", g.name(r), factor(s.Low), factor(s.High)))
		}
	}
	i := slices.IndexFunc(g.rows, func(r result.Result) bool { return r.Op == result.TCP })
	if len(ratios) == 0 || i < 0 {
		return ""
	}
	tcp := &g.rows[i]
	s, ok := tcp.Spread()
	if !ok {
		return ""
	}
	span := fmt.Sprintf("%s to %s %s", g.figure(s.Low), g.figure(s.High), unit(g.Metric))
	if g.Metric == result.Latency {
		span = fmt.Sprintf("p50 %s to %s µs", g.figure(s.Low), g.figure(s.High))
	}
	return fmt.Sprintf("tcp: %s in %s; × tcp: %s", span, partsOf(tcp), strings.Join(ratios, ", "))
}

// partsOf returns what the spread of a row is calculated over: "runs" or "connections".
func partsOf(r *result.Result) string {
	if len(r.Runs) > 0 {
		return fmt.Sprintf("%d runs", len(r.Runs))
	}
	return fmt.Sprintf("%d connections", len(r.Parts))
}

// plainTable returns a table with a line below its header and no others.
func plainTable(w io.Writer) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	s := t.Style()
	s.Format.Header = text.FormatDefault
	s.Box.PaddingLeft, s.Box.PaddingRight = "", " "
	s.Options = table.Options{SeparateHeader: true}
	t.SuppressTrailingSpaces()
	return t
}

// columns returns column widths. They are equal in all groups, so that the groups are aligned.
func columns() (out []table.ColumnConfig) {
	for i, width := range []int{len(result.RawAsavie), len("65014 B"), 6, 5, 5, 5, 5, 5, 6, 6, len("zero-copy")} {
		c := table.ColumnConfig{Number: i + 1, WidthMin: width, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if i == 0 || width == len("zero-copy") {
			c.Align, c.AlignHeader = text.AlignLeft, text.AlignLeft
		}
		out = append(out, c)
	}
	return out
}

// title returns the heading of the group: metric and conditions.
func (g group) title() string { return result.MetricTitle(g.Metric) + g.Conditions() }

func (g group) header() table.Row {
	times, p99 := [2]string{}, ""
	switch g.Metric {
	case result.Latency:
		times = [2]string{"p99", "p99.9"}
		if g.Impair == "" {
			p99 = "(p99)"
		}
	case result.Requests:
		times = [2]string{"p50µs", "p99"}
	}
	return table.Row{"op", "size", unit(g.Metric), times[0], times[1], g.comparisonHeading(), p99, "× tcp", "resent", "drops", "mode"}
}

// times returns the percentiles beside a row's figure.
func (g group) times(r *result.Result) (a, b string) {
	if g.Metric == result.Requests {
		return brief(r.P50), brief(r.P99)
	}
	return brief(r.P99), brief(r.P999)
}

// comparisonHeading returns the heading of the comparison column. Rows with an impairment are compared with the same
// rows without the impairment: latencies by the 99th percentile (× p99), other metrics by the part that is kept. All
// other rows are compared with raw frames.
func (g group) comparisonHeading() string {
	switch {
	case g.Impair == "":
		return "× raw"
	case g.Metric == result.Latency:
		return "× p99"
	}
	return "kept"
}

// comparison returns the text of the comparison column.
func (g group) comparison(r *result.Result) string {
	switch {
	case g.Impair == "":
		return g.ratio(r, result.Raw)
	case r.P99Ratio != nil:
		return factor(*r.P99Ratio)
	case r.Kept != nil:
		return fmt.Sprintf("%.1f%%", *r.Kept)
	}
	return ""
}

// unit returns the unit of a metric.
func unit(metric string) string {
	switch metric {
	case result.Latency:
		return "p50 µs"
	case result.Rate, result.Requests:
		return "M/s"
	}
	return "Gb/s"
}

func (g group) row(r *result.Result) table.Row {
	mode := r.Mode
	if !r.Valid {
		mode = "INVALID"
	}
	a, b := g.times(r)
	return table.Row{g.name(r), result.FormatSize(r.Size), g.result(r), a, b, g.comparison(r), factorOf(r.RawP99Ratio),
		g.ratio(r, result.TCP), count(r.Retransmits), count(r.Drops), mode}
}

// result formats the figure that a row is measured for.
func (g group) result(r *result.Result) string {
	if r.Samples == 0 {
		return ""
	}
	if g.Metric == result.Latency {
		return micros(r.P50)
	}
	return g.figure(r.Figure())
}

// figure formats a value of the row's metric, in the group's unit.
func (g group) figure(v float64) string {
	switch g.Metric {
	case result.Latency:
		return micros(&v)
	case result.Rate, result.Requests:
		return strconv.FormatFloat(v/1e6, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func micros(v *float64) string {
	if v == nil {
		return ""
	}
	if *v >= 1000 {
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	return strconv.FormatFloat(*v, 'f', 1, 64)
}

func count(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// renderNotes prints notes below the table.
func renderNotes(w io.Writer, r *result.Report) {
	fmt.Fprintf(w, "%s\n%d × %s, kernel %s, %s\n", r.Env.Link, r.Env.CPUs, r.Env.CPU, r.Env.Kernel, r.Env.Go)
	has := func(op string) bool {
		return slices.ContainsFunc(r.Results, func(res result.Result) bool { return res.Op == op })
	}
	for _, o := range result.Operations {
		if o.Note != "" && has(o.Name) {
			fmt.Fprintln(w, o.Note)
		}
	}
	if slices.ContainsFunc(r.Results, func(res result.Result) bool { return res.Secure }) {
		fmt.Fprintln(w, secureNote)
	}
	if mixed(r.Results) {
		fmt.Fprintln(w, udpNote)
	}
	if has(result.TCP) {
		fmt.Fprintln(w, tcpNote)
		if strings.HasPrefix(r.Env.Link, "veth") {
			fmt.Fprintln(w, vethNote(r))
		}
	}
	if r.Env.Interrupted {
		fmt.Fprintln(w, "Ended early: rows that were asked for are missing.")
	}
	if n := repeats(r.Results); n > 1 {
		fmt.Fprintf(w, "Rows are %d runs taken together, ratios the medians of each round's.\n", n)
	}
	if r.Env.Pcap != "" {
		fmt.Fprintf(w, "Captured to %s, which slows the rows.\n", r.Env.Pcap)
	}
	renderReasons(w, r.Results)
}

// renderReasons prints why rows, or some of their runs, are invalid. It merges equal reasons.
func renderReasons(w io.Writer, results []result.Result) {
	for _, o := range result.Omissions(results) {
		var rows []string
		for _, of := range o.Rows {
			row := results[of.Row].Title()
			if runs := of.String(); runs != "" {
				row += " (" + runs + ")"
			}
			rows = append(rows, row)
		}
		fmt.Fprintln(w, hanging(fmt.Sprintf("INVALID %s: %s", strings.Join(rows, "; "), o.Reason)))
	}
}

// repeats returns the largest number of runs of a row.
func repeats(results []result.Result) (n int) {
	for _, r := range results {
		n = max(n, len(r.Runs))
	}
	return n
}

// hanging wraps a line for a terminal of 80 columns, with a hanging indent.
func hanging(line string) string {
	var out []string
	for part := range strings.SplitSeq(text.WrapSoft(line, 78), "\n") {
		out = append(out, strings.TrimSpace(part))
	}
	return strings.Join(out, "\n  ")
}
