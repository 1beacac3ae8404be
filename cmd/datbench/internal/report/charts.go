package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"gonum.org/v1/plot"

	"github.com/datxdp/datxdp/internal/result"
)

// section is a part of the page with charts of one kind.
type section struct {
	Title, Note string
	Charts      []chart
	// Folded charts are shown on request.
	Folded []chart
}

// chart shows one metric, with one panel per file. The panels have the same axes.
type chart struct {
	Title  string
	Legend []series
	Panels []panel
	// Notes say which runs are left out, and why.
	Notes []string
}

// panel is the picture of one file; it is empty if the file has no such rows.
type panel struct {
	File string
	SVG  template.HTML
}

// drawEach makes a chart of the rows of each file, with the same axes.
func drawEach(files []File, title string, pick func(result.Result) bool, plotOf func(rows []result.Result) (*plot.Plot, error)) (chart, error) {
	c := chart{Title: title}
	var shown []result.Result
	for _, f := range files {
		rows := drawn(f.Report.Results, pick)
		shown = append(shown, rows...)
		c.Notes = append(c.Notes, leftOut(rows)...)
		pn := panel{File: f.Name}
		if len(rows) > 0 {
			p, err := plotOf(rows)
			if err != nil {
				return c, fmt.Errorf("report: %s of %s: %w", title, f.Name, err)
			}
			if pn.SVG, err = svg(p, title+", "+f.Name); err != nil {
				return c, err
			}
		}
		c.Panels = append(c.Panels, pn)
	}
	c.Legend, c.Notes = legend(shown), slices.Compact(c.Notes)
	return c, nil
}

// drawn returns the rows that pick selects and that have figures from at least one valid run.
func drawn(rows []result.Result, pick func(result.Result) bool) (out []result.Result) {
	for _, r := range rows {
		if r.ValidRuns() > 0 && drawable(r) && pick(r) {
			out = append(out, r)
		}
	}
	return out
}

// drawable reports whether the figures of a row are positive, as a logarithmic axis needs.
func drawable(r result.Result) bool {
	return r.Figure() > 0 && (len(r.Histogram) == 0 || r.Histogram[0].Upper > 0) && r.Size > 0
}

// everything returns the selected rows of all files, which determine the axes.
func everything(files []File, pick func(result.Result) bool) (out []result.Result) {
	for _, f := range files {
		out = append(out, drawn(f.Report.Results, pick)...)
	}
	return out
}

// place holds the conditions of rows that may share a chart: a row without operation, metric, size and transport.
type place result.Row

func placeOf(r result.Result) place {
	p := r.Row
	p.Op, p.Metric, p.Size, p.Transport = "", "", 0, ""
	return place(p)
}

// plain reports whether the place has no conditions but the link.
func (p place) plain() bool { return result.Row(p) == result.Row(p).Plain() }

// String lists the conditions, as in "MTU 1500, 8 connections".
func (p place) String() string {
	s := ""
	if p.MTU > 0 {
		s = fmt.Sprintf("MTU %d", p.MTU)
	}
	if p.Connections > 1 {
		s += fmt.Sprintf(", %d connections", p.Connections)
	}
	p.MTU, p.Connections = 0, 0
	return s + result.Row(p).Conditions()
}

// distinct returns each value of the rows once, in the order of the rows.
func distinct[T comparable](rows []result.Result, of func(result.Result) T) (out []T) {
	for _, r := range rows {
		if v := of(r); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// sized reports whether some operation was measured with several sizes.
func sized(rows []result.Result) bool {
	return slices.ContainsFunc(rows, func(r result.Result) bool {
		return slices.ContainsFunc(rows, func(o result.Result) bool { return o.Op == r.Op && o.Size != r.Size })
	})
}

// highest returns the largest value; 0 if there are no rows.
func highest(rows []result.Result, of func(*result.Result) float64) (top float64) {
	for i := range rows {
		top = max(top, of(&rows[i]))
	}
	return top
}

// around returns the decades that contain all values.
func around(rows []result.Result, of ...func(*result.Result) float64) span {
	s := span{math.Inf(1), 0}
	for i := range rows {
		for _, f := range of {
			if v := f(&rows[i]); v > 0 {
				s = span{min(s.low, v), max(s.high, v)}
			}
		}
	}
	return span{math.Pow(10, math.Floor(math.Log10(s.low))), math.Pow(10, math.Ceil(math.Log10(s.high*1.0001)))}
}
