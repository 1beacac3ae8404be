//go:build !race

package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Connections share a queue that never has enough receives, over networks that lose, duplicate and reorder packets.
// Each message must be received once, whole and in the order of its connection. No receive may be taken twice or be
// missing at the end.
func TestSharedQueueUnderLoss(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(t, rough(seed, 1), 2)
		r := randSource(seed)
		conns, receives, count, size := 1+r.IntN(8), 1+r.IntN(12), 30, 2+r.IntN(6000)
		p, from, to := w.sharing(plain, conns, receives, size, nil)
		a, b := w.nodes[0], w.nodes[1]
		src := a.memory(conns * count * size)
		src.fill(r)
		var free []int // receives that are not posted
		for i := range receives {
			free = append(free, i)
		}
		sent, got := make([]int, conns), make([]int, conns)
		index := map[*Conn]int{}
		for i, c := range to {
			index[c] = i
		}
		total := 0
		for limit := w.net.Now() + int64(20*time.Second); total < conns*count; {
			if w.net.Now() > limit {
				t.Fatalf("seed %d: %d of %d messages arrived: %v of each", seed, total, conns*count, got)
			}
			for i, c := range from {
				if at := i*count + sent[i]; sent[i] < count && r.IntN(3) == 0 && a.post(c, c.PostSend(src.seg(at*size, size), 0, Suppress)) {
					sent[i]++
				}
			}
			if len(free) > 0 && r.IntN(4) == 0 {
				k := r.IntN(len(free))
				p.add(free[k])
				free = append(free[:k], free[k+1:]...)
			}
			if !w.step() {
				w.net.Advance(w.net.Now() + int64(20*time.Microsecond))
			}
			var c Completion
			for b.recv.Pop(&c) {
				i := index[c.Conn]
				want := src.mem[(i*count+got[i])*size:][:size]
				if c.Status != StatusSuccess || int(c.Length) != size || !bytes.Equal(p.place(c.Cookie), want) {
					t.Fatalf("seed %d: message %d of connection %d: %+v", seed, got[i], i, c)
				}
				got[i]++
				total++
				free = append(free, int(c.Cookie))
			}
		}
		p.counts(t, receives-len(free), receives-len(free))
	}
}

// Connections begin and end, on either side and at any time, while messages of several packets arrive over a bad
// network. Each posted receive must complete once, or still be in the queue at the end.
func TestSharedQueueConservation(t *testing.T) {
	for seed := range uint64(60) {
		cfg := simlink.Config{Seed: seed, Delay: 5 * time.Microsecond, Loss: 0.05, Reorder: 0.05, Duplicate: 0.05}
		w := newWorld(t, cfg, 2)
		r := randSource(seed)
		const receives, size = 16, 10_000
		conns := 2 + r.IntN(6)
		p, from, to := w.sharing(plain, conns, receives, size, nil)
		a, b := w.nodes[0], w.nodes[1]
		src := a.memory(size)
		var posted [receives]bool
		ends, completed, flushed := 0, 0, 0
		take := func() {
			var c Completion
			for b.recv.Pop(&c) {
				if !posted[c.Cookie] {
					t.Fatalf("seed %d: receive %d came back twice", seed, c.Cookie)
				}
				posted[c.Cookie] = false
				if c.Status == StatusSuccess {
					completed++
				} else {
					flushed++
				}
			}
		}
		for range 6000 {
			i := r.IntN(conns)
			switch r.IntN(120) {
			case 0, 1, 2, 3, 4, 5, 6, 7:
				if from[i].State() == Established {
					a.post(from[i], from[i].PostSend(src.seg(0, r.IntN(size)), 0, Suppress))
				}
			case 8, 9, 10, 11, 12:
				if k := r.IntN(receives); !posted[k] {
					p.add(k)
					posted[k] = true
				}
			case 13:
				n, c := a, from[i]
				if chance(r, 2) {
					n, c = b, to[i]
				}
				if c.State() != Established {
					break
				}
				ends++
				if err := n.eng.Disconnect(c, chance(r, 2)); err != nil {
					t.Fatal(err)
				}
			case 14:
				if from[i].State() != Closed || to[i].State() != Closed {
					break
				}
				if err := a.eng.Reset(from[i]); err != nil {
					t.Fatal(err)
				}
				if err := b.eng.Reset(to[i]); err != nil {
					t.Fatal(err)
				}
				w.dial(a, b, from[i], nil)
			}
			w.answer(b, to)
			w.step()
			take()
			for b.connect.Pop(new(Completion)) || a.connect.Pop(new(Completion)) {
			}
		}
		for i := range from {
			for c, n := range map[*Conn]*node{from[i]: a, to[i]: b} {
				if c.State() != Idle {
					_ = n.eng.Disconnect(c, false)
				}
			}
		}
		w.run(5 * time.Second)
		take()
		left := 0
		for _, there := range posted {
			if there {
				left++
			}
		}
		p.counts(t, left, left)
		if p.fair.Waiting() != 0 {
			t.Errorf("seed %d: %d connections wait", seed, p.fair.Waiting())
		}
		if completed == 0 || ends == 0 {
			t.Errorf("seed %d: %d messages, %d flushed, %d connections ended", seed, completed, flushed, ends)
		}
		if b.eng.heldFrames != 0 || b.eng.Connections() != 0 {
			t.Errorf("seed %d: %d frames held, %d connections", seed, b.eng.heldFrames, b.eng.Connections())
		}
	}
}
