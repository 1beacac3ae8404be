package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// depot is a shared queue of a node, and the memory of its receives: cookie i has place i.
type depot struct {
	*SharedQueue
	n    *node
	mem  memory
	size int
	lows int
}

func newDepot(n *node, receives, size int) *depot {
	p := &depot{n: n, mem: n.memory(receives * size), size: size}
	p.SharedQueue = n.host.NewSharedQueue(SharedConfig{Zone: 1, MaxRecv: receives, MaxRecvIOV: 2, Low: func() { p.lows++ }})
	return p
}

// add posts receive i in two pieces, and wakes who waits for it.
func (p *depot) add(i int) {
	p.n.t.Helper()
	at := i * p.size
	waits, err := p.Post(append(p.mem.seg(at, 1), p.mem.seg(at+1, p.size-1)...), uint64(i))
	if err != nil {
		p.n.t.Fatalf("receive %d: %v", i, err)
	}
	if waits != nil {
		p.n.eng.Kick(waits)
	}
}

func (p *depot) place(cookie uint64) []byte { return p.mem.mem[int(cookie)*p.size:][:p.size] }

func (p *depot) counts(t *testing.T, available, outstanding int) {
	t.Helper()
	if a, o := p.Counts(); a != available || o != outstanding {
		t.Errorf("%d receives available and %d outstanding, want %d and %d", a, o, available, outstanding)
	}
}

// sharing connects n connections whose passive sides, at node 1, share a queue.
func (w *world) sharing(cfg ConnConfig, n, receives, size int, notice func(*Conn, Notice)) (p *depot, from, to []*Conn) {
	w.t.Helper()
	a, b := w.nodes[0], w.nodes[1]
	p = newDepot(b, receives, size)
	if err := b.host.Listen(service, b); err != nil {
		w.t.Fatal(err)
	}
	for range n {
		var cb *Conn
		cfg := cfg
		ca := a.host.NewConn(cfg)
		cfg.SRQ = p.SharedQueue
		cfg.Notice = func(x Notice) {
			if notice != nil {
				notice(cb, x)
			}
		}
		cb = b.host.NewConn(cfg)
		w.dial(a, b, ca, nil)
		w.until("connection request", 10*time.Second, func() bool { return len(b.arrived) > 0 })
		w.accept(b, cb, nil)
		w.until("establishment", 10*time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
		w.want(a.connect, KindEstablished)
		w.want(b.connect, KindEstablished)
		from, to = append(from, ca), append(to, cb)
	}
	return p, from, to
}

// Connections share a queue that is always short of receives, over networks that lose, repeat and
// reorder: each message is received once, whole and in order of its connection, no receive is taken
// twice, and in the end none is missing.
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

// answer accepts requests with the connections that are idle, and rejects others.
func (w *world) answer(n *node, with []*Conn) {
	w.t.Helper()
	for _, c := range with {
		if c.State() == Idle && len(n.arrived) > 0 {
			w.accept(n, c, nil)
		}
	}
	for _, r := range n.arrived {
		path, err := n.link.Resolve(r.From, 1)
		if err == nil {
			err = n.eng.Reject(r, path, nil)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	n.arrived = n.arrived[:0]
}

// Connections come and go, at either side and at any time, while messages of several packets arrive
// over a bad network. Each receive that was posted comes back once, or is there in the end.
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
		if p.waiting != 0 || p.first != nil || p.last != nil {
			t.Errorf("seed %d: %d connections wait", seed, p.waiting)
		}
		if completed == 0 || ends == 0 {
			t.Errorf("seed %d: %d messages, %d flushed, %d connections ended", seed, completed, flushed, ends)
		}
		if b.eng.held != 0 || b.eng.Connections() != 0 {
			t.Errorf("seed %d: %d frames held, %d connections", seed, b.eng.held, b.eng.Connections())
		}
	}
}

// Whoever waits is served as soon as receives are posted, and before who comes later, though the
// sender would not try again for long; one post tells the first of the line, which tells the next.
func TestSharedQueueWakes(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	const conns = 10
	p, from, to := w.sharing(plain, conns, 64, 100, nil)
	a, b := w.nodes[0], w.nodes[1]
	src := a.memory(100)
	for _, c := range from[:conns-1] {
		a.post(c, c.PostSend(src.seg(0, 100), 0, Suppress))
		w.run(10 * time.Microsecond)
	}
	w.run(200 * time.Millisecond) // they try again every 50 ms now
	for i := range conns - 1 {
		at := p.mem.seg(i*100, 100)
		waits, err := p.Post(at, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		if waits != to[0] {
			t.Fatalf("post %d tells another than the first of the line", i)
		}
	}
	late := from[conns-1]
	a.post(late, late.PostSend(src.seg(0, 100), 0, Suppress))
	w.run(50 * time.Microsecond)
	if n := b.recv.Len(); n != 0 {
		t.Errorf("%d messages went before those that waited", n)
	}
	b.eng.Ring(to[0])
	w.run(100 * time.Microsecond)
	var c Completion
	for i := range conns - 1 {
		if !b.recv.Pop(&c) || c.Conn != to[i] || c.Cookie != uint64(i) {
			t.Fatalf("message %d: %+v", i, c)
		}
	}
	p.counts(t, 0, 0)
	if p.first == nil || p.first.first != to[conns-1] || p.waiting != 1 {
		t.Errorf("%d connections wait", p.waiting)
	}
}

// A connection that leaves the line does not keep the receive from the others that it was told of,
// and one that is over does not wait.
func TestSharedQueueLeave(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	p, from, to := w.sharing(plain, 3, 8, 100, nil)
	a, b := w.nodes[0], w.nodes[1]
	src := a.memory(100)
	for _, c := range from {
		a.post(c, c.PostSend(src.seg(0, 100), 0, Suppress))
		w.run(10 * time.Microsecond)
	}
	w.run(200 * time.Millisecond)
	if waits, err := p.Post(p.mem.seg(0, 100), 7); err != nil || waits != to[0] {
		t.Fatal(waits, err)
	}
	if err := b.eng.Disconnect(to[0], false); err != nil {
		t.Fatal(err)
	}
	w.run(100 * time.Microsecond)
	var c Completion
	if !b.recv.Pop(&c) || c.Conn != to[1] || c.Cookie != 7 || c.Status != StatusSuccess {
		t.Errorf("the next of the line: %+v", c)
	}
	if err := b.eng.Disconnect(to[2], false); err != nil || p.waiting != 0 || p.first != nil || p.last != nil {
		t.Errorf("%d connections wait, %v", p.waiting, err)
	}
	p.counts(t, 0, 0)
}
