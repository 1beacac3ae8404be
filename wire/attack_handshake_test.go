package wire

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 3: a flood of Connects with spoofed source addresses. The victim must keep no state. It must not send more
// bytes to an address than it received with this source address.
func TestAttack03SpoofedConnectFlood(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		for _, tc := range []struct {
			name   string
			qual   uint64
			cookie func(s *siege, r *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64
			answer proto.Type
		}{
			{"no cookie", service, func(*siege, *rand.Rand, *requestKey, *proto.Header, *proto.Hello) uint64 { return 0 }, proto.Challenge},
			{"random cookie", service, func(_ *siege, r *rand.Rand, _ *requestKey, _ *proto.Header, _ *proto.Hello) uint64 { return r.Uint64() }, proto.Challenge},
			{"cookie of another address", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
				other := requestKey{from: s.foe.addr}
				return s.victim.eng.makeCookie(&other, h, hi, s.net.Now()/int64(cookieLife))
			}, proto.Challenge},
			{"cookie of another attempt", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
				again := *h
				again.PSN++
				return s.victim.eng.makeCookie(key, &again, hi, s.net.Now()/int64(cookieLife))
			}, proto.Challenge},
			{"cookie of another port to answer", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
				proven := *h
				proven.Flags |= proto.SourcePort
				return s.victim.eng.makeCookie(key, &proven, hi, s.net.Now()/int64(cookieLife))
			}, proto.Challenge},
			{"cookie of the day before", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
				return s.victim.eng.makeCookie(key, h, hi, s.net.Now()/int64(cookieLife)-2)
			}, proto.Challenge},
			{"no listener", service + 1, func(*siege, *rand.Rand, *requestKey, *proto.Header, *proto.Hello) uint64 { return 0 }, proto.Reject},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				r := randSource(3)
				var from netip.AddrPort
				s.guise.as = func() netip.AddrPort { return from }
				const count = 2000
				start := s.net.Now()
				s.unmoved("Connects", func() {
					for range count {
						from = anyAddr(r)
						h := proto.Header{Type: proto.Connect, PSN: seq.Num(r.Uint32())}
						hi := proto.Hello{CID: r.Uint32() | 1, Tag: r.Uint32() | 1, MTU: 1472, Window: minPeerWindow, Qual: tc.qual, Private: make([]byte, r.IntN(64))}
						if keys != nil {
							form, keyID := s.noise.Form()
							hi.Noise, hi.Private = noiseHead(form, keyID, proto.Connect), make([]byte, proto.SealSize+len(hi.Private))
						}
						hi.Cookie = tc.cookie(s, r, &requestKey{from: from}, &h, &hi)
						body := helloOf(&hi)
						in, out := s.in.bytes, s.out.bytes
						s.strike(&h, body)
						if got, most := s.out.bytes-out, s.in.bytes-in; got > most {
							t.Fatalf("%d bytes were answered by %d", most, got)
						}
					}
				}, s.cb)
				if keys != nil { // nobody learns before the handshake which services exist
					tc.answer = proto.Challenge
				}
				most := replyBurst + int(s.net.Now()-start)*replyBurst/int(replyPeriod)
				if got := s.out.types[tc.answer]; got != s.out.packets || got < replyBurst/2 || got > most {
					t.Errorf("%d answers of type %d, %d in all, want %d at most", got, tc.answer, s.out.packets, most)
				}
				if len(s.victim.arrived) != 0 {
					t.Errorf("the consumer saw %d requests", len(s.victim.arrived))
				}
				s.finish()
			})
		}
	})
}

// connect makes the victim receive a Connect with a valid cookie, as only the owner of the address could send it. In
// secure mode the Connect has a message 1 of a known requester.
func (s *siege) connect(from netip.AddrPort, cid uint32) { s.connectWith(from, cid, 0) }

func (s *siege) connectWith(from netip.AddrPort, cid uint32, flags proto.Flags) {
	s.guise.as = func() netip.AddrPort { return from }
	h := proto.Header{Type: proto.Connect, PSN: seq.Num(cid), Flags: flags}
	hi := proto.Hello{CID: cid, Tag: cid, MTU: 1472, Window: minPeerWindow, Qual: service}
	if s.keys != nil {
		form, keyID := s.noise.Form()
		hi.Noise, hi.Private = noiseHead(form, keyID, proto.Connect), make([]byte, proto.SealSize)
	}
	hi.Cookie = s.victim.eng.makeCookie(&requestKey{from: from}, &h, &hi, s.net.Now()/int64(cookieLife))
	body := helloOf(&hi)
	if s.keys != nil {
		message, _, err := s.noise.Request(proto.AppendPrologue(nil, packetOf(h, body), s.victim.addr.Addr()), nil)
		if err == nil {
			body, err = putMessage(&hi, message)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.strike(&h, body)
	if s.keys != nil { // the next Poll handles message 1, and the Poll after it sends message 2
		s.land()
		s.land()
	}
}

// Attack 3: Connects from source port 0, to which no answer can be sent. They must not become requests: the consumer could
// not answer such a request, so each copy of the packet would be a new one.
func TestAttack03NoPortForTheAnswer(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		e := s.victim.eng
		const count = 100
		bad := e.stats.BadPackets
		s.unmoved("Connects", func() {
			for range count {
				s.connectWith(netip.MustParseAddrPort("192.0.2.1:0"), 1, proto.SourcePort)
			}
		})
		if n := len(s.victim.arrived); n != 0 || s.out.packets != 0 || e.stats.BadPackets-bad != count {
			t.Errorf("%d requests and %d answers, want none; %d bad packets, want %d", n, s.out.packets, e.stats.BadPackets-bad, count)
		}
	})
}

// Attack 3: the attackers flood the victim with Connects. The cookies are valid, because the attackers receive packets
// at their addresses. The number of half-open requests must be bounded for each address, for each network and in total.
// A newcomer must still connect.
func TestAttack03HalfOpenFlood(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		one := netip.MustParseAddr("192.0.2.1")
		alone := func(share float64) int { return int(share*maxHalfOpen/(1+share)) + 1 }
		for _, tc := range []struct {
			name string
			from func(i int) netip.AddrPort
			send int
			keep int
		}{
			{"one address", func(i int) netip.AddrPort { return netip.AddrPortFrom(one, uint16(i)) }, 1000, alone(halfOpenShare)},
			{"an IPv4 network", func(i int) netip.AddrPort {
				return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), uint16(i))
			}, 3000, alone(halfOpenPrefix)},
			{"an IPv6 network", func(i int) netip.AddrPort {
				return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 8: byte(i), 14: byte(i >> 8), 15: byte(i)}), 1)
			}, 3000, alone(newcomerFactor * halfOpenPrefix)},
			{"64 addresses", func(i int) netip.AddrPort {
				return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(i % 64), 1}), uint16(i))
			}, 6000, alone(64 * halfOpenShare)},
			{"as many addresses as places", func(i int) netip.AddrPort {
				return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, byte(i), byte(i >> 8), 1}), 1)
			}, maxHalfOpen - 1, maxHalfOpen - 1},
		} {
			if keys != nil && tc.send > 1000 {
				continue // handshakes take long
			}
			t.Run(tc.name, func(t *testing.T) {
				s := newModeSiege(t, keys)
				for i := range tc.send {
					s.connect(tc.from(i), uint32(i)+1)
					if i%16 == 0 { // a repeat must not become another request
						s.connect(tc.from(i), uint32(i)+1)
					}
				}
				e := s.victim.eng
				if n := e.halfOpen.used; n < tc.keep || n > tc.keep+tc.keep/50 || len(e.distinctRequests())-1 != n || len(s.victim.arrived) != n { // -1: the bystander's
					t.Errorf("%d requests, %d half-open, %d at the consumer, want %d", len(e.distinctRequests())-1, n, len(s.victim.arrived), tc.keep)
				}
				if s.out.packets != 0 {
					t.Errorf("%d packets in answer to undecided requests", s.out.packets)
				}
				all := s.victim.arrived
				s.victim.arrived, s.guise.as = nil, nil
				cv, _ := s.join(plain)
				s.drop(cv)
				s.foe.down = false
				s.run(50 * time.Millisecond)
				s.work()
				for _, r := range all {
					path, err := s.victim.link.Resolve(s.foe.addr, 0)
					if err == nil {
						err = e.Refuse(r, path)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if e.halfOpen.used != 0 || len(e.halfOpen.held) != 0 {
					t.Errorf("%d half-open of %d holders left", e.halfOpen.used, len(e.halfOpen.held))
				}
				s.finish()
			})
		}
	})
}

// Attack 3: an address has used up its share with requests that the consumer does not decide. More Connects of this
// address must not evict an accepted request of another address, whose requester is too far away to confirm at once.
func TestAttack03UndecidedRequests(t *testing.T) {
	eachModeInFull(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		e := s.victim.eng
		s.connect(netip.MustParseAddrPort("10.0.0.9:17473"), 1)
		s.acceptAll()
		s.exactly(2 * confirmTime)
		for i := range maxHalfOpen / 4 {
			s.connect(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i+1)), uint32(i)+2)
		}
		if r := e.unconfirmed.oldest(everyone); r == nil || r.From.Addr() != netip.MustParseAddr("10.0.0.9") {
			t.Error("the accepted request was evicted")
		}
		if n, most := e.halfOpen.used, int(halfOpenShare*maxHalfOpen)+1; n > most {
			t.Errorf("%d requests, want %d at most", n, most)
		}
	})
}

// Attack 3: requests of many networks fill the table. Another request of one of these networks must not evict the accepted
// request of another network, because it gets no place itself.
func TestAttack03RequestsInVain(t *testing.T) {
	s := newModeSiege(t, nil)
	e := s.victim.eng
	s.connect(netip.MustParseAddrPort("10.0.0.9:17473"), 1)
	s.acceptAll()
	s.exactly(2 * confirmTime)
	for i := range maxHalfOpen {
		s.connect(netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), 17473), uint32(i)+2)
		if e.halfOpen.used == maxHalfOpen {
			break
		}
	}
	if free := maxHalfOpen - e.halfOpen.used; free != 0 {
		t.Fatalf("%d places are free", free)
	}
	s.connect(netip.MustParseAddrPort("11.0.0.2:17473"), 1)
	if r := e.unconfirmed.oldest(everyone); r == nil || r.From.Addr() != netip.MustParseAddr("10.0.0.9") {
		t.Error("the accepted request was evicted")
	}
}

// acceptAll accepts all requests and pops all events of the victim.
func (s *siege) acceptAll() {
	for _, r := range s.victim.arrived {
		path, err := s.victim.link.Resolve(r.From, 0)
		if err == nil {
			err = s.victim.eng.Accept(r, s.victim.host.NewConn(plain), path, nil, s.victim.completions())
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.victim.arrived = s.victim.arrived[:0]
	for s.victim.connect.Pop(new(Completion)) {
	}
}
