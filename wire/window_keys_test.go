//go:build !race

package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/slotkey"
)

// Slots of windows must be reused as late as those of regions.
func TestWindowKeysComeBackLate(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	ca, _ := w.pair(plain)
	src := a.memory(64)
	win := a.host.NewWindow(1, false, nil)
	seen := map[uint32]bool{}
	for range 2 * slotkey.MinFree {
		key := w.bind(a, ca, win, src, 0, 8, RemoteRead)
		if seen[key] {
			t.Fatalf("key %#x came back", key)
		}
		seen[key] = true
	}
	if used, _ := a.host.regions.Counts(); used > slotkey.MinFree+8 {
		t.Errorf("%d slots for one window", used)
	}
}
