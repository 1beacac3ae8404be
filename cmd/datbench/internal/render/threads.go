package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/datxdp/datxdp/internal/result"
)

// threadsLine returns a line that says how long the threads of each row waited for a core, and how often they lost it. It
// is empty if nothing was counted.
func (g group) threadsLine() string {
	var rows []string
	for i := range g.rows {
		r := &g.rows[i]
		if r.Client == nil {
			continue
		}
		row := g.name(r) + " " + threads(r.Client)
		if r.Server != nil {
			row += " and at the server " + threads(r.Server)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return ""
	}
	return "run delay in ms/s, involuntary switches/s: " + strings.Join(rows, "; ")
}

func threads(t *result.Threads) string {
	return fmt.Sprintf("%.0f, %.0f", t.DelayPerSecond(), t.InvoluntaryPerSecond())
}

// besideLoops reports whether rows of the group were measured beside busy loops.
func (g group) besideLoops() bool {
	return slices.ContainsFunc(g.rows, func(r result.Result) bool { return r.Busy > 0 })
}
