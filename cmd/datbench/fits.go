package main

import (
	"fmt"

	"github.com/datxdp/datxdp/internal/result"
)

// withinBounds returns an error for a row whose queues or buffers exceed a bound.
func withinBounds(r Spec) error {
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
	if n := max(buffers(r, i), buffers(r, t)); n > maxAskBytes {
		return fmt.Errorf("%s × depth %d × connections %d needs %s of buffers, more than %s: ask for less of one of them",
			result.FormatSize(r.Size), r.depth(), r.connections(), result.RoughSize(float64(n)), result.FormatSize(maxAskBytes))
	}
	return nil
}

// buffers is the bytes that the buffers of a side of that shape are.
func buffers(r Spec, sh shape) int64 { return sh.bytes(int(r.Size), r.connections()) }

// targetBuffers is the bytes of the buffers that a row takes at its target.
func targetBuffers(r Spec) (int64, error) {
	w, err := workloadFor(r.Op, r.Metric, r.BothWays)
	if err != nil {
		return 0, err
	}
	_, sh := w.shape(r)
	return buffers(r, sh), nil
}
