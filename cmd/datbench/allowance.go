package main

import (
	"fmt"

	"github.com/datxdp/datxdp/internal/result"
)

// allowance is what a target gives to one row: bytes of buffers, and of heap to churn. Buffers are committed as they are
// used, the heap at once.
type allowance struct{ buffers, heap byteSize }

// fullAllowance is that of the main job's own targets.
var fullAllowance = allowance{maxAskBytes, churnSize}

// permits says what a row asks for beyond the allowance, and how to get it.
func (a allowance) permits(r Spec) error {
	n, err := targetBuffers(r)
	if err != nil {
		return err
	}
	if n > int64(a.buffers) {
		return fmt.Errorf("%s of buffers is more than the %s of this server: ask for less of --size, --depth or --connections, or start it with --memory",
			result.RoughSize(float64(n)), result.FormatSize(int64(a.buffers)))
	}
	if r.Churn > int64(a.heap) {
		return fmt.Errorf("--churn %s is more than the %s of this server: ask for less, or start it with --churn",
			result.FormatSize(r.Churn), result.FormatSize(int64(a.heap)))
	}
	return nil
}
