package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

// A connection ends while it holds a receive that its message has not filled. Then the receive must be flushed. If the
// engine drops the connection instead (Drop), the receive must get no completion and return to the queue. Receives that no
// connection has taken must stay in the queue.
func TestSharedQueueEnd(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond, Rate: 1e8, QueueFrames: 1000}, 2)
		var notices []Notice
		p, from, to := w.sharing(plain, 2, 8, 60_000, func(_ *Conn, n Notice) { notices = append(notices, n) })
		a, b := w.nodes[0], w.nodes[1]
		src := a.memory(60_000)
		for i := range 3 {
			p.add(i)
		}
		p.counts(t, 3, 3)
		a.post(from[0], from[0].PostSend(src.seg(0, 60_000), 0, 0))
		w.until("the first piece", time.Second, func() bool { n, _ := to[0].Receiving(); return n == 1 })
		p.counts(t, 2, 3)
		if recv, _ := to[0].Idle(); recv {
			t.Error("a connection that receives is idle")
		}
		var c Completion
		if dropped {
			b.eng.Drop(to[0])
			p.counts(t, 3, 3)
		} else {
			if err := b.eng.Disconnect(to[0], false); err != nil {
				t.Fatal(err)
			}
			p.counts(t, 2, 3)
			if !b.recv.Pop(&c) || c.Conn != to[0] || c.Cookie != 0 || c.Status != StatusFlushed {
				t.Errorf("flushed receive: %+v", c)
			}
			p.counts(t, 2, 2)
			w.want(b.connect, KindDisconnected)
		}
		if len(notices) != 1 || notices[0] != NoticeEnd {
			t.Errorf("notices: %v", notices)
		}
		a.post(from[1], from[1].PostSend(src.seg(0, 60_000), 0, 0))
		w.until("a message on the other", time.Second, func() bool { return b.recv.Len() == 1 })
		cookie, left := uint64(1), 1
		if dropped {
			cookie, left = 0, 2
		}
		if b.recv.Pop(&c); c.Conn != to[1] || c.Cookie != cookie || c.Status != StatusSuccess {
			t.Errorf("%+v", c)
		}
		p.counts(t, left, left)
		if recv, _ := to[0].Idle(); !recv {
			t.Error("a connection that is over is not idle")
		}
	}
}

// If a completion is lost because its queue is full, its receive must count as dequeued by the consumer.
func TestSharedQueueOverflow(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	lost := 0
	b.recv = NewQueue(2, nil, func() { lost++ })
	p, from, _ := w.sharing(plain, 1, 8, 100, nil)
	src := a.memory(100)
	for i := range 8 {
		p.add(i)
		a.post(from[0], from[0].PostSend(src.seg(0, 100), 0, Suppress))
	}
	w.until("overflows", time.Second, func() bool { return lost == 6 })
	p.counts(t, 0, 2)
	for b.recv.Len() > 0 {
		b.recv.Pop(new(Completion))
	}
	p.counts(t, 0, 0)
}

// Receives that were taken and not dequeued must cross the watermarks, the soft and the low one once per arming.
func TestSharedQueueMarks(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	high := 0
	p, from, to := w.sharing(plain, 1, 8, 100, func(_ *Conn, n Notice) {
		if n == NoticeHigh {
			high++
		}
	})
	src := a.memory(100)
	message := func() {
		a.post(from[0], from[0].PostSend(src.seg(0, 100), 0, Suppress))
		w.run(100 * time.Microsecond)
	}
	check := func(what string, wantHigh, wantLow int) {
		t.Helper()
		if high != wantHigh || p.lows != wantLow {
			t.Fatalf("%s: %d high and %d low, want %d and %d", what, high, p.lows, wantHigh, wantLow)
		}
	}
	low := func(n int) {
		if err := p.SetLow(n); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		p.add(i)
	}
	to[0].SetMarks(1, 4)
	low(7)
	message()
	check("at the marks", 0, 0)
	message()
	check("beyond the marks", 1, 1)
	message()
	check("again", 1, 1)
	low(5)
	check("armed at the mark", 1, 1)
	low(6)
	check("armed below it", 1, 2)
	w.drain(b.recv)
	to[0].SetMarks(0, 4)
	to[0].CheckMarks()
	check("armed with none held", 1, 2)
	message()
	check("beyond none", 2, 2)
	to[0].SetMarks(0, 4)
	to[0].CheckMarks()
	check("armed when crossed", 3, 2)
	for range 3 {
		message()
	}
	if to[0].State() != Established {
		t.Fatal("broke at the hard mark")
	}
	message()
	w.want(b.connect, KindBroken)
	w.want(a.connect, KindBroken)
	for i := range 5 {
		var c Completion
		if !b.recv.Pop(&c) || (c.Status == StatusSuccess) != (i < 4) {
			t.Errorf("completion %d: %+v", i, c)
		}
	}
	p.counts(t, 0, 0)
}

// The depth of a queue must bound the receives that the consumer has not dequeued.
func TestSharedQueueDepth(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: 5 * time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	p, from, to := w.sharing(plain, 1, 3, 100, nil)
	src := a.memory(100)
	full := func(want error) {
		t.Helper()
		if _, err := p.Post(p.mem.seg(0, 100), 0); err != want {
			t.Errorf("post: %v, want %v", err, want)
		}
	}
	for i := range 3 {
		p.add(i)
	}
	full(ErrQueueFull)
	a.post(from[0], from[0].PostSend(src.seg(0, 100), 0, Suppress))
	w.until("a message", time.Second, func() bool { return b.recv.Len() == 1 })
	full(ErrQueueFull)
	for _, tc := range []struct {
		n    int
		want error
	}{{2, ErrState}, {3, nil}, {40, nil}, {4, nil}} {
		if err := p.Resize(tc.n); err != tc.want {
			t.Errorf("resize to %d: %v, want %v", tc.n, err, tc.want)
		}
	}
	if _, err := to[0].PostRecv(p.mem.seg(0, 100), 0, 0); err != ErrState {
		t.Errorf("receive posted to the connection: %v", err)
	}
	full(nil)
	full(ErrQueueFull)
	if err := p.SetLow(5); err != ErrBounds {
		t.Errorf("mark beyond the depth: %v", err)
	}
	if err := p.SetLow(4); err != nil {
		t.Error(err)
	}
	if err := p.Resize(3); err != ErrState {
		t.Errorf("depth below the mark: %v", err)
	}
	for _, cookie := range []uint64{0, 1, 2, 0} {
		a.post(from[0], from[0].PostSend(src.seg(0, 100), 0, Suppress))
		w.until("a message", time.Second, func() bool { return b.recv.Len() > 0 })
		var c Completion
		if b.recv.Pop(&c); c.Cookie != cookie {
			t.Errorf("receive %d came out, want %d", c.Cookie, cookie)
		}
		w.run(100 * time.Microsecond)
	}
	p.counts(t, 0, 0)
}

// The time of one 64-byte message into a receive of a shared queue. Compare BenchmarkMessages64.
func BenchmarkMessagesShared64(b *testing.B) {
	w := benchWorld(b, 1472)
	n0, n1 := w.nodes[0], w.nodes[1]
	p, from, _ := w.sharing(deep, 1, 1024, 64, nil)
	src := n0.memory(64)
	s, r := src.seg(0, 64), p.mem.seg(0, 64)
	post := func() {
		if _, err := p.Post(r, 0); err != nil {
			b.Fatal(err)
		}
	}
	for range 1024 {
		post()
	}
	b.ReportAllocs()
	done, posted := 0, 0
	for b.Loop() {
		for ; posted-done >= 512; done += w.drain(n0.request) {
			w.pollAll()
			for range w.drain(n1.recv) {
				post()
			}
		}
		n0.post(from[0], from[0].PostSend(s, 0, 0))
		posted++
	}
}
