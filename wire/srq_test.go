package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// depot is a shared queue of a node with the memory of its receives. The receive with cookie i has place i.
type depot struct {
	*SharedQueue
	n            *node
	mem          memory
	size, stride int
	lows         int
}

func newDepot(n *node, receives, size int) *depot { return newDepotAt(n, receives, size, size) }

// newDepotAt makes a depot whose places begin stride bytes after each other.
func newDepotAt(n *node, receives, size, stride int) *depot {
	p := &depot{n: n, mem: n.memory(size + (receives-1)*stride), size: size, stride: stride}
	p.SharedQueue = n.host.NewSharedQueue(SharedConfig{Zone: 1, MaxRecv: receives, MaxRecvIOV: 2, Low: func() { p.lows++ }})
	return p
}

// add posts receive i with two segments and wakes the connection that waits for it.
func (p *depot) add(i int) {
	p.n.t.Helper()
	at := i * p.stride
	waits, err := p.Post(append(p.mem.seg(at, 1), p.mem.seg(at+1, p.size-1)...), uint64(i))
	if err != nil {
		p.n.t.Fatalf("receive %d: %v", i, err)
	}
	if waits != nil {
		p.n.eng.Kick(waits)
	}
}

func (p *depot) place(cookie uint64) []byte { return p.mem.mem[int(cookie)*p.stride:][:p.size] }

func (p *depot) counts(t *testing.T, available, outstanding int) {
	t.Helper()
	if a, o := p.Counts(); a != available || o != outstanding {
		t.Errorf("%d receives available and %d outstanding, want %d and %d", a, o, available, outstanding)
	}
}

// sharing connects n connections from node 0 to node 1, where they share a queue.
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

// answer accepts requests with the Idle connections, and rejects further requests.
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

// A waiting connection must get a receive as soon as a receive is posted, before connections that begin to wait later,
// and long before its sender tries again. A post gives the receive to the first waiting connection, unless its peer has
// its share. Then the receive is given when an earlier one is free.
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
	w.run(200 * time.Millisecond) // by now the senders try again every 50 ms
	told := 0
	for i := range conns - 1 {
		at := p.mem.seg(i*100, 100)
		waits, err := p.Post(at, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		if waits == nil {
			continue
		}
		if waits != to[told] {
			t.Fatalf("post %d tells another than the first of the line", i)
		}
		told++
		b.eng.Ring(waits)
	}
	if told != conns/2 {
		t.Errorf("the posts tell %d connections, want %d", told, conns/2)
	}
	late := from[conns-1]
	a.post(late, late.PostSend(src.seg(0, 100), 0, Suppress))
	w.run(200 * time.Microsecond)
	var c Completion
	for i := range conns - 1 {
		if !b.recv.Pop(&c) || c.Conn != to[i] || c.Cookie != uint64(i) {
			t.Fatalf("message %d: %+v", i, c)
		}
	}
	p.counts(t, 0, 0)
	if !to[conns-1].srq.flow.Waits() || p.fair.Waiting() != 1 {
		t.Errorf("%d connections wait", p.fair.Waiting())
	}
}

// A waiting connection was given a receive, but ends without taking it. The next waiting connection must get the
// receive. A connection that has ended must no longer count as waiting.
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
	if waits, err := p.Post(append(p.mem.seg(0, 1), p.mem.seg(1, 99)...), 7); err != nil || waits != to[0] {
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
	if err := b.eng.Disconnect(to[2], false); err != nil || p.fair.Waiting() != 0 {
		t.Errorf("%d connections wait, %v", p.fair.Waiting(), err)
	}
	p.counts(t, 0, 0)
}

// TestSharedQueueDrop frees connections that hold a receive for an unfinished message. Each receive returns to the
// queue, because no completion tells the consumer that its memory is free, and the next message gets it.
func TestSharedQueueDrop(t *testing.T) {
	const size = 64 << 10
	w := newWorld(t, simlink.Config{Seed: 1, Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	p, from, to := w.sharing(plain, 4, 2, size, nil)
	p.add(0)
	p.add(1)
	src := a.memory(size).fill(randSource(2))
	for i, c := range to[:3] {
		a.post(from[i], from[i].PostSend(src.seg(0, size), 1, 0))
		w.until("first packet", time.Second, func() bool {
			n, _ := c.Receiving()
			return n == 1
		})
		b.eng.Drop(c)
		p.counts(t, 2, 2)
	}
	a.post(from[3], from[3].PostSend(src.seg(0, size), 2, 0))
	var got Completion
	w.until("message", time.Second, func() bool { return b.recv.Pop(&got) })
	if got.Status != StatusSuccess || got.Conn != to[3] || string(p.place(got.Cookie)) != string(src.mem) {
		t.Errorf("the message completes with %+v", got)
	}
	p.counts(t, 1, 1)
}
