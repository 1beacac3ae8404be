package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Limits of one request to a server. A request may come from anybody.
const (
	MaxSize  = 64 << 20
	MaxDepth = 1 << 14
	// MaxBuffers is the registered buffers of one side of a row.
	MaxBuffers = 1 << 30
	// MaxWindow is operations outstanding on all connections of a row: each has some 200 bytes of queues.
	MaxWindow = 1 << 16
	// maxSignal is requests of which one completes with an event.
	maxSignal = 1 << 10
	// MaxConnections of one row.
	MaxConnections = 128
	// MaxDuration is the warm-up and the measured part of a row.
	MaxDuration = 24 * time.Hour
)

// ErrSpec is the error of a spec that no client of this version sends.
var ErrSpec = errors.New("this is no request of this version of datbench: use the same at both ends")

// check returns an error for a spec that exceeds a limit, as one from anybody may. It looks at the numbers alone and
// allocates nothing for the row.
func (r Spec) check() error {
	switch {
	case !slices.Contains(Ops, r.Op) || !slices.Contains(RunMetrics, r.Metric):
		return ErrSpec
	case r.Size < 1 || r.Size > MaxSize:
		return fmt.Errorf("size %d is not from 1 to %d bytes", r.Size, MaxSize)
	case r.Depth < 1 || r.Depth > MaxDepth:
		return fmt.Errorf("depth %d is not from 1 to %d", r.Depth, MaxDepth)
	case r.Connections < 0 || r.Connections > MaxConnections:
		return fmt.Errorf("%d connections are not from 1 to %d", r.Connections, MaxConnections)
	case r.Count < 0 || r.Bytes < 0:
		return fmt.Errorf("%d operations or %d bytes: %w", r.Count, r.Bytes, ErrSpec)
	case (r.Connections > 1 || r.BothWays) && !Streams(r.Metric):
		return fmt.Errorf("%s over %d connections: %w", r.Metric, r.Connections, ErrSpec)
	case r.Signal < 0 || r.Signal > maxSignal || r.Signal > 0 && r.Metric != result.Rate:
		return fmt.Errorf("%s with an event for one of %d: %w", r.Metric, r.Signal, ErrSpec)
	case r.Churn < 0 || r.Churn > ChurnSize:
		return fmt.Errorf("%s of churned heap is more than %s", result.FormatSize(r.Churn), result.FormatSize(ChurnSize))
	case r.Warmup < 0 || r.Duration < 0 || r.Warmup > MaxDuration || r.Duration > MaxDuration-r.Warmup:
		return fmt.Errorf("a row of %s is longer than %s", r.Warmup+r.Duration, MaxDuration)
	}
	return nil
}

// Within runs fn and stops waiting for it after limit.
func Within(limit time.Duration, what string, fn func() error) error {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("%s takes longer than %s", what, limit)
	}
}
