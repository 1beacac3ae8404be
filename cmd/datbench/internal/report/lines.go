package report

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/datxdp/datxdp/internal/result"
)

// most is the number of nines up to which a distribution is drawn: 99.999 %.
const most = 5

// nines converts a fraction to the scale of the CDF axis: 0.9 is 1, 0.99 is 2.
func nines(part float64) float64 { return -math.Log10(1 - part) }

var ninesTicks = ticks{
	{Value: 0, Label: "0 %"}, {Value: nines(0.5), Label: "50 %"}, {Value: 1, Label: "90 %"}, {Value: 2, Label: "99 %"},
	{Value: 3, Label: "99.9 %"}, {Value: 4, Label: "99.99 %"}, {Value: 5, Label: "99.999 %"},
}

// cdf draws the fraction of round trips that took at most a time.
func cdf(rows []result.Result, times span) (*plot.Plot, error) {
	p := newPlot("round trip, µs", "of all round trips")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades(times.low, times.high)
	p.Y.Tick.Marker = ninesTicks
	addGrid(p, true)
	top := 2.0
	for _, r := range rows {
		points := distribution(r.Histogram)
		l, err := line(points, seriesOf(&r).role)
		if err != nil {
			return nil, err
		}
		p.Add(l)
		top = max(top, points[len(points)-1].Y)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = times.low, times.high, 0, min(top, most)
	return p, nil
}

// distribution returns the points of a CDF, without those too close together to be visible.
func distribution(h result.Histogram) (out plotter.XYs) {
	total, seen := float64(h.Total()), 0.0
	for i, b := range h {
		seen += float64(b.Count)
		pt := plotter.XY{X: b.Upper, Y: min(nines((seen-0.5)/total), most)}
		if n := len(out); n > 0 && i < len(h)-1 && pt.Y-out[n-1].Y < 0.01 && pt.X < out[n-1].X*1.01 {
			continue
		}
		out = append(out, pt)
	}
	return out
}

func line(points plotter.XYs, r role) (*plotter.Line, error) {
	l, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	l.LineStyle = draw.LineStyle{Color: r.marker, Width: lineWidth}
	return l, nil
}

// span is a range of an axis.
type span struct{ low, high float64 }

// timesOf returns the range of the times of the rows, rounded to a third of a decade; 0 to 0 if there are none.
func timesOf(rows []result.Result) (s span) {
	s.low = math.Inf(1)
	for _, r := range rows {
		if n := len(r.Histogram); n > 0 {
			s.low, s.high = min(s.low, r.Histogram[0].Upper), max(s.high, r.Histogram[n-1].Upper)
		}
	}
	step := func(v float64, round func(float64) float64) float64 { return math.Pow(10, round(3*math.Log10(v))/3) }
	return span{step(s.low, math.Floor), step(s.high*1.0001, math.Ceil)} // high is increased so that the range is never empty
}

// againstSize draws a figure against the size, with a line for each operation. dashes, if not nil, is a second figure.
func againstSize(rows []result.Result, name string, figure, dashes func(*result.Result) float64, values span, log bool) (*plot.Plot, error) {
	p := newPlot("bytes of an operation", name)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizeTicks(rows)
	if log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades(values.low, values.high)
	} else {
		p.Y.Tick.Marker = linearTicks(values.high)
		values.high = max(values.high, 0)
	}
	addGrid(p, false)
	for _, s := range legend(rows) {
		if err := addLines(p, rows, s, figure, dashes); err != nil {
			return nil, err
		}
	}
	p.Y.Min, p.Y.Max = values.low, values.high
	if !log {
		t := linearTicks(values.high)
		p.Y.Max = t[len(t)-1].Value
	}
	return p, nil
}

func addLines(p *plot.Plot, rows []result.Result, s series, figure, dashes func(*result.Result) float64) error {
	for i, of := range []func(*result.Result) float64{figure, dashes} {
		if of == nil {
			continue
		}
		l, err := line(points(rows, s, of), s.role)
		if err != nil {
			return err
		}
		if i == 1 {
			l.LineStyle.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			l.LineStyle.Width = lineWidth * 2 / 3
		}
		dots, err := plotter.NewScatter(l.XYs)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: s.role.marker, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
		p.Add(l, dots)
	}
	return nil
}

func points(rows []result.Result, s series, figure func(*result.Result) float64) (out plotter.XYs) {
	for _, r := range rows {
		if v := figure(&r); s.has(&r) && v > 0 {
			out = append(out, plotter.XY{X: float64(r.Size), Y: v})
		}
	}
	slices.SortFunc(out, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return out
}

// sizeTicks returns the measured sizes as ticks. If there are many, only some have labels.
func sizeTicks(rows []result.Result) (out ticks) {
	sizes := distinct(rows, func(r result.Result) int64 { return r.Size })
	slices.Sort(sizes)
	every := (len(sizes) + 9) / 10
	for i, n := range sizes {
		tick := plot.Tick{Value: float64(n)}
		if i%every == 0 {
			tick.Label = shortSize(n)
		}
		out = append(out, tick)
	}
	return out
}
