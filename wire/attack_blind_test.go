package wire

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Attack 3: a flood of Connects with spoofed source addresses. The victim must keep no state. It must not send more
// bytes to an address than it received with this source address.
func TestAttack03SpoofedConnectFlood(t *testing.T) {
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
			return s.victim.eng.cookie(&other, h, hi, s.net.Now()/int64(cookieLife))
		}, proto.Challenge},
		{"cookie of another attempt", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
			again := *h
			again.PSN++
			return s.victim.eng.cookie(key, &again, hi, s.net.Now()/int64(cookieLife))
		}, proto.Challenge},
		{"cookie of another port to answer", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
			proven := *h
			proven.Flags |= proto.SourcePort
			return s.victim.eng.cookie(key, &proven, hi, s.net.Now()/int64(cookieLife))
		}, proto.Challenge},
		{"cookie of the day before", service, func(s *siege, _ *rand.Rand, key *requestKey, h *proto.Header, hi *proto.Hello) uint64 {
			return s.victim.eng.cookie(key, h, hi, s.net.Now()/int64(cookieLife)-2)
		}, proto.Challenge},
		{"no listener", service + 1, func(*siege, *rand.Rand, *requestKey, *proto.Header, *proto.Hello) uint64 { return 0 }, proto.Reject},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			r := randSource(3)
			var from netip.AddrPort
			s.guise.as = func() netip.AddrPort { return from }
			const count = 2000
			s.unmoved("Connects", func() {
				for range count {
					from = anyAddr(r)
					h := proto.Header{Type: proto.Connect, PSN: seq.Num(r.Uint32())}
					hi := proto.Hello{CID: r.Uint32() | 1, Tag: r.Uint32() | 1, MTU: 1472, Window: minPeerWindow, Qual: tc.qual, Private: make([]byte, r.IntN(64))}
					hi.Cookie = tc.cookie(s, r, &requestKey{from: from}, &h, &hi)
					body := make([]byte, proto.HelloSize+len(hi.Private))
					hi.Put(body)
					in, out := s.in.bytes, s.out.bytes
					s.strike(&h, body)
					if got, most := s.out.bytes-out, s.in.bytes-in; got > most {
						t.Fatalf("%d bytes were answered by %d", most, got)
					}
				}
			}, s.cb)
			if got := s.out.types[tc.answer]; got != count || s.out.packets != count {
				t.Errorf("%d answers of type %d, %d in all, want %d", got, tc.answer, s.out.packets, count)
			}
			if len(s.victim.arrived) != 0 {
				t.Errorf("the consumer saw %d requests", len(s.victim.arrived))
			}
			s.finish()
		})
	}
}

// connect makes the victim receive a Connect with a valid cookie, as only the owner of the address could send it.
func (s *siege) connect(from netip.AddrPort, cid uint32) { s.connectWith(from, cid, 0) }

func (s *siege) connectWith(from netip.AddrPort, cid uint32, flags proto.Flags) {
	s.guise.as = func() netip.AddrPort { return from }
	h := proto.Header{Type: proto.Connect, PSN: seq.Num(cid), Flags: flags}
	hi := proto.Hello{CID: cid, Tag: cid, MTU: 1472, Window: minPeerWindow, Qual: service}
	hi.Cookie = s.victim.eng.cookie(&requestKey{from: from}, &h, &hi, s.net.Now()/int64(cookieLife))
	var body [proto.HelloSize]byte
	hi.Put(body[:])
	s.strike(&h, body[:])
}

// Attack 3: Connects from source port 0, to which no answer can be sent. They must not become requests: the consumer could
// not answer such a request, so each copy of the packet would be a new one.
func TestAttack03NoPortForTheAnswer(t *testing.T) {
	s := newSiege(t)
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
}

// Attack 3: the attackers flood the victim with Connects. The cookies are valid, because the attackers receive packets
// at their addresses. The number of half-open requests must be bounded for each address, for each network and in total.
// A newcomer must still connect.
func TestAttack03HalfOpenFlood(t *testing.T) {
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
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			for i := range tc.send {
				s.connect(tc.from(i), uint32(i)+1)
				if i%16 == 0 { // a repeat must not become another request
					s.connect(tc.from(i), uint32(i)+1)
				}
			}
			e := s.victim.eng
			if n := e.halfOpen.used; n < tc.keep || n > tc.keep+tc.keep/50 || len(e.requests)-1 != n || len(s.victim.arrived) != n { // -1: the bystander's
				t.Errorf("%d requests, %d half-open, %d at the consumer, want %d", len(e.requests)-1, n, len(s.victim.arrived), tc.keep)
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
}

// Attack 3: a host with one address, or with many addresses of a network, requests connections and never confirms them.
// Each request is accepted at once. An honest host of the same network, or behind the same address, must still connect
// within a second, repeatedly.
func TestAttack03HalfOpenNeighbour(t *testing.T) {
	for _, tc := range []struct {
		name   string
		honest string
		burst  int // requests in 500 µs
		from   func(i int) netip.AddrPort
	}{
		{"an IPv4 network", "10.0.0.9:17473", 1, func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i%100)}), uint16(i))
		}},
		{"one address", "10.0.0.9:17473", 1, func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 9}), uint16(i))
		}},
		{"more networks than places", "10.0.0.9:17473", 3, func(i int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), 1)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			s.foe.down = true
			honest := s.addNode(netip.MustParseAddrPort(tc.honest))
			c := honest.host.NewConn(plain)
			asked, longest, made := s.net.Now(), time.Duration(0), 0
			s.dial(honest, s.victim, c, nil)
			for i := range 6000 {
				for j := range tc.burst {
					s.connect(tc.from(tc.burst*i+j), uint32(tc.burst*i+j)+1)
				}
				s.acceptAll()
				s.exactly(500 * time.Microsecond)
				for honest.connect.Pop(new(Completion)) {
				}
				if c.State() == Established {
					longest = max(longest, time.Duration(s.net.Now()-asked))
					made++
					honest.eng.Drop(c)
					c, asked = honest.host.NewConn(plain), s.net.Now()
					s.dial(honest, s.victim, c, nil)
				}
			}
			t.Logf("%d connections, the slowest after %v", made, longest)
			if longest = max(longest, time.Duration(s.net.Now()-asked)); longest > time.Second {
				t.Errorf("a connection took %v", longest)
			}
			for end := s.net.Now() + int64(s.victim.host.limits.GiveUp+time.Second); s.net.Now() < end; {
				s.run(5 * time.Millisecond)
				s.acceptAll()
			}
			if got := len(s.victim.eng.unconfirmed); got != 0 {
				t.Errorf("%d holders of unconfirmed requests are left", got)
			}
		})
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

// Attack 4: an attacker sends control packets from the peer's address, but does not know the IDs, tags and numbers of
// the connection. These packets must be ignored in every state of the connection.
func TestAttack04ForgedControl(t *testing.T) {
	hello := func(hi proto.Hello) []byte {
		b := make([]byte, proto.HelloSize+len(hi.Private))
		hi.Put(b)
		return b
	}
	bye := func(cid uint32) []byte {
		b := make([]byte, proto.GoodbyeSize)
		(&proto.Goodbye{CID: cid, Reason: proto.ReasonAccess}).Put(b)
		return b
	}
	answer := hello(proto.Hello{CID: 99, Tag: 99, MTU: 1472, Window: minPeerWindow, Cookie: 7, Reason: proto.ReasonPeer, ReadIn: 4, Private: []byte("forged")})
	forge := func(s *siege, c *Conn) {
		// The connection ID and the numbers are right, the tag is guessed.
		for _, tag := range []uint32{0, 1, c.tag ^ 1, ^c.tag, c.peerTag} {
			for _, typ := range []proto.Type{proto.Accept, proto.Reject, proto.Challenge, proto.Versions} {
				s.strike(&proto.Header{Type: typ, CID: c.cid, Tag: tag, Ack: c.sent.Una, PSN: c.recv.next}, answer)
			}
			s.strike(&proto.Header{Type: proto.Close, CID: c.cid, Tag: tag, PSN: c.recv.next, Ack: c.sent.Nxt}, bye(c.peerCID))
			if tag != c.peerTag {
				s.strike(&proto.Header{Type: proto.Closed, CID: c.cid, Tag: tag}, nil)
				s.strike(&proto.Header{Type: proto.Reset, CID: c.peerCID, Tag: tag, PSN: c.sent.Nxt}, nil)
			}
		}
		for _, cid := range []uint32{0, 1, c.cid ^ 1, c.cid + 1, ^c.cid, c.peerCID, s.ca.cid} {
			if cid == c.cid {
				continue
			}
			for _, typ := range []proto.Type{proto.Accept, proto.Reject, proto.Challenge} {
				s.strike(&proto.Header{Type: typ, CID: cid, Ack: c.sent.Una, PSN: c.recv.next}, answer)
			}
			s.strike(&proto.Header{Type: proto.Close, CID: cid, PSN: c.recv.next, Ack: c.sent.Nxt}, bye(c.peerCID))
			s.strike(&proto.Header{Type: proto.Closed, CID: cid}, nil)
			s.strike(&proto.Header{Type: proto.Probed, CID: cid}, []byte{0, 0, 5, 0})
			if cid != c.peerCID {
				s.strike(&proto.Header{Type: proto.Reset, CID: cid, PSN: c.sent.Nxt}, nil)
			}
		}
		// The connection ID is right, the numbers are guessed.
		for _, d := range []seq.Num{1, 1 << 8, 1 << 31, ^seq.Num(0)} {
			for _, typ := range []proto.Type{proto.Accept, proto.Reject, proto.Challenge, proto.Versions} {
				s.strike(&proto.Header{Type: typ, CID: c.cid, Tag: c.tag, Ack: c.sent.Una + d}, answer)
			}
			s.strike(&proto.Header{Type: proto.Close, CID: c.cid, Tag: c.tag, PSN: c.recv.next, Ack: c.sent.Nxt}, bye(c.peerCID+uint32(d)))
		}
		for _, psn := range []seq.Num{c.sent.Nxt + 1, c.sent.Nxt + 1<<30, c.sent.Una - proto.MaxWindow - 1} {
			s.strike(&proto.Header{Type: proto.Reset, CID: c.peerCID, Tag: c.peerTag, PSN: psn}, nil)
		}
		for _, d := range []seq.Num{1, 1 << 8, 1 << 31} {
			s.strike(&proto.Header{Type: proto.Close, CID: c.cid, Tag: c.tag, PSN: c.recv.next, Ack: c.sent.Nxt + d}, bye(c.peerCID))
		}
		s.strike(&proto.Header{Type: proto.Closed, CID: c.cid, Tag: c.peerTag}, nil) // unsolicited
	}
	for _, tc := range []struct {
		name  string
		state State
		begin func(s *siege) (c *Conn, finish func())
	}{
		{"connecting", Connecting, func(s *siege) (*Conn, func()) {
			if err := s.friend.host.Listen(service, s.friend); err != nil {
				t.Fatal(err)
			}
			c, peer := s.victim.host.NewConn(plain), s.friend.host.NewConn(plain)
			s.dial(s.victim, s.friend, c, nil)
			s.until("request", time.Second, func() bool { return len(s.friend.arrived) > 0 })
			return c, func() { s.accept(s.friend, peer, []byte("true")) }
		}},
		{"accepting", Accepting, func(s *siege) (*Conn, func()) {
			c, peer := s.victim.host.NewConn(plain), s.friend.host.NewConn(plain)
			s.dial(s.friend, s.victim, peer, nil)
			s.until("request", time.Second, func() bool { return len(s.victim.arrived) > 0 })
			s.net.Partition(s.friend.addr, s.victim.addr, true)
			s.accept(s.victim, c, nil)
			return c, func() { s.net.Partition(s.friend.addr, s.victim.addr, false) }
		}},
		{"established", Established, func(s *siege) (*Conn, func()) { return s.cb, func() {} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			c, finish := tc.begin(s)
			s.guise.as = func() netip.AddrPort { return s.friend.addr }
			s.victim.eng.Poll(Time(s.net.Now()))
			if c.State() != tc.state {
				t.Fatalf("state %d, want %d", c.State(), tc.state)
			}
			s.unmoved("forgeries", func() { forge(s, c) }, c, s.cb)
			s.noGain()
			finish()
			s.until("establishment", time.Second, func() bool { return c.State() == Established })
			if c.PeerPrivate() != nil && string(c.PeerPrivate()) != "true" {
				t.Errorf("private data %q", c.PeerPrivate())
			}
			if c != s.cb {
				s.run(50 * time.Millisecond)
				s.want(s.victim.connect, KindEstablished)
				s.drop(c)
			}
			s.finish()
		})
	}
}

// Attack 4, against a lingering connection: only the peer's own Closed may end it.
func TestAttack04ForgedClosed(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	s.drop(cv)
	was := s.gauges()
	for i := range 32 {
		s.strike(&proto.Header{Type: proto.Closed, CID: cv.cid ^ 1<<i, Tag: cv.peerTag}, nil)
		s.strike(&proto.Header{Type: proto.Closed, CID: cv.cid, Tag: cv.peerTag ^ 1<<i}, nil)
		s.strike(&proto.Header{Type: proto.Reset, CID: cv.peerCID ^ 1<<i, Tag: cv.peerTag, PSN: cv.sent.Nxt}, nil)
	}
	if got := s.gauges(); got != was || was.conns != 2 {
		t.Errorf("had %+v, now %+v", was, got)
	}
	s.guise.as = func() netip.AddrPort { return s.friend.addr }
	s.strike(&proto.Header{Type: proto.Closed, CID: cv.cid, Tag: cv.peerTag}, nil) // from another address
	if got := s.victim.eng.Connections(); got != 2 {
		t.Errorf("%d connections after a Closed from another address, want 2", got)
	}
	s.guise.as = nil
	s.strike(&proto.Header{Type: proto.Closed, CID: cv.cid, Tag: cv.peerTag}, nil)
	if got := s.victim.eng.Connections(); got != 1 {
		t.Errorf("%d connections after the genuine Closed, want the bystander's", got)
	}
	s.finish()
}

// Attack 4: a flood of Resets in the peer's name. The victim may send only one challenge ACK per probe timeout.
func TestAttack04ResetFlood(t *testing.T) {
	s := newSiege(t)
	s.guise.as = func() netip.AddrPort { return s.friend.addr }
	sent := s.victim.eng.Stats().TxPackets
	const count = 1000
	start := s.net.Now()
	for i := range uint32(count) {
		s.strike(&proto.Header{Type: proto.Reset, CID: s.cb.peerCID, Tag: s.cb.peerTag, PSN: s.cb.sent.Nxt, Echo: i}, nil)
	}
	most := uint64(time.Duration(s.net.Now()-start)/s.cb.rtt.PTO()) + 1
	if got := s.victim.eng.Stats().TxPackets - sent; got > most {
		t.Errorf("%d packets in answer to %d Resets, want %d at most", got, count, most)
	}
	s.finish()
}

// Attack 9: each bit of each packet type is flipped. The checksum must detect every such packet.
func TestAttack09BitFlips(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	mem := s.victim.memory(64)
	bodies := map[proto.Type][]byte{
		proto.Data:      make([]byte, proto.WriteSize+8),
		proto.Ack:       make([]byte, proto.MaxSACKSize),
		proto.Connect:   make([]byte, proto.HelloSize),
		proto.Accept:    make([]byte, proto.HelloSize),
		proto.Reject:    make([]byte, proto.HelloSize),
		proto.Challenge: make([]byte, proto.HelloSize),
		proto.Close:     make([]byte, proto.GoodbyeSize),
		proto.Closed:    nil,
		proto.Reset:     nil,
		proto.Probe:     make([]byte, 100),
		proto.Probed:    make([]byte, proto.ProbedSize),
		proto.Versions:  {proto.Version},
	}
	proto.PutWrite(bodies[proto.Data], proto.Last, 8, mem.remote, mem.base)
	(&proto.Goodbye{CID: cv.peerCID}).Put(bodies[proto.Close])
	flips, before := uint64(0), s.victim.eng.Stats().BadChecksum
	s.unmoved("flips", func() {
		for typ := proto.Data; typ <= proto.Versions; typ++ {
			body, ok := bodies[typ]
			if !ok {
				t.Fatalf("no packet of type %d", typ)
			}
			h := s.header(cv, typ)
			raw := make([]byte, proto.HeaderSize+len(body)+proto.TrailerSize)
			h.Put(raw)
			end := proto.HeaderSize + copy(raw[proto.HeaderSize:], body)
			proto.PutTrailer(raw[end:], proto.CRC(0, raw[:end]))
			for bit := range len(raw) * 8 {
				raw[bit/8] ^= 1 << (bit % 8)
				s.sendRaw(raw)
				raw[bit/8] ^= 1 << (bit % 8)
				if flips++; flips%32 == 0 {
					s.land()
				}
			}
		}
		s.land()
	}, cv, s.cb)
	if got := s.victim.eng.Stats().BadChecksum - before; got != flips {
		t.Errorf("%d of %d flips were refused by the checksum", got, flips)
	}
	if s.out.packets != 0 {
		t.Errorf("%d answers", s.out.packets)
	}
	s.drop(cv)
	s.finish()
}

// Attack 24, as far as it reaches this package: packets arrive with the victim's own address as their source. So the
// victim sends its answers to itself. It must not answer these answers.
func TestAttack24OwnAddress(t *testing.T) {
	s := newSiege(t)
	var hello [proto.HelloSize]byte
	(&proto.Hello{CID: 77, Tag: 77, MTU: 1472, Window: minPeerWindow, Qual: service}).Put(hello[:])
	for typ := proto.Data; typ <= proto.Probed; typ++ {
		body := hello[:0]
		switch typ {
		case proto.Connect, proto.Accept, proto.Reject, proto.Challenge:
			body = hello[:]
		case proto.Close:
			body = hello[:proto.GoodbyeSize]
		default:
		}
		s.unmoved("packets from ourselves", func() {
			sent := s.victim.eng.Stats().TxPackets
			s.inject(s.victim, s.victim, &proto.Header{Type: typ, CID: 77}, body)
			for range 10 {
				s.land()
			}
			if got := s.victim.eng.Stats().TxPackets - sent; got > 1 {
				t.Errorf("type %d: one packet made %d", typ, got)
			}
		}, s.cb)
	}
	s.finish()
}
