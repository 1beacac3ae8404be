package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// Bound is a requirement for one quantity of a row, relative to the same quantity of another operation in the same run.
// A time must not exceed the bound; a rate must reach it.
type Bound struct {
	// Row is the row that is judged. An empty transport matches any; of two rows it matches the one that is not over
	// kernel UDP.
	result.Row
	// Of is the quantity. It is divided by the same quantity of the operation Over. If Over is empty, the quantity
	// itself is shown beside its target but not judged, because it depends on the host. If Over is Unimpaired, it is
	// divided by that of the same row without impairment.
	Of   result.Quantity `json:"of"`
	Over string          `json:"over,omitempty"`
	// Target is the goal. Limit is the bound that a run must keep, to detect regressions.
	Target float64 `json:"target"`
	Limit  float64 `json:"bound,omitempty"`
}

// Unimpaired as Bound.Over is the same row without impairment.
const Unimpaired = "unimpaired"

// ParseBounds parses {"bounds": [...]}. Its error lists every fault of every bound.
func ParseBounds(text []byte) ([]Bound, error) {
	var file struct {
		Bounds []json.RawMessage `json:"bounds"`
	}
	if err := strict(text, &file); err != nil {
		return nil, err
	}
	if len(file.Bounds) == 0 {
		return nil, errors.New(`there are no bounds in it: want {"bounds": [{"op": …}, …]}`)
	}
	var out []Bound
	var errs []error
	for i, entry := range file.Bounds {
		var b Bound
		err := strict(entry, &b)
		if err == nil {
			err = b.check(out)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bound %d: %w", i+1, err))
		}
		result.MakePrintable(&b.Row)
		out = append(out, b)
	}
	return out, errors.Join(errs...)
}

// strict decodes exactly one value without unknown fields.
func strict(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), err)
	}
	if err == nil && dec.More() {
		return errors.New("more follows what should be all")
	}
	return err
}

var (
	ops     = result.OperationNames()
	metrics = []string{result.Latency, result.Rate, result.Requests, result.Bandwidth}
)

// check returns the faults of a bound. before are the earlier bounds of the file.
func (b *Bound) check(before []Bound) error {
	var faults []string
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	fault(!slices.Contains(ops, b.Op), `"op" is %q: want one of %s`, b.Op, strings.Join(ops, ", "))
	fault(!slices.Contains(metrics, b.Metric), `"metric" is %q: want one of %s`, b.Metric, strings.Join(metrics, ", "))
	fault(b.Size <= 0 || b.MTU <= 0, `"size" and "mtu" are the row's, in bytes`)
	fault(!slices.Contains(result.Quantities, b.Of), `"of" is %q: want one of %s`, b.Of, list(result.Quantities))
	fault(b.Of.Time() && !result.Timed(b.Metric), `"of" is %q: rows of %s have no times`, b.Of, b.Metric)
	other := b.Over == "" || slices.Contains(ops, b.Over) && b.Over != b.Op
	fault(!other && b.Over != Unimpaired, `"over" is %q: want another operation, such as raw or tcp`, b.Over)
	fault(b.Over == Unimpaired && b.Impair == "", `"over" is %q: the row has no "impair"`, b.Over)
	fault(!(b.Target > 0), `"target" is missing: what is aimed at, a positive number`)
	fault(b.Over != "" && !(b.Limit > 0), `"bound" is missing: what fails a run, a positive number`)
	fault(b.Over == "" && b.Limit != 0, `"bound" without "over": what is not beside another row is shown, not judged`)
	fault(slices.ContainsFunc(before, b.same), "it is there twice")
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

// same reports whether two bounds apply to the same figure.
func (b *Bound) same(o Bound) bool {
	o.Target, o.Limit = b.Target, b.Limit
	return o == *b
}

func list(all []result.Quantity) string {
	var words []string
	for _, q := range all {
		words = append(words, string(q))
	}
	return strings.Join(words, ", ")
}
