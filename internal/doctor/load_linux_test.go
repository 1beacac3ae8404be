package doctor

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestLoad: the check warns if a thread that spins waits for a core for more than a tenth of its time.
func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		waits float64
		want  Severity
	}{{0, OK}, {0.1, OK}, {0.11, Warning}, {0.8, Warning}} {
		got := loadFinding(tt.waits)
		if len(got) != 1 || got[0].Severity != tt.want || (got[0].Fix != "") != (tt.want == Warning) {
			t.Errorf("%g: got %+v", tt.waits, got)
		}
	}
}

// TestLoadBesideLoops: where three threads compute on each core, a thread that spins waits for a core.
func TestLoadBesideLoops(t *testing.T) {
	loops := 3 * runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(loops + 1))
	var stop atomic.Bool
	defer stop.Store(true)
	for range loops {
		go func() {
			for !stop.Load() { //nolint:revive // it must use its core
			}
		}()
	}
	found := checkLoad(t.Context(), &exam{})
	if len(found) != 1 || found[0].Severity != Warning {
		t.Errorf("got %+v, want a warning", found)
	}
}
