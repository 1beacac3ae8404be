package report

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of a chart. The page scales it to the available width.
const (
	chartWidth  vg.Length = 390 // points
	chartHeight vg.Length = 250
	textSize    vg.Length = 10.5
	lineWidth   vg.Length = 1.6
)

// newPlot returns an empty plot in the page's style, with the names of its axes.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Label.TextStyle.Color, a.Tick.Label.Color = ink.marker, ink.marker, ink.marker
		a.Tick.Color, a.Tick.LineStyle.Color, a.LineStyle.Color = grid.marker, grid.marker, grid.marker
		a.Label.TextStyle.Font = sans(textSize)
		a.Tick.Label.Font = sans(textSize - 1)
		a.Padding = vg.Points(4)
	}
	return p
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// addGrid draws a line at each labelled tick.
func addGrid(p *plot.Plot, vertical bool) {
	g := plotter.NewGrid()
	g.Horizontal.Color, g.Vertical.Color = grid.marker, grid.marker
	g.Horizontal.Width, g.Vertical.Width = vg.Points(0.6), vg.Points(0.6)
	if !vertical {
		g.Vertical.Color = nil
	}
	p.Add(g)
}

// svgHead matches everything before the picture in an SVG file.
var svgHead = regexp.MustCompile(`(?s)^.*?<svg [^>]*?viewBox="([^"]*)"[^>]*>`)

// svg draws a plot. It replaces the colours by variables of the page, and the width by the available one.
func svg(p *plot.Plot, title string) (_ template.HTML, err error) {
	defer func() { // the library panics on values that an axis cannot show
		if what := recover(); what != nil {
			err = fmt.Errorf("report: %s cannot be drawn: %v", title, what)
		}
	}()
	canvas := vgsvg.New(chartWidth, chartHeight)
	p.Draw(draw.Crop(draw.New(canvas), vg.Points(2), vg.Points(-14), vg.Points(2), vg.Points(-8))) // room for the outermost labels
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("report: drawing %s: %w", title, err)
	}
	head := fmt.Sprintf(`<svg role="img" aria-label="%s" viewBox="$1">`, template.HTMLEscapeString(title))
	return template.HTML(recolour(svgHead.ReplaceAllString(b.String(), head))), nil // drawn by us, of numbers and known words
}

// recolour replaces the colours of roles by the page's variables.
func recolour(s string) string {
	var pairs []string
	for _, r := range roles() {
		c := r.marker
		pairs = append(pairs, fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B), "var("+r.variable+")")
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// ticks are the labelled marks of an axis.
type ticks []plot.Tick

func (t ticks) Ticks(float64, float64) []plot.Tick { return t }

// linearTicks returns about five round values from 0 to above top.
func linearTicks(top float64) ticks {
	if !(top > 0) {
		top = 1
	}
	top = plausible(top)
	step := math.Pow(10, math.Floor(math.Log10(top/5)))
	for _, f := range []float64{1, 2, 2.5, 5, 10} {
		if step*f*5.5 >= top {
			step *= f
			break
		}
	}
	var out ticks
	for i := 0; ; i++ {
		v := float64(i) * step
		out = append(out, plot.Tick{Value: v, Label: number(math.Round(v*1e6) / 1e6)})
		if v >= top {
			return out
		}
	}
}

// plausible returns v, or the nearest value for which the number of ticks is small and powers of ten are finite. A file
// of results may come from elsewhere, with any value.
func plausible(v float64) float64 { return min(max(v, 1e-30), 1e30) }

// number formats a value without trailing zeros, with its thousands separated.
func number(v float64) string {
	if v >= 10_000 {
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// decades returns the tick marks of a logarithmic axis: the powers of ten from the one below low to the one above high,
// and small marks between them. If there are few powers, the marks at 2 and 5 have labels too.
func decades(low, high float64) (out ticks) {
	if !(low > 0 && low <= high) {
		return nil
	}
	low, high = plausible(low), plausible(high)
	near := high/low < 100
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			tick := plot.Tick{Value: m * math.Pow(10, e)}
			if m == 1 || near && (m == 2 || m == 5) {
				tick.Label = number(math.Round(tick.Value*1e6) / 1e6)
			}
			out = append(out, tick)
		}
	}
	return out.within(low, high)
}

// within returns the ticks inside a range.
func (t ticks) within(low, high float64) (out ticks) {
	for _, tick := range t {
		if tick.Value >= low*(1-1e-9) && tick.Value <= high*(1+1e-9) {
			out = append(out, tick)
		}
	}
	return out
}

// centred returns the style of text inside a chart.
func centred(x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{Color: ink.marker, Font: sans(textSize - 1.5), XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler}
}
