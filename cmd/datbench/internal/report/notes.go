package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// note is a reason why rows, or some of their runs, are invalid. Number refers to it in a table.
type note struct {
	Number int
	Text   string
	rows   []int // indices of the rows
}

// notesOf numbers the reasons of a table's rows.
func notesOf(rows []result.Result) (out []note) {
	for i, o := range result.Omissions(rows) {
		n := note{Number: i + 1, Text: "not valid: " + o.Reason}
		if runs := runsOf(o, rows); runs != "" {
			n.Text = "left out: " + runs + ": " + o.Reason
		}
		for _, r := range o.Rows {
			n.rows = append(n.rows, r.Row)
		}
		out = append(out, n)
	}
	return out
}

// numbersOf returns the numbers of the notes on a row.
func numbersOf(notes []note, row int) (out []int) {
	for _, n := range notes {
		if slices.Contains(n.rows, row) {
			out = append(out, n.Number)
		}
	}
	return out
}

// leftOut returns a sentence for each reason why runs of drawn rows are not drawn.
func leftOut(rows []result.Result) (out []string) {
	for _, o := range result.Omissions(rows) {
		if runs := runsOf(o, rows); runs != "" {
			out = append(out, "Left out: "+runs+": "+o.Reason)
		}
	}
	return out
}

// runsOf names the runs that were left out: "send run 2 of 5, RDMA write runs 1 and 3 of 5". It is empty if the rows
// were not repeated.
func runsOf(o result.Omission, rows []result.Result) string {
	var parts []string
	for _, r := range o.Rows {
		runs := r.String()
		if runs == "" {
			continue
		}
		name := seriesOf(&rows[r.Row]).Title
		if sized(rows) {
			name += " " + result.FormatSize(rows[r.Row].Size)
		}
		if mtus := distinct(rows, func(r result.Result) int { return r.MTU }); len(mtus) > 1 {
			name += fmt.Sprintf(" at MTU %d", rows[r.Row].MTU)
		}
		parts = append(parts, name+" "+runs)
	}
	return strings.Join(parts, ", ")
}

// ratioSpread returns the range of a row's ratio to kernel TCP, in brackets.
func ratioSpread(rows []result.Result, r *result.Result) string {
	s, ok := result.RatioSpread(rows, r, result.TCP)
	if !ok {
		return ""
	}
	return " (" + rangeText(s, figureText) + ")"
}

// tcpSpread returns the range of kernel TCP's own figure, in the unit of its table.
func tcpSpread(r *result.Result) string {
	s, ok := r.Spread()
	if !ok || r.Op != result.TCP {
		return ""
	}
	if r.Metric == result.Rate || r.Metric == result.Requests {
		s = result.Range{Low: s.Low / 1e6, High: s.High / 1e6}
	}
	return rangeText(s, figureText)
}

func rangeText(s result.Range, text func(float64) string) string {
	return text(s.Low) + "\u2013" + text(s.High)
}

// spreadNotes returns the range of each kernel TCP row. The ratios to it vary as much.
func spreadNotes(files []File) (out []string) {
	for _, f := range files {
		for i := range f.Report.Results {
			r := &f.Report.Results[i]
			if text := tcpSpread(r); text != "" {
				out = append(out, fmt.Sprintf("%s, %s: kernel TCP itself was %s %s.", titleOf(r.Metric), placeOf(*r), text, unitOf(r.Metric)))
			}
		}
	}
	return out
}

func titleOf(metric string) string {
	for _, t := range titles {
		if t.metric == metric {
			return t.title
		}
	}
	return metric
}

func unitOf(metric string) string {
	switch metric {
	case result.Latency:
		return "µs"
	case result.Rate, result.Requests:
		return "million a second"
	}
	return "Gb/s"
}
