//go:build !race

package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
)

// In the middle of a transfer, a path begins to drop large packets. Messages, writes and reads must arrive once and
// whole, even if packets are lost, duplicated and reordered. When the path has recovered, large packets must be used
// again.
func TestBlackHole(t *testing.T) {
	for seed := range uint64(66) {
		cfg := simlink.Config{Seed: seed, Delay: time.Duration(1+seed%7) * 20 * time.Microsecond, MTU: 1472}
		if seed >= 60 { // retransmissions are further apart than the silence after which endBackoff ends the back-off
			cfg.Delay = 15 * time.Millisecond
		}
		if seed%4 != 0 {
			cfg.Loss, cfg.Duplicate, cfg.Reorder = 0.03, 0.03, 0.05
		}
		if seed%3 == 0 {
			cfg.MTU, cfg.FrameSize = 8972, 2048
		}
		w := newWorld(t, cfg, 2)
		a, b := w.nodes[0], w.nodes[1]
		r := randSource(seed)
		ca, cb := w.pair(plain)
		w.run(time.Duration(r.IntN(int(2 * time.Millisecond))))
		const size, count = 20000, 30
		src, remote := a.memory(count*size).fill(r), b.memory(count*size).fill(r)
		sent, written, read := b.memory(count*size), b.memory(count*size), a.memory(count*size)
		hole := r.IntN(count)
		for i := range count {
			at := i * size
			if i == hole {
				for _, ends := range [][2]*node{{a, b}, {b, a}}[:1+r.IntN(2)] {
					w.net.SetMTU(ends[0].addr, ends[1].addr, 1250)
				}
			}
			for !b.postRecv(cb, sent.seg(at, size), uint64(i)) {
				w.step()
			}
			post := func(f func() error) {
				for !a.post(ca, f()) {
					w.step()
				}
			}
			post(func() error { return ca.PostSend(src.seg(at, size), uint64(3*i), 0) })
			post(func() error { return ca.PostWrite(src.seg(at, size), uint64(3*i+1), written.at(at), 0) })
			post(func() error { return ca.PostRead(read.seg(at, size), uint64(3*i+2), remote.at(at), size, 0) })
			for range r.IntN(50) {
				w.step()
			}
		}
		w.until("the transfer", 20*time.Second, func() bool {
			return a.request.Len() == 3*count && b.recv.Len() == count
		})
		for i, p := range [][2][]byte{{sent.mem, src.mem}, {written.mem, src.mem}, {read.mem, remote.mem}} {
			if !bytes.Equal(p[0], p[1]) {
				t.Errorf("seed %d: bytes of kind %d differ", seed, i)
			}
		}
		for _, q := range []*Queue{a.request, b.recv} {
			var c Completion
			for i := 0; q.Pop(&c); i++ {
				if c.Status != StatusSuccess || c.Cookie != uint64(i) {
					t.Fatalf("seed %d: completion %d: %+v", seed, i, c)
				}
			}
		}
		if steps := a.eng.stats.BlackHoles + b.eng.stats.BlackHoles; ca.pmtu.Size == basePacket && steps == 0 {
			t.Errorf("seed %d: no step down, and MTU %d", seed, ca.pmtu.Size)
		}
		w.net.SetMTU(a.addr, b.addr, cfg.MTU)
		w.net.SetMTU(b.addr, a.addr, cfg.MTU)
		w.run(2 * pmtu.Again)
		if got := mtus(ca, cb); got != [2]int{cfg.MTU, cfg.MTU} {
			t.Errorf("seed %d: MTU %v after the path has recovered", seed, got)
		}
	}
}

// A full queue drops large packets and has room for short ones. A connection must not take that for a black hole, as long as
// the path passes some packets of the current size. A black hole that begins meanwhile must be found.
func TestLossOfLargePackets(t *testing.T) {
	for seed := range uint64(16) {
		w := newWorld(t, simlink.Config{Seed: seed, Delay: 5 * time.Microsecond, Rate: 1e9, MTU: 8972, FrameSize: 8972, Unchecked: true}, 2)
		a, r := w.nodes[0], randSource(seed)
		loss := 0.0
		w.tap(a, &tap{drop: func(packet []byte) bool { return len(packet) > basePacket && r.Float64() < loss }})
		s := w.stream(a, w.nodes[1], 1<<16)
		w.flow(10*time.Millisecond, s)
		loss = 0.5 + 0.2*r.Float64()
		w.flow(100*time.Millisecond, s)
		if holes := a.eng.stats.BlackHoles; holes > 0 || s.c.pmtu.Size != 8972 {
			t.Errorf("seed %d: loss of %.2f of the large packets is taken for %d black holes, packets of %d bytes", seed, loss, holes, s.c.pmtu.Size)
		}
		loss = 1
		w.flow(500*time.Millisecond, s)
		if s.c.pmtu.Size != basePacket || s.done == 0 {
			t.Errorf("seed %d: no black hole was found: packets of %d bytes, %d bytes written", seed, s.c.pmtu.Size, s.done)
		}
	}
}
