package result

import "slices"

// Range is the lowest and the highest of some values.
type Range struct{ Low, High float64 }

// rangeOf is false for fewer than two values: one has no spread.
func rangeOf(values []float64) (Range, bool) {
	if len(values) < 2 {
		return Range{}, false
	}
	return Range{slices.Min(values), slices.Max(values)}, true
}

// Spread is the range of a row's figures in its valid runs or, of a row that was measured once, in its parts.
func (r *Result) Spread() (Range, bool) {
	if len(r.Runs) > 0 {
		return rangeOf(r.Runs)
	}
	return rangeOf(r.Parts)
}

// RatioSpread is the range of a row's ratio to another operation in the same place: over the rounds of both, or over
// the parts of the other. It is false where there is no ratio, or one only.
func RatioSpread(rows []Result, r *Result, op string) (Range, bool) {
	if FigureRatio(rows, r, op) == nil {
		return Range{}, false
	}
	b := Base(rows, r, op)
	if len(b.Rounds) > 0 || len(r.Rounds) > 0 {
		return rangeOf(Ratios(r, b, r.quantity()))
	}
	s, ok := rangeOf(b.Parts)
	if !ok || s.Low <= 0 {
		return Range{}, false
	}
	return Range{r.Figure() / s.High, r.Figure() / s.Low}, true
}
