package result

import "slices"

// Range is the lowest and the highest of some values.
type Range struct{ Low, High float64 }

// rangeOf returns the range of values; false for fewer than two.
func rangeOf(values []float64) (Range, bool) {
	if len(values) < 2 {
		return Range{}, false
	}
	return Range{slices.Min(values), slices.Max(values)}, true
}

// Spread returns the range of a row's figures: over its valid runs, or over its parts if it was measured once.
func (r *Result) Spread() (Range, bool) {
	if len(r.Runs) > 0 {
		return rangeOf(r.Runs)
	}
	return rangeOf(r.Parts)
}

// RatioSpread returns the range of a row's ratio to another operation under the same conditions. It is the range over
// the rounds of both rows or, if they were not repeated, over the parts of the other row. It returns false if there are
// fewer than two ratios.
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
