//go:build !race

package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 1: packets with random verification tags. Half of them have the right connection ID and the peer's address and
// port, which are not secret. The victim must not accept any of the packets, and none may change anything. The victim
// may answer only few of them, and no answer may be larger than the packet that it answers. In secure mode, the tags of
// AES-GCM are wrong, and the counters are those that the victim expects.
func TestAttack01GuessedTag(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiegeOn(t, simlink.Config{Frames: siegeFrames, Delay: time.Microsecond, Seed: 1, Unchecked: true}, keys)
		r := randSource(1)
		count := 1_000_000
		types := []proto.Type{proto.Data, proto.Ack, proto.Probe, proto.Probed, proto.Accept, proto.Reject,
			proto.Challenge, proto.Close, proto.Closed, proto.Reset}
		var hello [proto.HelloSize]byte
		(&proto.Hello{CID: 1, Tag: 1, MTU: 1472, Window: minPeerWindow}).Put(hello[:])
		s.guise.as = func() netip.AddrPort { return s.friend.addr }
		start, before, was := s.net.Now(), s.victim.eng.Stats(), refused(s.victim.eng)
		s.unmoved("guesses", func() {
			for i := range count {
				typ := types[r.IntN(len(types))]
				h := proto.Header{Type: typ, CID: r.Uint32(), Tag: r.Uint32(), PSN: seq.Num(r.Uint32()), Ack: seq.Num(r.Uint32()),
					Credit: seq.Num(r.Uint32()), TS: r.Uint32(), Echo: r.Uint32(), Flags: proto.Flags(r.Uint32()) &^ proto.HasSACK}
				switch {
				case i%2 == 0:
				case typ == proto.Reset:
					h.CID = s.cb.peerCID
				default:
					h.CID = s.cb.cid
				}
				body := hello[:0]
				switch typ {
				case proto.Accept, proto.Reject, proto.Challenge:
					body = hello[:]
				case proto.Close:
					body = hello[:proto.GoodbyeSize]
				default:
				}
				s.guess(&h, body)
				if i%32 == 31 {
					s.land()
				}
			}
			s.land()
		}, s.cb)
		st := s.victim.eng.Stats()
		if got := int(refused(s.victim.eng) - was); got != count {
			t.Errorf("%d of %d guesses were counted as refused", got, count)
		}
		if st.RxMessages != before.RxMessages || st.RxBytes != before.RxBytes || st.Broken != 0 || st.ProtocolErrors != 0 {
			t.Errorf("something was taken in: %+v", st)
		}
		periods := (s.net.Now()-start)/int64(replyPeriod) + 2
		resets, closed := s.out.types[proto.Reset], s.out.types[proto.Closed]
		if resets == 0 || (closed == 0) == (keys == nil) || int64(resets+closed) > periods*replyBurst {
			t.Errorf("%d Resets and %d Closed in %d periods, want some, %d at most", resets, closed, periods, periods*replyBurst)
		}
		if s.out.largest > s.in.smallest {
			t.Errorf("an answer has %d bytes, the smallest question %d", s.out.largest, s.in.smallest)
		}
		s.noGain()
		s.finish()
	})
}

// Attack 20: floods of packets that each ask the victim for work. The victim must send no more bytes than it receives,
// the work of a Poll must stay bounded, and the bystander's connection must make progress.
func TestAttack20Storms(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, tc := range []struct {
			name string
			make func(h *proto.Header, mem memory) (body []byte)
			most int // largest number of answers in a Poll
		}{
			{"acknowledgements", func(h *proto.Header, _ memory) []byte { h.Type = proto.Ack; return nil }, 1},
			{"acknowledgement requests", func(h *proto.Header, _ memory) []byte {
				h.Type, h.Flags = proto.Ack, proto.AckRequest
				return nil
			}, 1},
			{"SACKs", func(h *proto.Header, _ memory) []byte {
				h.Type, h.Flags = proto.Ack, proto.HasSACK|proto.AckRequest
				return bytes.Repeat([]byte{0xff}, proto.MaxSACKSize)
			}, 1},
			{"empty packets", func(h *proto.Header, _ memory) []byte { h.Flags = proto.AckRequest; return nil }, 1},
			{"duplicates", func(h *proto.Header, _ memory) []byte { h.PSN -= 1000; return nil }, 1},
			{"early packets", func(h *proto.Header, _ memory) []byte { h.PSN += 1000; return nil }, 1},
			{"writes of a byte", func(h *proto.Header, mem memory) []byte {
				h.Flags = proto.AckRequest
				return writeChunk(proto.Last, 1, mem.remote, mem.base)
			}, 1},
			{"pieces of nothing", func(h *proto.Header, _ memory) []byte { return bytes.Repeat(writeChunk(0, 0, 0, 0), 80) }, 1},
			{"probes", func(h *proto.Header, _ memory) []byte {
				h.Type, h.Flags = proto.Probe, proto.AckRequest
				return make([]byte, proto.ProbedSize)
			}, maxReceive},
			{"Closes of other connections", func(h *proto.Header, _ memory) []byte {
				h.Type = proto.Close
				var b [proto.GoodbyeSize]byte
				(&proto.Goodbye{CID: h.CID}).Put(b[:])
				return b[:]
			}, maxReceive},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				cv, _ := s.join(plain)
				mem := s.victim.memory(8)
				psn, polls, e := cv.recv.nextPSN, 0, s.victim.eng
				storm := func() {
					for range maxReceive / 2 {
						h := s.header(cv, proto.Data)
						h.PSN = psn
						body := tc.make(&h, mem)
						s.send(&h, body)
						if h.Type == proto.Data && h.PSN == psn {
							psn++
						}
					}
					rx, out := e.stats.RxPackets, s.out.packets
					s.land()
					polls++
					if got := e.stats.RxPackets - rx; got > maxReceive {
						t.Fatalf("%d packets taken in by one Poll", got)
					}
					if got := s.out.packets - out; got > tc.most {
						t.Fatalf("%d answers in one Poll, want %d at most", got, tc.most)
					}
				}
				for range 200 {
					storm()
				}
				// The bystander works, and each of its steps is in a storm.
				friend := s.friend
				s.victim.postRecv(s.cb, s.dst.seg(0, 64), 1)
				friend.post(s.ca, s.ca.PostSend(s.src.seg(0, 64), 1, 0))
				friend.post(s.ca, s.ca.PostWrite(s.src.seg(0, 4096), 2, s.dst.at(0), 0))
				steps := 0
				for ; friend.request.Len() < 2 && steps < 100; steps++ {
					storm()
					friend.eng.Poll(Time(s.net.Now()))
				}
				if friend.request.Len() != 2 || s.victim.recv.Len() != 1 || steps > 20 {
					t.Errorf("%d requests and %d messages of the bystander's in %d steps", friend.request.Len(), s.victim.recv.Len(), steps)
				}
				for c := (Completion{}); friend.request.Pop(&c) || s.victim.recv.Pop(&c); {
					if c.Status != StatusSuccess {
						t.Errorf("bystander: %+v", c)
					}
				}
				s.noGain()
				if cv.State() != Established {
					t.Errorf("state %d", cv.State())
				}
				if got := s.gauges(); got.held > s.victim.link.Caps().RxFrames/2 || got.conns != 2 || got.acks > 2 || got.ready > 2 {
					t.Errorf("the engine has %+v", got)
				}
				s.drop(cv)
				s.finish()
			})
		}
	})
}

// Attack 23: an attacker guesses a verification tag. The rate of answers to wrong guesses must be bounded, because each
// answer tells the attacker that a guess was wrong.
func TestAttack23GuessesAreAnsweredSlowly(t *testing.T) {
	s := newSiege(t)
	r := randSource(23)
	count := 100_000
	start := s.net.Now()
	for range count {
		h := s.header(s.cb, proto.Data)
		h.Tag = r.Uint32()
		s.strike(&h, nil)
	}
	periods := int((s.net.Now()-start)/int64(replyPeriod)) + 2
	if got := s.out.packets; got == 0 || got > periods*replyBurst || got != s.out.types[proto.Reset] {
		t.Errorf("%d answers, %d of them Resets, to %d guesses in %d periods", got, s.out.types[proto.Reset], count, periods)
	}
	s.finish()
}
