package render

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/result"
)

// impairedResults returns a run with 1 % loss, whose figures are as wide as possible.
func impairedResults() []result.Result {
	const impair = "loss=0.01,dup=0.001,seed=999999"
	lat := result.Result{Row: result.Row{Metric: result.Latency, Size: 1024, MTU: 1500}, P50: ptr(9), P99: ptr(30), P999: ptr(99999), Samples: 9, Mode: "zero-copy", Valid: true}
	bw := result.Result{Row: result.Row{Metric: result.Bandwidth, Size: 1 << 20, MTU: 1500}, Gbps: 4, Samples: 9, Mode: "zero-copy", Valid: true}
	of := func(r result.Result, op, impair string, figure float64) result.Result {
		r.Op, r.Impair = op, impair
		if r.Metric == result.Latency {
			r.P99 = ptr(figure)
		} else {
			r.Gbps = figure
		}
		return r
	}
	broken := of(bw, result.Read, impair, 1)
	broken.Invalidate("starved")
	return []result.Result{
		of(lat, result.Send, "", 30), of(lat, result.Send, impair, 45), of(lat, result.TCP, "", 40), of(lat, result.TCP, impair, 240000),
		of(bw, result.Write, "", 4), of(bw, result.Write, impair, 3.2), of(bw, result.Read, "", 3), broken, of(bw, result.TCP, impair, 1),
	}
}

func TestImpairedTable(t *testing.T) {
	results := impairedResults()
	result.CompareImpaired(results)
	var b bytes.Buffer
	Report(&b, &result.Report{Env: result.Env{Link: "veth", Pcap: "x.pcapng"}, Results: results})
	for _, want := range []string{"round trip at MTU 1500\n", "round trip at MTU 1500, impaired by loss=0.01,dup=0.001,seed=999999\n",
		"kept", "80.0%", "× p99", "6000", "1.50", "TCP runs without TSO", "Captured to x.pcapng"} {
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

func TestCompareImpaired(t *testing.T) {
	results := impairedResults()
	result.CompareImpaired(results)
	var got []string
	for _, r := range results {
		s := r.Metric + " " + r.Op
		if r.Kept != nil {
			s += " kept " + strconv.FormatFloat(*r.Kept, 'f', 1, 64)
		}
		if r.P99Ratio != nil {
			s += " p99 " + strconv.FormatFloat(*r.P99Ratio, 'f', 1, 64)
		}
		got = append(got, s)
	}
	want := []string{"lat send", "lat send p99 1.5", "lat tcp", "lat tcp p99 6000.0",
		"bw write", "bw write kept 80.0", "bw read", "bw read", "bw tcp"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
