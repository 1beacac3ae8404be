package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// spread consists of many connections between two engines, with a receive for each message.
type spread struct {
	*world
	from, to *node
	conns    []*Conn // ends at from
	peers    []*Conn // ends at to
	s        []Segment
	posted   int
}

func newSpread(t *testing.T, conns int) *spread {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond, MTU: 1472, FrameSize: 1472, Frames: 2048}, 2)
	sp := &spread{world: w, from: w.nodes[0], to: w.nodes[1]}
	dst := sp.to.memory(64).seg(0, 64)
	for range conns {
		ca, cb := w.pair(deep)
		for range deep.MaxRecv {
			sp.to.postRecv(cb, dst, 0)
		}
		sp.conns, sp.peers = append(sp.conns, ca), append(sp.peers, cb)
	}
	sp.s = sp.from.memory(64).seg(0, 64)
	sp.idle()
	return sp
}

// post posts n messages, to the connections in turn. It polls when Kick asks for a poll.
func (s *spread) post(n int) {
	s.t.Helper()
	for range n {
		c := s.conns[s.posted%len(s.conns)]
		s.posted++
		if err := c.PostSend(s.s, 0, 0); err != nil {
			s.t.Fatal(err)
		}
		if poll, _ := s.from.eng.Kick(c); poll {
			s.from.eng.Poll(Time(s.net.Now()))
		}
	}
}

// look polls both ends once, advances time by a microsecond, and pops all completions.
func (s *spread) look() {
	s.pollAll()
	s.net.Advance(s.net.Now() + int64(time.Microsecond))
	s.drain(s.from.request)
	s.drain(s.to.recv)
}

// idle calls look until nothing is left to do.
func (s *spread) idle() {
	for range 1000 {
		s.look()
	}
}

// packets returns the number of data packets that function f sends.
func (s *spread) packets(f func()) int {
	first := make([]seq.Num, len(s.conns))
	for i, c := range s.conns {
		first[i] = c.sent.Nxt
	}
	f()
	n := 0
	for i, c := range s.conns {
		n += c.sent.Nxt.Sub(first[i])
	}
	return n
}

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
	for n := q.front().turn.address.queued[q.kind].conns.First(); n != nil; n = n.Next() {
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

// sendMode must change nothing, whatever it returns.
func TestSendModeHasNoSideEffects(t *testing.T) {
	s := newSpread(t, 1)
	c, e := s.conns[0], s.from.eng
	for _, tt := range []struct {
		name string
		set  func()
		want sendMode
	}{
		{"nothing posted", func() {}, sendNone},
		{"one message", func() { s.posts(1) }, sendPartial},
		{"an answer", func() { c.recv.msn++ }, sendPacket},
		{"no credit", func() { c.flow.limit = c.sq.msn }, sendCredit},
		{"no room at the peer", func() { c.sent.Limit = 0 }, sendNone},
		{"the peer is not ready", func() { c.flow.rnr.waits = true }, sendNone},
	} {
		tt.set()
		stats, partials, armed, queued := e.stats, e.sched.partials, c.armed, c.turn
		flow, cc := c.flow, c.cc
		if got := c.sendMode(); got != tt.want {
			t.Errorf("%s: mode %d, want %d", tt.name, got, tt.want)
		}
		if c.armed != armed || c.turn != queued || c.flow != flow || c.cc != cc || e.stats != stats || e.sched.partials != partials {
			t.Errorf("%s: the decision changed something", tt.name)
		}
	}
}

// posts posts n messages on the first connection and makes the engine count them, without a poll.
func (s *spread) posts(n int) {
	s.t.Helper()
	c := s.conns[0]
	for range n {
		if err := c.PostSend(s.s, 0, 0); err != nil {
			s.t.Fatal(err)
		}
	}
	c.sq.count()
}

// Doorbell batching: while the caller takes completions and more are left, its posts must not ask for a poll. These
// posts wait for the poll that the caller makes when no completion is left. No more than maxDeferred posts in a row may
// be deferred. Posts of other callers must not be deferred.
func TestDeferPosts(t *testing.T) {
	const events = 2 * minLeft
	s := newSpread(t, 1)
	c, e := s.conns[0], s.from.eng
	fill := func() {
		for range events {
			s.from.post(c, c.PostSend(s.s, 0, 0))
		}
		for s.from.request.Len() < events { // the caller does nothing else, so no time passes for it
			s.from.eng.Poll(e.now)
			s.net.Advance(s.net.Now() + int64(time.Microsecond))
			s.to.eng.Poll(Time(s.net.Now()))
		}
		e.Poll(e.now)
	}
	fill()
	c.consumed()
	waits := func(what string, want bool) {
		t.Helper()
		if got := e.sched.deferPost(c); got != want {
			t.Errorf("%s: it waits: %v", what, got)
		}
	}
	take := func(n int) {
		t.Helper()
		var done Completion
		for range n {
			if !s.from.request.Pop(&done) {
				t.Fatal("no completion")
			}
		}
	}
	waits("nothing was taken", false)
	take(1)
	for range maxDeferred {
		waits("one was taken, enough are there", true)
	}
	waits("as many as may", false)
	if !c.consumed() {
		t.Error("a caller that takes completions does not count as active")
	}
	waits("nothing was taken since", false)
	if c.consumed() {
		t.Error("a caller that takes none counts as active")
	}
	take(1)
	waits("one was taken again", true)
	e.Poll(e.now.Add(time.Millisecond)) // a poll without a post
	waits("the caller did something else", false)
	e.Poll(e.now)
	waits("it is busy again", true)
	take(events - 1 - minLeft)
	waits("too few are left", false)
}

// Which events add tokens, and how many.
func TestTokens(t *testing.T) {
	const all = bucketSize * tokenTime
	for _, tt := range []struct {
		name string
		do   func(s *scheduler)
		want time.Duration
		busy bool
	}{
		{"posts", func(s *scheduler) { s.posted(5); s.posted(2); s.polled(0) }, 7 * postTokens, true},
		{"more than there is room for", func(s *scheduler) { s.posted(2 * int(all/postTokens)) }, all, false},
		{"time that posts take", func(s *scheduler) { s.posted(5); s.polled(5 * postTime) }, 5*postTokens + 5*postTime/busyShare, true},
		{"time that packets take", func(s *scheduler) { s.packets = 10; s.polled(10 * packetTime) }, 10 * packetTime / busyShare, true},
		{"idle time", func(s *scheduler) { s.posted(5); s.packets = 1; s.polled(6*postTime + packetTime) }, 5*postTokens + postTime, false},
		{"a flood, in short polls", func(s *scheduler) {
			for range 2 * busyShare {
				s.posted(1)
				s.packets = 1
				s.polled(time.Microsecond)
			}
		}, min(2*busyShare*(postTokens+time.Microsecond/busyShare), all), true},
		{"a long time", func(s *scheduler) { s.polled(100 * time.Hour) }, all, false},
		{"a clock that goes back", func(s *scheduler) { s.polled(-time.Hour) }, 0, true},
		{"too few polls", func(s *scheduler) {
			for range pausePolls - 1 {
				s.polled(0)
			}
		}, 0, true},
		{"polls, and a kick without a post between", func(s *scheduler) {
			for range pausePolls {
				s.posted(0)
				s.polled(0)
			}
		}, all, true},
	} {
		var s scheduler
		if tt.do(&s); s.bucket != tt.want || s.busy != tt.busy {
			t.Errorf("%s: %v in the bucket, busy %v, want %v, %v", tt.name, s.bucket, s.busy, tt.want, tt.busy)
		}
	}
}
