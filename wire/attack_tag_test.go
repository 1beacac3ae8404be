package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// established lists the packet types of an established connection.
var established = []proto.Type{proto.Data, proto.Ack, proto.Probe, proto.Probed, proto.Close}

// bodyFor returns a valid body for a packet of a type.
func bodyFor(c *Conn, t proto.Type, mem memory) []byte {
	switch t {
	case proto.Data:
		return writeChunk(proto.Last, 1, mem.remote, mem.base)
	case proto.Close:
		b := make([]byte, proto.GoodbyeSize)
		(&proto.Goodbye{CID: c.peerCID, Reason: proto.ReasonAccess}).Put(b)
		return b
	case proto.Probed:
		return make([]byte, proto.ProbedSize)
	default:
		return nil
	}
}

// Attack 2: an attacker knows everything about a connection except its verification tag, and guesses the tag. A packet
// with a wrong tag must have no effect: it must not count as a sign of life, its time stamp and epoch must be ignored,
// and its RDMA fields must not be read.
func TestAttack02WrongTag(t *testing.T) {
	eachMode(t, func(t *testing.T, keys *seal.Limits) {
		s := newModeSiege(t, keys)
		cv, _ := s.join(plain)
		mem := s.victim.memory(8)
		before, was, packets := s.victim.eng.Stats(), refused(s.victim.eng), uint64(0)
		s.unmoved("wrong tags", func() {
			for _, tag := range []uint32{0, 1, cv.tag + 1, cv.tag - 1, ^cv.tag, cv.peerTag, s.cb.tag} {
				for _, typ := range established {
					for _, flags := range []proto.Flags{0, proto.Epoch, proto.AckRequest, proto.EpochSeen, proto.NotReady} {
						h := s.header(cv, typ)
						h.Tag, h.Flags = tag, flags
						s.wrong(&h, bodyFor(cv, typ, mem))
						packets++
					}
				}
			}
		}, cv, s.cb)
		st := s.victim.eng.Stats()
		if st.RxBytes != before.RxBytes || st.ProtectionErrors != 0 || st.ProtocolErrors != 0 || st.Duplicates != before.Duplicates {
			t.Errorf("something was taken in: %+v", st)
		}
		if n := refused(s.victim.eng) - was; n != packets {
			t.Errorf("%d of %d packets were counted as refused", n, packets)
		}
		if mem.mem[0] != 0 {
			t.Error("memory was written")
		}
		s.noGain()
		s.drop(cv)
		s.finish()
	})
}

// Attack 14: packets with the right tag and numbers come from another IP address. They must be refused and answered
// like packets with a wrong tag. Packets from another port of the peer's address must be accepted, because a peer may
// send from any source port.
func TestAttack14OtherAddress(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	mem := s.victim.memory(8)
	for _, from := range []string{"10.0.0.4:17473", "192.0.2.3:17473", "[::ffff:10.0.0.4]:17473", "[2001:db8::3]:17473"} {
		s.guise.as = func() netip.AddrPort { return netip.MustParseAddrPort(from) }
		s.unmoved("packets from "+from, func() {
			for _, typ := range established {
				var answers [2]traffic
				for i, tag := range []uint32{cv.tag, cv.tag + 1} {
					h := s.header(cv, typ)
					h.Tag = tag
					s.out = traffic{}
					s.net.Advance(s.net.Now() + int64(replyPeriod)) // so that the limit of stateless replies has no effect
					s.strike(&h, bodyFor(cv, typ, mem))
					answers[i] = s.out
				}
				if answers[0].packets != 1 || answers[0].types != answers[1].types || answers[0].bytes != answers[1].bytes {
					t.Errorf("type %d from %s: the right tag is answered by %+v, a wrong one by %+v", typ, from, answers[0], answers[1])
				}
			}
		}, cv, s.cb)
	}
	s.guise.as = func() netip.AddrPort { return netip.AddrPortFrom(s.foe.addr.Addr(), 1) }
	next := cv.recv.nextPSN
	h := s.header(cv, proto.Data)
	s.strike(&h, bodyFor(cv, proto.Data, mem))
	if cv.recv.nextPSN != next+1 {
		t.Error("a packet from another port of the peer was refused")
	}
	s.guise.as = nil
	s.drop(cv)
	s.finish()
}

// Attack 5: packets have the right tag, but numbers that the peer cannot have sent. Such packets must not count as a
// sign of life, must not begin a new epoch (see enterEpoch), and must not close the connection.
func TestAttack05ImplausibleNumbers(t *testing.T) {
	for _, tc := range []struct {
		name string
		lie  func(h *proto.Header, c *Conn)
	}{
		{"PSN beyond the window", func(h *proto.Header, c *Conn) { h.PSN = c.recv.nextPSN + proto.MaxWindow + 1 }},
		{"PSN before the window", func(h *proto.Header, c *Conn) { h.PSN = c.recv.nextPSN - proto.MaxWindow - 1 }},
		{"PSN half the numbers away", func(h *proto.Header, c *Conn) { h.PSN = c.recv.nextPSN + 1<<31 }},
		{"Ack of what was not sent", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Nxt + 1 }},
		{"Ack of long ago", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Nxt - 2*proto.MaxWindow - 1 }},
		{"Ack half the numbers away", func(h *proto.Header, c *Conn) { h.Ack = c.sent.Una + 1<<31 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			cv, _ := s.join(plain)
			mem := s.victim.memory(8)
			before := s.victim.eng.Stats().Forged
			s.unmoved(tc.name, func() {
				for _, typ := range established {
					for _, flags := range []proto.Flags{0, proto.Epoch, proto.EpochSeen} {
						h := s.header(cv, typ)
						h.Flags = flags
						tc.lie(&h, cv)
						s.strike(&h, bodyFor(cv, typ, mem))
					}
				}
			}, cv, s.cb)
			if got := s.victim.eng.Stats().Forged - before; got != 3*uint64(len(established)) {
				t.Errorf("%d packets were counted, want %d", got, 3*len(established))
			}
			s.drop(cv)
			s.finish()
		})
	}
}

// A peer responds to a read but does not acknowledge the request. Then an epoch change (see epochChange) puts the
// request into a new packet. The count of outstanding reads must be decremented only once.
func TestRecutAfterAnsweredRead(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	mem := s.victim.memory(64)
	s.victim.post(cv, cv.PostRead(mem.seg(0, 64), 1, Remote{}, 64, 0))
	s.victim.eng.Poll(Time(s.net.Now()))
	h := s.header(cv, proto.Data) // the header acknowledges nothing
	body := make([]byte, proto.ReadRespSize+64)
	proto.PutReadResp(body, proto.Last, 64, seq.Num(cv.sq.doneCount.Load()), 0)
	s.strike(&h, body)
	if cv.readsOut != 0 {
		t.Fatalf("%d reads outstanding after the answer", cv.readsOut)
	}
	cv.changeEpoch()
	h = s.header(cv, proto.Ack)
	h.Flags = proto.EpochSeen
	s.strike(&h, nil)
	if cv.epoch.changing || cv.readsOut < 0 {
		t.Errorf("stepping %v, %d reads outstanding", cv.epoch.changing, cv.readsOut)
	}
	s.drop(cv)
	s.finish()
}

// A packet that is forwarded to another engine must keep its source and its congestion mark.
func TestStrayKeepsSourceAndMark(t *testing.T) {
	s := newSiege(t)
	cv, _ := s.join(plain)
	e := s.victim.eng
	cross := func(from netip.Addr) {
		h := s.header(cv, proto.Data)
		raw := make([]byte, proto.HeaderSize+proto.TrailerSize)
		h.Put(raw)
		proto.PutTrailer(raw[proto.HeaderSize:], proto.CRC(0, raw[:proto.HeaderSize]))
		e.incoming.put([]link.Buf{{Data: raw, Flags: link.CE}}, from)
		e.Poll(Time(s.net.Now()))
	}
	s.unmoved("a stray from elsewhere", func() { cross(netip.MustParseAddr("192.0.2.1")) }, cv, s.cb)
	ce := cv.recv.echo.ce
	cross(s.foe.addr.Addr())
	if cv.recv.echo.ce != ce+1 {
		t.Error("the congestion mark of a stray was lost")
	}
	s.drop(cv)
	s.finish()
}

// A stray packet arrives on another queue than the queue of its connection, and is forwarded to the engine of the
// connection. A flood of stray packets must not make a Poll long: each Poll must handle only one batch of them. A stray
// packet for which the ring of stray packets has no room must be dropped without being copied.
func TestStrayFlood(t *testing.T) {
	s := newSiege(t)
	e := s.victim.eng
	data := make([]byte, 9000)
	for i := range 2 * maxStrays {
		if got, want := e.incoming.put([]link.Buf{{Data: data}}, netip.Addr{}), i < maxStrays; got != want {
			t.Fatalf("stray %d: taken %v", i, got)
		}
	}
	for left := maxStrays; left > 0; left -= strayBatch {
		if e.incoming.waiting() != left || e.Next() != e.now {
			t.Fatalf("%d strays wait, want %d; next Poll in %v", e.incoming.waiting(), left, e.Next().Sub(e.now))
		}
		e.Poll(Time(s.net.Now()))
	}
	s.finish()
}

// A Connect of another protocol version must be answered with the versions that this side speaks. The answer must have
// the version of the Connect and must not be longer than the Connect. Any other packet of another version must be
// dropped.
func TestOtherVersions(t *testing.T) {
	s := newSiege(t)
	h := proto.Header{Type: proto.Connect, PSN: 0x01020304}
	hi := proto.Hello{CID: 5, Tag: 6, MTU: 1472, Window: minPeerWindow, Qual: service}
	raw := make([]byte, proto.HeaderSize+hi.Size()+proto.TrailerSize)
	for _, version := range []byte{0, 1, 3, 15} {
		for typ := proto.Data; typ <= proto.Versions; typ++ {
			h.Type = typ
			h.Put(raw)
			hi.Put(raw[proto.HeaderSize:])
			raw[0] = version<<4 | byte(typ)
			end := len(raw) - proto.TrailerSize
			proto.PutTrailer(raw[end:], proto.CRC(0, raw[:end]))
			out := s.out.packets
			s.unmoved("a packet of another version", func() { s.sendRaw(raw); s.land() }, s.cb)
			if got := s.out.packets - out; got != 0 != (typ == proto.Connect) {
				t.Fatalf("version %d, type %d: %d answers", version, typ, got)
			}
			if typ != proto.Connect {
				continue
			}
			var got proto.Header
			last := s.out.last
			if last[0] != version<<4|byte(proto.Versions) || last[proto.HeaderSize] != proto.Version {
				t.Errorf("the answer is % x", last)
			}
			last[0] = proto.Version<<4 | last[0]&15
			if !got.Parse(last) || got.CID != hi.CID || got.Tag != hi.Tag || got.Ack != h.PSN {
				t.Errorf("the answer is %+v", got)
			}
		}
	}
	s.noGain()
	s.finish()
}

// Versions must end a connection attempt with a reason that says what to do, unless it lists our own version.
func TestVersionsEndsTheAttempt(t *testing.T) {
	s := newSiege(t)
	c := s.victim.host.NewConn(plain)
	s.dial(s.victim, s.foe, c, nil)
	s.victim.eng.Poll(Time(s.net.Now()))
	h := proto.Header{Type: proto.Versions, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
	s.strike(&h, []byte{proto.Version})
	if c.State() != Connecting {
		t.Fatal("a list with our own version ended the attempt")
	}
	s.strike(&h, []byte{proto.Version + 1, proto.Version + 2})
	var got Completion
	if !s.victim.connect.Pop(&got) || got.Kind != KindRefused || BreakReason(got.Data) != BreakVersion {
		t.Errorf("completion %+v", got)
	}
	s.finish()
}

// An unknown mandatory option must make the Connect fail with a reason. Other unknown options are skipped.
func TestUnknownOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		option byte
		want   proto.Type
	}{{"to be skipped", 0x7f, proto.Challenge}, {"to be understood", 0x81, proto.Reject}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			hi := proto.Hello{CID: 5, Tag: 6, MTU: 1472, Window: minPeerWindow, Qual: service, UDPPort: s.foe.addr.Port()}
			body := make([]byte, hi.Size()+6)
			hi.Put(body)
			copy(body[hi.Size():], []byte{tc.option, 4, 1, 2, 3, 4})
			body[49] += 6 // length of the options
			s.strike(&proto.Header{Type: proto.Connect, PSN: 1}, body)
			if s.out.types[tc.want] != 1 || s.out.packets != 1 {
				t.Errorf("answers by type: %v", s.out.types)
			}
			s.noGain()
			s.finish()
		})
	}
}

// An Accept with an unknown mandatory option must end the attempt, with a reason at both ends.
func TestUnknownOptionOfAccept(t *testing.T) {
	for _, tc := range []struct {
		name   string
		option byte
		ends   bool
	}{{"to be skipped", 0x7f, false}, {"to be understood", 0x81, true}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSiege(t)
			c := s.victim.host.NewConn(plain)
			s.foe.down = true
			s.dial(s.victim, s.foe, c, nil)
			s.land()
			hi := proto.Hello{CID: 5, Tag: 6, MTU: 1472, Window: minPeerWindow}
			body := make([]byte, hi.Size()+6)
			hi.Put(body)
			copy(body[hi.Size():], []byte{tc.option, 4, 1, 2, 3, 4})
			body[49] += 6 // length of the options
			s.out = traffic{}
			s.strike(&proto.Header{Type: proto.Accept, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}, body)
			if !tc.ends {
				if !c.peerKnown || s.out.types[proto.Data] != 1 {
					t.Errorf("the Accept was not taken up: answers by type %v", s.out.types)
				}
				return
			}
			var got Completion
			if !s.victim.connect.Pop(&got) || got.Kind != KindRefused || BreakReason(got.Data) != BreakOption {
				t.Errorf("completion %+v", got)
			}
			var g proto.Goodbye
			last := s.out.last
			if s.out.types[proto.Close] != 1 || !g.Parse(last[proto.HeaderSize:len(last)-proto.TrailerSize]) || g.Reason != proto.ReasonOption {
				t.Errorf("the peer was told % x", last)
			}
			s.finish()
		})
	}
}

// A Close that answers Accept must tell the passive side the reason.
func TestCloseOfAcceptSaysWhy(t *testing.T) {
	s := newSiege(t)
	cv, cf := s.victim.host.NewConn(plain), s.foe.host.NewConn(plain)
	s.dial(s.foe, s.victim, cf, nil)
	s.until("the foe's request", time.Second, func() bool { return len(s.victim.arrived) > 0 })
	s.accept(s.victim, cv, nil)
	h := proto.Header{Type: proto.Close, CID: cv.cid, Tag: cv.tag, PSN: cv.recv.nextPSN, Ack: cv.sent.Una}
	var body [proto.GoodbyeSize]byte
	(&proto.Goodbye{CID: cv.peerCID, Reason: proto.ReasonOption}).Put(body[:])
	s.foe.down = true
	s.strike(&h, body[:])
	var got Completion
	if !s.victim.connect.Pop(&got) || got.Kind != KindAcceptFailed || BreakReason(got.Data) != BreakOption|BreakByPeer {
		t.Errorf("completion %+v", got)
	}
	s.finish()
}

// Attack 22: a server sends many Challenges. The client may answer only few of them at once.
func TestAttack22ChallengeFlood(t *testing.T) {
	s := newSiege(t)
	c := s.victim.host.NewConn(plain)
	s.foe.down = true
	s.dial(s.victim, s.foe, c, nil)
	s.land()
	start, out := s.net.Now(), s.out.packets
	for cookie := range uint64(2000) {
		h := proto.Header{Type: proto.Challenge, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
		var body [proto.HelloSize]byte
		(&proto.Hello{CID: 5, Cookie: cookie + 1}).Put(body[:])
		s.strike(&h, body[:])
	}
	most := promptChallenges + int((s.net.Now()-start)/int64(helloRetry)) + 1
	if got := s.out.packets - out; got > most {
		t.Errorf("%d Connects in %v, want %d at most", got, time.Duration(s.net.Now()-start), most)
	}
	if err := s.victim.eng.Disconnect(c, false); err != nil {
		t.Fatal(err)
	}
	s.want(s.victim.connect, KindDisconnected)
	s.finish()
}
