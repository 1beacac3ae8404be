package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/datxdp/datxdp/internal/result"
)

// Limits of a request to a server, because any host may send one.
const (
	MaxSize  = 64 << 20
	MaxDepth = 1 << 14
	// MaxBuffers limits the registered buffers of one side of a row, in bytes.
	MaxBuffers = 1 << 30
	// MaxWindow limits the outstanding operations on all connections of a row. An operation needs about 200 B of
	// queues.
	MaxWindow = 1 << 16
	// maxSignal bounds the number of requests per completion event.
	maxSignal = 1 << 10
	// wordSize is the size of the word that the target of a write latency row polls: the last aligned word of its
	// buffer.
	wordSize = 8
	// MaxBusy bounds the busy loops beside a row. It is enough to load every core of a large host twice.
	MaxBusy = 512
	// MaxConnections bounds the connections of one row.
	MaxConnections = 128
	// MaxDuration bounds the warm-up and the measured time of a row together.
	MaxDuration = 24 * time.Hour
)

// ErrSpec reports a spec that no client of this version sends.
var ErrSpec = errors.New("the request is from another version of datbench: use the same version at both ends")

// check returns an error if the spec exceeds a limit. The spec may come from any host, so check allocates nothing whose
// size depends on the spec.
func (r Spec) check() error {
	switch {
	case !slices.Contains(Ops, r.Op) || !slices.Contains(RunMetrics, r.Metric):
		return ErrSpec
	case r.Size < 1 || r.Size > MaxSize:
		return fmt.Errorf("size %d is not from 1 to %d bytes", r.Size, MaxSize)
	case r.Op == result.Write && r.Metric == result.Latency && r.Size%wordSize != 0:
		return fmt.Errorf("size %d is not a multiple of %d, which the latency of a write needs", r.Size, wordSize)
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
	case r.Busy < 0 || r.Busy > MaxBusy:
		return fmt.Errorf("%d busy loops are not from 0 to %d", r.Busy, MaxBusy)
	case r.Warmup < 0 || r.Duration < 0 || r.Warmup > MaxDuration || r.Duration > MaxDuration-r.Warmup:
		return fmt.Errorf("a row of %s is longer than %s", r.Warmup+r.Duration, MaxDuration)
	}
	return nil
}

// Within runs fn and returns an error if this takes longer than limit. fn then continues in the background.
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
