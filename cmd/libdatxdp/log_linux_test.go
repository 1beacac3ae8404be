//go:build datprovider

package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/lab"
)

// The pattern told matches the line of testdata/refused.c about a failed call; the pattern logged matches the line of
// the provider.
var (
	told   = regexp.MustCompile(`(?m)^refused: (dat_\w+) (DAT_\w+) ?(DAT_\w+)?`)
	logged = regexp.MustCompile(`(?m)level=DEBUG msg=refused call=(dat_\w+) error="?(DAT_\w+)(?: \((DAT_\w+)\))?"? reason="?([^"\n]*)`)
)

// TestLog: with DATXDP_LOG=debug the library logs one line for each refused call, in the order of the calls. The line
// has the name of the call, its result and a reason. The library also logs one line for each failed attempt to connect.
// It logs no other results. Without the variable DATXDP_LOG the library writes nothing.
func TestLog(t *testing.T) {
	requireProvider(t)
	refused := compile(t, "refused")
	overEach(t, func(h *hosts) {
		quiet := h.start(lab.A, refused+" "+ia)
		if out := quiet.wait(); !strings.Contains(out, "all refused") || strings.Contains(out, "level=") {
			h.t.Errorf("without DATXDP_LOG:\n%s", out)
		}
		p := h.start(lab.A, "env DATXDP_LOG=debug "+refused+" "+ia)
		p.judge(verdict{want: []string{"all refused"}, bad: callsBad})
		out := p.said.String()
		calls, lines := told.FindAllStringSubmatch(out, -1), logged.FindAllStringSubmatch(out, -1)
		if len(calls) < 15 || len(lines) != len(calls) {
			h.t.Fatalf("%d calls were refused, and %d lines tell of it:\n%s", len(calls), len(lines), out)
		}
		for i, c := range calls {
			l := lines[i]
			if c[1] != l[1] || c[2] != l[2] || c[3] != l[3] || len(l[4]) < 10 {
				h.t.Errorf("%s returned %s %s; the log has %q", c[1], c[2], c[3], l[0])
			}
		}
		if n := strings.Count(out, `msg="dat: not connected"`); n != 1 || !strings.Contains(out, `hint="at the peer nothing listens on the port or the qualifier`) {
			h.t.Errorf("a connection that was not made has %d lines:\n%s", n, out)
		}
	})
}
