package wire

import (
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// impostor returns the Connect of a requester with a key of its own, in the attempt of another requester's Connect.
func (m *mitm) impostor(connect []byte, private []byte) []byte {
	m.t.Helper()
	var h proto.Header
	if !h.Parse(connect) {
		m.t.Fatal("no header")
	}
	hi := helloIn(m.t, connect)
	foe := knowingNoise([]byte("the secret key of the impostor, "), []byte("thirty-two bytes of a secret key"), m.noise.random)
	form, keyID := foe.Form()
	hi.Noise, hi.Private = noiseHead(form, keyID, proto.Connect), make([]byte, len(private)+proto.SealSize)
	foe.model = m.noise.model
	message, _, err := foe.Request(proto.AppendPrologue(nil, packetOf(h, helloOf(hi)), m.b.addr.Addr()), private)
	if err != nil {
		m.t.Fatal(err)
	}
	body, err := putMessage(hi, message)
	if err != nil {
		m.t.Fatal(err)
	}
	return packetOf(h, body)
}

// Attack 4: the attacker is on the path and has a key that the server accepts too. It sends a Connect of its own before each
// of another requester, with the same cookie, ID, tag and address. It gets a request of its own, and the other one is
// answered all the same.
func TestAttack04AuthorisedOnPath(t *testing.T) {
	m := newMITM(t, false)
	note := m.up.show
	forged := 0
	m.up.show = func(b []byte) {
		note(b)
		if typeOf(b) == proto.Connect && helloIn(t, b).Noise != nil && forged == 0 {
			forged++
			m.inject(m.a, m.b, m.impostor(b, []byte("evil")))
		}
	}
	c := m.attempt([]byte("hello"))
	m.until("both requests", 2*helloRetry, func() bool { return len(m.b.arrived) == 2 })
	first, second := m.b.arrived[0], m.b.arrived[1]
	if string(first.Private) != "evil" || string(second.Private) != "hello" || first.PeerKey == second.PeerKey {
		t.Fatalf("the requests have the private data %q and %q", first.Private, second.Private)
	}
	foreign := m.b.host.NewConn(plain)
	m.accept(m.b, foreign, nil)
	cb := m.b.host.NewConn(plain)
	m.accept(m.b, cb, []byte("welcome"))
	m.until("establishment", time.Second, func() bool { return c.State() == Established && cb.State() == Established })
	if string(c.PeerPrivate()) != "welcome" || foreign.State() != Accepting {
		t.Errorf("private data %q, the connection of the attacker is %v", c.PeerPrivate(), foreign.State())
	}
	m.run(time.Second)
	if len(m.b.arrived) != 0 {
		t.Errorf("%d further requests", len(m.b.arrived))
	}
}

// Attack 4: the attacker copies each Connect with another source port, and gets cookies for it. The attempt makes one request.
func TestAttack04OtherSourcePort(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		copies := m.addNode(netip.AddrPortFrom(m.a.addr.Addr(), 33333))
		note := m.up.show
		m.up.show = func(b []byte) {
			note(b)
			if typeOf(b) == proto.Connect {
				m.inject(copies, m.b, b)
			}
		}
		c := m.attempt([]byte("hello"))
		m.until("the request", time.Second, func() bool { return len(m.b.arrived) > 0 })
		m.run(3 * helloRetryMax)
		if len(m.b.arrived) != 1 {
			t.Errorf("%d requests", len(m.b.arrived))
		}
		m.welcome(c)
	})
}

// TestSecureRejectForgotten: an answer that was lost, and that the server has forgotten, does not end an attempt: another cookie makes
// another request.
func TestSecureRejectForgotten(t *testing.T) {
	eachForm(t, func(t *testing.T, m *mitm) {
		m.b.refuse = true
		forgot := false
		m.down.drop = func(b []byte) bool { return typeOf(b) == proto.Reject && !forgot }
		c := m.attempt(nil)
		m.until("Reject", time.Second, func() bool { return len(ofType(m.answer, proto.Reject)) > 0 })
		m.b.eng.forgetAllRejected()
		forgot = true
		m.until("the end", time.Second, func() bool { return c.State() == Closed })
		m.want(m.a.connect, KindRefused)
	})
}

// Another process at the peer's address has chosen the same connection ID. A restart of the peer is noticed as soon
// as without it.
func TestAttackSameIDAtOneAddress(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: 10 * time.Microsecond}, Limits{}, usual, 1)
	server := w.nodes[0]
	if err := server.host.Listen(service, server); err != nil {
		t.Fatal(err)
	}
	var conns [2]*Conn
	var far [2]*Conn
	for i := range conns {
		n := w.addNode(netip.MustParseAddrPort([]string{"10.0.0.9:18001", "10.0.0.9:18002"}[i]))
		n.eng.table.firstGen = 0 // both choose the same ID
		far[i] = n.host.NewConn(plain)
		w.dial(n, server, far[i], nil)
		w.until("the request", time.Second, func() bool { return len(server.arrived) > 0 })
		conns[i] = server.host.NewConn(plain)
		w.accept(server, conns[i], nil)
		w.until("establishment", time.Second, func() bool { return conns[i].State() == Established && far[i].State() == Established })
	}
	if far[0].cid != far[1].cid {
		t.Fatalf("the IDs are %#x and %#x: the test tests nothing", far[0].cid, far[1].cid)
	}
	w.crash(w.nodes[1])
	w.reboot(1)
	src := server.memory(64)
	server.post(conns[0], conns[0].PostSend(src.seg(0, 64), 1, 0))
	w.until("the connection to break", challengeAckLimit+time.Second, func() bool { return conns[0].State() == Closed })
	if conns[1].State() != Established {
		t.Error("the other connection has ended")
	}
}

// A server restarts and its client connects again. The client notices the end of the connection from before the restart as
// soon as without the new one, because the two do not have the same ID at the server.
func TestRestartBesideNewConnection(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: 10 * time.Microsecond}, Limits{}, usual, 2)
	client := w.nodes[0]
	old, _ := w.pair(plain)
	w.crash(w.nodes[1])
	w.reboot(1)
	src := client.memory(64)
	client.post(old, old.PostSend(src.seg(0, 64), 1, 0))
	next, _ := w.pair(plain)
	w.until("the old connection to break", challengeAckLimit+time.Second, func() bool { return old.State() == Closed })
	if next.State() != Established {
		t.Error("the new connection has ended")
	}
}

// Attack 15: wrong remote keys count for the identity of the peer, and not for its address, which others share.
func TestAttack15GuessesOfAnIdentity(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: 10 * time.Microsecond}, Limits{}, usual, 2)
	l := w.keepLedger()
	a, b := w.nodes[0], w.nodes[1]
	for range freeGuesses + 5 {
		ca, cb := w.pair(plain)
		src := a.memory(8)
		a.post(ca, ca.PostWrite(src.seg(0, 8), 1, Remote{Key: 12345, Addr: 0}, 0))
		w.until("the end", 5*time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
		for _, q := range []*Queue{a.request, a.connect, b.connect} {
			discard(q)
		}
	}
	if l.guesses != freeGuesses+5 || len(b.eng.keyGuesses.addrs) != 0 {
		t.Errorf("%d guesses of the identity, %d addresses", l.guesses, len(b.eng.keyGuesses.addrs))
	}
}

// distinctRequests returns the requests of the table, each once.
func (e *Engine) distinctRequests() map[*Request]bool {
	all := map[*Request]bool{}
	for _, r := range e.requests {
		all[r] = true
	}
	return all
}
