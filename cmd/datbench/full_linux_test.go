package main

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// fullRowsXDP are the rows of the main job with --full.
var fullRowsXDP = slices.Concat(xdpRows[:18],
	product([]string{"bw"}, []string{"raw", "send", "write", "read", "tcp"}, " 3498"),
	product([]string{"bw"}, []string{"raw", "send", "write", "read", "tcp"}, " 9000"),
	product([]string{"bw"}, []string{"raw", "send", "write", "read", "tcp"}, " 65000"),
	[]string{"rate send × 64 1500", "rr send 1500", "lat send churn 1500"})

// TestFullXDP is the main job with all that it knows, shortened.
func TestFullXDP(t *testing.T) {
	labtest.RequireXDP(t)
	got := datbench(t, "--transport", "xdp", "--full", "--churn", "8M", "--duration", "60ms", "--warmup", "10ms", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if diff := cmp.Diff(sorted(fullRowsXDP), rowNames(r, true)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, res := range r.Results {
		timed := res.Metric == metricLatency && res.P99 != nil
		if res.Op != opRaw && res.Metric != metricRequests && res.Valid && r.Results[0].Valid && timed && (res.RawRatio == nil || res.RawP99Ratio == nil) {
			t.Errorf("%s: no ratio to raw frames", rowName(res, true))
		}
	}
}

// TestRounds: repeated rows keep the run of each round, over UDP and any adapter.
func TestRounds(t *testing.T) {
	got := datbench(t, "--transport", "udp", "--full", "--churn", "4M", "--op", "send", "--metric", "lat,rr", "--repeat", "2",
		"--duration", "50ms", "--warmup", "10ms", "--port", "17671", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if diff := cmp.Diff([]string{"lat send", "lat send churn", "rr send"}, rowNames(r, false)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, res := range r.Results {
		if len(res.Rounds) != 2 || res.Rounds[0].P50 == nil && res.Rounds[0].Valid {
			t.Errorf("%s: rounds %+v", rowName(res, false), res.Rounds)
		}
	}
}

// TestRequests: as many are answered and timed as are asked for, beside a heap at both ends.
func TestRequests(t *testing.T) {
	got := runUDP(t, "17673", "--metric", "rr,rate", "--depth", "4", "--churn", "4M", "--count", "2000", "--warmup", "5ms", "--json", "-")
	for _, res := range checkReport(t, got, []byte(got.stdout)).Results {
		timed := res.Histogram.Total()
		if res.Samples != 2000 || res.Depth != 4 || res.Churn != 4<<20 || res.Metric == metricRequests && timed != 2000 {
			t.Errorf("%s: got %d samples, %d timed, depth %d, %d bytes of heap", res.Metric, res.Samples, timed, res.Depth, res.Churn)
		}
	}
}

// TestHeap: it is as large as it was asked to be, the collector runs all the time, and nothing is left.
func TestHeap(t *testing.T) {
	const size = 16 << 20
	live := func() (m runtime.MemStats) {
		runtime.ReadMemStats(&m)
		return m
	}
	runtime.GC()
	before := live()
	h := newHeap(size)
	for !h.filled.Load() {
		runtime.Gosched()
	}
	filled := live()
	if got := filled.HeapAlloc - before.HeapAlloc; got < size {
		t.Errorf("%d bytes are live, want %d", got, size)
	}
	for begin := time.Now(); live().NumGC < filled.NumGC+3; runtime.Gosched() {
		if time.Since(begin) > limit {
			t.Fatal("the collector rests")
		}
	}
	h.free()
	if got := live().HeapAlloc; got > before.HeapAlloc+size/2 {
		t.Errorf("%d bytes are live afterwards", got-before.HeapAlloc)
	}
}

// TestFullTable: a row beside a churned heap, and one over many connections, say so in the table.
func TestFullTable(t *testing.T) {
	plain := Result{Op: opSend, Metric: metricLatency, Size: 64, MTU: 1500, P50: ptr(6), P99: ptr(9), Samples: 9, Valid: true}
	raw, churned, requests := plain, plain, plain
	raw.Op, raw.P50, raw.P99 = opRaw, ptr(4), ptr(6)
	churned.Churn, churned.P50 = 1<<30, ptr(12)
	spread := Result{Op: opSend, Metric: metricRate, Size: 64, MTU: 1500, MsgsPerSec: 2e6, Connections: 64, Samples: 9, Valid: true}
	requests.Metric, requests.MsgsPerSec = metricRequests, 1e6
	r := &Report{Results: []Result{raw, plain, churned, spread, requests}}
	r.SetRawRatios()
	var b bytes.Buffer
	renderTable(&b, r)
	for _, want := range []string{
		"send          64 B    6.0   9.0        1.50  1.50",
		"round trip at MTU 1500, beside 1 GiB of churned heap\n",
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
