package report

import (
	"image/color"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// role is the meaning of a colour. Charts are drawn with marker colours. The page replaces each marker by a colour for
// its light and its dark style.
type role struct {
	variable string
	marker   color.RGBA
}

// Roles of a chart's own elements.
var (
	ink  = role{"--ink", color.RGBA{1, 1, 1, 255}}
	grid = role{"--grid", color.RGBA{2, 2, 2, 255}}
)

// series is the name and the style of an operation in every chart. An operation over kernel UDP is a series of its own.
type series struct {
	Op    string
	UDP   bool
	Title string
	// Short is the title for a mark of an axis, Class the CSS class.
	Short, Class string
	role         role
}

// all has the series of every operation, in the order of a legend. An operation of ours has one more for kernel UDP.
var all = seriesOfOperations()

// firstMark is the marker colour of the first series.
const firstMark = 10

func seriesOfOperations() (out []series) {
	add := func(s series) {
		mark := firstMark + uint8(len(out))
		s.role.marker = color.RGBA{mark, mark, mark, 255}
		out = append(out, s)
	}
	for _, o := range result.Operations {
		s := series{Op: o.Name, Title: o.Title, Short: o.Style, Class: o.Style, role: role{variable: "--" + o.Style}}
		add(s)
		if o.Class == result.ClassDAT || o.Class == result.ClassStream {
			add(s.overUDP())
		}
	}
	return out
}

// overUDP returns the series of the same operation over kernel UDP.
func (s series) overUDP() series {
	s.UDP, s.Title, s.Short, s.Class = true, s.Title+" over UDP", s.Short+"\nudp", s.Class+"-udp"
	s.role.variable += "-udp"
	return s
}

// has reports whether a row belongs to the series.
func (s series) has(r *result.Result) bool {
	return s.Op == r.Op && (s.UDP == r.OverUDP() || r.Baseline())
}

// roles returns all roles that a chart may use.
func roles() []role {
	out := []role{ink, grid}
	for _, s := range all {
		out = append(out, s.role)
	}
	return out
}

// seriesOf returns the series of a row, also of an unknown operation.
func seriesOf(r *result.Result) series {
	if i := slices.IndexFunc(all, func(s series) bool { return s.has(r) }); i >= 0 {
		return all[i]
	}
	return series{Op: r.Op, UDP: r.OverUDP(), Title: r.Op, Short: r.Op, Class: "other", role: ink}
}

// rank returns the position of a row in the legend.
func rank(r *result.Result) int {
	i := slices.IndexFunc(all, func(s series) bool { return s.has(r) })
	if i < 0 {
		return len(all)
	}
	return i
}

// legend returns the series of some rows, each once.
func legend(rows []result.Result) (out []series) {
	for _, s := range all {
		if slices.ContainsFunc(rows, func(r result.Result) bool { return s.has(&r) }) {
			out = append(out, s)
		}
	}
	return out
}

// shortSize returns a size for a mark of an axis: 64, 4K, 1M.
func shortSize(n int64) string {
	text, unit, _ := strings.Cut(result.FormatSize(n), " ")
	return text + strings.TrimSuffix(strings.TrimSuffix(unit, "iB"), "B")
}
