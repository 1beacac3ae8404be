package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

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
				s.strike(&proto.Header{Type: typ, CID: c.cid, Tag: tag, Ack: c.sent.Una, PSN: c.recv.nextPSN}, answer)
			}
			s.strike(&proto.Header{Type: proto.Close, CID: c.cid, Tag: tag, PSN: c.recv.nextPSN, Ack: c.sent.Nxt}, bye(c.peerCID))
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
				s.strike(&proto.Header{Type: typ, CID: cid, Ack: c.sent.Una, PSN: c.recv.nextPSN}, answer)
			}
			s.strike(&proto.Header{Type: proto.Close, CID: cid, PSN: c.recv.nextPSN, Ack: c.sent.Nxt}, bye(c.peerCID))
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
			s.strike(&proto.Header{Type: proto.Close, CID: c.cid, Tag: c.tag, PSN: c.recv.nextPSN, Ack: c.sent.Nxt}, bye(c.peerCID+uint32(d)))
		}
		for _, psn := range []seq.Num{c.sent.Nxt + 1, c.sent.Nxt + 1<<30, c.sent.Una - proto.MaxWindow - 1} {
			s.strike(&proto.Header{Type: proto.Reset, CID: c.peerCID, Tag: c.peerTag, PSN: psn}, nil)
		}
		for _, d := range []seq.Num{1, 1 << 8, 1 << 31} {
			s.strike(&proto.Header{Type: proto.Close, CID: c.cid, Tag: c.tag, PSN: c.recv.nextPSN, Ack: c.sent.Nxt + d}, bye(c.peerCID))
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
