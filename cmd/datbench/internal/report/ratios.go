package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"github.com/datxdp/datxdp/internal/result"
)

// ratios returns the section that compares our operations with raw frames and kernel TCP.
func ratios(files []File) (section, error) {
	s := section{Title: "Beside raw AF_XDP and kernel TCP", Note: "How many times as fast, in the same run: above 1 is faster, below it slower. " +
		"Raw frames are the floor of the link, without a protocol. On veth kernel TCP moves 64 KiB super-frames that are never cut to the MTU."}
	for _, base := range []struct{ op, title string }{{result.Raw, "Beside raw AF_XDP"}, {result.TCP, "Beside kernel TCP"}} {
		values := span{1, 1}
		for _, f := range files {
			for _, g := range besides(f.Report.Results, base.op) {
				for _, b := range g.bars {
					values = span{min(values.low, b.value), max(values.high, b.value)}
				}
			}
		}
		if values.low == values.high {
			continue
		}
		values = span{values.low / 1.5, values.high * 1.4}
		c, err := drawEach(files, base.title, func(result.Result) bool { return true }, func(rows []result.Result) (*plot.Plot, error) {
			return ratioChart(besides(rows, base.op), "times as fast", values)
		})
		if err != nil {
			return s, err
		}
		c.Legend = ours(c.Legend)
		if base.op == result.TCP {
			c.Notes = append(c.Notes, spreadNotes(files)...)
		}
		s.Charts = append(s.Charts, c)
	}
	return s, nil
}

func ours(in []series) (out []series) {
	for _, s := range in {
		if (result.Row{Op: s.Op}).DAT() {
			out = append(out, s)
		}
	}
	return out
}

// besides returns the speed ratios of our operations to another operation, by metric and place.
func besides(rows []result.Result, op string) (out []barGroup) {
	for _, metric := range []string{result.Latency, result.Rate, result.Bandwidth} {
		is := func(r result.Result) bool { return r.Metric == metric }
		for _, at := range distinct(drawn(rows, is), placeOf) {
			g := barGroup{name: groupName(metric, at)}
			for _, r := range ordered(drawn(rows, is)) {
				if v, ok := times(&r, rows, op); ok && r.DAT() && placeOf(r) == at && at.plain() {
					g.bars = append(g.bars, bar{seriesOf(&r), v})
				}
			}
			if len(g.bars) > 0 {
				out = append(out, g)
			}
		}
	}
	return out
}

func groupName(metric string, at place) string {
	switch metric {
	case result.Latency:
		return "round trip"
	case result.Rate:
		return "rate"
	}
	return fmt.Sprintf("Gb/s at\n%d", at.MTU)
}

// times returns how many times faster a row is than another operation under the same conditions. It inverts the ratio
// of latencies, because a shorter latency is better.
func times(r *result.Result, rows []result.Result, op string) (float64, bool) {
	v := result.FigureRatio(rows, r, op)
	if v == nil {
		return 0, false
	}
	if r.Metric == result.Latency {
		*v = 1 / *v
	}
	return *v, *v > 0 && !math.IsInf(*v, 0) && !math.IsNaN(*v)
}
