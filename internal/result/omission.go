package result

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Omission is a reason why runs are invalid, with the rows that it applies to.
type Omission struct {
	Reason string
	Rows   []OmittedRuns
}

// OmittedRuns are the runs of one row that are invalid for one reason.
type OmittedRuns struct {
	// Row is the index of the row.
	Row int
	// Runs are the numbers of the omitted runs, from 1. Of is the number of all runs. For a row that was not repeated,
	// Runs is nil and Of is 0.
	Runs []int
	Of   int
}

// Omissions returns the reasons for omitted rows, each reason once, in the order of the rows. Reasons that differ only
// in numbers are merged; the result has the range of each number.
func Omissions(rows []Result) (out []Omission) {
	var list reasons
	for i := range rows {
		list.addRow(i, &rows[i])
	}
	for _, same := range list.groups() {
		o := Omission{Reason: same.text()}
		for _, r := range same {
			o.add(r.omitted)
		}
		out = append(out, o)
	}
	return out
}

// add adds the runs of one row.
func (o *Omission) add(r OmittedRuns) {
	if n := len(o.Rows); n > 0 && o.Rows[n-1].Row == r.Row {
		o.Rows[n-1].Runs = append(o.Rows[n-1].Runs, r.Runs...)
		return
	}
	o.Rows = append(o.Rows, r)
}

// String names the runs: "run 2 of 5", "runs 1, 2 and 4 of 5", "each of 5 runs". It is empty for a row that was not
// repeated.
func (r OmittedRuns) String() string {
	n := len(r.Runs)
	switch {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("run %d of %d", r.Runs[0], r.Of)
	case n == r.Of:
		return fmt.Sprintf("each of %d runs", n)
	}
	var first []string
	for _, run := range r.Runs[:n-1] {
		first = append(first, strconv.Itoa(run))
	}
	return fmt.Sprintf("runs %s and %d of %d", strings.Join(first, ", "), r.Runs[n-1], r.Of)
}

// reason is the reason why one run, or one row, is invalid.
type reason struct {
	text    string
	omitted OmittedRuns
}

type reasons []reason

func (all *reasons) addRow(row int, r *Result) {
	if r.Valid {
		return
	}
	told := false
	for i, round := range r.Rounds {
		if !round.Valid && round.Reason != "" {
			*all = append(*all, reason{round.Reason, OmittedRuns{row, []int{i + 1}, len(r.Rounds)}})
			told = true
		}
	}
	if !told {
		*all = append(*all, reason{r.Reason, OmittedRuns{Row: row}})
	}
}

// groups collects the reasons that differ only in numbers.
func (all reasons) groups() (out []reasons) {
	for _, r := range all {
		i := slices.IndexFunc(out, func(g reasons) bool { return shape(g[0].text) == shape(r.text) })
		if i < 0 {
			out = append(out, nil)
			i = len(out) - 1
		}
		out[i] = append(out[i], r)
	}
	return out
}

// decimals matches the numbers of a reason, but no digits within a word.
var decimals = regexp.MustCompile(`\b\d+(\.\d+)?\b`)

// shape returns a text with its numbers replaced, and their count. Reasons with the same shape differ only in numbers.
func shape(text string) string {
	return fmt.Sprint(len(decimals.FindAllString(text, -1)), decimals.ReplaceAllString(text, "#"))
}

// text returns the reason of a group, with a range for each number that differs.
func (all reasons) text() string {
	i := -1
	return decimals.ReplaceAllStringFunc(all[0].text, func(string) string {
		i++
		var values []string
		for _, r := range all {
			values = append(values, decimals.FindAllString(r.text, -1)[i])
		}
		low, high := slices.MinFunc(values, byValue), slices.MaxFunc(values, byValue)
		if low == high {
			return low
		}
		return low + " to " + high
	})
}

func byValue(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64) // both are numbers
	y, _ := strconv.ParseFloat(b, 64)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
