package main

import (
	"fmt"
	"time"

	"github.com/datxdp/datxdp/dat"
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

// allowance is what a target gives to one row: bytes of buffers, and of heap to churn. Buffers are committed as they are
// used, the heap at once.
type allowance struct{ buffers, heap byteSize }

// fullAllowance is that of the main job's own targets.
var fullAllowance = allowance{maxAskBytes, churnSize}

// check says which bound a request exceeds. It looks at numbers alone: nothing is allocated for a request before.
func (a ask) check() error {
	r := a.row
	switch {
	case r.Op == "" || r.Metric == "":
		return errAsk
	case r.Size < 1 || r.Size > maxAskSize:
		return fmt.Errorf("size %d is not from 1 to %d bytes", r.Size, maxAskSize)
	case r.Depth < 1 || r.Depth > maxAskDepth:
		return fmt.Errorf("depth %d is not from 1 to %d", r.Depth, maxAskDepth)
	case r.Connections < 1 || r.Connections > maxConnections:
		return fmt.Errorf("%d connections are not from 1 to %d", r.Connections, maxConnections)
	case a.index >= r.Connections || r.Count < 0 || r.Bytes < 0:
		return fmt.Errorf("connection %d of %d: %w", a.index+1, r.Connections, errAsk)
	case (r.Connections > 1 || r.BothWays) && !streams(r.Metric):
		return fmt.Errorf("%s over %d connections: %w", r.Metric, r.Connections, errAsk)
	case r.Signal < 0 || r.Signal > maxSignal || r.Signal > 0 && r.Metric != metricRate:
		return fmt.Errorf("%s with an event for one of %d: %w", r.Metric, r.Signal, errAsk)
	case r.Churn < 0 || r.Churn > churnSize:
		return fmt.Errorf("%s of churned heap is more than %s", result.FormatSize(r.Churn), result.FormatSize(churnSize))
	case r.Warmup+r.Duration > maxAskTime:
		return fmt.Errorf("a row of %s is longer than %s", r.Warmup+r.Duration, maxAskTime)
	}
	return r.fits()
}

// fits is whether a row keeps the bounds that hold for it as a whole.
func (r Spec) fits() error {
	if r.Signal > r.depth() {
		return fmt.Errorf("--signal %d is more than the depth of %d: no request that is outstanding would tell of its completion", r.Signal, r.depth())
	}
	if n := r.window(); n > maxWindow {
		return fmt.Errorf("depth %d × connections %d is %d outstanding, more than %d: ask for less of one of them",
			r.depth(), r.connections(), n, maxWindow)
	}
	w, err := workloadFor(r.Op, r.Metric, r.BothWays)
	if err != nil {
		return nil // and nothing to bound
	}
	i, t := w.shape(r)
	if n := max(r.bytes(i), r.bytes(t)); n > maxAskBytes {
		return fmt.Errorf("%s × depth %d × connections %d needs %s of buffers, more than %s: ask for less of one of them",
			result.FormatSize(r.Size), r.depth(), r.connections(), roughSize(n), result.FormatSize(maxAskBytes))
	}
	return nil
}

// bytes is what the buffers of a side of that shape are.
func (r Spec) bytes(sh shape) int64 { return sh.bytes(int(r.Size), r.connections()) }

// permits says what a row asks for beyond the allowance, and how to get it.
func (a allowance) permits(r Spec, target shape) error {
	if n := r.bytes(target); n > int64(a.buffers) {
		return fmt.Errorf("%s of buffers is more than the %s of this server: ask for less of --size, --depth or --connections, or start it with --memory",
			roughSize(n), result.FormatSize(int64(a.buffers)))
	}
	if r.Churn > int64(a.heap) {
		return fmt.Errorf("--churn %s is more than the %s of this server: ask for less, or start it with --churn",
			result.FormatSize(r.Churn), result.FormatSize(int64(a.heap)))
	}
	return nil
}

// roughSize is a size with three digits.
func roughSize(n int64) string { return bytesText(float64(n)) }

// maxRefusal is the private data in bytes that a rejection carries.
const maxRefusal = 256

// refuse rejects a request with a reason of one line. A requester that has given up hears nothing.
func refuse(cr *dat.CR, reason string) error {
	text := oneLine(reason)
	return cr.Reject([]byte(text[:min(len(text), maxRefusal)]))
}
