package main

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/lab/labtest"
)

// A thread that takes the first request of a service point must let the thread go on that creates the service point,
// although its priority is lower.
func TestRealTimeSettled(t *testing.T) {
	labtest.RealTime(t, func(t *testing.T) {
		ia := openIA(t)
		ready := make(chan struct{})
		var begun atomic.Bool
		labtest.OtherPriority(t, func() {
			close(ready)
			for !begun.Load() { // it needs the processor, as the end of dat_psp_create does
			}
			if err := ia.SetConsumerContext(uint64(5)); err != nil {
				t.Error(err)
			}
		})
		<-ready
		start := time.Now()
		begun.Store(true)
		if h := settled(ia); h != 5 {
			t.Errorf("handle %d", h)
		}
		if d := time.Since(start); d > labtest.Starved {
			t.Errorf("the other thread went on after %v", d)
		}
	})
}
