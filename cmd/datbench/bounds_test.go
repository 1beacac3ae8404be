package main

import (
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// TestAskBounds: what a request may ask for is bounded, and the refusal names the bound.
func TestAskBounds(t *testing.T) {
	plain := Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 512, Connections: 1}, Duration: time.Second}
	for _, tt := range []struct {
		name   string
		change func(*Spec)
		want   string
	}{
		{"plain", func(*Spec) {}, ""},
		{"widest", func(r *Spec) { r.Connections = maxConnections }, ""},
		{"largest", func(r *Spec) { r.Metric, r.Size, r.Depth = result.Bandwidth, maxAskSize, 8 }, ""},
		{"size", func(r *Spec) { r.Size = maxAskSize + 1 }, "size 67108865 is not from 1 to 67108864 bytes"},
		{"no size", func(r *Spec) { r.Size = 0 }, "size 0 is not from 1"},
		{"depth", func(r *Spec) { r.Depth = maxAskDepth + 1 }, "depth 16385 is not from 1 to 16384"},
		{"connections", func(r *Spec) { r.Connections = maxConnections + 1 }, "129 connections are not from 1 to 128"},
		{"window", func(r *Spec) { r.Depth, r.Connections = maxAskDepth, maxConnections },
			"depth 16384 × connections 128 is 2097152 outstanding, more than 65536"},
		{"memory", func(r *Spec) { r.Metric, r.Size, r.Depth = result.Bandwidth, maxAskSize, 16 }, "needs 1.13 GiB of buffers, more than 1 GiB"},
		{"memory of four buffers for each piece", func(r *Spec) { r.Metric, r.Size, r.Depth = result.SHA256, maxAskSize, 8 }, "needs 2.00 GiB of buffers, more than 1 GiB"},
		{"heap", func(r *Spec) { r.Churn = churnSize + 1 }, "of churned heap is more than 1 GiB"},
		{"time", func(r *Spec) { r.Warmup = maxAskTime }, "a row of 24h0m1s is longer than 24h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := plain
			tt.change(&row)
			_, err := decodeAsk(ask{row: row}.encode())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && len(err.Error()) > maxRefusal {
				t.Errorf("%d bytes do not fit a refusal: %v", len(err.Error()), err)
			}
		})
	}
}

// TestAllowance: what a server gives to one row is less if its user says so.
func TestAllowance(t *testing.T) {
	row := Spec{Row: result.Row{Op: result.Send, Metric: result.Bandwidth, Size: 1 << 20, Depth: 8, Churn: 1 << 30}}
	for want, a := range map[string]allowance{
		"10.0 MiB of buffers is more than the 1 MiB of this server: ask for less of --size, --depth or --connections, or start it with --memory": {1 << 20, churnSize},
		"--churn 1 GiB is more than the 64 MiB of this server: ask for less, or start it with --churn":                                           {maxAskBytes, serverHeap},
		"": fullAllowance,
	} {
		if err := a.permits(row); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%+v: got %v, want %q", a, err, want)
		}
	}
}
