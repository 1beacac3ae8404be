package wire

import (
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/wheel"
)

// Attack 3: a peer is silent after its connection is established. The victim may send the peer only short packets, at
// growing intervals, until the connection breaks. The victim must not send a Probe, which is a large packet.
func TestAttack03SilentAfterReady(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, cf := s.victim.host.NewConn(plain), s.foe.host.NewConn(plain)
		s.foe.down = false
		s.dial(s.foe, s.victim, cf, nil)
		s.until("the foe's request", time.Second, func() bool { return len(s.victim.arrived) > 0 })
		s.accept(s.victim, cv, nil)
		s.until("the victim's end", time.Second, func() bool { return cv.State() == Established })
		s.foe.down = true
		s.drain()
		s.out = traffic{}
		lim := &s.victim.host.limits
		s.until("the end", lim.KeepAlive+2*lim.GiveUp, func() bool { s.drain(); return cv.State() == Closed })
		s.run(2 * time.Second)
		s.drain()
		if n := s.out.types[proto.Probe]; n != 0 {
			t.Errorf("%d Probes", n)
		}
		if s.out.packets > 80 || s.out.bytes > 6000 {
			t.Errorf("%d packets, %d bytes to a silent peer", s.out.packets, s.out.bytes)
		}
		s.want(s.victim.connect, KindEstablished)
		s.want(s.victim.connect, KindBroken)
		s.finish()
	})
}

// Attack 21: a requester that never confirms its accepted request may get only few Accepts, however large they are.
func TestAttack21AcceptsAreFew(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		s.connect(s.foe.addr, 9)
		path, err := s.victim.link.Resolve(s.foe.addr, 0)
		if err == nil {
			err = s.victim.eng.Accept(s.victim.arrived[0], s.victim.host.NewConn(plain), path, make([]byte, 500), s.victim.completions())
		}
		if err != nil {
			t.Fatal(err)
		}
		s.guise.as, s.victim.arrived = nil, nil
		s.foe.down = true
		for end := s.net.Now() + int64(s.victim.host.limits.GiveUp+3*time.Second); s.net.Now() < end; {
			s.run(100 * time.Millisecond)
			s.drain()
		}
		if n := s.out.types[proto.Accept]; n == 0 || n > 24 {
			t.Errorf("%d Accepts in %v", n, s.victim.host.limits.GiveUp)
		}
		s.want(s.victim.connect, KindAcceptFailed)
		s.finish()
	})
}

// Attack 3: repeats of a Connect that was rejected with long private data may get only few answers.
func TestAttack03RejectRepeats(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		s.connect(s.foe.addr, 9)
		path, err := s.victim.link.Resolve(s.foe.addr, 0)
		if err == nil {
			err = s.victim.eng.Reject(s.victim.arrived[0], path, make([]byte, proto.MaxPrivateData))
		}
		if err != nil {
			t.Fatal(err)
		}
		start := s.net.Now()
		for range 1000 {
			s.connect(s.foe.addr, 9)
		}
		s.guise.as, s.victim.arrived = nil, nil
		if n, most := s.out.types[proto.Reject], int((s.net.Now()-start)/int64(helloRetry))+2; n == 0 || n > most {
			t.Errorf("%d Rejects in answer to 1000 repeats, want %d at most", n, most)
		}
		s.finish()
	})
}

// Attack 3: the unfinished handshakes of many clients must end in many Polls, not in a single one.
func TestAttack03HandshakesThatEndTogether(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		const crowd = 400
		for i := range crowd {
			s.connect(s.foe.addr, uint32(i)+1)
		}
		for _, r := range s.victim.arrived {
			path, err := s.victim.link.Resolve(s.foe.addr, 0)
			if err == nil {
				err = s.victim.eng.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.completions())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.guise.as, s.victim.arrived = nil, nil
		s.foe.down = true
		e, ended := s.victim.eng, 0
		for end := s.net.Now() + int64(e.host.limits.GiveUp+time.Second); s.net.Now() < end && ended < crowd; {
			before := s.victim.connect.Len()
			s.step()
			n := s.victim.connect.Len() - before
			if n > maxTimers {
				t.Fatalf("%d handshakes ended in one Poll", n)
			}
			for ended += n; s.victim.connect.Len() > 0; {
				s.victim.connect.Pop(new(Completion))
			}
			s.drain()
		}
		if ended != crowd {
			t.Errorf("%d of %d handshakes ended", ended, crowd)
		}
		s.finish()
	})
}

// Attack 22: the peers of many connections are silent while data is outstanding, so hundreds of timers are due at the
// same time. The timer of the bystander, whose packet was lost, must fire in the Poll in which it is due. A silent peer
// that is heard again must have its timer handled as promptly.
func TestAttack22TimersOfSilentPeers(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiegeOn(t, simlink.Config{Frames: 4096, Delay: time.Microsecond, Seed: 22}, keys)
		const crowd = 400
		conns := s.joinMany(crowd, plain)
		e, src := s.victim.eng, s.victim.memory(64)
		for _, c := range conns {
			s.victim.post(c, c.PostWrite(src.seg(0, 64), 0, Remote{Key: 1}, Suppress))
		}
		// due returns the times at which the first and the last timer of a silent peer fire.
		due := func() (first, last Time) {
			first, last = never, 0
			for _, c := range conns[1:] {
				first, last = min(first, c.timerAt), max(last, c.timerAt)
			}
			return first, last
		}
		// The result own is the number of polls until the timer of c has fired, and the result all is the number of polls
		// until no timer is due.
		polls := func(c *Conn) (own, all int) {
			_, last := due()
			now, count := max(last, c.timerAt).Add(time.Millisecond), c.rtx.count
			s.net.Advance(int64(now))
			for next, ok := e.timers.next(); ok && next <= now; next, ok = e.timers.next() {
				e.Poll(now)
				if all++; c.rtx.count != count && own == 0 {
					own = all
				}
			}
			return own, all
		}
		s.until("the back-off", time.Second, func() bool {
			s.drain()
			return !slices.ContainsFunc(conns, func(c *Conn) bool { return c.rtx.count < 6 })
		})
		s.friend.down = true
		for _, c := range []*Conn{s.cb, conns[0]} {
			first, _ := due()
			s.net.Advance(int64(first.Add(-100 * time.Microsecond))) // the timer of c will fire after those of silent peers
			if c == s.cb {
				s.victim.post(c, c.PostWrite(s.dst.seg(0, 64), 0, s.src.at(0), Suppress))
				e.Poll(Time(s.net.Now()))
			} else {
				h := s.header(c, proto.Ack)
				s.strike(&h, nil)
			}
			if first, _ := due(); c.timerAt < first {
				t.Fatalf("the timer fires at %d, the first of silent peers at %d: the test tests nothing", c.timerAt, first)
			}
			own, all := polls(c)
			if all < crowd/2/maxTimers {
				t.Fatalf("no timer was due after %d polls: the test tests nothing", all)
			}
			if own != 1 {
				t.Errorf("the timer fired in poll %d of %d", own, all)
			}
			s.drain()
		}
		s.friend.down = false
		for _, c := range conns {
			s.drop(c)
		}
		s.finish()
	})
}

// Attack 22: hundreds of timers of one address are due at the same time, although its peers are not silent. In one case
// they do work, in the other they only delay acknowledgements, and so fire for each packet of the attacker. The timer of
// the bystander, whose packet was lost, is due after most of them, and must fire in the same Poll.
func TestAttack22TimersOfAnsweringPeers(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		const crowd = 200
		for _, tc := range []struct {
			name string
			arm  func(s *siege, cv *Conn)
		}{
			{"retransmissions", func(s *siege, cv *Conn) {
				s.victim.post(cv, cv.PostWrite(s.dst.seg(0, 64), 0, Remote{Key: 1}, Suppress))
			}},
			{"acknowledgements", func(s *siege, cv *Conn) {
				h := s.header(cv, proto.Data)
				s.send(&h, nil)
			}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiegeOn(t, simlink.Config{Frames: 4096, Delay: time.Microsecond, Seed: 22}, keys)
				conns := s.joinMany(crowd, plain)
				e := s.victim.eng
				for _, cv := range conns {
					tc.arm(s, cv)
				}
				for range 1 + crowd/maxReceive {
					s.land()
				}
				s.friend.down = true
				first := never
				for _, cv := range conns {
					first = min(first, cv.timerAt)
				}
				s.net.Advance(int64(first) - wheel.Tick)
				s.victim.post(s.cb, s.cb.PostWrite(s.dst.seg(0, 64), 0, s.src.at(0), Suppress))
				e.Poll(Time(s.net.Now()))
				earlier := slices.DeleteFunc(slices.Clone(conns), func(cv *Conn) bool { return cv.timerAt > s.cb.timerAt })
				if len(earlier) < crowd/2 {
					t.Fatalf("%d timers are due before that of the bystander: the test tests nothing", len(earlier))
				}
				s.net.Advance(s.net.Now() + int64(maxRTO))
				polls := 1
				for e.Poll(Time(s.net.Now())); s.cb.rtx.count == 0 && polls < crowd; e.Poll(Time(s.net.Now())) {
					polls++
				}
				if polls > 1 {
					t.Errorf("the timer fired in poll %d", polls)
				}
				s.friend.down = false
				for _, cv := range conns {
					s.drop(cv)
				}
				s.finish()
			})
		}
	})
}
