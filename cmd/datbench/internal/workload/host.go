package workload

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Host is the state that the ends of one process share.
type Host struct {
	// metrics shows the adapters that are open; nil if nobody asked.
	metrics *shown
	// Capture is what adapters write their packets to; nil if nobody asked.
	Capture *Capture
	// Tell is called with each interval of a row, by the goroutine that measures; nil if nobody asked.
	Tell func(plan.Spec, result.Interval)
	// Job tells the rows of this process from others. wait is how long a server that is taken is waited for, which
	// waiting tells of.
	Job     uint64
	Wait    time.Duration
	Waiting func(string)
}

// ServeMetricsOn serves on a listening socket that the main job made in its own namespace.
func (h *Host) ServeMetricsOn(ctx context.Context, fd uintptr) error {
	f := os.NewFile(fd, "metrics listener")
	defer f.Close() // the listener below holds a descriptor of its own
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	h.ServeMetrics(ctx, l)
	return nil
}

// ServeMetrics serves Prometheus metrics of the adapters of this process, until the context is done.
func (h *Host) ServeMetrics(ctx context.Context, l net.Listener) {
	h.metrics = newShown()
	go h.metrics.exporter.Serve(ctx, l) //nolint:errcheck // it ends with the process
}
