package render

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

func TestGroups(t *testing.T) {
	results := []result.Result{
		{Row: result.Row{Op: result.TCP, Metric: result.Bandwidth, MTU: 1500}, Gbps: 20, Valid: true},
		{Row: result.Row{Op: result.Raw, Metric: result.Latency, MTU: 1500}, P50: ptr(4), Valid: true},
		{Row: result.Row{Op: result.Write, Metric: result.Bandwidth, MTU: 9000}, Gbps: 9, Valid: true},
		{Row: result.Row{Op: result.Send, Metric: result.Latency, MTU: 1500}, P50: ptr(6), Valid: true},
		{Row: result.Row{Op: result.Raw, Metric: result.Bandwidth, MTU: 9000}, Gbps: 10, Valid: true},
		{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, MTU: 1500}, Gbps: 5, Valid: false},
	}
	var got []string
	for _, g := range groups(results) {
		for i := range g.rows {
			r := &g.rows[i]
			got = append(got, strings.TrimSpace(strings.Join([]string{g.Metric, strconv.Itoa(g.MTU), r.Op, g.ratio(r, result.Raw), g.ratio(r, result.TCP)}, " ")))
		}
	}
	want := []string{"lat 1500 raw", "lat 1500 send 1.50", "bw 1500 send", "bw 1500 tcp", "bw 9000 raw", "bw 9000 write 0.90"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	Report(&b, &result.Report{Env: result.Env{Link: "veth"}, Results: []result.Result{
		{Row: result.Row{Op: result.Raw, Metric: result.Latency, Size: 64, MTU: 1500}, P50: ptr(3.94), P99: ptr(5), P999: ptr(6), Samples: 9, Mode: "copy", Valid: true},
		{Row: result.Row{Op: result.TCP, Metric: result.Bandwidth, Size: 1 << 20, MTU: 1500}, Gbps: 20.123, Samples: 9, Mode: "kernel", Valid: true},
		{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, MTU: 1500}, MsgsPerSec: 5.5e6, Samples: 9, Retransmits: 3, Reason: "a reason"},
	}})
	for _, want := range []string{"3.9", "20.12", "5.500", "INVALID", "TCP on veth moves 64 KiB super-frames",
		"INVALID message rate send 64 B at MTU 1500: a reason"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestTableWidth: the widest figures fit a terminal of 80 columns.
func TestTableWidth(t *testing.T) {
	wide := result.Result{Row: result.Row{Op: result.RawAsavie, Metric: result.Latency, Size: 65014, Transport: plan.TransportXDP, MTU: 65000}, Mode: "zero-copy",
		P50: ptr(99999), P99: ptr(999999), P999: ptr(9999999), Samples: 9, Retransmits: 99999, Drops: 999999, Valid: true}
	base := wide
	base.Op, base.P50 = result.Raw, ptr(1000)
	asked := wide
	asked.Op, asked.Metric, asked.MsgsPerSec = result.Send, result.Requests, 99.999e6
	full := &result.Report{Env: result.Env{Link: "veth"}, Results: []result.Result{base, wide, asked, {Row: result.Row{Op: result.TCP, Metric: result.Rate}, Valid: true}}}
	full.SetRawRatios()
	full.Results[1].RawP99Ratio = ptr(999.9)
	var b bytes.Buffer
	Report(&b, full)
	alone := wide
	alone.Op, alone.Runs = result.Send, []float64{1, 2}
	alone.Min, alone.P90, alone.P9999, alone.Max = wide.P50, wide.P50, wide.P999, wide.P999
	alone.Invalidate("run 1 of 10: not saturated: a side had 12 %% of a core, the host is busy with something else; 5 samples are too few for a p99.9")
	stream := alone
	stream.Metric, stream.Size, stream.Gbps, stream.MsgsPerSec, stream.Depth = result.Bandwidth, 64<<20, 99.5, 99999, 16384
	stream.Connections = 128
	requests := alone
	requests.Metric, requests.MsgsPerSec, requests.Depth = result.Requests, 99.999e6, 16384
	stream.Bidir = &result.Bidir{OutGbps: 49.5, InGbps: 50}
	Report(&b, &result.Report{Results: []result.Result{alone, stream, requests}})
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(b.String(), "99999") {
		t.Errorf("no figures in\n%s", b.String())
	}
}

// TestFullTable: the table marks a row with --churn, and a row with several connections.
func TestFullTable(t *testing.T) {
	plain := result.Result{Row: result.Row{Op: result.Send, Metric: result.Latency, Size: 64, MTU: 1500}, P50: ptr(6), P99: ptr(9), Samples: 9, Valid: true}
	raw, churned, requests := plain, plain, plain
	raw.Op, raw.P50, raw.P99 = result.Raw, ptr(4), ptr(6)
	churned.Churn, churned.Realtime, churned.P50 = 1<<30, true, ptr(12)
	spread := result.Result{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, MTU: 1500, Connections: 64}, MsgsPerSec: 2e6, Samples: 9, Valid: true}
	requests.Metric, requests.MsgsPerSec = result.Requests, 1e6
	r := &result.Report{Results: []result.Result{raw, plain, churned, spread, requests}}
	r.SetRawRatios()
	var b bytes.Buffer
	Report(&b, r)
	for _, want := range []string{
		"send          64 B    6.0   9.0        1.50  1.50",
		"round trip at MTU 1500, beside 1 GiB of churned heap, at real-time priority\n",
		"send          64 B   12.0   9.0        3.00  1.50",
		"send × 64     64 B  2.000\n",
		"requests at MTU 1500\nop            size    M/s p50µs   p99",
		"send          64 B  1.000   6.0   9.0\n",
	} {
		if !bytes.Contains(b.Bytes(), []byte(want)) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestReasonsOnce: equal reasons are printed once below the table, with all their rows.
func TestReasonsOnce(t *testing.T) {
	row := func(op string, share int) result.Result {
		r := result.Result{Row: result.Row{Op: op, Metric: result.Rate, Size: 64, MTU: 1500}, Samples: 9, Valid: true}
		if share > 0 {
			r.Invalidate("not saturated: a side had %d %% of a core, the host is busy with something else", share)
		}
		return r
	}
	dead := row(result.TCP, 0)
	dead.Invalidate("the target died: signal: killed")
	var b bytes.Buffer
	Report(&b, &result.Report{Results: []result.Result{row(result.Raw, 0), row(result.Send, 42), dead,
		result.Pool([]result.Result{row(result.Read, 0), row(result.Read, 17), row(result.Read, 31)}), row(result.Write, 20)}})
	got := strings.Join(strings.Fields(b.String()[strings.Index(b.String(), "INVALID message"):]), " ")
	want := "INVALID message rate send 64 B at MTU 1500; message rate read 64 B at MTU 1500 (runs 2 and 3 of 3); message rate write 64 B at MTU 1500: " +
		"not saturated: a side had 17 to 42 % of a core, the host is busy with something else " +
		"INVALID message rate tcp 64 B at MTU 1500: the target died: signal: killed"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTCPSpread: a table with ratios to kernel TCP is followed by the spread of the kernel TCP figures.
func TestTCPSpread(t *testing.T) {
	row := func(op string, p50 float64) result.Result {
		return result.Result{Row: result.Row{Op: op, Metric: result.Latency, Size: 64, MTU: 1500}, P50: ptr(p50), Samples: 9, Valid: true}
	}
	tcp := row(result.TCP, 70)
	tcp.Parts = []float64{18, 82, 70, 71, 72}
	var b bytes.Buffer
	Report(&b, &result.Report{Results: []result.Result{row(result.Send, 6), row(result.Write, 9), tcp}})
	const want = "\ntcp: p50 18.0 to 82.0 µs in 5 connections; × tcp: send 0.07 to 0.33, write\n  0.11 to 0.50\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
	b.Reset()
	Report(&b, &result.Report{Results: []result.Result{tcp}})
	if strings.Contains(b.String(), "tcp: ") {
		t.Errorf("no ratio, and a spread in\n%s", b.String())
	}
}
func ptr(v float64) *float64 { return &v }

// TestTransports: the table names the rows over kernel UDP if there are also rows over XDP, and compares kernel TCP
// beside an open adapter with kernel TCP alone.
func TestTransports(t *testing.T) {
	row := func(op, transport, mode string, gbps float64) result.Result {
		return result.Result{Row: result.Row{Op: op, Metric: result.Bandwidth, Size: 1 << 20, Transport: transport, MTU: 1500}, Mode: mode, Gbps: gbps, Samples: 9, Valid: true}
	}
	tcp := row(result.TCP, result.TransportTCP, "kernel", 20)
	tcp.Parts = []float64{16, 20}
	starved := row(result.Write, result.TransportUDP, "udp", 5)
	starved.Invalidate("starved")
	sealed := row(result.Write, result.TransportXDP, "copy", 4)
	sealed.Secure = true
	rows := []result.Result{sealed, row(result.Raw, result.TransportXDP, "copy", 8), row(result.Write, result.TransportXDP, "copy", 6), tcp,
		row(result.TCPShared, result.TransportTCP, "copy", 5), starved}
	var b bytes.Buffer
	Report(&b, &result.Report{Env: result.Env{Link: "veth"}, Results: rows})
	for _, want := range []string{
		"write        1 MiB   6.00              0.75        0.30               copy\nwrite udp    1 MiB   5.00                                             INVALID\n",
		"write+aes    1 MiB   4.00              0.50        0.20               copy\n", secureNote,
		"tcp_shared   1 MiB   5.00              0.62        0.25               copy\n",
		"write 0.30 to 0.38, tcp_shared 0.25 to 0.31",
		"INVALID bandwidth write 1 MiB over udp at MTU 1500: starved",
		result.Operations[result.Rank(result.TCPShared)].Note, udpNote,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	Report(&b, &result.Report{Results: []result.Result{row(result.Write, result.TransportUDP, "udp", 5), tcp}})
	if strings.Contains(b.String(), "write udp") || strings.Contains(b.String(), udpNote) {
		t.Errorf("all rows are over UDP, and their names say so:\n%s", b.String())
	}
}
