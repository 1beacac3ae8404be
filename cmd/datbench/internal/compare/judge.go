package compare

import (
	"fmt"

	"github.com/datxdp/datxdp/internal/result"
)

// Judgement is the result of comparing the runs with a bound.
type Judgement struct {
	Bound
	// Values are the figures of the rounds in which both rows are valid. Median is their median.
	Values []float64
	Median float64
	// Missing and Invalid say why there is no figure; both are empty if there is one.
	Missing, Invalid string
}

// Judge judges a report by bounds.
func Judge(r *result.Report, bounds []Bound) (out []Judgement) {
	for _, b := range bounds {
		out = append(out, b.judge(r.Results))
	}
	return out
}

func (b *Bound) judge(rows []result.Result) Judgement {
	j := Judgement{Bound: *b}
	row := b.find(rows)
	if row == nil {
		j.Missing = "no such row"
		return j
	}
	base := row
	if b.Over == "" {
		j.Values = result.Values(row, b.Of)
	} else if base = b.base(rows, row); base == nil {
		j.Missing = "no row of " + b.Over + " beside it"
		return j
	} else {
		j.Values = result.Ratios(row, base, b.Of)
	}
	if !result.Enough(len(j.Values), row, base) {
		j.Invalid = fmt.Sprintf("valid in %d of %d runs: %s", len(j.Values), max(row.Repeats(), base.Repeats()), reasons(row, base))
		return j
	}
	j.Median = result.Median(j.Values)
	return j
}

// find returns the row of a bound; nil if there is none.
func (b *Bound) find(rows []result.Result) (found *result.Result) {
	for i := range rows {
		want := b.Row
		if want.Transport == "" {
			want.Transport = rows[i].Transport
		}
		if rows[i].Row == want && (found == nil || found.OverUDP()) {
			found = &rows[i]
		}
	}
	return found
}

// base returns the row by which a row is divided; nil if there is none.
func (b *Bound) base(rows []result.Result, row *result.Result) *result.Result {
	if b.Over == Unimpaired {
		return result.Unimpaired(rows, row)
	}
	return result.Base(rows, row, b.Over)
}

func reasons(row, base *result.Result) string {
	switch {
	case row.Reason == "" && base.Reason == "":
		return "the others lack the figure"
	case row.Reason == "":
		return base.Op + ": " + base.Reason
	}
	return row.Op + ": " + row.Reason
}

// Judged reports whether the bound can fail a run.
func (j *Judgement) Judged() bool { return j.Over != "" }

// Known reports whether the judgement has a figure.
func (j *Judgement) Known() bool { return j.Missing == "" && j.Invalid == "" }

// Holds reports whether the bound is judged, known and kept.
func (j *Judgement) Holds() bool { return j.Judged() && j.Known() && j.within(j.Limit) }

// Met reports whether the target is reached.
func (j *Judgement) Met() bool { return j.Known() && j.within(j.Target) }

func (j *Judgement) within(limit float64) bool {
	if j.Of.Time() {
		return j.Median <= limit
	}
	return j.Median >= limit
}
