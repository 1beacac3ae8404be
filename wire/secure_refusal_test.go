package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Every Reject of an authenticated server must reach the requester, with its reason and its private data, also if its
// first copies are lost.
func TestSecureReject(t *testing.T) {
	reject := func(m *mitm) {
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
		r := m.b.arrived[0]
		path, err := m.b.link.Resolve(r.From, 1)
		if err == nil {
			err = m.b.eng.Reject(r, path, []byte("not you"))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		set  func(m *mitm)
		kind Kind
		why  BreakReason
	}{
		{"by the consumer", nil, KindPeerRejected, 0},
		{"no service", func(m *mitm) { m.b.host.Unlisten(service) }, KindRefused, BreakNoListener},
		{"service not allowed", func(m *mitm) { m.noise.bar = func(qual uint64) bool { return qual == service } }, KindRefused, BreakNoListener},
		{"backlog", func(m *mitm) { m.b.refuse = true }, KindRefused, BreakBacklog},
		{"no place", func(m *mitm) { m.b.eng.conns.places = 0 }, KindRefused, BreakResources},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, m *mitm) {
				n := 0
				m.down.drop = func(b []byte) bool {
					if typeOf(b) == proto.Reject {
						n++
						return n <= 3
					}
					return false
				}
				if tc.set != nil {
					tc.set(m)
				}
				c := m.attempt([]byte("hello"))
				if tc.set == nil {
					reject(m)
				}
				m.refused(c, tc.kind, tc.why)
				if tc.set == nil && string(c.PeerPrivate()) != "not you" {
					t.Errorf("private data %q", c.PeerPrivate())
				}
				same := ofType(m.answer, proto.Reject)
				for _, b := range same {
					if hi := helloIn(t, b); hi.Noise == nil || hi.Reason != 0 {
						t.Errorf("a Reject shows its reason: % x", b)
					}
					if tc.why != BreakNoListener && !bytes.Equal(b, same[0]) {
						t.Error("a repeated Reject differs")
					}
				}
				if m.b.eng.forgetAllRejected(); len(m.b.eng.requests) != 0 || m.b.eng.halfOpen.used != 0 || m.b.link.Paths() != 0 {
					t.Errorf("%d requests, %d half-open, %d paths left", len(m.b.eng.requests), m.b.eng.halfOpen.used, m.b.link.Paths())
				}
			})
		})
	}
}

// A service that begins to listen within ListenGrace must be reached, although its host has rejected the attempt before.
func TestSecureListenGrace(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		m.b.host.Unlisten(service)
		c := m.attempt(nil)
		m.run(500 * time.Millisecond)
		m.noResult(c, "no service")
		if err := m.b.host.Listen(service, m.b); err != nil {
			t.Fatal(err)
		}
		m.welcome(c)
	})
}

// An attempt that begins anew needs another cookie. Challenges that came before must not reduce its chance to get one.
func TestSecureRestartTakesChallenge(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		c := m.attempt(nil)
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) == 1 })
		c.dial.opening.drawn = 1 << 31
		c.restartAttempt()
		m.until("another request", time.Second, func() bool { return len(m.b.arrived) == 2 })
	})
}

// A server must not answer a message 1 of a wrong key or of an unknown identity. The requester learns no reason.
func TestSecureUnknownKey(t *testing.T) {
	for _, tc := range []struct {
		name string
		psk  bool
		why  Denial
		set  func(n *noise)
	}{
		{"another server key", false, DeniedKey, func(n *noise) { n.terms.Server = strangeKey.Public() }},
		{"another secret", true, DeniedKey, func(n *noise) { n.terms.Shared = strangeSecret }},
		{"unknown requester", false, DeniedUnknown, func(n *noise) { n.terms.Own = strangeKey }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMITM(t, tc.psk)
			n := *m.noise
			n.model = newHandshakeModel(t)
			tc.set(&n)
			m.noise.deny = func(_ netip.Addr, peer [32]byte) bool { return !tc.psk && peer != testKey.Public() }
			c := m.a.host.NewConn(plain)
			m.dialWith(m.a, m.b, c, nil, &n)
			m.refused(c, KindTimedOut, BreakHandshake)
			if len(m.b.arrived) != 0 || len(m.answer) != len(ofType(m.answer, proto.Challenge)) || len(m.b.eng.requests) != 0 ||
				m.b.eng.halfOpen.used != 0 || m.b.eng.stats.HandshakesDenied[tc.why] == 0 {
				t.Errorf("%d requests, %d answers, %+v", len(m.b.arrived), len(m.answer), m.b.eng.stats.Counters)
			}
		})
	}
}

// Ends with different modes must not connect. The Reject of the other end is only a hint for a secure requester.
func TestSecureAndPlaintext(t *testing.T) {
	for _, secureServer := range []bool{false, true} {
		m := newMITM(t, false)
		odd, limits := m.a, m.keys
		if !secureServer {
			odd = m.b
		}
		m.keys = nil
		m.tap(odd, &tap{})
		if err := m.b.host.Listen(service, m.b); err != nil && err != ErrInUse {
			t.Fatal(err)
		}
		if m.keys = limits; secureServer {
			m.keys = nil
		}
		if c := m.attempt(nil); secureServer {
			m.refused(c, KindRefused, BreakSecure)
		} else {
			m.refused(c, KindTimedOut, BreakOption)
		}
		if len(m.b.arrived) != 0 {
			t.Errorf("%d requests", len(m.b.arrived))
		}
	}
	m := newMITM(t, false)
	for _, secure := range []bool{false, true} {
		if m.keys = nil; !secure {
			m.keys = usual
			m.a.eng.secure = false
		}
		path, err := m.a.link.Resolve(m.b.addr, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.a.eng.Connect(m.a.host.NewConn(plain), Dial{Path: path, Host: m.b.addr.Addr(), Requester: m.requester()}); err != ErrSecure {
			t.Errorf("secure %v: %v", secure, err)
		}
		m.a.eng.secure = true
	}
	if m.a.link.Paths() != 0 {
		t.Error("a path is left")
	}
}
