package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Limits on what one request may ask of a server, whoever sends it.
const (
	maxAskSize  = 64 << 20
	maxAskDepth = 1 << 14
	// maxAskBytes is the registered buffers of one side of a row.
	maxAskBytes = 1 << 30
	// maxWindow is operations outstanding on all connections of a row: each has some 200 bytes of queues.
	maxWindow = 1 << 16
	// maxSignal is requests of which one completes with an event.
	maxSignal = 1 << 10
	// maxConnections of one row.
	maxConnections = 128
	// maxAskTime is the warm-up and the measured part of a row.
	maxAskTime = 24 * time.Hour
)

// errSpec is a spec that no client of this version sends.
var errSpec = errors.New("this is no request of this version of datbench: use the same at both ends")

// check returns an error for a spec that exceeds a limit, as one from anybody may. It looks at the numbers alone and
// allocates nothing for the row.
func (r Spec) check() error {
	switch {
	case !slices.Contains(datOps, r.Op) || !slices.Contains(runMetrics, r.Metric):
		return errSpec
	case r.Size < 1 || r.Size > maxAskSize:
		return fmt.Errorf("size %d is not from 1 to %d bytes", r.Size, maxAskSize)
	case r.Depth < 1 || r.Depth > maxAskDepth:
		return fmt.Errorf("depth %d is not from 1 to %d", r.Depth, maxAskDepth)
	case r.Connections < 0 || r.Connections > maxConnections:
		return fmt.Errorf("%d connections are not from 1 to %d", r.Connections, maxConnections)
	case r.Count < 0 || r.Bytes < 0:
		return fmt.Errorf("%d operations or %d bytes: %w", r.Count, r.Bytes, errSpec)
	case (r.Connections > 1 || r.BothWays) && !streams(r.Metric):
		return fmt.Errorf("%s over %d connections: %w", r.Metric, r.Connections, errSpec)
	case r.Signal < 0 || r.Signal > maxSignal || r.Signal > 0 && r.Metric != result.Rate:
		return fmt.Errorf("%s with an event for one of %d: %w", r.Metric, r.Signal, errSpec)
	case r.Churn < 0 || r.Churn > churnSize:
		return fmt.Errorf("%s of churned heap is more than %s", result.FormatSize(r.Churn), result.FormatSize(churnSize))
	case r.Warmup < 0 || r.Duration < 0 || r.Warmup > maxAskTime || r.Duration > maxAskTime-r.Warmup:
		return fmt.Errorf("a row of %s is longer than %s", r.Warmup+r.Duration, maxAskTime)
	}
	return nil
}

// within runs fn, and no longer waits for it after limit.
func within(limit time.Duration, what string, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("%s takes longer than %s", what, limit)
	}
}
