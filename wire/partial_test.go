package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
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
	w := newWorld(t, simlink.Config{Immediate: true, MTU: 1472, FrameSize: 1472, Frames: 512}, 2)
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

// idle polls both ends until nothing is left to do.
func (s *spread) idle() {
	for range 20 * idlePolls {
		s.pollAll()
	}
	s.drain(s.from.request)
	s.drain(s.to.recv)
}

// packets is how many packets with data f sends.
func (s *spread) packets(f func()) int {
	first := make([]seq.Num, len(s.conns))
	for i, c := range s.conns {
		first[i] = c.send.nxt
	}
	f()
	n := 0
	for i, c := range s.conns {
		n += c.send.nxt.Sub(first[i])
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
			s.pollAll()
			s.drain(s.from.request)
			s.drain(s.to.recv)
		}
	})
	if most := rounds*each/12 + 2*partialBurst; n > most {
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

// What answers packets of connections with little outstanding does not wait: they have paid for it.
func TestPartialsAnswer(t *testing.T) {
	const conns = partialBurst
	s := newSpread(t, conns)
	mem := s.from.memory(64).seg(0, 64)
	for _, c := range s.conns {
		s.from.postRecv(c, mem, 0)
	}
	answer := s.to.memory(64).seg(0, 64)
	answers := func() (n int) {
		for _, c := range s.peers {
			if err := c.PostSend(answer, 0, 0); err != nil {
				t.Fatal(err)
			}
			if s.to.eng.Kick(c) {
				n++
				s.to.eng.Poll(Time(s.net.Now()))
			}
		}
		return n
	}
	s.to.eng.partials.budget = 0
	s.post(conns)
	for polls := 0; s.to.recv.Len() < conns; polls++ {
		if polls == 10 {
			t.Fatalf("%d messages came", s.to.recv.Len())
		}
		s.to.eng.partials.vain = 0 // it is not idle
		s.to.eng.Poll(Time(s.net.Now()))
	}
	if n := answers(); n != conns {
		t.Errorf("%d of %d answers left at once", n, conns)
	}
	s.to.eng.partials.budget = 0
	if n := answers(); n > 2*conns/partialPrice {
		t.Errorf("%d messages that answer nothing left at once", n)
	}
}

// A connection that is gone when its turn comes is passed over.
func TestPartialGone(t *testing.T) {
	const conns = partialBurst + 8
	s := newSpread(t, conns)
	s.post(conns)
	var waits []*Conn
	for c := s.from.eng.partials.head; c != nil; c = c.nextPartial {
		waits = append(waits, c)
	}
	if len(waits) < 2 {
		t.Fatalf("%d connections wait", len(waits))
	}
	if err := s.from.eng.Disconnect(waits[0], false); err != nil {
		t.Fatal(err)
	}
	s.until("the others", time.Second, func() bool { return s.from.request.Len() == conns })
	if !s.from.eng.partials.empty() {
		t.Error("connections still wait")
	}
	if st := s.from.eng.Stats(); st.TxRequests != conns-1 {
		t.Errorf("%d requests completed, want %d", st.TxRequests, conns-1)
	}
}
