package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// Attack 22: a peer stays silent, or keeps the connection alive but prevents its progress. The connection must break
// within the time that Limits allows, with the right status. Nothing of the connection may remain in the engine.
func TestAttack22SlowLoris(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		lim := siegeLimits
		lim.setDefaults()
		const slack = 300 * time.Millisecond
		write := func(s *siege, cv *Conn) {
			mem := s.victim.memory(64)
			s.victim.post(cv, cv.PostWrite(mem.seg(0, 64), 1, Remote{}, 0))
		}
		message := func(s *siege, cv *Conn) {
			mem := s.victim.memory(64)
			s.victim.post(cv, cv.PostSend(mem.seg(0, 64), 1, 0))
		}
		graceful := func(s *siege, cv *Conn) {
			if err := s.victim.eng.Disconnect(cv, true); err != nil {
				s.t.Fatal(err)
			}
		}
		for _, tc := range []struct {
			name   string
			begin  []func(s *siege, cv *Conn)
			say    func(h *proto.Header, cv *Conn) // nil: the peer is silent
			limit  time.Duration
			status Status
		}{
			{"silent from the start", nil, nil, lim.KeepAlive + lim.GiveUp, StatusSuccess},
			{"never acknowledges", []func(*siege, *Conn){write}, nil, lim.GiveUp, StatusTransport},
			{"never acknowledges, we disconnect", []func(*siege, *Conn){write, graceful}, nil, lim.GiveUp, StatusTransport},
			{"never enters the epoch", []func(*siege, *Conn){write, func(s *siege, cv *Conn) {
				s.victim.eng.Poll(Time(s.net.Now()))
				cv.changeEpoch()
			}}, nil, lim.GiveUp, StatusTransport},
			{"no credit, silent", []func(*siege, *Conn){message}, nil, lim.NotReady, StatusNotReady},
			{"no credit for ever", []func(*siege, *Conn){message}, func(*proto.Header, *Conn) {}, lim.NotReady, StatusNotReady},
			{"no credit for ever, we disconnect", []func(*siege, *Conn){message, graceful}, func(*proto.Header, *Conn) {}, lim.NotReady, StatusNotReady},
			{"not ready for ever", []func(*siege, *Conn){func(s *siege, cv *Conn) {
				h := s.header(cv, proto.Ack)
				h.Flags = proto.NoCredit
				s.strike(&h, nil)
			}, message}, func(h *proto.Header, cv *Conn) {
				h.Ack, h.Flags = cv.sent.Una, proto.NoCredit|proto.NotReady
			}, lim.NotReady, StatusNotReady},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				cv, _ := s.join(plain)
				start := s.net.Now()
				for _, f := range tc.begin {
					f(s, cv)
				}
				const every = int64(10 * time.Millisecond)
				for next, steps := start, 0; cv.State() != Closed; steps++ {
					if tc.say != nil && s.net.Now() >= next {
						h := s.header(cv, proto.Ack)
						h.Ack = cv.sent.Nxt
						tc.say(&h, cv)
						s.send(&h, nil)
						next = s.net.Now() + every
					}
					if !s.step() || time.Duration(s.net.Now()-start) > tc.limit+slack {
						t.Fatalf("state %d after %v", cv.State(), time.Duration(s.net.Now()-start))
					}
					s.drain()
					if steps > 100_000 {
						t.Fatal("100000 steps")
					}
				}
				if tc.limit == lim.GiveUp && time.Duration(s.net.Now()-start) < tc.limit {
					t.Errorf("given up after %v", time.Duration(s.net.Now()-start))
				}
				s.want(s.victim.connect, KindBroken)
				var c Completion
				if len(tc.begin) > 0 && (!s.victim.request.Pop(&c) || c.Status != tc.status) || s.victim.request.Len() > 0 {
					t.Errorf("the request: %+v, want status %d", c, tc.status)
				}
				if n := s.out.packets; n > int(lim.NotReady/creditProbeInterval)+200 {
					t.Errorf("%d packets to a peer that gives nothing", n)
				}
				s.finish()
			})
		}
	})
}

// Attack 22: a server answers only with Challenges. The attempt must end at the consumer's timeout.
func TestAttack22EndlessChallenge(t *testing.T) {
	s := newSiege(t)
	c := s.victim.host.NewConn(plain)
	s.dial(s.victim, s.foe, c, nil) // with a timeout of 30 s
	s.foe.down = true
	start := s.net.Now()
	for cookie := uint64(1); c.State() == Connecting; cookie++ {
		h := proto.Header{Type: proto.Challenge, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
		var body [proto.HelloSize]byte
		(&proto.Hello{CID: 5, Cookie: cookie}).Put(body[:])
		s.strike(&h, body[:])
		if !s.step() || time.Duration(s.net.Now()-start) > 31*time.Second {
			t.Fatalf("state %d after %v", c.State(), time.Duration(s.net.Now()-start))
		}
	}
	s.want(s.victim.connect, KindTimedOut)
	s.finish()
}
