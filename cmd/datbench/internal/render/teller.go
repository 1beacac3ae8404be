package render

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/progress"
	"github.com/datxdp/datxdp/internal/result"
)

// Teller tells how far a job is: a bar or lines on standard error, and on standard output each row as it is measured
// and its intervals as they come, below a heading for each row.
type Teller struct {
	pr progress.Display
	// rows is where rows go, w where intervals go.
	rows, w io.Writer
	// silent is whether standard output is kept for something else, single whether the job has one row: the table
	// follows at once.
	silent, single bool
	// told is whether a row was told of.
	told bool
	// row is what the heading names.
	row string
}

// NewTeller returns the Teller of a job with a number of rows, each round counted.
func NewTeller(stdout, stderr io.Writer, steps int, silent bool) *Teller {
	t := &Teller{pr: progress.New(stderr, steps), rows: stdout, w: stdout, silent: silent, single: steps == 1}
	if silent {
		t.rows = stderr
	}
	return t
}

func (t *Teller) Begin(title string) { t.pr.Begin(title) }

// Wait shows why the row waits.
func (t *Teller) Wait(text string) { t.pr.Note(text) }

// End removes the display, and leaves an empty line between the rows that it printed and the table.
func (t *Teller) End() {
	t.pr.End()
	if t.told && !t.silent {
		fmt.Fprintln(t.rows)
	}
}

// Measured prints the result of one round of a row.
func (t *Teller) Measured(row plan.Spec, in plan.Round, r *result.Result) {
	if t.single {
		return
	}
	t.told = true
	row.MTU = r.MTU // which the adapter may have decided
	t.pr.Around(func() { fmt.Fprintf(t.rows, "%s%s: %s\n", row.Title(), in.Note(), brieflyOf(r)) })
}

// brieflyOf is a result in a few words.
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

func (t *Teller) Tell(row plan.Spec, i result.Interval) {
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

// heading names the columns of line.
func heading(row plan.Spec) string {
	if result.Timed(row.Metric) {
		return "   interval s     round trips    p50 µs    max µs  resent"
	}
	return "   interval s     transferred        rate       messages/s  resent"
}

// line is one interval. It fits a terminal of 80 columns.
func line(row plan.Spec, i result.Interval) string {
	span := fmt.Sprintf("%6.2f-%-6.2f", i.Start, i.End)
	if result.Timed(row.Metric) {
		return fmt.Sprintf("%s %14d %9s %9s %7d", span, i.Msgs, micros(i.P50), micros(i.Max), i.Retransmits)
	}
	perSecond := float64(i.Msgs) / (i.End - i.Start)
	return fmt.Sprintf("%s %15s %11s %16s %7d", span, result.RoughSize(float64(i.Bytes)), result.BitRate(i.Gbps*1e9), grouped(perSecond), i.Retransmits)
}

// grouped is a whole number with its thousands apart, as 1 234 567.
func grouped(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
