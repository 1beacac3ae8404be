package report

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// bar is one figure of a series. barGroup is a set of bars that stand together.
type bar struct {
	of    series
	value float64
}

type barGroup struct {
	name string
	bars []bar
}

// crowd is the number of bars above which labels have two digits instead of three.
const crowd = 14

// labels returns the function that formats the labels of the bars.
func labels(groups []barGroup) func(float64) string {
	n := 0
	for _, g := range groups {
		n += len(g.bars)
	}
	if n > crowd {
		return roughText
	}
	return figureText
}

// roughText formats two significant digits: .84, 4.2, 13.
func roughText(v float64) string {
	switch {
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 0.995:
		return fmt.Sprintf("%.1f", v)
	}
	return strings.TrimPrefix(fmt.Sprintf("%.2f", v), "0")
}

// barChart draws groups of bars, each bar with its figure above it.
func barChart(groups []barGroup, name string, top float64) (*plot.Plot, error) {
	p := newPlot("", name)
	p.Y.Tick.Marker = linearTicks(top)
	addGrid(p, false)
	slots := -1.0 // the gap before the first group
	for _, g := range groups {
		slots += float64(len(g.bars)) + 1
	}
	width := min((chartWidth-vg.Points(60))/vg.Length(slots+1)*0.82, vg.Points(44))
	at, marks := 0.0, ticks{}
	for _, g := range groups {
		marks = append(marks, plot.Tick{Value: at + float64(len(g.bars)-1)/2, Label: g.name})
		for _, b := range g.bars {
			if err := addBar(p, b, at, width, labels(groups)); err != nil {
				return nil, err
			}
			at++
		}
		at++
	}
	p.X.Tick.Marker, p.X.Tick.Length = marks, 0
	p.X.Min, p.X.Max, p.Y.Min = -0.6, max(slots, 1)-0.4, 0
	last := linearTicks(top)
	p.Y.Max = last[len(last)-1].Value * 1.04 // room for the label of the highest bar
	return p, nil
}

func addBar(p *plot.Plot, b bar, at float64, width vg.Length, label func(float64) string) error {
	chart, err := plotter.NewBarChart(plotter.Values{b.value}, width)
	if err != nil {
		return err
	}
	chart.XMin, chart.Color, chart.LineStyle.Width = at, b.of.role.marker, 0
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: at, Y: b.value}}, Labels: []string{label(b.value)}})
	if err != nil {
		return err
	}
	labels.TextStyle[0] = centred(text.XCenter, text.YBottom)
	labels.Offset.Y = vg.Points(2)
	p.Add(chart, labels)
	return nil
}

// ratioChart draws speed ratios of operations to another one: bars above 1 are faster, bars below 1 slower.
func ratioChart(groups []barGroup, name string, values span) (*plot.Plot, error) {
	p, err := barChart(nil, name, 1)
	if err != nil {
		return nil, err
	}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ratioTicks(values)
	at, marks := 0.0, ticks{}
	for _, g := range groups {
		marks = append(marks, plot.Tick{Value: at + float64(len(g.bars)-1)/2, Label: g.name})
		for _, b := range g.bars {
			if err := addRatio(p, b, at, labels(groups)); err != nil {
				return nil, err
			}
			at++
		}
		at++
	}
	one, err := plotter.NewLine(plotter.XYs{{X: -0.6, Y: 1}, {X: max(at-1, 1) - 0.4, Y: 1}})
	if err != nil {
		return nil, err
	}
	one.Color, one.Width = ink.marker, vg.Points(1)
	p.Add(one)
	p.X.Tick.Marker = marks
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.6, max(at-1, 1)-0.4, values.low, values.high
	return p, nil
}

func addRatio(p *plot.Plot, b bar, at float64, label func(float64) string) error {
	box, err := plotter.NewPolygon(plotter.XYs{{X: at - 0.38, Y: 1}, {X: at + 0.38, Y: 1}, {X: at + 0.38, Y: b.value}, {X: at - 0.38, Y: b.value}})
	if err != nil {
		return err
	}
	box.Color, box.LineStyle.Width = b.of.role.marker, 0
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: at, Y: b.value}}, Labels: []string{label(b.value)}})
	if err != nil {
		return err
	}
	labels.TextStyle[0], labels.Offset.Y = centred(text.XCenter, text.YBottom), vg.Points(2)
	if b.value < 1 {
		labels.TextStyle[0], labels.Offset.Y = centred(text.XCenter, text.YTop), vg.Points(-2)
	}
	p.Add(box, labels)
	return nil
}

// ratioTicks returns the ticks of a ratio axis: 1 and round values above and below.
func ratioTicks(values span) (out ticks) {
	for _, v := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		out = append(out, plot.Tick{Value: v, Label: number(v) + " ×"})
	}
	return out.within(values.low, values.high)
}
