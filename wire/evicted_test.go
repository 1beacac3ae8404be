package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A receiver whose connections compete for frames drops early packets that it has acknowledged selectively. The sender
// must send all of these packets again at once. If it sent only one of them in each round trip, the writes in this test
// would take 3.5 s.
func TestDroppedEarlyPackets(t *testing.T) {
	const seeds, size, most = 10, 200_000, 2 * time.Second
	var took time.Duration
	for seed := range uint64(seeds) {
		w := newWorld(t, simlink.Config{Seed: seed, Delay: 10 * time.Millisecond, Loss: 0.08, Frames: 64}, 2)
		a, b := w.nodes[0], w.nodes[1]
		src, dst := a.memory(size), b.memory(size)
		var conns [8]*Conn
		for i := range conns {
			conns[i], _ = w.pair(plain)
		}
		start := w.net.Now()
		for _, c := range conns {
			a.post(c, c.PostWrite(src.seg(0, size), 1, dst.at(0), 0))
		}
		w.until("the writes", time.Minute, func() bool { return a.request.Len() == len(conns) })
		took += time.Duration(w.net.Now() - start)
		if a.eng.stats.RetransmitsBy[CauseEvicted] == 0 {
			t.Errorf("seed %d: no packet was sent again because the peer dropped it", seed)
		}
	}
	if mean := took / seeds; mean > most {
		t.Errorf("the writes took %v, want %v at most", mean, most)
	}
}
