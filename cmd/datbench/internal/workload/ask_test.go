package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// TestAskBounds: every number of a request is limited. A refusal names the limit.
func TestAskBounds(t *testing.T) {
	plain := plan.Spec{Row: result.Row{Op: result.Send, Metric: result.Rate, Size: 64, Depth: 512, Connections: 1}, Duration: time.Second}
	for _, tt := range []struct {
		name   string
		change func(*plan.Spec)
		want   string
	}{
		{"plain", func(*plan.Spec) {}, ""},
		{"widest", func(r *plan.Spec) { r.Connections = plan.MaxConnections }, ""},
		{"largest", func(r *plan.Spec) { r.Metric, r.Size, r.Depth = result.Bandwidth, plan.MaxSize, 8 }, ""},
		{"size", func(r *plan.Spec) { r.Size = plan.MaxSize + 1 }, "size 67108865 is not from 1 to 67108864 bytes"},
		{"no size", func(r *plan.Spec) { r.Size = 0 }, "size 0 is not from 1"},
		{"no whole word", func(r *plan.Spec) { r.Op, r.Metric, r.Size = result.Write, result.Latency, 4 }, "size 4 is not a multiple of 8"},
		{"depth", func(r *plan.Spec) { r.Depth = plan.MaxDepth + 1 }, "depth 16385 is not from 1 to 16384"},
		{"connections", func(r *plan.Spec) { r.Connections = plan.MaxConnections + 1 }, "129 connections are not from 1 to 128"},
		{"window", func(r *plan.Spec) { r.Depth, r.Connections = plan.MaxDepth, plan.MaxConnections },
			"depth 16384 × connections 128 is 2097152 outstanding, more than 65536"},
		{"memory", func(r *plan.Spec) { r.Metric, r.Size, r.Depth = result.Bandwidth, plan.MaxSize, 16 }, "needs 1.13 GiB of buffers, more than 1 GiB"},
		{"memory of four buffers for each piece", func(r *plan.Spec) { r.Metric, r.Size, r.Depth = result.SHA256, plan.MaxSize, 8 }, "needs 2.00 GiB of buffers, more than 1 GiB"},
		{"busy loops", func(r *plan.Spec) { r.Busy = plan.MaxBusy + 1 }, "busy loops are not from 0 to 512"},
		{"no busy loops", func(r *plan.Spec) { r.Busy = -1 }, "-1 busy loops"},
		{"heap", func(r *plan.Spec) { r.Churn = plan.ChurnSize + 1 }, "of churned heap is more than 1 GiB"},
		{"time", func(r *plan.Spec) { r.Warmup = plan.MaxDuration }, "a row of 24h0m1s is longer than 24h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := plain
			tt.change(&row)
			_, err := DecodeAsk(Ask{Spec: row}.Encode())
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && len(err.Error()) > maxRefusal {
				t.Errorf("%d bytes do not fit a refusal: %v", len(err.Error()), err)
			}
		})
	}
}
