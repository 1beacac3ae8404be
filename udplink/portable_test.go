package udplink

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/datxdp/datxdp/internal/park"
	"github.com/datxdp/datxdp/link"
)

// An owner that polls must let the reader run: at a real-time priority it does so only if it sleeps. A packet ends the
// sleep.
func TestPortableSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &portable{link: &Link{}, ready: make(chan arrival, 1), rest: time.NewTimer(0)}
		s.link.slab = newSlab(1, 64)
		s.link.slab.allocate()
		var bufs [4]link.Buf
		start := time.Now()
		for range 650 {
			if n := s.recv(bufs[:]); n != 0 {
				t.Fatalf("%d packets that nobody has sent", n)
			}
		}
		if d := time.Since(start); d != 10*park.ShortestSleep {
			t.Errorf("650 receives slept for %v, want 10 times %v", d, park.ShortestSleep)
		}
		go func() {
			time.Sleep(park.ShortestSleep / 2)
			s.ready <- arrival{length: 9}
		}()
		for s.recv(bufs[:]) == 0 {
		}
		if d := time.Since(start) - 10*park.ShortestSleep; d != park.ShortestSleep/2 || len(bufs[0].Data) != 9 {
			t.Errorf("%d bytes after %v", len(bufs[0].Data), d)
		}
	})
}
