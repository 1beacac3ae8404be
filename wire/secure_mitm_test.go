package wire

import (
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
	if psk {
		return newMITMOf(t, 2)
	}
	return newMITMOf(t, 0)
}

// newMITMOf makes the world of a seed. Bit 1 of the seed chooses the form.
func newMITMOf(t *testing.T, seed uint64) *mitm {
	t.Helper()
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
