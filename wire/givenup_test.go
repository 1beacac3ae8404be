package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// givenUp lets a requester give up its attempt before the server accepts it. It returns how long the server's connection
// lives.
func givenUp(t *testing.T, w *world, most time.Duration) time.Duration {
	t.Helper()
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := a.host.NewConn(plain), b.host.NewConn(plain)
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	w.dial(a, b, ca, nil)
	w.until("connection request", 10*time.Second, func() bool { return len(b.arrived) > 0 })
	a.eng.Drop(ca)
	w.accept(b, cb, nil)
	start := w.net.Now()
	w.until("end of the connection", most, func() bool { return cb.State() == Closed })
	took := time.Duration(w.net.Now() - start)
	w.want(b.connect, KindAcceptFailed)
	w.run(2 * time.Second) // the server repeats Close, in secure mode
	if n := b.eng.Connections() + len(b.host.peers.cids) + len(b.eng.requests); n != 0 {
		t.Errorf("%d connections, peers and requests are left", n)
	}
	return took
}

// TestGivenUpAttempt: the connection of a server whose requester has given up ends within two round trips of its Accept.
func TestGivenUpAttempt(t *testing.T) {
	const delay = 10 * time.Millisecond
	w := newWorld(t, simlink.Config{Delay: delay}, 2)
	if took := givenUp(t, w, halfGiveUp); took > 4*delay {
		t.Errorf("it took %v, with round trips of %v", took, 2*delay)
	}
}

// TestGivenUpSecureAttempt: in secure mode too, because the requester keeps the keys of its handshake.
func TestGivenUpSecureAttempt(t *testing.T) {
	const delay = 10 * time.Millisecond
	w := newSecureWorld(t, simlink.Config{Delay: delay}, Limits{}, usual, 2)
	if took := givenUp(t, w, halfGiveUp); took > 4*delay {
		t.Errorf("it took %v, with round trips of %v", took, 2*delay)
	}
}

// TestGoneSecureAttempt: if the requester has no keys any more, its host answers with a Reset that nobody has
// authenticated. The connection ends after some time, in which a requester that is alive confirms it.
func TestGoneSecureAttempt(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Delay: time.Millisecond}, Limits{}, usual, 2)
	w.nodes[0].eng.table.abandoned = maxAbandoned
	if took := givenUp(t, w, halfGiveUp); took < lostAcceptWait || took > 2*lostAcceptWait {
		t.Errorf("it took %v, want %v", took, lostAcceptWait)
	}
}

// TestAbandonedAttempts: attempts that were given up end by themselves if the server never answers.
func TestAbandonedAttempts(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Delay: time.Millisecond}, Limits{}, usual, 2)
	a, b := w.nodes[0], w.nodes[1]
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	const attempts = 3
	for range attempts {
		c, arrived := a.host.NewConn(plain), len(b.arrived)
		w.dial(a, b, c, nil)
		w.until("connection request", 10*time.Second, func() bool { return len(b.arrived) > arrived })
		a.eng.Drop(c)
	}
	if a.eng.table.abandoned != attempts || a.eng.Connections() != 0 {
		t.Errorf("%d abandoned attempts, %d connections", a.eng.table.abandoned, a.eng.Connections())
	}
	w.run(abandonedWait + time.Second)
	if used := a.eng.table.usedSlots; used != 0 || a.eng.table.abandoned != 0 {
		t.Errorf("%d attempts are left, %d abandoned", used, a.eng.table.abandoned)
	}
}

// halfGiveUp is half of the time after which a silent requester is given up.
const halfGiveUp = 5 * time.Second

// TestForgedResetOfAccept: a Reset with another tag or PSN than the Accept does not end the connection.
func TestForgedResetOfAccept(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Millisecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := a.host.NewConn(plain), b.host.NewConn(plain)
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	w.dial(a, b, ca, nil)
	w.until("connection request", 10*time.Second, func() bool { return len(b.arrived) > 0 })
	w.accept(b, cb, nil)
	good := proto.Header{Type: proto.Reset, CID: ca.cid, Tag: ca.tag, PSN: cb.sent.Nxt}
	for _, forge := range []func(*proto.Header){
		func(h *proto.Header) { h.CID++ },
		func(h *proto.Header) { h.Tag++ },
		func(h *proto.Header) { h.PSN++ },
	} {
		h := good
		forge(&h)
		w.inject(a, b, &h, nil)
	}
	w.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
}

// TestCloseAcknowledgesReady: a server that closes a connection as soon as it is established, before it has acknowledged
// Ready. The requester sees both.
func TestCloseAcknowledgesReady(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Millisecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := a.host.NewConn(plain), b.host.NewConn(plain)
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	w.dial(a, b, ca, nil)
	w.until("connection request", time.Second, func() bool { return len(b.arrived) > 0 })
	w.accept(b, cb, nil)
	w.until("establishment of the server", time.Second, func() bool { return cb.State() == Established })
	if err := b.eng.Disconnect(cb, false); err != nil {
		t.Fatal(err)
	}
	w.until("end of the requester", time.Second, func() bool { return ca.State() == Closed })
	w.want(a.connect, KindEstablished)
	w.want(a.connect, KindDisconnected)
}
