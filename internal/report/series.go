package report

import (
	"image/color"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// role is what a colour stands for. A chart is drawn in colours that only name roles; the page gives
// them values, for light and for dark.
type role struct {
	variable string
	marker   color.RGBA
}

// Roles of a chart itself.
var (
	ink  = role{"--ink", color.RGBA{1, 1, 1, 255}}
	grid = role{"--grid", color.RGBA{2, 2, 2, 255}}
)

// series is what one operation is called and looks like, in every chart.
type series struct {
	Op, Title string
	// Short is the title for the mark of an axis, Class what the page styles it by.
	Short, Class string
	role         role
}

// all is every operation, in the order of a legend.
var all = []series{
	newSeries(result.Raw, "raw AF_XDP", "raw", 10),
	newSeries(result.RawAsavie, "raw, asavie/xdp", "asavie", 11),
	newSeries(result.Send, "send", "send", 12),
	newSeries(result.Write, "RDMA write", "write", 13),
	newSeries(result.Read, "RDMA read", "read", 14),
	newSeries(result.TCP, "kernel TCP", "tcp", 15),
}

func newSeries(op, title, class string, mark uint8) series {
	return series{op, title, class, class, role{"--" + class, color.RGBA{mark, mark, mark, 255}}}
}

// roles are all that a chart may be drawn in.
func roles() []role {
	out := []role{ink, grid}
	for _, s := range all {
		out = append(out, s.role)
	}
	return out
}

// seriesOf is the series of an operation, of a name that nobody knows too.
func seriesOf(op string) series {
	if i := slices.IndexFunc(all, func(s series) bool { return s.Op == op }); i >= 0 {
		return all[i]
	}
	return series{Op: op, Title: op, Short: op, Class: "other", role: ink}
}

// rank is where an operation stands among others.
func rank(op string) int {
	i := slices.IndexFunc(all, func(s series) bool { return s.Op == op })
	if i < 0 {
		return len(all)
	}
	return i
}

// legend is the series of some rows, each once.
func legend(rows []result.Result) (out []series) {
	for _, s := range all {
		if slices.ContainsFunc(rows, func(r result.Result) bool { return r.Op == s.Op }) {
			out = append(out, s)
		}
	}
	return out
}

// shortSize is a size for the mark of an axis: 64, 4K, 1M.
func shortSize(n int64) string {
	text, unit, _ := strings.Cut(result.FormatSize(n), " ")
	return text + strings.TrimSuffix(strings.TrimSuffix(unit, "iB"), "B")
}
