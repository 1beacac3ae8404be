package worker

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab/labtest"
	"github.com/datxdp/datxdp/wire"
)

// A worker that always has a job must let a thread of lower priority go on.
func TestRealTimeJobs(t *testing.T) {
	labtest.RealTime(t, func(t *testing.T) {
		var w *Worker
		var over atomic.Bool
		w = start(func(j *wire.Job) {
			for began := time.Now(); time.Since(began) < 20*time.Microsecond; {
			}
			if !over.Load() {
				w.Submit(j)
			}
		})
		defer w.Close()
		ready, done := make(chan struct{}), make(chan struct{})
		labtest.OtherPriority(t, func() {
			w.Submit(new(wire.Job))
			close(ready)
			for range 100 { // it needs the processor for a while
				for began := time.Now(); time.Since(began) < time.Microsecond; {
				}
			}
			close(done)
		})
		<-ready
		start := time.Now()
		<-done
		over.Store(true)
		if d := time.Since(start); d > labtest.Starved {
			t.Errorf("the other thread went on after %v", d)
		}
	})
}
