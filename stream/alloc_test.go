//go:build !race

package stream

import (
	"io"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

// TestNoAllocation: a round trip, with the events that it takes and the credit that it returns, allocates no memory.
func TestNoAllocation(t *testing.T) {
	a, b := sim(t, simlink.Config{})
	x, y := newPair(t, a, b)
	p := make([]byte, 64)
	if n := testing.AllocsPerRun(200, func() {
		for _, c := range [][2]*Conn{{x, y}, {y, x}} {
			if _, err := c[0].Write(p); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c[1], p); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 0 {
		t.Errorf("a round trip allocates %v times", n)
	}
}
