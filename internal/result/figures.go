package result

import (
	"fmt"
	"math"
	"reflect"
)

// Figures of a measurement are 0, or of a size from minFigure to maxFigure. Others cannot be drawn or compared.
const (
	minFigure = 1e-9
	maxFigure = 1e15
)

// checkFigures returns an error that names the first row with a figure that no measurement has.
func (r *Report) checkFigures() error {
	for i := range r.Results {
		if f, found := oddFigure(reflect.ValueOf(&r.Results[i])); found {
			return fmt.Errorf("result %d (%s) has a figure of %g, which no measurement has: remove that result, or measure again",
				i+1, r.Results[i].Title(), f)
		}
	}
	return nil
}

// oddFigure finds a floating-point number that is no figure. It follows structs, slices and pointers.
func oddFigure(v reflect.Value) (figure float64, found bool) {
	switch v.Kind() {
	case reflect.Float64:
		f := v.Float()
		size := math.Abs(f)
		return f, f != 0 && !(size >= minFigure && size <= maxFigure)
	case reflect.Pointer:
		if !v.IsNil() {
			return oddFigure(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if figure, found = oddFigure(v.Field(i)); found {
				return figure, found
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if figure, found = oddFigure(v.Index(i)); found {
				return figure, found
			}
		}
	default:
	}
	return 0, false
}
