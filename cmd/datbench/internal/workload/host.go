package workload

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/datxdp/datxdp/cmd/datbench/internal/plan"
	"github.com/datxdp/datxdp/internal/result"
)

// Host is the state that all ends of one process share.
type Host struct {
	// metrics exports the open adapters; nil without --metrics.
	metrics *exported
	// Capture receives the packets of the adapters; nil without --pcap.
	Capture *Capture
	// Logger gets the log of the adapters. If it is nil, they log only warnings about themselves (dat.Options.Logger).
	Logger *slog.Logger
	// StartLoops starts the busy loops beside a row that a client requests, until stop is called. It is nil in the main
	// job, whose initiator is on the same host and starts them.
	StartLoops func(n int) (stop func(), err error)
	// Tell is called with each interval of a row, by the goroutine that measures; nil for none.
	Tell func(plan.Spec, result.Interval)
	// The number Job identifies this run of datbench to a server. The duration Wait is the maximum time to wait if
	// another client has the server. During this time the client makes repeated attempts. Before each pause it calls
	// the function Waiting with a message.
	Job     uint64
	Wait    time.Duration
	Waiting func(string)
}

// ServeMetricsOn serves metrics on a listening socket that the main job opened in its own namespace.
func (h *Host) ServeMetricsOn(ctx context.Context, fd uintptr) error {
	f := os.NewFile(fd, "metrics listener")
	defer f.Close() // the listener below has a descriptor of its own
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	h.ServeMetrics(ctx, l)
	return nil
}

// ServeMetrics serves Prometheus metrics of the adapters of this process until the context is done.
func (h *Host) ServeMetrics(ctx context.Context, l net.Listener) {
	h.metrics = newExported()
	go h.metrics.exporter.Serve(ctx, l) //nolint:errcheck // it ends with the process
}
