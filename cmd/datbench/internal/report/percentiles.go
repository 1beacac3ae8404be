package report

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/datxdp/datxdp/internal/result"
)

// percentiles draws the median, the p99 and the p99.9 of each row, with their figures.
func percentiles(rows []result.Result, values span) (*plot.Plot, error) {
	p := newPlot("", "round trip, µs")
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades(values.low, values.high)
	addGrid(p, false)
	rows = ordered(rows)
	var marks ticks
	for i, r := range rows {
		marks = append(marks, plot.Tick{Value: float64(i), Label: seriesOf(&r).Short})
		if err := addPercentiles(p, r, float64(i), values); err != nil {
			return nil, err
		}
	}
	p.X.Tick.Marker, p.X.Tick.Length = marks, 0
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.3, values.low, values.high
	return p, nil
}

func addPercentiles(p *plot.Plot, r result.Result, at float64, values span) error {
	colour := seriesOf(&r).role
	var xys plotter.XYs
	var names []string
	for _, v := range []*float64{r.P50, r.P99, r.P999} {
		if v != nil {
			xys = append(xys, plotter.XY{X: at, Y: *v})
			names = append(names, micros(v))
		}
	}
	l, err := line(xys, colour)
	if err != nil {
		return err
	}
	dots, err := plotter.NewScatter(xys)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: colour.marker, Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: apart(xys, values), Labels: names})
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i] = centred(text.XLeft, text.YCenter)
	}
	labels.Offset.X = vg.Points(6)
	p.Add(l, dots, labels)
	return nil
}

// lineHeight is the height of a label as a fraction of the chart's height.
const lineHeight = 0.055

// apart returns label positions for points that may be close to each other. points are ordered from low to high. Each
// label is at its point, or higher if the label below needs the space.
func apart(points plotter.XYs, values span) plotter.XYs {
	out := slices.Clone(points)
	step := math.Pow(values.high/values.low, lineHeight)
	for i := 1; i < len(out); i++ {
		out[i].Y = max(out[i].Y, out[i-1].Y*step)
	}
	return out
}
