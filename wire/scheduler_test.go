package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
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
		{"no credit", func() { c.flow.creditLimit = c.sq.msn }, sendCredit},
		{"no room at the peer", func() { c.sent.Limit = 0 }, sendNone},
		{"the peer is not ready", func() { c.flow.rnr.waiting = true }, sendNone},
	} {
		tt.set()
		stats, partials, armed, queued := e.stats, e.sched.partials, c.timerAt, c.turn
		flow, cc := c.flow, c.cc
		if got := c.sendMode(); got != tt.want {
			t.Errorf("%s: mode %d, want %d", tt.name, got, tt.want)
		}
		if c.timerAt != armed || c.turn != queued || c.flow != flow || c.cc != cc || e.stats != stats || e.sched.partials != partials {
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

// Each event must add the right number of tokens.
func TestTokens(t *testing.T) {
	const all = bucketSize * tokenTime
	for _, tt := range []struct {
		name string
		do   func(s *scheduler)
		want time.Duration
		busy bool
	}{
		{"posts", func(s *scheduler) { s.addPosts(5); s.addPosts(2); s.startPoll(0) }, 7 * postTokens, true},
		{"more than there is room for", func(s *scheduler) { s.addPosts(2 * int(all/postTokens)) }, all, false},
		{"time that posts take", func(s *scheduler) { s.addPosts(5); s.startPoll(5 * postTime) }, 5*postTokens + 5*postTime/busyShare, true},
		{"time that packets take", func(s *scheduler) { s.lastPackets = 10; s.startPoll(10 * packetTime) }, 10 * packetTime / busyShare, true},
		{"idle time", func(s *scheduler) { s.addPosts(5); s.lastPackets = 1; s.startPoll(6*postTime + packetTime) }, 5*postTokens + postTime, false},
		{"a flood, in short polls", func(s *scheduler) {
			for range 2 * busyShare {
				s.addPosts(1)
				s.lastPackets = 1
				s.startPoll(time.Microsecond)
			}
		}, min(2*busyShare*(postTokens+time.Microsecond/busyShare), all), true},
		{"a long time", func(s *scheduler) { s.startPoll(100 * time.Hour) }, all, false},
		{"a clock that goes back", func(s *scheduler) { s.startPoll(-time.Hour) }, 0, true},
		{"too few polls", func(s *scheduler) {
			for range pausePolls - 1 {
				s.startPoll(0)
			}
		}, 0, true},
		{"polls, and a kick without a post between", func(s *scheduler) {
			for range pausePolls {
				s.addPosts(0)
				s.startPoll(0)
			}
		}, all, true},
	} {
		var s scheduler
		if tt.do(&s); s.bucket != tt.want || s.busy != tt.busy {
			t.Errorf("%s: %v in the bucket, busy %v, want %v, %v", tt.name, s.bucket, s.busy, tt.want, tt.busy)
		}
	}
}
