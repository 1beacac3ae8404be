package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"

	"github.com/datxdp/datxdp/internal/result"
)

// sections returns all sections that have charts.
func sections(files []File) (out []section, err error) {
	for _, make := range []func([]File) (section, error){latency, bandwidth, rate, requests, ratios} {
		s, err := make(files)
		if err != nil {
			return nil, err
		}
		if len(s.Charts) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

func median(r *result.Result) float64 {
	if r.P50 == nil {
		return 0
	}
	return *r.P50
}

func tail(r *result.Result) float64 {
	if r.P99 == nil {
		return 0
	}
	return *r.P99
}

func extreme(r *result.Result) float64 {
	if r.P999 == nil {
		return 0
	}
	return *r.P999
}

func gbps(r *result.Result) float64     { return r.Gbps }
func millions(r *result.Result) float64 { return r.MsgsPerSec / 1e6 }

// latency returns the charts of round trips: for each MTU and impairment a distribution and its percentiles. If several
// sizes were measured, it returns the medians by size, and folds the distributions.
func latency(files []File) (section, error) {
	s := section{Title: "Round trip", Note: "The full round trip of one operation at a time. In a distribution each step up the left axis is ten times " +
		"rarer: at 99 % one in a hundred takes longer."}
	return timed(files, s, result.Latency)
}

// requests returns the rate of answered requests, and their round trips with several in flight.
func requests(files []File) (section, error) {
	s := section{Title: "Requests", Note: "Messages that are answered by messages, several in flight on one connection."}
	s, err := throughput(files, s, result.Requests, "million requests a second", millions)
	if err != nil {
		return s, err
	}
	return timed(files, s, result.Requests)
}

// timed adds the charts of a metric's round trips.
func timed(files []File, s section, metric string) (section, error) {
	is := func(r result.Result) bool { return r.Metric == metric && len(r.Histogram) > 0 }
	for _, at := range distinct(everything(files, is), placeOf) {
		here := func(r result.Result) bool { return is(r) && placeOf(r) == at }
		charts, folded, err := latencyAt(files, here, at)
		if err != nil {
			return s, err
		}
		s.Charts, s.Folded = append(s.Charts, charts...), append(s.Folded, folded...)
	}
	return s, nil
}

func latencyAt(files []File, here func(result.Result) bool, at place) (charts, folded []chart, err error) {
	some := everything(files, here)
	values := around(some, median, tail, extreme)
	for _, size := range distinct(some, func(r result.Result) int64 { return r.Size }) {
		c, err := distributionOf(files, func(r result.Result) bool { return here(r) && r.Size == size }, fmt.Sprintf("%s, %s", result.FormatSize(size), at))
		if err != nil {
			return nil, nil, err
		}
		folded = append(folded, c)
	}
	if sized(some) {
		values := around(some, median, tail)
		c, err := drawEach(files, "Median and p99 (dashed) against size, "+at.String(), here, func(rows []result.Result) (*plot.Plot, error) {
			return againstSize(rows, "round trip, µs", median, tail, values, true)
		})
		return []chart{c}, folded, err
	}
	c, err := drawEach(files, "Median, p99 and p99.9, "+result.FormatSize(some[0].Size)+", "+at.String(), here, func(rows []result.Result) (*plot.Plot, error) {
		return percentiles(rows, values)
	})
	return append(folded, c), nil, err
}

func distributionOf(files []File, pick func(result.Result) bool, what string) (chart, error) {
	times := timesOf(everything(files, pick))
	return drawEach(files, "Distribution, "+what, pick, func(rows []result.Result) (*plot.Plot, error) { return cdf(rows, times) })
}

func bandwidth(files []File) (section, error) {
	s := section{Title: "Bandwidth", Note: "Payload bits; of raw, those of whole frames."}
	return throughput(files, s, result.Bandwidth, "Gb/s", gbps)
}

func rate(files []File) (section, error) {
	s := section{Title: "Message rate", Note: "Small operations, many outstanding."}
	return throughput(files, s, result.Rate, "million messages a second", millions)
}

// throughput draws a line over sizes if several were measured, else bars by MTU.
func throughput(files []File, s section, metric, unit string, figure func(*result.Result) float64) (section, error) {
	is := func(r result.Result) bool { return r.Metric == metric }
	rows := everything(files, is)
	top := highest(rows, figure)
	if top == 0 {
		return s, nil
	}
	if !sized(slices.DeleteFunc(slices.Clone(rows), isRaw)) {
		c, err := drawEach(files, barTitle(rows), is, func(rows []result.Result) (*plot.Plot, error) {
			return barChart(byPlace(rows, figure), unit, top)
		})
		s.Charts = append(s.Charts, c)
		return s, err
	}
	for _, at := range distinct(rows, placeOf) {
		here := func(r result.Result) bool { return is(r) && placeOf(r) == at && !isRaw(r) }
		top := highest(everything(files, here), figure)
		if top == 0 {
			continue
		}
		c, err := drawEach(files, "Against size, "+at.String(), here, func(rows []result.Result) (*plot.Plot, error) {
			return againstSize(rows, unit, figure, nil, span{0, top}, false)
		})
		if err != nil {
			return s, err
		}
		s.Charts = append(s.Charts, c)
	}
	return s, nil
}

// isRaw reports whether a row moves frames.
func isRaw(r result.Result) bool { return r.Frames() }

func barTitle(rows []result.Result) string {
	ours := slices.DeleteFunc(slices.Clone(rows), isRaw)
	if len(ours) == 0 {
		return "Whole frames"
	}
	return result.FormatSize(ours[0].Size)
}

func byPlace(rows []result.Result, figure func(*result.Result) float64) (out []barGroup) {
	for _, at := range distinct(rows, placeOf) {
		g := barGroup{name: at.String()}
		for _, r := range ordered(rows) {
			if placeOf(r) == at {
				g.bars = append(g.bars, bar{seriesOf(&r), figure(&r)})
			}
		}
		out = append(out, g)
	}
	return out
}

// ordered returns the rows by operation, in the order of a legend.
func ordered(rows []result.Result) []result.Result {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b result.Result) int { return rank(&a) - rank(&b) })
	return rows
}

// figureText formats three significant digits.
func figureText(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
