package wire

import (
	"bytes"
	"crypto/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// mitm is a world of a requester and a server in secure mode, with taps on both links.
type mitm struct {
	*world
	a, b         *node
	up, down     *tap     // packets of the requester, and of the server
	sent, answer [][]byte // packets of both, before their first sealed packets
}

// newMITM makes a world with handshakes of both forms: NNpsk0 if psk is true, otherwise IK.
func newMITM(t *testing.T, psk bool) *mitm {
	t.Helper()
	seed := uint64(0)
	if psk {
		seed = 2
	}
	w := newSecureWorld(t, simlink.Config{Seed: seed, Delay: 10 * time.Microsecond}, Limits{}, usual, 2)
	m := &mitm{world: w, a: w.nodes[0], b: w.nodes[1], up: &tap{}, down: &tap{}}
	m.up.show = func(b []byte) { m.sent = append(m.sent, b) }
	m.down.show = func(b []byte) { m.answer = append(m.answer, b) }
	w.tap(m.a, m.up)
	w.tap(m.b, m.down)
	m.a.eng.portReports.link = m.a.link
	if err := m.b.host.Listen(service, m.b); err != nil {
		t.Fatal(err)
	}
	return m
}

// eachForm runs a test for both forms.
func eachForm(t *testing.T, test func(t *testing.T, m *mitm)) {
	for _, psk := range []bool{false, true} {
		t.Run(map[bool]string{false: "IK", true: "NNpsk0"}[psk], func(t *testing.T) { test(t, newMITM(t, psk)) })
	}
}

// attempt begins an attempt of the requester.
func (m *mitm) attempt(private []byte) *Conn {
	m.t.Helper()
	c := m.a.host.NewConn(plain)
	m.dial(m.a, m.b, c, private)
	return c
}

// welcome accepts the next request, and waits until the connection of the requester's end ca is established.
func (m *mitm) welcome(ca *Conn) (cb *Conn) {
	m.t.Helper()
	m.until("the request", 5*time.Second, func() bool { return len(m.b.arrived) > 0 })
	cb = m.b.host.NewConn(plain)
	m.accept(m.b, cb, []byte("welcome"))
	m.until("establishment", 5*time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	m.want(m.a.connect, KindEstablished)
	m.want(m.b.connect, KindEstablished)
	return cb
}

// ofType returns the packets of a type.
func ofType(packets [][]byte, t proto.Type) (some [][]byte) {
	for _, b := range packets {
		if typeOf(b) == t {
			some = append(some, b)
		}
	}
	return some
}

// offers returns the Connects with a message 1.
func (m *mitm) offers() (some [][]byte) {
	for _, b := range ofType(m.sent, proto.Connect) {
		if hi := helloIn(m.t, b); hi.Noise != nil {
			some = append(some, b)
		}
	}
	return some
}

// helloIn returns the Hello of a packet with its CRC.
func helloIn(t testing.TB, b []byte) *proto.Hello {
	t.Helper()
	hi := new(proto.Hello)
	if !hi.Parse(b[proto.HeaderSize : len(b)-proto.TrailerSize]) {
		t.Fatalf("% x is no Hello", b)
	}
	return hi
}

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
			if len(connects) != 2 || len(connects[1]) != 32+52+4+2+head+n+16+4 || len(connects[0]) != 32+52+4+4 {
				t.Errorf("%d Connects; option of %d bytes", len(connects), head)
			}
			if got := ofType(m.answer, proto.Accept); len(got) != 1 || len(got[0]) != 32+52+2+37+32+52+4+n+16+4 {
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

// noResult checks that an attempt goes on.
func (m *mitm) noResult(c *Conn, what string) {
	m.t.Helper()
	if c.State() != Connecting || m.a.connect.Len() != 0 {
		m.t.Fatalf("%s: state %v, %d events", what, c.State(), m.a.connect.Len())
	}
}

// refused waits until an attempt ends with a kind and a reason.
func (m *mitm) refused(c *Conn, kind Kind, why BreakReason) {
	m.t.Helper()
	m.until("the end", 40*time.Second, func() bool { return c.State() == Closed })
	var e Completion
	if !m.a.connect.Pop(&e) || e.Kind != kind || BreakReason(e.Data) != why {
		m.t.Errorf("completion %+v, want kind %d for the reason %d", e, kind, why)
	}
	m.b.down = false
	m.run(time.Second)
	if m.a.eng.Connections() != 0 || m.a.eng.timers.armed() != 0 {
		m.t.Errorf("%d connections, %d timers left", m.a.eng.Connections(), m.a.eng.timers.armed())
	}
}

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

// The consumers end the connection while jobs of the handshake run. Nothing may be left, and the secrets must be
// overwritten.
func TestSecureEndsWhileJobsRun(t *testing.T) {
	for jobs := range 5 {
		w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: time.Microsecond}, Limits{}, usual, 0)
		hold := &heldJobs{}
		w.runner = hold
		a, b := w.addNode(netip.MustParseAddrPort("10.0.0.1:17473")), w.addNode(netip.MustParseAddrPort("10.0.0.2:17473"))
		if err := b.host.Listen(service, b); err != nil {
			t.Fatal(err)
		}
		ca, cb := a.host.NewConn(plain), b.host.NewConn(plain)
		w.dial(a, b, ca, nil)
		done := 0
		for end := w.net.Now() + int64(20*time.Millisecond); w.net.Now() < end; {
			if !w.step() {
				break
			}
			if len(b.arrived) > 0 && cb.State() == Idle {
				w.accept(b, cb, nil)
			}
			if len(hold.jobs) > 0 && done < jobs {
				done++
				hold.run()
			}
		}
		if done != min(jobs, 4) || len(hold.jobs) > 1 {
			t.Fatalf("%d jobs of %d, %d wait", done, jobs, len(hold.jobs))
		}
		for n, c := range map[*node]*Conn{a: ca, b: cb} {
			if c.State() != Idle {
				if err := n.eng.Disconnect(c, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		hold.run()
		w.run(5 * time.Second)
		hold.run()
		w.run(time.Second)
		for i, n := range w.nodes {
			for _, r := range n.arrived {
				_ = n.eng.Forget(r)
			}
			n.eng.forgetAllRejected()
			if n.eng.Connections() != 0 || n.eng.timers.armed() != 0 || len(n.eng.requests) != 0 || n.eng.halfOpen.used != 0 || n.link.Paths() != 0 {
				t.Errorf("%d jobs, node %d: %d connections, %d timers, %d requests, %d half-open, %d paths left", jobs, i,
					n.eng.Connections(), n.eng.timers.armed(), len(n.eng.requests), n.eng.halfOpen.used, n.link.Paths())
			}
			n.eng.Close()
		}
	}
}

// Jobs may run on other goroutines while the engines work.
func TestSecureJobsOnGoroutines(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 4, Delay: time.Microsecond}, Limits{}, usual, 0)
	jobs := &goJobs{}
	w.runner, w.noise.random, w.noise.model = jobs, rand.Reader, nil
	a, b := w.addNode(netip.MustParseAddrPort("10.0.0.1:17473")), w.addNode(netip.MustParseAddrPort("10.0.0.2:17473"))
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	var all []*Conn
	for range 20 {
		c := a.host.NewConn(plain)
		w.dial(a, b, c, []byte("hello"))
		all = append(all, c)
	}
	for end := w.net.Now() + int64(time.Second); w.net.Now() < end; {
		w.step()
		if len(b.arrived) > 0 {
			w.accept(b, b.host.NewConn(plain), nil)
		}
		jobs.Wait() // jobs have run while the engines did
	}
	for i, c := range all {
		if c.State() != Established {
			t.Errorf("connection %d: state %v", i, c.State())
		}
	}
}

// A cookie is remembered for two periods, and at most maxUsedCookies are remembered in one.
func TestUsedCookies(t *testing.T) {
	var u usedCookies
	unused := func(cookie uint64) bool { ok, _ := u.mayUse(cookie); return ok }
	u.turn(7)
	u.add(1)
	if unused(1) || !unused(2) {
		t.Error("a cookie is not remembered")
	}
	u.turn(8)
	u.add(2)
	if unused(1) || unused(2) {
		t.Error("a cookie is not remembered in the next period")
	}
	if u.turn(9); !unused(1) || unused(2) {
		t.Error("a cookie is remembered for too long, or not long enough")
	}
	if u.turn(11); !unused(2) {
		t.Error("a cookie is remembered for too long")
	}
	for i := range uint64(maxUsedCookies) {
		if _, room := u.mayUse(i); !room {
			t.Fatalf("no room for cookie %d", i)
		}
		u.add(i)
	}
	if _, room := u.mayUse(maxUsedCookies); room {
		t.Error("the set is not bounded")
	}
}

// A requester that does not know the server's key must get it with the Challenge, if the server answers such requests, and
// then connect with it. Otherwise it must send no message 1.
func TestSecureLearnsKey(t *testing.T) {
	for _, answers := range []bool{true, false} {
		m := newMITM(t, false)
		if key := [32]byte(testKey.Public()); answers {
			m.b.host.security.ServerKey = &key
		}
		n := *m.noise
		n.terms.Server = [32]byte{}
		r := &learner{noise: &n}
		c := m.a.host.NewConn(plain)
		m.dialWith(m.a, m.b, c, nil, r)
		if answers {
			m.welcome(c)
			if n.terms.Server != testKey.Public() {
				t.Error("the requester has learned another key")
			}
			continue
		}
		m.refused(c, KindTimedOut, 0)
		if r.known || len(m.offers()) != 0 || len(m.b.arrived) != 0 {
			t.Errorf("known %v, %d messages 1, %d requests", r.known, len(m.offers()), len(m.b.arrived))
		}
	}
}
