package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

// A consumer posts to many connections in turn and looks for completions now and then. Its packets must contain many
// messages. But after a pause, one message on each connection must leave at once, in a packet of its own.
func TestPartialsShare(t *testing.T) {
	const conns = 64
	s := newSpread(t, conns)
	if n := s.packets(func() { s.post(conns) }); n != conns {
		t.Errorf("after a pause %d messages to as many connections left in %d packets before the next poll", conns, n)
	}
	s.idle()
	const rounds, each = 400, 32
	n := s.packets(func() {
		for range rounds {
			s.post(each)
			s.look()
		}
	})
	if most := rounds*each/10 + 2*bucketSize; n > most {
		t.Errorf("%d messages left in %d packets, want %d at most", rounds*each, n, most)
	}
}

// Waiting partial packets must leave after the consumer has polled pausePolls times without a post.
func TestPartialsLeave(t *testing.T) {
	const conns = 2 * bucketSize
	s := newSpread(t, conns)
	s.post(conns)
	if s.from.eng.sched.empty() {
		t.Fatal("nothing waits")
	}
	if s.from.eng.Next() != s.from.eng.now {
		t.Error("it waits for something else than a poll")
	}
	if n := s.packets(func() {
		for range pausePolls - 1 {
			s.from.eng.Poll(Time(s.net.Now()))
		}
	}); n != 0 {
		t.Errorf("%d packets left too soon", n)
	}
	s.from.eng.Poll(Time(s.net.Now()))
	if !s.from.eng.sched.empty() {
		t.Error("packets wait though nothing was posted for some polls")
	}
	s.until("completions", time.Second, func() bool { return s.from.request.Len() == conns })
}

// A response on a connection with few outstanding requests must not wait for a token.
func TestPartialsAnswer(t *testing.T) {
	const conns = bucketSize
	s := newSpread(t, conns)
	mem := s.from.memory(64).seg(0, 64)
	for _, c := range s.conns {
		s.from.postRecv(c, mem, 0)
	}
	answer := s.to.memory(64).seg(0, 64)
	answers := func() (n int) {
		s.to.eng.sched.bucket = 0
		for _, c := range s.peers {
			if err := c.PostSend(answer, 0, 0); err != nil {
				t.Fatal(err)
			}
			first := c.sent.Nxt
			if poll, _ := s.to.eng.Kick(c); poll {
				s.to.eng.Poll(Time(s.net.Now()))
			}
			n += c.sent.Nxt.Sub(first)
		}
		return n
	}
	s.post(conns)
	for polls := 0; s.to.recv.Len() < conns; polls++ {
		if polls == 10 {
			t.Fatalf("%d messages came", s.to.recv.Len())
		}
		s.net.Advance(s.net.Now() + int64(time.Microsecond))
		s.to.eng.Poll(Time(s.net.Now()))
	}
	if n := answers(); n != conns {
		t.Errorf("%d of %d answers left at once", n, conns)
	}
	if n := answers(); n > 2*conns*int(postTokens)/int(tokenTime) {
		t.Errorf("%d messages that answer nothing left at once", n)
	}
}

// line returns the connections with a waiting partial packet.
func (s *spread) line() (line []*Conn) {
	q := &s.from.eng.sched.partials
	if q.empty() {
		return nil
	}
	for n := q.nextConn().turn.address.queued[q.kind].conns.First(); n != nil; n = n.Next() {
		line = append(line, n.Elem())
	}
	return line
}

// A connection that ends while its partial packet waits must leave the list, from any place in it.
func TestPartialGone(t *testing.T) {
	const conns = bucketSize + 16
	for _, at := range []string{"first", "middle", "last"} {
		s := newSpread(t, conns)
		s.post(conns)
		line := s.line()
		if len(line) < 3 {
			t.Fatalf("%d connections wait", len(line))
		}
		goes := map[string]int{"first": 0, "middle": 1, "last": len(line) - 1}[at]
		if err := s.from.eng.Disconnect(line[goes], false); err != nil {
			t.Fatal(err)
		}
		gone := line[goes]
		if left := slices.Delete(line, goes, goes+1); !slices.Equal(s.line(), left) {
			t.Errorf("%s: it is still in the line", at)
		}
		if gone.schedule(); slices.Contains(s.line(), gone) {
			t.Errorf("%s: it is in the line again", at)
		}
		s.until("the others", time.Second, func() bool { return s.from.request.Len() == conns })
		if n := s.from.eng.Stats().TxRequests; n != conns-1 {
			t.Errorf("%s: %d requests completed, want %d", at, n, conns-1)
		}
	}
}

// If the link has no frame, the first partial packet must stay first and must not lose its token.
func TestPartialNoFrames(t *testing.T) {
	const conns = bucketSize + 16
	s := newSpread(t, conns)
	s.post(conns)
	line := s.line()
	e := s.from.eng
	var taken [][]link.Buf
	for {
		bufs := make([]link.Buf, allocBatch)
		n := e.link.Alloc(bufs)
		if n == 0 {
			break
		}
		taken = append(taken, bufs[:n])
	}
	e.link.Free(e.frames)
	e.frames = e.frames[:0]
	for {
		bufs := make([]link.Buf, 1)
		if e.link.Alloc(bufs) == 0 {
			break
		}
		taken = append(taken, bufs)
	}
	for range pausePolls {
		e.Poll(Time(s.net.Now()))
	}
	if !slices.Equal(s.line(), line) || e.sched.bucket != bucketSize*tokenTime {
		t.Errorf("%d of %d wait, with %v", len(s.line()), len(line), e.sched.bucket)
	}
	for _, bufs := range taken {
		e.link.Free(bufs)
	}
	s.until("all", time.Second, func() bool { return s.from.request.Len() == conns })
}

// A consumer posts to many connections at intervals and polls once. Its messages must leave: intervals are idle time.
func TestPartialsTick(t *testing.T) {
	const conns = 128
	s := newSpread(t, conns)
	late := 0
	for range 50 {
		s.post(conns)
		s.from.eng.Poll(Time(s.net.Now()))
		s.drain(s.from.request)
		for range 10 { // meanwhile the peer only receives
			s.net.Advance(s.net.Now() + int64(100*time.Microsecond))
			s.to.eng.Poll(Time(s.net.Now()))
			s.drain(s.to.recv)
		}
		late = max(late, s.posted-int(s.to.eng.Stats().RxMessages))
	}
	if most := 2 * conns; late > most {
		t.Errorf("up to %d messages had not arrived after a tick, want %d at most", late, most)
	}
}

// A partial packet that waits for a token must leave before its connection is disconnected or dropped.
func TestPartialLeavesBeforeClose(t *testing.T) {
	const conns = bucketSize + 16
	for name, end := range map[string]func(e *Engine, c *Conn) error{
		"disconnect": func(e *Engine, c *Conn) error { return e.Disconnect(c, false) },
		"drop":       func(e *Engine, c *Conn) error { e.Drop(c); return nil },
	} {
		s := newSpread(t, conns)
		s.post(conns)
		c := s.line()[3]
		var peer *Conn
		for i := range s.conns {
			if s.conns[i] == c {
				peer = s.peers[i]
			}
		}
		if err := end(s.from.eng, c); err != nil {
			t.Fatal(err)
		}
		s.until("the end at the peer", time.Second, func() bool { return peer.State() == Closed })
		if peer.recv.msn != 1 {
			t.Errorf("%s: %d messages arrived before it, want 1", name, peer.recv.msn)
		}
	}
}
