package wire

import (
	"sync"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// If a goroutine rings while the engine is owned, the owner's next Poll must send its post. No connection rings twice.
func TestDoorbells(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	conns := make([]*Conn, 4)
	for i := range conns {
		conns[i], _ = w.pair(plain)
	}
	mem, to := a.memory(8), w.nodes[1].memory(8).at(0)
	e := a.eng
	if !e.TryOwn(1) || e.TryOwn(1) {
		t.Fatal("the engine has no owner, or two")
	}
	var posters sync.WaitGroup
	for _, c := range conns {
		posters.Go(func() {
			for range 3 {
				if err := c.PostWrite(mem.seg(0, 8), 0, to, 0); err != nil {
					t.Error(err)
				}
				e.Ring(c)
			}
		})
	}
	posters.Wait()
	if n := e.rings.Load(); int(n) != len(conns) {
		t.Errorf("%d doorbells ring, want %d", n, len(conns))
	}
	e.Poll(Time(w.net.Now()))
	if e.Disown() {
		t.Error("doorbells ring after the Poll")
	}
	for i, c := range conns {
		if c.sq.counted.Sub(c.sq.ackedPos.Op) != 3 {
			t.Errorf("connection %d: %d requests were taken in, want 3", i, c.sq.counted.Sub(c.sq.ackedPos.Op))
		}
	}
}
