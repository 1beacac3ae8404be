package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/bench/peers/tool"
	"github.com/datxdp/datxdp/internal/result"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(tt.of); got != tt.want {
			t.Errorf("%v: got %g, want %g", tt.of, got, tt.want)
		}
	}
}

// figures returns valid runs with one figure each.
func figures(metric string, of ...float64) (runs []result.Result) {
	for _, v := range of {
		r := result.Result{Row: result.Row{Metric: metric}, MsgsPerSec: v, Gbps: v, Valid: true}
		if metric == result.Latency {
			tail := 10 * v
			r.P50, r.P99 = &v, &tail
		}
		runs = append(runs, r)
	}
	return runs
}

// find returns the row of a metric whose name has this beginning.
func find(t *testing.T, rows []*row, metric, name string) *row {
	t.Helper()
	for _, r := range rows {
		own := r.test == nil && name == ownName+" "+opName(r.op, r.secure)
		if r.metric == metric && (own || r.test != nil && strings.HasPrefix(r.test.Title(), name)) {
			return r
		}
	}
	t.Fatalf("no row %s of %s", name, metric)
	return nil
}

// example returns a report with every kind of row.
func example(t *testing.T) *Report {
	t.Helper()
	cfg := defaultConfig()
	cfg.peers = []string{"ucx", "libfabric", "net", "tls"}
	rows := plan(cfg, "bin/peers")
	own := func(metric, op string, of ...float64) {
		find(t, rows, metric, ownName+" "+op).runs = figures(metric, of...)
	}
	own(result.Latency, "send", 7, 5, 6)
	own(result.Latency, "write", 5)
	own(result.Rate, "send", 3e6)
	own(result.Bandwidth, "send", 8)
	own(result.Bandwidth, "read", 6)
	tag := find(t, rows, result.Latency, "UCX tag")
	tag.runs = figures(result.Latency, 12, 11, 40)
	tag.server, tag.client = tag.test.Server(tool.Job{}), tag.test.Client(tool.Job{Host: "10.73.0.1", Interface: "veth0", Count: 5})
	find(t, rows, result.Latency, "UCX put").fail("the client did not end within 25s")
	find(t, rows, result.Latency, "libfabric tcp").runs = figures(result.Latency, 15)
	half := find(t, rows, result.Latency, "Go net")
	half.runs = figures(result.Latency, 60, 62)
	half.fail("refused")
	find(t, rows, result.Rate, "Go net TCP, buffered").runs = figures(result.Rate, 6e6)
	find(t, rows, result.Bandwidth, "Go net").runs = figures(result.Bandwidth, 4)
	find(t, rows, result.Bandwidth, "UCX get").runs = figures(result.Bandwidth, 1)
	own(result.Latency, "send+aes", 7)
	find(t, rows, result.Latency, "Go TLS 1.3").runs = figures(result.Latency, 70)
	own(result.Bandwidth, "write+aes", 6)
	find(t, rows, result.Bandwidth, "Go TLS 1.3").runs = figures(result.Bandwidth, 5)
	starved := find(t, rows, result.Rate, "datxdp write")
	starved.doubtful = figures(result.Rate, 1e6)
	for range 3 {
		starved.fail("a side had too little of a core")
	}
	find(t, rows, result.Rate, "UCX put").runs = figures(result.Rate, 2e5)
	return newReport(cfg, rows, result.Env{Version: "v9", Kernel: "6.18", CPUs: 2, CPU: "Some"})
}

// TestCompare: ratios say how many times better datbench is. Only valid figures are compared.
func TestCompare(t *testing.T) {
	none := math.NaN()
	report := example(t)
	for _, tt := range []struct {
		metric, name  string
		figure, ratio float64
		valid         bool
		reason        string
	}{
		{result.Latency, "datxdp send", 6, none, true, ""},
		{result.Latency, "UCX tag over tcp, polling", 12, 2, true, ""},
		{result.Latency, "UCX put over tcp, polling", 0, none, false, "the client did not end within 25s"},
		{result.Latency, "libfabric tcp, polling", 15, 2.5, true, ""},
		{result.Latency, "Go net TCP", 61, 61.0 / 6, false, "1 of 3 runs: refused"},
		{result.Latency, "Go TLS 1.3 over TCP", 70, 10, true, ""},
		{result.Bandwidth, "Go TLS 1.3 over TCP", 5, 1.2, true, ""},
		{result.Rate, "Go net TCP, buffered", 6e6, 0.5, true, ""},
		{result.Bandwidth, "Go net TCP", 4, 2, true, ""},
		{result.Bandwidth, "UCX get over tcp, polling", 1, none, true, ""},
		{result.Rate, "datxdp write", 1e6, none, false, "a side had too little of a core"},
		{result.Rate, "UCX put over tcp, polling", 2e5, none, true, ""},
	} {
		found := false
		for _, row := range report.Rows {
			if row.Metric != tt.metric || row.Peer != tt.name || found {
				continue
			}
			found = true
			ratio := none
			if row.Ratio != nil {
				ratio = *row.Ratio
			}
			same := ratio == tt.ratio || math.IsNaN(ratio) && math.IsNaN(tt.ratio)
			if row.Figure != tt.figure || !same || row.Valid != tt.valid || row.Reason != tt.reason {
				t.Errorf("%s %s: got %g, ratio %g, valid %v, %q", tt.metric, tt.name, row.Figure, ratio, row.Valid, row.Reason)
			}
		}
		if !found {
			t.Errorf("no row %s %s", tt.metric, tt.name)
		}
	}
}

// TestVerdict: a row without figures changes the exit status.
func TestVerdict(t *testing.T) {
	r := &Report{Rows: []Row{{Valid: true}, {Valid: true}}}
	if err := r.verdict(); err != nil {
		t.Errorf("got %v", err)
	}
	r.Rows[1].Valid = false
	if err := r.verdict(); !errors.Is(err, errInvalid) || !strings.HasPrefix(err.Error(), "1 of 2 results are not valid") {
		t.Errorf("got %v", err)
	}
}

// TestTable compares the text with testdata/table.txt. The other formats must contain the same facts.
func TestTable(t *testing.T) {
	r := example(t)
	for i := range r.Versions {
		r.Versions[i].Version = "1.0" // would be the version on this host
	}
	var got strings.Builder
	r.print(&got)
	golden(t, "testdata/table.txt", got.String())

	markdown := string(r.markdown())
	for _, want := range []string{
		"| 1 | round trip of 64 B, µs, MTU 1500 | datxdp send |  |  | 6.0 | 60.0 |  |  |\n",
		"| UCX tag over tcp, polling | 12.0 | 120.0 | 6.0 | 60.0 | send | 2.00 |\n",
		"\n* Versions: datxdp 1.0, UCX 1.0, ", "```text\n", "-t tag_lat",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("no %q in\n%s", want, markdown)
		}
	}
	text, err := r.JSON()
	var back Report
	if err := errors.Join(err, json.Unmarshal(text, &back)); err != nil || len(back.Rows) != len(r.Rows) {
		t.Errorf("got %d rows, %v", len(back.Rows), err)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestPlan: every peer is compared with a row of datbench over the same link.
func TestPlan(t *testing.T) {
	rows := plan(defaultConfig(), "bin/peers")
	for _, r := range rows {
		if r.test == nil {
			continue
		}
		found := false
		for _, o := range rows {
			found = found || o.test == nil && o.op == r.op && o.secure == r.secure && o.metric == r.metric && o.phase.title() == r.phase.title() && o.size == r.size
		}
		if !found {
			t.Errorf("%s: nothing to compare with", r.title())
		}
	}
	cfg := defaultConfig()
	cfg.peers, cfg.metrics = []string{"iperf3"}, []string{result.Latency}
	if rows := plan(cfg, ""); len(rows) != 0 {
		t.Errorf("iperf3 measures %d latencies", len(rows))
	}
	cfg.metrics = []string{result.Bandwidth}
	if got := steps(plan(cfg, "")); tool.Iperf3.Missing() == "" && got != 8 {
		t.Errorf("got %d steps, want 8: ours and iperf3 over four links", got)
	}
}

func TestValidate(t *testing.T) {
	cfg := &config{duration: time.Microsecond, repeat: 0, limit: -1, peers: []string{"ucx", "smoke"}, metrics: []string{"x"}}
	err := cfg.validate()
	for _, want := range []string{"--duration: 1µs", "--repeat: 0", "--limit: -1ns", `--peer: no "smoke": choose of ucx, libfabric,`, `--metric: no "x": choose of lat, rate, bw`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if err := defaultConfig().validate(); err != nil {
		t.Error(err)
	}
}
