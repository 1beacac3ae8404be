package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// spread is many connections between two engines, with receives for all that is sent.
type spread struct {
	*world
	from, to *node
	conns    []*Conn // of from
	peers    []*Conn // of to
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

// post posts n messages, to the connections in turn, and polls where a post says that there is something to do.
func (s *spread) post(n int) {
	s.t.Helper()
	for range n {
		c := s.conns[s.posted%len(s.conns)]
		s.posted++
		if err := c.PostSend(s.s, 0, 0); err != nil {
			s.t.Fatal(err)
		}
		if s.from.eng.Kick(c) {
			s.from.eng.Poll(Time(s.net.Now()))
		}
	}
}

// look has both ends polled once, a microsecond pass, and the completions taken.
func (s *spread) look() {
	s.pollAll()
	s.net.Advance(s.net.Now() + int64(time.Microsecond))
	s.drain(s.from.request)
	s.drain(s.to.recv)
}

// idle looks until nothing is left to do.
func (s *spread) idle() {
	for range 1000 {
		s.look()
	}
}

// packets is how many packets with data f sends.
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

// A consumer that posts to many connections in turn, and looks for completions now and then, sends packets of many
// messages, and with one message for each connection a packet each.
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
	if most := rounds*each/10 + 2*partialBurst; n > most {
		t.Errorf("%d messages left in %d packets, want %d at most", rounds*each, n, most)
	}
}

// What waits for more to share its packet leaves when its consumer has polled in vain for a while, or does not want it to
// wait.
func TestPartialsLeave(t *testing.T) {
	const conns = 2 * partialBurst
	s := newSpread(t, conns)
	s.post(conns)
	if s.from.eng.partials.empty() {
		t.Fatal("nothing waits")
	}
	if s.from.eng.Next() != s.from.eng.now {
		t.Error("it waits for something else than a poll")
	}
	if n := s.packets(func() {
		for range idlePolls - 1 {
			s.from.eng.Poll(Time(s.net.Now()))
		}
	}); n != 0 {
		t.Errorf("%d packets left too soon", n)
	}
	s.from.eng.Poll(Time(s.net.Now()))
	if !s.from.eng.partials.empty() {
		t.Error("packets wait though nothing was posted for some polls")
	}
	s.until("completions", time.Second, func() bool { return s.from.request.Len() == conns })

	s.post(conns)
	if s.from.eng.partials.empty() {
		t.Fatal("nothing waits the second time")
	}
	for range conns / partialBurst {
		s.from.eng.Release()
		s.from.eng.Poll(Time(s.net.Now()))
	}
	if !s.from.eng.partials.empty() {
		t.Error("packets wait though they were released")
	}
}

// What answers a packet to a connection with little outstanding does not wait.
func TestPartialsAnswer(t *testing.T) {
	const conns = partialBurst
	s := newSpread(t, conns)
	mem := s.from.memory(64).seg(0, 64)
	for _, c := range s.conns {
		s.from.postRecv(c, mem, 0)
	}
	answer := s.to.memory(64).seg(0, 64)
	answers := func() (n int) {
		s.to.eng.partials.budget = 0
		for _, c := range s.peers {
			if err := c.PostSend(answer, 0, 0); err != nil {
				t.Fatal(err)
			}
			first := c.sent.Nxt
			if s.to.eng.Kick(c) {
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
	if n := answers(); n > 2*conns*int(postPays)/int(partialPrice) {
		t.Errorf("%d messages that answer nothing left at once", n)
	}
}

// line is the connections that wait.
func (s *spread) line() (line []*Conn) {
	var before *Conn
	for c := s.from.eng.partials.head; c != nil; before, c = c, c.partialAfter {
		if c.partialBefore != before || !c.inPartials {
			s.t.Fatalf("place %d of the line: not after the one before", len(line))
		}
		line = append(line, c)
	}
	if s.from.eng.partials.tail != before {
		s.t.Fatal("the line does not end with its last")
	}
	return line
}

// A connection that ends while it waits leaves the line, wherever it stands.
func TestPartialGone(t *testing.T) {
	const conns = partialBurst + 16
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
		if gone.makeReady(); slices.Contains(s.line(), gone) {
			t.Errorf("%s: it is in the line again", at)
		}
		s.until("the others", time.Second, func() bool { return s.from.request.Len() == conns })
		if n := s.from.eng.Stats().TxRequests; n != conns-1 {
			t.Errorf("%s: %d requests completed, want %d", at, n, conns-1)
		}
	}
}

// Where the link has no frame, the first in line stays that, and what it has paid is not lost.
func TestPartialNoFrames(t *testing.T) {
	const conns = partialBurst + 16
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
	e.Release()
	for range idlePolls {
		e.Poll(Time(s.net.Now()))
	}
	if !slices.Equal(s.line(), line) || e.partials.budget != partialBurst*partialPrice {
		t.Errorf("%d of %d wait, with %v", len(s.line()), len(line), e.partials.budget)
	}
	for _, bufs := range taken {
		e.link.Free(bufs)
	}
	s.until("all", time.Second, func() bool { return s.from.request.Len() == conns })
}

// A consumer that posts to many connections once in a while and looks for completions once has its messages leave: the time
// between is a pause.
func TestPartialsTick(t *testing.T) {
	const conns = 128
	s := newSpread(t, conns)
	late := 0
	for range 50 {
		s.post(conns)
		s.from.eng.Poll(Time(s.net.Now()))
		s.drain(s.from.request)
		for range 10 { // the peer has nothing else to do
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

// What pays, and what does not.
func TestPartialsBudget(t *testing.T) {
	const all = partialBurst * partialPrice
	for _, tt := range []struct {
		name  string
		do    func(l *partials)
		want  time.Duration
		hasty bool
	}{
		{"posts", func(l *partials) { l.posted(5); l.posted(2); l.polled(0) }, 7 * postPays, true},
		{"more than there is room for", func(l *partials) { l.posted(2 * int(all/postPays)) }, all, false},
		{"time that posts take", func(l *partials) { l.posted(5); l.polled(5 * postTime) }, 5*postPays + 5*postTime/anyShare, true},
		{"time that packets take", func(l *partials) { l.moved = 10; l.polled(10 * packetTime) }, 10 * packetTime / anyShare, true},
		{"time beyond", func(l *partials) { l.posted(5); l.moved = 1; l.polled(6*postTime + packetTime) }, 5*postPays + postTime, false},
		{"a flood, in short polls", func(l *partials) {
			for range 2 * anyShare {
				l.posted(1)
				l.moved = 1
				l.polled(time.Microsecond)
			}
		}, min(2*anyShare*(postPays+time.Microsecond/anyShare), all), true},
		{"a long time", func(l *partials) { l.polled(100 * time.Hour) }, all, false},
		{"a clock that goes back", func(l *partials) { l.polled(-time.Hour) }, 0, true},
		{"too few polls", func(l *partials) {
			for range idlePolls - 1 {
				l.polled(0)
			}
		}, 0, true},
		{"polls, and a kick without a post between", func(l *partials) {
			for range idlePolls {
				l.posted(0)
				l.polled(0)
			}
		}, all, true},
	} {
		var l partials
		if tt.do(&l); l.budget != tt.want || l.hasty != tt.hasty {
			t.Errorf("%s: budget %v, hasty %v, want %v, %v", tt.name, l.budget, l.hasty, tt.want, tt.hasty)
		}
	}
}
