package park

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// A loop with a real-time priority must let a thread of lower priority on its processor go on.
func wantGoOn(t *testing.T, turn func(*Patience)) {
	labtest.RealTime(t, func(t *testing.T) {
		var begun, over atomic.Bool
		ready := make(chan struct{})
		labtest.OtherPriority(t, func() {
			close(ready)
			for !begun.Load() {
			}
			over.Store(true)
		})
		<-ready
		start := time.Now()
		begun.Store(true)
		for p := new(Patience); !over.Load(); turn(p) {
		}
		if d := time.Since(start); d > labtest.Starved {
			t.Errorf("the other thread went on after %v", d)
		}
	})
}

func TestRealTimeWait(t *testing.T) { wantGoOn(t, (*Patience).Wait) }
func TestRealTimeNap(t *testing.T)  { wantGoOn(t, (*Patience).Nap) }
