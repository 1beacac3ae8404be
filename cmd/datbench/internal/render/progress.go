package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/progressbar"
	"github.com/datxdp/datxdp/internal/result"
)

// ProgressPrinter prints the progress of a job. It writes a progress bar or lines to standard error. It writes each
// measured row to standard output. While a row runs, it writes the row's figures at intervals, below a heading.
type ProgressPrinter struct {
	pr progressbar.Display
	// The writer rows gets the rows, and the writer w gets the figures of the intervals.
	rows, w io.Writer
	// If silent is set, standard output is reserved for other output. If single is set, the job has only one row. This
	// row is not printed, because the table follows immediately.
	silent, single bool
	// printed is set when a row was printed.
	printed bool
	// row is the title of the row whose heading was printed last. A heading is printed only if the row changes.
	row string
}

// NewProgressPrinter returns the printer for a job. steps is the number of rows, with every round counted.
func NewProgressPrinter(stdout, stderr io.Writer, steps int, silent bool) *ProgressPrinter {
	t := &ProgressPrinter{pr: progressbar.New(stderr, steps), rows: stdout, w: stdout, silent: silent, single: steps == 1}
	if silent {
		t.rows = stderr
	}
	return t
}

func (t *ProgressPrinter) Begin(title string) { t.pr.Begin(title) }

// Wait shows why the row waits.
func (t *ProgressPrinter) Wait(text string) { t.pr.Note(text) }

// End removes the display and prints an empty line between the rows and the table.
func (t *ProgressPrinter) End() {
	t.pr.End()
	if t.printed && !t.silent {
		fmt.Fprintln(t.rows)
	}
}

// Measured prints the result of one round of a row.
func (t *ProgressPrinter) Measured(row plan.Spec, in plan.Round, r *result.Result) {
	if t.single {
		return
	}
	t.printed = true
	row.MTU = r.MTU // the adapter may have chosen it
	t.pr.Around(func() { fmt.Fprintf(t.rows, "%s%s: %s\n", row.Title(), in.Note(), brieflyOf(r)) })
}

// brieflyOf summarises a result in a few words.
func brieflyOf(r *result.Result) string {
	var parts []string
	switch {
	case r.Samples == 0:
	case r.Metric == result.Latency:
	case r.Metric == result.Rate, r.Metric == result.Requests:
		parts = append(parts, fmt.Sprintf("%.3f M/s", r.MsgsPerSec/1e6))
	default:
		parts = append(parts, result.BitRate(r.Gbps*1e9))
	}
	for _, q := range []struct {
		name string
		us   *float64
	}{{"p50", r.P50}, {"p99", r.P99}, {"p99.9", r.P999}} {
		if q.us != nil {
			parts = append(parts, q.name+" "+micros(q.us)+" µs")
		}
	}
	if r.Retransmits > 0 {
		parts = append(parts, fmt.Sprintf("%d resent", r.Retransmits))
	}
	if !r.Valid {
		parts = append(parts, "INVALID (the reason stands below the table)")
	}
	return strings.Join(parts, ", ")
}

func (t *ProgressPrinter) Tell(row plan.Spec, i result.Interval) {
	if t.silent {
		return
	}
	t.pr.Around(func() {
		if i.Start == 0 || t.row != row.Title() {
			t.row = row.Title()
			fmt.Fprintf(t.w, "%s\n%s\n", t.row, heading(row))
		}
		fmt.Fprintln(t.w, line(row, i))
	})
}

// heading returns the column headings of line.
func heading(row plan.Spec) string {
	if result.Timed(row.Metric) {
		return "   interval s     round trips    p50 µs    max µs  resent"
	}
	return "   interval s     transferred        rate       messages/s  resent"
}

// line formats one interval, at most 80 columns wide.
func line(row plan.Spec, i result.Interval) string {
	span := fmt.Sprintf("%6.2f-%-6.2f", i.Start, i.End)
	if result.Timed(row.Metric) {
		return fmt.Sprintf("%s %14d %9s %9s %7d", span, i.Msgs, micros(i.P50), micros(i.Max), i.Retransmits)
	}
	perSecond := float64(i.Msgs) / (i.End - i.Start)
	return fmt.Sprintf("%s %15s %11s %16s %7d", span, result.RoughSize(float64(i.Bytes)), result.BitRate(i.Gbps*1e9), grouped(perSecond), i.Retransmits)
}

// grouped formats a whole number with its thousands separated, as 1 234 567.
func grouped(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
