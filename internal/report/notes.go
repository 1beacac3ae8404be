package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// note is a reason why rows, or runs of them, are not valid, with its number in a table.
type note struct {
	Number int
	Text   string
	rows   []int // by index
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

// numbersOf is the numbers of the notes on a row.
func numbersOf(notes []note, row int) (out []int) {
	for _, n := range notes {
		if slices.Contains(n.rows, row) {
			out = append(out, n.Number)
		}
	}
	return out
}

// leftOut says which runs of drawn rows are not drawn, and why: a sentence for each reason.
func leftOut(rows []result.Result) (out []string) {
	for _, o := range result.Omissions(rows) {
		if runs := runsOf(o, rows); runs != "" {
			out = append(out, "Left out: "+runs+": "+o.Reason)
		}
	}
	return out
}

// runsOf names the runs of an omission: "send run 2 of 5, RDMA write runs 1 and 3 of 5". It is empty if its rows
// were not repeated.
func runsOf(o result.Omission, rows []result.Result) string {
	var parts []string
	for _, r := range o.Rows {
		runs := r.String()
		if runs == "" {
			continue
		}
		name := seriesOf(rows[r.Row].Op).Title
		if sized(rows) {
			name += " " + sizeText(rows[r.Row].Size)
		}
		if mtus := distinct(rows, func(r result.Result) int { return r.MTU }); len(mtus) > 1 {
			name += fmt.Sprintf(" at MTU %d", rows[r.Row].MTU)
		}
		parts = append(parts, name+" "+runs)
	}
	return strings.Join(parts, ", ")
}
