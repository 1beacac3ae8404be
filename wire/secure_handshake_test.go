package wire

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// The handshake must carry private data of all sizes in packets of the documented sizes, show none of it on the wire, and
// name the requester's key.
func TestSecureHandshake(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		for _, n := range []int{0, 1, 100, proto.MaxPrivateData} {
			private := bytes.Repeat([]byte("private."), 64)[:n]
			m.sent, m.answer = nil, nil
			ca := m.attempt(private)
			m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
			r := m.b.arrived[0]
			want := [32]byte{}
			if m.noise.terms.Own != nil {
				want = testKey.Public()
			}
			if !bytes.Equal(r.Private, private) || r.PeerKey != want || r.Qual != service {
				t.Fatalf("request %+v", r)
			}
			cb := m.b.host.NewConn(plain)
			m.accept(m.b, cb, private)
			m.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
			if !bytes.Equal(ca.PeerPrivate(), private) {
				t.Errorf("private data %q of Accept", ca.PeerPrivate())
			}
			if ca.dial.opening != nil || cb.dial.opening != nil {
				t.Error("the handshake is kept")
			}
			connects, head := ofType(m.sent, proto.Connect), len(helloIn(t, m.offers()[0]).Noise)
			if len(connects) != 2 || len(connects[1]) != 32+52+2+head+n+16+4 || len(connects[0]) != 32+52+4 {
				t.Errorf("%d Connects; option of %d bytes", len(connects), head)
			}
			if got := ofType(m.answer, proto.Accept); len(got) != 1 || len(got[0]) != 32+52+2+37+32+52+n+16+4 {
				t.Errorf("%d Accepts", len(got))
			}
			for _, b := range slices.Concat(m.sent, m.answer) {
				if n >= 8 && bytes.Contains(b, private[:8]) {
					t.Errorf("private data in % x", b)
				}
			}
			m.want(m.a.connect, KindEstablished)
			m.want(m.b.connect, KindEstablished)
			if err := m.a.eng.Disconnect(ca, false); err != nil {
				t.Fatal(err)
			}
			m.until("the end", time.Second, func() bool { return cb.State() == Closed })
			m.want(m.a.connect, KindDisconnected)
			m.want(m.b.connect, KindDisconnected)
		}
	})
}

// Each packet of a handshake is lost a few times. The repeats of a Connect with message 1, and of its answer, must be the
// same byte for byte, and one message 1 must be enough.
func TestSecureHandshakeLoss(t *testing.T) {
	for _, lost := range []struct {
		name string
		up   bool
		is   func(b []byte, hi *proto.Hello) bool
	}{
		{"Connect", true, func(b []byte, hi *proto.Hello) bool { return typeOf(b) == proto.Connect && hi.Noise == nil }},
		{"Challenge", false, func(b []byte, _ *proto.Hello) bool { return typeOf(b) == proto.Challenge }},
		{"Connect with message 1", true, func(b []byte, hi *proto.Hello) bool { return typeOf(b) == proto.Connect && hi.Noise != nil }},
		{"Accept", false, func(b []byte, _ *proto.Hello) bool { return typeOf(b) == proto.Accept }},
		{"Ready", true, func(b []byte, _ *proto.Hello) bool { return typeOf(b) == proto.Data }},
	} {
		t.Run(lost.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, m *mitm) {
				n := 0
				drop := func(b []byte) bool {
					var hi proto.Hello
					hi.Parse(b[proto.HeaderSize : len(b)-proto.TrailerSize])
					if lost.is(b, &hi) {
						n++
						return n <= 5
					}
					return false
				}
				if m.down.drop = drop; lost.up {
					m.up.drop, m.down.drop = drop, nil
				}
				m.welcome(m.attempt([]byte("hello")))
				if n < 5 {
					t.Errorf("%d packets", n)
				}
				for _, same := range [][][]byte{m.offers(), ofType(m.answer, proto.Accept)} {
					for _, b := range same {
						if !bytes.Equal(b, same[0]) {
							t.Errorf("a repeat differs:\n% x\n% x", same[0], b)
						}
					}
				}
				if m.noise.model.opened != 2 {
					t.Errorf("%d messages were opened", m.noise.model.opened)
				}
			})
		})
	}
}

// A cookie is remembered for two periods, and at most maxUsedConnects are remembered in one.
func TestUsedCookies(t *testing.T) {
	var u usedConnects
	from := netip.AddrFrom4([4]byte{10, 0, 0, 1})
	unused := func(cookie uint64) bool { ok, _ := u.mayUse(cookie, from); return ok }
	u.turn(7)
	u.add(1, from)
	if unused(1) || !unused(2) {
		t.Error("a cookie is not remembered")
	}
	u.turn(8)
	u.add(2, from)
	if unused(1) || unused(2) {
		t.Error("a cookie is not remembered in the next period")
	}
	if u.turn(9); !unused(1) || unused(2) {
		t.Error("a cookie is remembered for too long, or not long enough")
	}
	if u.turn(11); !unused(2) {
		t.Error("a cookie is remembered for too long")
	}
	for i := range uint64(2 * maxUsedConnects) { // each from a network of its own
		from := netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 1})
		if _, room := u.mayUse(i, from); room != (i < maxUsedConnects) {
			t.Fatalf("room for cookie %d is %v", i, room)
		} else if room {
			u.add(i, from)
		}
	}
}

// Peers that may connect use up the cookies of a period. Others still connect, also from the same network, and in
// the next period everybody does.
func TestUsedCookiesAreShared(t *testing.T) {
	honest, neighbour := netip.AddrFrom4([4]byte{10, 2, 0, 1}), netip.AddrFrom4([4]byte{10, 1, 0, 254})
	network := netip.MustParseAddr("2001:db8::")
	for _, tc := range []struct {
		name     string
		attacker func(i uint64) netip.Addr
		most     int // cookies that the attacker uses
	}{
		{"one address", func(uint64) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, 1}) }, alone(usedShare, maxUsedConnects)},
		{"a network", func(i uint64) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, byte(i % 100)}) }, alone(usedPrefix, maxUsedConnects)},
		{"a network of IPv6", func(i uint64) netip.Addr {
			b := network.As16()
			b[8], b[9], b[10] = byte(i>>16), byte(i>>8), byte(i)
			return netip.AddrFrom16(b)
		}, alone(newcomerFactor*usedPrefix, maxUsedConnects)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var u usedConnects
			u.turn(1)
			used := 0
			for i := range uint64(2 * maxUsedConnects) {
				if u.uses(i, tc.attacker(i)) {
					used++
				}
			}
			if used != tc.most {
				t.Errorf("the attacker used %d cookies, want %d", used, tc.most)
			}
			for i := range uint64(1000) {
				if !u.uses(1<<32+i, honest) {
					t.Fatalf("connect %d of an honest host found no room", i)
				}
			}
			if !u.uses(1<<33, neighbour) {
				t.Error("a neighbour of the attacker found no room")
			}
			if u.turn(2); !u.uses(1<<34, tc.attacker(0)) || u.shares.used != 1 {
				t.Error("the cookies of a period count in the next one")
			}
		})
	}
}

// uses uses a cookie if there is room.
func (u *usedConnects) uses(cookie uint64, from netip.Addr) bool {
	_, room := u.mayUse(cookie, from)
	if room {
		u.add(cookie, from)
	}
	return room
}

// A requester that does not know the server's key must get it with the Challenge, if the server answers such requests, and
// then connect with it. Otherwise it must send no message 1.
func TestSecureLearnsKey(t *testing.T) {
	for _, answers := range []bool{true, false} {
		m := newMITM(t, false)
		if key := [32]byte(testKey.Public()); answers {
			m.b.host.security.ServerKey = func() *[32]byte { return &key }
		}
		n := *m.noise
		n.terms.Server = [32]byte{}
		r := &learner{noise: &n}
		c := m.a.host.NewConn(plain)
		m.dialWith(m.a, m.b, c, nil, r)
		if answers {
			m.welcome(c)
			if want := [][32]byte{testKey.Public()}; !slices.Equal(r.learned, want) {
				t.Errorf("the requester has learned %x, want %x", r.learned, want)
			}
			continue
		}
		m.refused(c, KindTimedOut, BreakHandshake)
		if len(r.learned) != 0 || len(m.offers()) != 0 || len(m.b.arrived) != 0 {
			t.Errorf("%d keys, %d messages 1, %d requests", len(r.learned), len(m.offers()), len(m.b.arrived))
		}
	}
}
