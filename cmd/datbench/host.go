package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// host is what the ends of one process share.
type host struct {
	// metrics shows the adapters that are open; nil if nobody asked.
	metrics *shown
	// capture is what adapters write their packets to; nil if nobody asked.
	capture *capture
	// tell is called with each interval of a row, by the goroutine that measures; nil if nobody asked.
	tell func(Spec, result.Interval)
	// job tells the rows of this process from others. wait is how long a server that is taken is waited for, which
	// waiting tells of.
	job     uint64
	wait    time.Duration
	waiting func(string)
}

// serveMetricsOn serves on a listening socket that the main job made in its own namespace.
func (h *host) serveMetricsOn(ctx context.Context, fd uintptr) error {
	f := os.NewFile(fd, "metrics listener")
	defer f.Close() // the listener below holds a descriptor of its own
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	h.serveMetrics(ctx, l)
	return nil
}

// serveMetrics serves Prometheus metrics of the adapters of this process, until the context is done.
func (h *host) serveMetrics(ctx context.Context, l net.Listener) {
	h.metrics = newShown()
	go h.metrics.exporter.Serve(ctx, l) //nolint:errcheck // it ends with the process
}
