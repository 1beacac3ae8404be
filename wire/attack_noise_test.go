package wire

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// The tests named TestAttack…Handshake try what an attacker on the path can do to a handshake in secure mode.

// forge sends a packet to the victim from the address of the other node, and lets the network settle.
func (m *mitm) forge(from, victim *node, packet []byte) {
	m.t.Helper()
	m.inject(from, victim, packet)
	m.exactly(50 * time.Microsecond)
}

// inject sends a packet in the name of a node.
func (m *mitm) inject(from, victim *node, packet []byte) {
	m.t.Helper()
	var b [1]link.Buf
	path, err := from.link.Resolve(victim.addr, 0)
	if err != nil || from.link.Alloc(b[:]) != 1 {
		m.t.Fatal("no frame or path", err)
	}
	b[0].Data, b[0].Path = b[0].Data[:copy(b[0].Data, packet)], path
	from.link.Send(b[:])
	from.link.Release(path)
}

// packetOf returns a packet with its CRC.
func packetOf(h proto.Header, body []byte) []byte {
	b := make([]byte, proto.HeaderSize)
	h.Put(b)
	return withCRC(append(b, body...))
}

// changed returns a packet with another CRC, in which a byte was changed.
func changed(packet []byte, i int, bits byte) []byte {
	b := bytes.Clone(packet[:len(packet)-proto.TrailerSize])
	b[i] ^= bits
	return withCRC(b)
}

// stripped returns a packet whose Hello has lost the Noise option.
func stripped(t testing.TB, packet []byte) []byte {
	hi := helloIn(t, packet)
	hi.Noise, hi.Private = nil, hi.Private[:min(len(hi.Private), proto.MaxPrivateData)]
	return slices.Concat(packet[:proto.HeaderSize], helloOf(hi))
}

// Attack 7: the recorded Connects of a connection come again: while it is being accepted, when it is established, when it
// has ended, from another address, and when the cookie has expired. None of them may make another request or be opened.
func TestAttack07HandshakeReplay(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		ca := m.attempt([]byte("hello"))
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
		other := m.addNode(netip.MustParseAddrPort("10.0.0.77:17473"))
		connects := ofType(m.sent, proto.Connect)
		again := func(what string) {
			t.Helper()
			before := m.noise.model.opened
			for _, from := range []*node{m.a, other} {
				for _, b := range connects {
					m.forge(from, m.b, b)
				}
			}
			if n := m.noise.model.opened - before; n != 0 || len(m.b.eng.distinctRequests()) > 1 {
				t.Errorf("%s: %d messages opened, %d requests", what, n, len(m.b.eng.distinctRequests()))
			}
		}
		again("undecided")
		cb := m.welcome(ca)
		again("established")
		if err := m.a.eng.Disconnect(ca, false); err != nil {
			t.Fatal(err)
		}
		m.until("the end", time.Second, func() bool { return cb.State() == Closed })
		again("ended")
		last := m.answer[len(m.answer)-1]
		if hi := helloIn(t, last); typeOf(last) != proto.Challenge || hi.Cookie == helloIn(t, connects[1]).Cookie {
			t.Errorf("the answer to a Connect that was used is % x", last)
		}
		m.run(cookieLife)
		again("in the next period")
		m.run(2 * cookieLife)
		again("expired")
		if len(m.b.arrived) != 0 || len(m.b.eng.requests) != 0 {
			t.Errorf("%d and %d requests", len(m.b.arrived), len(m.b.eng.requests))
		}
	})
}

// Attack 12: the attacker strips the option from the Connects. The server rejects them, but that is only a hint, and so the
// attempt goes on: it succeeds when the attacker stops, and otherwise it times out with that reason.
func TestAttack12HandshakeStripped(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		strip := func(typ proto.Type) func(b []byte) []byte {
			return func(b []byte) []byte {
				if raw := withCRC(b); typeOf(b) == typ && helloIn(t, raw).Noise != nil {
					return stripped(t, raw)
				}
				return nil
			}
		}
		m.up.edit = strip(proto.Connect)
		c := m.attempt([]byte("hello"))
		m.run(time.Second)
		m.noResult(c, "Connect without the option")
		if len(m.b.arrived) != 0 || len(ofType(m.answer, proto.Reject)) == 0 {
			t.Errorf("%d requests, %d answers", len(m.b.arrived), len(m.answer))
		}
		m.up.edit = nil
		ca := c
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
		cb := m.b.host.NewConn(plain)
		m.down.edit = strip(proto.Accept)
		m.accept(m.b, cb, nil)
		m.run(time.Second)
		m.noResult(c, "Accept without the option")
		m.down.edit = nil
		m.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
		m.want(m.a.connect, KindEstablished)
		if err := m.a.eng.Disconnect(c, false); err != nil {
			t.Fatal(err)
		}
		m.want(m.a.connect, KindDisconnected)
		m.up.edit = strip(proto.Connect)
		m.refused(m.attempt(nil), KindTimedOut, BreakSecure)
	})
}

// Attack 9: every byte of a Connect with message 1 is changed. None of the changed packets may make a request. Then every
// byte of Accept is changed. None may be accepted, except that the time stamp, the echo and other fields of the header
// outside message 2 have no meaning. The unchanged packets still work, and the numbers in them are the real ones.
func TestAttack09HandshakeChangedBytes(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		var connect, accept []byte
		hold := func(into *[]byte, typ proto.Type) func(b []byte) bool {
			return func(b []byte) bool {
				if typeOf(b) == typ && helloIn(t, b).Noise != nil {
					*into = b
					return true
				}
				return false
			}
		}
		m.up.drop = hold(&connect, proto.Connect)
		c := m.attempt([]byte("hello"))
		m.until("Connect", time.Second, func() bool { return connect != nil })
		m.down.drop = func([]byte) bool { return true } // Challenges to changed Connects
		for i := range len(connect) - proto.TrailerSize {
			for _, bits := range []byte{1, 0x80} {
				m.b.eng.keyGuesses = newGuessLimiter()
				m.forge(m.a, m.b, changed(connect, i, bits))
				if len(m.b.arrived) != 0 || len(m.b.eng.requests) != 0 {
					t.Fatalf("a Connect whose byte %d was changed made a request", i)
				}
			}
		}
		m.noResult(c, "changed Connects")
		m.b.eng.keyGuesses = newGuessLimiter()
		m.forge(m.a, m.b, connect)
		if len(m.b.arrived) != 1 {
			t.Fatal("the unchanged Connect makes no request: the test tests nothing")
		}
		m.up.drop, m.down.drop = nil, hold(&accept, proto.Accept)
		cb := m.b.host.NewConn(plain)
		m.accept(m.b, cb, nil)
		m.until("Accept", time.Second, func() bool { return accept != nil })
		hello := proto.HeaderSize + proto.HelloSize
		bound := func(i int) bool { // version, CID, ack and tag; the cookie, the lengths, the option, message 2
			return i == 0 || i >= 4 && i < 8 || i >= 12 && i < 16 || i >= 28 && i < 32 || i >= hello-12
		}
		for i := range len(accept) - proto.TrailerSize {
			if !bound(i) {
				continue
			}
			if i > 0 { // with another type, it is valid
				m.forge(m.b, m.a, changed(accept, i, 1))
				m.noResult(c, "a changed Accept")
			}
			m.forge(m.b, m.a, changed(accept, i, 0x80))
			m.noResult(c, "a changed Accept")
		}
		for i := range len(accept) - proto.TrailerSize { // all others at once
			if !bound(i) {
				accept[i] ^= 0xff
			}
		}
		accept[0] ^= byte(proto.Accept ^ proto.Reject)
		m.down.drop = nil
		m.forge(m.b, m.a, withCRC(accept[:len(accept)-proto.TrailerSize]))
		if !c.peerKnown || c.peerCID != cb.cid || c.peerTag != cb.tag || c.keys == nil {
			t.Errorf("the unchanged message 2 is not accepted: CID %#x, state %v", c.peerCID, c.State())
		}
		m.until("establishment", time.Second, func() bool { return c.State() == Established && cb.State() == Established })
	})
}

// Attack 4: the attacker sends every answer that needs no key: Reject, Versions, Reset, ICMP, Accept without message 2 and
// with a wrong one, Closed. None of them may end an attempt, or delay it much.
func TestAttack04HandshakeForgedAnswers(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		m.b.down = true
		c := m.attempt(nil)
		m.run(time.Millisecond)
		volley := func() {
			t.Helper()
			h := proto.Header{CID: c.cid, Tag: c.tag, Ack: c.sent.Una, TS: m.a.eng.now.Stamp()}
			with := func(typ proto.Type) proto.Header { h := h; h.Type = typ; return h }
			for why := range proto.ReasonProhibited + 2 {
				m.forge(m.b, m.a, packetOf(with(proto.Reject), helloOf(&proto.Hello{CID: c.cid, Qual: service, Reason: why})))
			}
			m.forge(m.b, m.a, packetOf(with(proto.Versions), []byte{7}))
			m.forge(m.b, m.a, packetOf(with(proto.Closed), nil))
			m.forge(m.b, m.a, packetOf(with(proto.Reset), nil))
			hi := proto.Hello{CID: 5, Tag: 6, MTU: 1472, Window: 100, Cookie: c.dial.cookie}
			m.forge(m.b, m.a, packetOf(with(proto.Accept), helloOf(&hi)))
			form, keyID := m.noise.Form()
			hi.Noise, hi.Private = noiseHead(form, keyID, proto.Accept), make([]byte, 88+proto.SealSize)
			for _, typ := range []proto.Type{proto.Accept, proto.Reject} {
				m.forge(m.b, m.a, packetOf(with(typ), helloOf(&hi)))
			}
			report := link.Report{To: m.b.addr}
			raw := packetOf(proto.Header{Type: proto.Connect, PSN: c.sent.Nxt, TS: m.a.eng.now.Stamp()}, helloOf(&proto.Hello{CID: c.cid, Tag: c.tag}))
			report.SetQuoted(raw)
			for range 3 {
				m.a.link.Refuse(report)
				m.run(2 * m.a.host.limits.ListenGrace)
			}
			m.noResult(c, "forged answers")
		}
		volley()
		if c.dial.opening.hint != BreakPort {
			t.Errorf("hint %d: the report was ignored, so the test tests less", c.dial.opening.hint)
		}
		m.up.drop = func(b []byte) bool { return typeOf(b) == proto.Connect && helloIn(t, b).Noise != nil }
		m.b.down = false
		m.until("Challenge", time.Second, func() bool { return c.dial.cookie != 0 })
		unopened := m.a.eng.stats.Unopened
		volley()
		if m.a.eng.stats.Unopened == unopened {
			t.Error("no wrong message 2 was read: the test tests nothing")
		}
		m.up.drop = nil
		m.welcome(c)
	})
}

// Attack 4: the attacker sends Challenges with cookies of its own, after the real one and before the answer. The answer to
// the message 1 that the server has read is valid for as long as the server waits, and the messages 1 are bounded.
func TestAttack04HandshakeForgedChallenges(t *testing.T) {
	for _, tc := range []struct {
		forged, offers int
		every          time.Duration
	}{{1, 2, 2 * helloRetryMax}, {40, 41, 2 * helloRetryMax}, {maxOffers + 20, maxOffers, offerPause}} {
		eachForm(t, func(t *testing.T, m *mitm) {
			c := m.attempt([]byte("hello"))
			m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
			m.up.drop = func(b []byte) bool { return typeOf(b) == proto.Connect }
			for i := range tc.forged {
				h := proto.Header{Type: proto.Challenge, CID: c.cid, Tag: c.tag, Ack: c.sent.Una}
				m.forge(m.b, m.a, packetOf(h, helloOf(&proto.Hello{CID: c.cid, Cookie: uint64(i) + 1})))
				m.run(tc.every)
				m.noResult(c, "Challenge")
			}
			if n := len(c.dial.opening.offers); n < tc.offers-1 || n > tc.offers+1 || n > maxOffers {
				t.Errorf("%d messages 1, want %d", n, tc.offers)
			}
			if tc.offers == maxOffers { // longer than the server waits
				return
			}
			cb := m.b.host.NewConn(plain)
			m.accept(m.b, cb, nil)
			m.run(100 * time.Millisecond)
			if c.State() != Established || cb.State() != Established {
				t.Errorf("%d forged Challenges: states %v and %v", tc.forged, c.State(), cb.State())
			}
		})
	}
}

// Attack 4: the attacker sends wrong messages 2 just before the right one. The right one is read after them, at once.
func TestAttack04HandshakeForgedAnswersFirst(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		var accept []byte
		m.down.drop = func(b []byte) bool {
			if typeOf(b) == proto.Accept && accept == nil {
				accept = append(accept, b...)
			}
			return typeOf(b) == proto.Accept
		}
		c := m.attempt([]byte("hello"))
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
		m.accept(m.b, m.b.host.NewConn(plain), nil)
		m.until("Accept", time.Second, func() bool { return accept != nil })
		for i := range maxAnswers {
			m.injectRaw(m.b, m.a, changed(accept, len(accept)-proto.TrailerSize-1-i, 1))
		}
		m.injectRaw(m.b, m.a, accept)
		m.until("establishment", time.Millisecond, func() bool { return c.State() == Established })
		if n := m.a.eng.Stats().Unopened; n != maxAnswers {
			t.Errorf("%d wrong messages 2 were read, want %d", n, maxAnswers)
		}
	})
}
