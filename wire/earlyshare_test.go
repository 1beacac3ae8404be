package wire

import (
	"math/rand/v2"
	"testing"
)

// Connections take frames one by one, in random order, each as many as it can get. The frames must end up divided
// equally among networks, within a network among addresses, and within an address among connections.
func TestEarlyFramesAreShared(t *testing.T) {
	const total = 960
	e := &Engine{sched: newScheduler()}
	w := &named{names: map[*Conn]byte{}}
	add := func(addr string, n int) []*Conn {
		w.senders = e.sched.senders
		conns := w.add(addr, string(make([]byte, n)))
		e.sched.senders = w.senders
		for _, c := range conns {
			c.eng = e
		}
		return conns
	}
	groups := []struct {
		conns []*Conn
		want  int32
	}{
		{add("10.0.0.1", 8), total / 3 / 8},
		{add("10.0.1.1", 1), total / 3 / 2},
		{add("10.0.1.2", 4), total / 3 / 2 / 4},
		{add("10.0.2.1", 1), total / 3},
	}
	r := rand.New(rand.NewPCG(1, 1))
	want := func(c *Conn) {
		if e.heldFrames == total {
			v := e.sched.mostEarly(c)
			if v == c {
				return
			}
			v.addEarly(-1)
		}
		c.addEarly(1)
	}
	for i := range groups {
		for range 100 * total { // the groups come one after the other, so that later ones find no free frame
			e.now++
			h := groups[r.IntN(i+1)].conns
			want(h[r.IntN(len(h))])
		}
	}
	for i, g := range groups {
		for j, c := range g.conns {
			if n := c.recv.held.frames; n < g.want-1 || n > g.want+1 {
				t.Errorf("connection %d of group %d holds %d frames, want %d", j, i, n, g.want)
			}
		}
	}
	for _, g := range groups {
		for _, c := range g.conns {
			c.addEarly(-int(c.recv.held.frames))
		}
	}
	if e.heldFrames != 0 || len(e.sched.holders) != 0 {
		t.Errorf("%d frames and %d networks are left", e.heldFrames, len(e.sched.holders))
	}
}

// The largest holder is found after any change, and among equals the oldest.
func TestEarlyHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	conns := make([]Conn, 40)
	var h earlyHeap[*Conn]
	for now := range Time(20_000) {
		c := &conns[r.IntN(len(conns))]
		if n := r.IntN(9) - min(int(c.recv.held.frames), r.IntN(13)); n != 0 {
			h.add(c, n, now)
		}
		var first *Conn
		for i := range conns {
			c := &conns[i]
			f := c.recv.held
			if f.frames > 0 && (first == nil || f.frames > first.recv.held.frames || f.frames == first.recv.held.frames && f.since < first.recv.held.since) {
				first = c
			}
		}
		if (len(h) == 0) != (first == nil) || len(h) > 0 && h[0] != first {
			t.Fatalf("step %d: the first of %d holders is not the largest", now, len(h))
		}
	}
}
