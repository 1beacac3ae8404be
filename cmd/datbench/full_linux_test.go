package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/internal/result"
)

// fullRowsXDP lists the rows of the main job with --full.
var fullRowsXDP = slices.Concat(xdpRows[:18],
	product([]string{"bw"}, []string{"raw", "send", "write", "read", "tcp"}, " 3498"),
	product([]string{"bw"}, []string{"raw", "send", "write", "read", "tcp"}, " 9000"),
	product([]string{"bw"}, []string{"raw", "send", "write", "read", "tcp"}, " 65000"),
	product([]string{"lat", "rate", "bw"}, []string{"stream"}, " 1500"),
	[]string{"lat tcp_spin 1500", "bw stream 3498", "bw stream 9000", "bw stream 65000", "bw tcp_shared 1500", "rate send × 64 1500", "rr send 1500", "lat send churn 1500"})

// TestFullXDP runs the main job with --full, shortened.
func TestFullXDP(t *testing.T) {
	labtest.RequireXDP(t)
	// Linux stops real-time threads for 50 ms of each second, so a row must be longer.
	got := datbench(t, "--transport", "xdp", "--full", "--churn", "8M", "--duration", "150ms", "--warmup", "10ms", "--json", "-")
	r := checkReport(t, got, []byte(got.stdout))
	if diff := cmp.Diff(sorted(fullRowsXDP), rowNames(r, true)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, res := range r.Results {
		if res.Realtime != (res.Churn > 0) {
			t.Errorf("%s: real-time priority %t", rowName(res, true), res.Realtime)
		}
		timed := res.Metric == result.Latency && res.P99 != nil
		if res.Op != result.Raw && res.Metric != result.Requests && res.Valid && r.Results[0].Valid && timed && (res.RawRatio == nil || res.RawP99Ratio == nil) {
			t.Errorf("%s: no ratio to raw frames", rowName(res, true))
		}
	}
}

// TestRounds: repeated rows keep the result of each round, over UDP and any adapter.
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

// TestRequests: the requested number of requests is answered and timed, while both ends replace the objects of a heap.
func TestRequests(t *testing.T) {
	got := runUDP(t, "17673", "--metric", "rr,rate", "--depth", "4", "--churn", "4M", "--count", "2000", "--warmup", "5ms", "--json", "-")
	for _, res := range checkReport(t, got, []byte(got.stdout)).Results {
		timed := res.Histogram.Total()
		if res.Samples != 2000 || res.Depth != 4 || res.Churn != 4<<20 || res.Metric == result.Requests && timed != 2000 {
			t.Errorf("%s: got %d samples, %d timed, depth %d, %d bytes of heap", res.Metric, res.Samples, timed, res.Depth, res.Churn)
		}
	}
}
