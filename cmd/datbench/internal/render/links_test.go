package render

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/datxdp/datxdp/internal/result"
)

// TestLinks: the table has a row for each link, with the ratio of kernel TCP beside it to kernel TCP alone.
func TestLinks(t *testing.T) {
	bw := func(op, transport, mode string, mtu int, gbps float64) result.Result {
		return result.Result{Row: result.Row{Op: op, Metric: result.Bandwidth, Size: 1 << 20, Transport: transport, MTU: mtu, AskedMode: mode}, Gbps: gbps, Samples: 9, Valid: true}
	}
	send := func(metric, transport, mode string, v float64) result.Result {
		return result.Result{Row: result.Row{Op: result.Send, Metric: metric, Size: 64, Transport: transport, MTU: 1500, AskedMode: mode}, P50: &v, MsgsPerSec: v * 1e6, Samples: 9, Valid: true}
	}
	rows := []result.Result{bw(result.TCP, "tcp", "", 1500, 20)}
	for i, of := range [][2]string{{"xdp", "copy"}, {"xdp", "generic"}, {"udp", ""}} {
		v, shared := float64(i+1), of[1]
		if shared == "" {
			shared = "udp"
		}
		rows = append(rows, send(result.Latency, of[0], of[1], 1000*v), send(result.Rate, of[0], of[1], 10*v), bw(result.Write, of[0], of[1], 1500, 100*v),
			bw(result.TCPShared, "tcp", shared, 1500, 5*v), bw(result.Write, of[0], of[1], 9000, 110*v))
	}
	rows[7].Invalidate("starved")
	var b bytes.Buffer
	Links(&b, &result.Report{Env: result.Env{Link: "veth", CPUs: 2}, Results: rows})
	for _, want := range []string{
		"xdp, copy          1000   10.000    100.00    110.00      5.00    0.25 root *\n",
		"xdp, generic       2000  INVALID    200.00    220.00     10.00    0.50 root *\n",
		"udp                3000   30.000    300.00    330.00     15.00    0.75 nothing\n",
		"no adapter                                               20.00    1.00\n",
		"INVALID message rate send 64 B at MTU 1500 in generic mode: starved",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
