package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/datxdp/datxdp/internal/result"
)

// TestThreads: a table of rows beside busy loops is followed by a line with the run delays and the involuntary switches.
// Other tables have it in a detailed report only.
func TestThreads(t *testing.T) {
	row := func(op string, loops int) result.Result {
		return result.Result{Row: result.Row{Op: op, Metric: result.Latency, Size: 64, MTU: 1500, Busy: loops}, P50: ptr(6), Samples: 9, Valid: true,
			Client: &result.Threads{Elapsed: 2e6, RunDelay: 1e6, Involuntary: 80}}
	}
	send := row(result.Send, 4)
	send.Server = &result.Threads{Elapsed: 2e6, RunDelay: 3e6, Involuntary: 20}
	const line = "run delay in ms/s, involuntary switches/s: send 500, 40 and at the server\n  1500, 10; tcp 500, 40\n"
	for _, tt := range []struct {
		name  string
		print func(*bytes.Buffer, *result.Report)
		rows  []result.Result
		want  bool
	}{
		{"beside loops", func(b *bytes.Buffer, r *result.Report) { Report(b, r) }, []result.Result{send, row(result.TCP, 4)}, true},
		{"without loops", func(b *bytes.Buffer, r *result.Report) { Report(b, r) }, []result.Result{row(result.Send, 0), row(result.TCP, 0)}, false},
		{"detailed", func(b *bytes.Buffer, r *result.Report) { Detailed(b, r) }, []result.Result{send, row(result.TCP, 4)}, true},
		{"detailed without loops", func(b *bytes.Buffer, r *result.Report) { Detailed(b, r) }, []result.Result{row(result.Send, 0)}, true},
	} {
		var b bytes.Buffer
		tt.print(&b, &result.Report{Results: tt.rows})
		if got := strings.Contains(b.String(), "run delay"); got != tt.want || len(tt.rows) == 2 && tt.want && !strings.Contains(b.String(), line) {
			t.Errorf("%s: got\n%s", tt.name, b.String())
		}
	}
}
