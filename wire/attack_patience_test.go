package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// A packet is held because a message in it found no receive, and then the peer sends the packet again. The packet must
// be consumed only once. Its place in the table of held packets must be free afterwards, because the packet that comes
// one window later uses the same place.
func TestPutOffPacketIsTakenInOnce(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	cfg := plain
	cfg.NoCredit = true
	ca, cb := w.pair(cfg)
	src, dst := a.memory(64), b.memory(128)
	src.mem[0] = 1
	if err := ca.PostWrite(src.seg(0, 1), 1, dst.at(0), 0); err != nil { // shares a packet with the message
		t.Fatal(err)
	}
	a.post(ca, ca.PostSend(src.seg(0, 1), 2, 0))
	w.until("the message to be put off", time.Second, func() bool { return cb.recv.notReady })
	// Another goroutine posts a receive. Before the engine takes it in, the packet comes again.
	if _, err := cb.PostRecv(dst.seg(64, 64), 1, 0); err != nil {
		t.Fatal(err)
	}
	w.until("the message", time.Second, func() bool { return b.recv.Len() == 1 })
	if cb.recv.early.Packets() != 0 || b.eng.heldFrames != 0 {
		t.Errorf("%d packets, %d frames held of what was taken in", cb.recv.early.Packets(), b.eng.heldFrames)
	}
	b.postRecv(cb, dst.seg(64, 64), 2)
	dst.mem[0] = 2
	for i := range uint64(2 * reassembly.InitialSlots) {
		a.post(ca, ca.PostWrite(src.seg(0, 1), i, dst.at(32), 0))
		w.until("the write", time.Second, func() bool { return ca.sq.empty() })
		if cb.State() != Established || dst.mem[0] != 2 {
			t.Fatalf("after %d writes: state %d, byte %d, want 2: the first write was placed again", i, cb.State(), dst.mem[0])
		}
	}
}

// A closed engine must return the frames of early packets to the link.
func TestCloseGivesHeldFramesBack(t *testing.T) {
	w := newWorld(t, simlink.Config{}, 2)
	a, b := w.nodes[0], w.nodes[1]
	_, cb := w.pair(plain)
	w.inject(a, b, &proto.Header{Type: proto.Data, CID: cb.cid, Tag: cb.tag, PSN: cb.recv.nextPSN + 5, Ack: cb.sent.Una}, nil)
	b.eng.Close()
	if got := b.link.Outstanding(); got != 0 {
		t.Errorf("%d frames not returned", got)
	}
}

// Attack 22: a peer sends packets but lets nothing complete. Its connection must break too, but later.
func TestAttack22TalksForEver(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, tc := range []struct {
			name string
			post func(s *siege, cv *Conn, m memory) error
			say  func(h *proto.Header, cv *Conn)
		}{
			{"never acknowledges", func(_ *siege, cv *Conn, m memory) error { return cv.PostWrite(m.seg(0, 64), 1, Remote{}, 0) },
				func(*proto.Header, *Conn) {}},
			{"never answers a read", func(_ *siege, cv *Conn, m memory) error { return cv.PostRead(m.seg(0, 64), 1, Remote{}, 64, 0) },
				func(h *proto.Header, cv *Conn) { h.Ack = cv.sent.Nxt }},
			{"credit goes round and is never there", func(_ *siege, cv *Conn, m memory) error { return cv.PostSend(m.seg(0, 64), 1, 0) },
				func(h *proto.Header, _ *Conn) { h.Credit++ }},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				cv, _ := s.join(plain)
				m := s.victim.memory(64)
				if tc.name[0] == 'c' { // after three steps of 2^30 the number is behind again
					for range 3 {
						h := s.header(cv, proto.Ack)
						h.Credit = cv.flow.creditLimit + 1<<30
						s.strike(&h, nil)
					}
				}
				s.victim.post(cv, tc.post(s, cv, m))
				start := s.net.Now()
				for next := start; cv.State() != Closed; {
					if s.net.Now() >= next {
						h := s.header(cv, proto.Ack)
						tc.say(&h, cv)
						s.send(&h, nil)
						next = s.net.Now() + int64(500*time.Millisecond)
					}
					s.step()
					s.drain()
					if d := time.Duration(s.net.Now() - start); d > time.Minute {
						t.Fatalf("state %d after %v", cv.State(), d)
					}
				}
				s.want(s.victim.connect, KindBroken)
				s.finish()
			})
		}
	})
}

// Attack 5: a false echo must not delay the time at which the connection to a silent peer breaks.
func TestAttack05FalseEchoThenSilence(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		m := s.victim.memory(64)
		s.run(5 * time.Second)
		s.victim.post(cv, cv.PostWrite(m.seg(0, 64), 1, Remote{}, 0))
		s.victim.eng.Poll(Time(s.net.Now()))
		h := s.header(cv, proto.Ack)
		h.Ack, h.Echo = cv.sent.Nxt, Time(s.net.Now()).Add(-9900*time.Millisecond).Stamp()
		s.strike(&h, nil)
		s.victim.post(cv, cv.PostWrite(m.seg(0, 64), 2, Remote{}, 0))
		start := s.net.Now()
		s.until("the end", 40*time.Second, func() bool { return cv.State() == Closed })
		if d := time.Duration(s.net.Now() - start); d > 3*time.Second {
			t.Errorf("a silent peer was given up after %v, GiveUp is 2s; round trip %v", d, cv.rtt)
		}
	})
}

// Attack 3: the answers to repeated Connects may have at most three times their bytes, with any private data.
func TestAttack03RepeatedConnect(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		s.connect(s.foe.addr, 5)
		r := s.victim.arrived[0]
		s.victim.arrived = nil
		path, err := s.victim.link.Resolve(s.foe.addr, 0)
		if err == nil {
			err = s.victim.eng.Accept(r, s.victim.host.NewConn(plain), path, make([]byte, proto.MaxPrivateData), s.victim.completions())
		}
		if err != nil {
			t.Fatal(err)
		}
		s.land()
		s.in, s.out = traffic{}, traffic{}
		for range 100 {
			s.connect(s.foe.addr, 5)
		}
		if s.out.bytes > 3*s.in.bytes {
			t.Errorf("%d bytes were answered by %d", s.in.bytes, s.out.bytes)
		}
	})
}
