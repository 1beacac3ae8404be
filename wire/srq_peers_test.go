//go:build !race

package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// Connections of several peers share a queue that never has enough receives. Their messages have many packets, and the
// networks lose and reorder packets. Each message must arrive. At the end, no receive may be held and no flow may wait.
func TestSharedQueueOfPeers(t *testing.T) {
	for seed := range uint64(40) {
		w := newWorld(t, rough(seed, 1), 4)
		r := randSource(seed)
		conns, receives, count, size := 1+r.IntN(4), 1+r.IntN(10), 20, 2+r.IntN(12000)
		p, from, to := w.sharingFrom(w.nodes[1:], plain, conns, receives, size)
		b := w.nodes[0]
		var src []memory
		for _, a := range w.nodes[1:] {
			src = append(src, a.memory(size))
		}
		for i := range receives {
			p.add(i)
		}
		sent, total := make([]int, len(from)), 0
		for limit := w.net.Now() + int64(20*time.Second); total < len(from)*count; {
			if w.net.Now() > limit {
				t.Fatalf("seed %d: %d of %d messages arrived", seed, total, len(from)*count)
			}
			for i, c := range from {
				a, m := w.nodes[1+i%3], src[i%3]
				if sent[i] < count && a.post(c, c.PostSend(m.seg(0, size), 0, Suppress)) {
					sent[i]++
				}
			}
			if !w.step() {
				w.net.Advance(w.net.Now() + int64(20*time.Microsecond))
			}
			p.checkFlows(t, to)
			var c Completion
			for b.recv.Pop(&c) {
				if c.Status != StatusSuccess {
					t.Fatalf("seed %d: %+v", seed, c)
				}
				p.add(int(c.Cookie))
				total++
			}
		}
		p.counts(t, receives, receives)
		if p.fair.Waiting() != 0 {
			t.Errorf("seed %d: %d connections wait", seed, p.fair.Waiting())
		}
		for i, c := range to {
			if err := b.eng.Disconnect(c, false); err != nil {
				t.Fatal(i, err)
			}
		}
		if p.fair.Peers() != 0 {
			t.Errorf("seed %d: %d peers left", seed, p.fair.Peers())
		}
	}
}

// A connection has taken a receive from a shared queue, and a part of its message has arrived. Then the sending host is
// out of reach for 500 ms, or its packets are lost. The connection must survive, although a connection of another host
// waits for a receive all the time.
func TestSharedQueueSlowSender(t *testing.T) {
	for _, tc := range []struct {
		name string
		slow func(w *world, a *node)
	}{
		{"stopped for 500 ms", func(w *world, a *node) {
			a.down = true
			w.run(500 * time.Millisecond)
			a.down = false
		}},
		{"out of reach for 500 ms", func(w *world, a *node) {
			w.net.Partition(a.addr, w.nodes[0].addr, true)
			w.run(500 * time.Millisecond)
			w.net.Partition(a.addr, w.nodes[0].addr, false)
		}},
		{"one packet of a hundred lost", func(w *world, a *node) { w.net.SetLoss(a.addr, w.nodes[0].addr, 0.01) }},
		{"half of its packets lost", func(w *world, a *node) { w.net.SetLoss(a.addr, w.nodes[0].addr, 0.5) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := simlink.Config{Seed: 1, Delay: 5 * time.Microsecond}
			const size = 100_000
			w := newWorld(t, cfg, 3)
			b, slow, quick := w.nodes[0], w.nodes[1], w.nodes[2]
			p, from, to := w.sharingFrom([]*node{slow}, plain, 1, 1, size)
			p.add(0)
			fast, _ := w.joinQueue(quick, b, p, plain)
			slow.post(from[0], from[0].PostSend(slow.memory(size).seg(0, size), 0, 0))
			w.until("the first piece", time.Second, func() bool { n, _ := to[0].Receiving(); return n == 1 })
			quick.post(fast, fast.PostSend(quick.memory(8).seg(0, 8), 0, 0))
			tc.slow(w, slow)
			w.until("the message", 30*time.Second, func() bool { return slow.request.Len() == 1 })
			if p.fair.Waiting() != 1 {
				t.Errorf("%d connections wait, want 1", p.fair.Waiting())
			}
			var c Completion
			if slow.request.Pop(&c); c.Status != StatusSuccess {
				t.Errorf("%+v", c)
			}
			if to[0].State() != Established || fast.State() != Established {
				t.Errorf("states %v and %v", to[0].State(), fast.State())
			}
		})
	}
}

// The message of a slow path takes 20 s. Another connection waits for a receive all the time. If it is a connection of
// the same host, the message must arrive. If it is a connection of another host, which holds no receive, it must get the
// receive soon. Then the first host must be able to send its message on a new connection.
func TestSharedQueueSlowPath(t *testing.T) {
	const size = 50_000_000
	for _, own := range []bool{true, false} {
		w := newWorld(t, simlink.Config{Seed: 1, Delay: 5 * time.Microsecond, Rate: 20_000_000, QueueFrames: 1000}, 3)
		b, slow, other := w.nodes[0], w.nodes[1], w.nodes[2]
		if own {
			other = slow
		}
		p, from, to := w.sharingFrom([]*node{slow}, plain, 1, 1, size)
		p.add(0)
		fast, _ := w.joinQueue(other, b, p, plain)
		src := slow.memory(size)
		slow.post(from[0], from[0].PostSend(src.seg(0, size), 1, 0))
		w.until("the first piece", time.Second, func() bool { n, _ := to[0].Receiving(); return n == 1 })
		other.post(fast, fast.PostSend(other.memory(8).seg(0, 8), 2, 0))
		if own {
			w.until("the message", 30*time.Second, func() bool { return slow.request.Len() == 1 })
			w.completes(slow, 1, StatusSuccess)
			continue
		}
		w.until("the end of the message", 2*time.Second, func() bool { return b.connect.Len() == 1 })
		var c Completion
		if b.connect.Pop(&c); c.Conn != to[0] || BreakReason(c.Data) != BreakUnfinished {
			t.Errorf("%+v", c)
		}
		b.recv.Pop(&c)
		p.add(int(c.Cookie))
		w.until("the other message", time.Second, func() bool { return other.request.Len() == 1 })
		w.completes(other, 2, StatusSuccess)
		b.recv.Pop(&c)
		p.add(int(c.Cookie))
		w.until("the news of the end", time.Second, func() bool { return slow.request.Len() == 1 })
		w.completes(slow, 1, StatusTransport)
		slow.connect.Pop(&c)
		again, _ := w.joinQueue(slow, b, p, plain)
		slow.post(again, again.PostSend(src.seg(0, size), 3, 0))
		w.until("the second attempt", 30*time.Second, func() bool { return slow.request.Len() == 1 })
		w.completes(slow, 3, StatusSuccess)
	}
}

// completes checks the next completion of a request of n.
func (w *world) completes(n *node, cookie uint64, s Status) {
	w.t.Helper()
	var c Completion
	if !n.request.Pop(&c) || c.Cookie != cookie || c.Status != s {
		w.t.Errorf("%+v, want cookie %d and status %d", c, cookie, s)
	}
}
