package seal

import (
	"math/rand/v2"
	"testing"
)

// TestWindow compares the window with a set of all opened counters.
func TestWindow(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var w window
		w.next = rng.Uint64N(1 << 33)
		if seed == 0 {
			w.next = 0
		}
		highest, seen := w.next, map[uint64]bool{} // highest is that plus 1
		for range 20000 {
			c := highest + rng.Uint64N(8)
			switch rng.IntN(8) {
			case 0:
				c = highest - min(rng.Uint64N(1200), highest)
			case 1:
				c = highest + rng.Uint64N(1100)
			case 2, 3, 4:
				c = highest - min(rng.Uint64N(70), highest)
			}
			if got := w.reconstruct(uint32(c)); got != c {
				t.Fatalf("seed %d: counter %x after %x is taken for %x", seed, c, highest, got)
			}
			old := c < highest && highest-c > WindowSize
			if got := w.old(c); got != old {
				t.Fatalf("seed %d: old(%x) with %x = %v", seed, c, highest, got)
			}
			if old {
				continue
			}
			if got := w.opened(c); got != seen[c] {
				t.Fatalf("seed %d: opened(%x) with %x = %v", seed, c, highest, got)
			}
			if rng.IntN(2) == 0 {
				w.mark(c)
				seen[c], highest = true, max(highest, c+1)
			}
		}
	}
}

func TestReconstruct(t *testing.T) {
	for _, c := range []struct {
		next uint64
		low  uint32
		want uint64
	}{
		{0, 0, 0},
		{0, 1 << 31, 1 << 31},
		{0, 1<<32 - 1, 1<<32 - 1}, // no counter is below 0
		{5, 1<<32 - 1, 1<<32 - 1},
		{1 << 31, 0, 0},
		{1<<31 + 1, 0, 1 << 32},
		{1<<32 - 1, 0, 1 << 32},
		{1 << 32, 1<<32 - 1, 1<<32 - 1},
		{7<<32 + 10, 10, 7<<32 + 10},
		{7<<32 + 10, 1<<31 + 9, 7<<32 + 1<<31 + 9},
		{7<<32 + 10, 1<<31 + 11, 6<<32 + 1<<31 + 11},
	} {
		w := window{next: c.next}
		if got := w.reconstruct(c.low); got != c.want {
			t.Errorf("next %x, low half %x: %x, want %x", c.next, c.low, got, c.want)
		}
	}
}
