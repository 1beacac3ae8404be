package wire

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// ledger makes the grants of all hosts of a world, and checks how engines use them.
type ledger struct {
	t        testing.TB
	rights   Rights
	denied   error // of all peers
	room     int   // bytes that all peers may hold
	held     int
	mostHeld int
	open     int // grants that were not released
	halfOpen int // grants that were neither confirmed nor released
	made     int
	guesses  int
}

type ledgerGrant struct {
	*ledger
	held                int
	confirmed, released bool
}

// keepLedger makes the hosts of a world use a ledger.
func (w *world) keepLedger() *ledger {
	l := &ledger{t: w.t, rights: fullRights, room: 1 << 30}
	w.noise.grant = func() Grant {
		l.made++
		l.open++
		l.halfOpen++
		return &ledgerGrant{ledger: l}
	}
	return l
}

func (g *ledgerGrant) use() {
	if g.released {
		g.t.Error("a grant was used after its release")
	}
}

func (g *ledgerGrant) Rights() (Rights, error) {
	g.use()
	return g.rights, g.denied
}

func (g *ledgerGrant) MayHold(n int) bool {
	g.use()
	return g.ledger.held+n <= g.room
}

func (g *ledgerGrant) Hold(n int) {
	g.use()
	g.held += n
	g.ledger.held += n
	g.mostHeld = max(g.mostHeld, g.ledger.held)
}

func (g *ledgerGrant) Confirm() {
	g.use()
	if g.confirmed {
		g.t.Error("a grant was confirmed twice")
	}
	g.confirmed = true
	g.halfOpen--
}

func (g *ledgerGrant) Guess() {
	g.use()
	g.guesses++
}

func (g *ledgerGrant) Release() {
	g.use()
	if g.held != 0 {
		g.t.Errorf("%d bytes are held at the release", g.held)
	}
	if !g.confirmed {
		g.halfOpen--
	}
	g.released = true
	g.open--
}

// TestGrantLifetime: a grant begins with its request, and ends with its connection, whatever happens.
func TestGrantLifetime(t *testing.T) {
	answer := func(w *world, reply func(*Engine, *Request) error) {
		b := w.nodes[1]
		w.until("the request", time.Second, func() bool { return len(b.arrived) > 0 })
		r := b.arrived[0]
		b.arrived = nil
		if err := reply(b.eng, r); err != nil {
			w.t.Fatal(err)
		}
	}
	pathTo := func(w *world, r *Request) link.Path {
		path, err := w.nodes[1].link.Resolve(r.From, 1)
		if err != nil {
			w.t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		name string
		run  func(w *world, dial func() *Conn)
		made int
	}{
		{"accepted and closed", func(w *world, dial func() *Conn) {
			ca, cb := dial(), w.nodes[1].host.NewConn(plain)
			w.until("the request", time.Second, func() bool { return len(w.nodes[1].arrived) > 0 })
			w.accept(w.nodes[1], cb, nil)
			w.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
			if err := w.nodes[0].eng.Disconnect(ca, true); err != nil {
				w.t.Fatal(err)
			}
		}, 2},
		{"rejected", func(w *world, dial func() *Conn) {
			dial()
			answer(w, func(e *Engine, r *Request) error { return e.Reject(r, pathTo(w, r), nil) })
		}, 2},
		{"refused", func(w *world, dial func() *Conn) { w.nodes[1].refuse = true; dial() }, 2},
		{"no service", func(w *world, dial func() *Conn) { w.nodes[1].host.Unlisten(service); dial() }, 0},
		{"forgotten", func(w *world, dial func() *Conn) {
			dial()
			answer(w, func(e *Engine, r *Request) error { return e.Forget(r) })
		}, 0},
		{"handed off", func(w *world, dial func() *Conn) {
			dial()
			answer(w, func(e *Engine, r *Request) error { return e.Handoff(r, pathTo(w, r), 7) })
		}, 0},
		{"no answer", func(w *world, dial func() *Conn) { dial() }, 0},
		{"the requester gives up", func(w *world, dial func() *Conn) {
			c := dial()
			answer(w, func(*Engine, *Request) error { return nil })
			if err := w.nodes[0].eng.Disconnect(c, false); err != nil {
				w.t.Fatal(err)
			}
		}, 2},
		{"accepted, but not confirmed", func(w *world, dial func() *Conn) {
			dial()
			w.until("the request", time.Second, func() bool { return len(w.nodes[1].arrived) > 0 })
			w.crash(w.nodes[0])
			w.accept(w.nodes[1], w.nodes[1].host.NewConn(plain), nil)
		}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, late := range []bool{false, true} {
				w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: time.Microsecond}, Limits{}, usual, 2)
				if late {
					w.late = newLateJobs(8)
					for i, n := range w.nodes {
						w.crash(n)
						w.reboot(i)
					}
				}
				l := w.keepLedger()
				a, b := w.nodes[0], w.nodes[1]
				if err := b.host.Listen(service, b); err != nil {
					t.Fatal(err)
				}
				tc.run(w, func() *Conn {
					c := a.host.NewConn(plain)
					w.dial(a, b, c, nil)
					return c
				})
				w.run(40 * time.Second)
				if tc.made > 0 && l.made != tc.made {
					t.Errorf("late %v: %d grants, want %d", late, l.made, tc.made)
				}
				if l.halfOpen > 1 { // a request that the consumer has not answered
					t.Errorf("late %v: %d grants are half-open", late, l.halfOpen)
				}
				lost := 0 // grants of a host that crashed
				if a.down {
					lost = 1
				} else {
					a.eng.Close()
				}
				b.eng.Close()
				if l.open != lost || l.halfOpen != lost || l.held != 0 || l.made == 0 {
					t.Errorf("late %v: of %d grants %d are open, %d half-open, and %d bytes are held", late, l.made, l.open, l.halfOpen, l.held)
				}
			}
		})
	}
}

// TestGrantRights: the rights of a peer bound those of every region and window. CheckGrants renews them.
func TestGrantRights(t *testing.T) {
	const size = 64
	for _, tc := range []struct {
		name   string
		rights Rights
		post   func(c *Conn, own, far memory) error
		ok     bool
	}{
		{"write", RemoteRead | RemoteWrite, func(c *Conn, own, far memory) error { return c.PostWrite(own.seg(0, size), 1, far.at(0), 0) }, true},
		{"write without the right", RemoteRead, func(c *Conn, own, far memory) error { return c.PostWrite(own.seg(0, size), 1, far.at(0), 0) }, false},
		{"write with immediate data", RemoteRead, func(c *Conn, own, far memory) error { return c.PostWriteImm(own.seg(0, size), 1, far.at(0), 7, 0) }, false},
		{"read", RemoteRead, func(c *Conn, own, far memory) error { return c.PostRead(own.seg(0, size), 1, far.at(0), size, 0) }, true},
		{"read without the right", RemoteWrite, func(c *Conn, own, far memory) error { return c.PostRead(own.seg(0, size), 1, far.at(0), size, 0) }, false},
		{"atomic without the right", RemoteRead | RemoteWrite, func(c *Conn, own, far memory) error { return c.PostFetchAdd(1, own.seg(0, 8)[0], 1, far.at(0), 0) }, false},
		{"send without rights", 0, func(c *Conn, own, _ memory) error { return c.PostSend(own.seg(0, size), 1, 0) }, true},
	} {
		for _, renewed := range []bool{false, true} {
			w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: time.Microsecond}, Limits{}, usual, 2)
			l := w.keepLedger()
			if !renewed {
				l.rights = tc.rights
			}
			ca, cb := w.pair(plain)
			if renewed {
				l.rights = tc.rights
				w.nodes[1].eng.CheckGrants()
			}
			a, b := w.nodes[0], w.nodes[1]
			own, far := a.memory(size), b.memory(size)
			b.postRecv(cb, b.memory(size).seg(0, size), 1)
			a.post(ca, tc.post(ca, own, far))
			w.until("the completion", 5*time.Second, func() bool { return a.request.Len() > 0 })
			var c Completion
			want := StatusSuccess
			if !tc.ok {
				want = StatusRemoteAccess
			}
			if a.request.Pop(&c); c.Status != want {
				t.Errorf("%s, renewed %v: status %d, want %d", tc.name, renewed, c.Status, want)
			}
		}
	}
}

// TestCheckGrants: connections and requests in all states end when the policy does not permit them any more, and both
// ends of a connection see why.
func TestCheckGrants(t *testing.T) {
	w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: 10 * time.Microsecond}, Limits{}, usual, 2)
	l := w.keepLedger()
	ca, cb := w.pair(plain)
	a, b := w.nodes[0], w.nodes[1]
	undecided, accepting, late := a.host.NewConn(plain), a.host.NewConn(plain), b.host.NewConn(plain)
	w.dial(a, b, accepting, nil)
	w.until("the request", time.Second, func() bool { return len(b.arrived) > 0 })
	w.accept(b, late, nil)
	w.dial(a, b, undecided, nil)
	for len(b.arrived) == 0 {
		w.net.Advance(w.net.Now() + 1000)
		b.eng.Poll(Time(w.net.Now()))
		if undecided.State() == Connecting && accepting.State() == Connecting && a.link != nil {
			a.eng.Poll(Time(w.net.Now()))
		}
	}
	request := b.arrived[0]
	src := b.memory(64)
	a.down = true // what b sends does not arrive before all is checked
	b.post(cb, cb.PostSend(src.seg(0, 64), 1, 0))
	l.denied = DeniedExpired
	b.eng.CheckGrants()
	if got := b.eng.Stats().Revoked; got < 2 {
		t.Errorf("%d revocations", got)
	}
	var c Completion
	if !b.request.Pop(&c) || c.Status != StatusTransport {
		t.Errorf("the request completes with %d", c.Status)
	}
	for b.connect.Pop(&c) {
		if c.Conn == cb && (c.Kind != KindBroken || BreakReason(c.Data) != BreakDenied) {
			t.Errorf("the connection ends with kind %d, reason %d", c.Kind, c.Data)
		}
	}
	if cb.State() != Closed || late.State() != Closed {
		t.Errorf("states %v and %v", cb.State(), late.State())
	}
	if err := b.eng.Forget(request); err != ErrGone {
		t.Errorf("the undecided request: %v, want %v", err, ErrGone)
	}
	a.down = false
	w.until("the end at the peer", 5*time.Second, func() bool { return ca.State() == Closed })
	for a.connect.Pop(&c) {
		if c.Conn == ca && (c.Kind != KindBroken || BreakReason(c.Data) != BreakDenied|BreakByPeer) {
			t.Errorf("the peer sees kind %d, reason %d", c.Kind, c.Data)
		}
	}
	if again := a.host.NewConn(plain); true {
		path, err := a.link.Resolve(b.addr, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.eng.Connect(again, Dial{Path: path, Host: b.addr.Addr(), Qual: service, Timeout: time.Second, Completions: a.completions(), Requester: w.requester()}); err != DeniedExpired {
			t.Errorf("connecting to a peer that is not permitted: %v", err)
		}
	}
	w.run(40 * time.Second)
	a.eng.Close()
	b.eng.Close()
	if l.open != 0 || a.link.Paths()+b.link.Paths() != 0 {
		t.Errorf("%d grants are open, %d paths", l.open, a.link.Paths()+b.link.Paths())
	}
}

// TestGrantHolds: the early packets of a peer take no more memory than its grant allows, and all data arrives.
func TestGrantHolds(t *testing.T) {
	for _, room := range []int{0, 8 * 2048, 1 << 30} {
		w := newSecureWorld(t, simlink.Config{Seed: 8, Delay: 200 * time.Microsecond, Loss: 0.05, FrameSize: 2048}, Limits{}, usual, 2)
		l := w.keepLedger()
		l.room = room
		ca, cb := w.pair(plain)
		a, b := w.nodes[0], w.nodes[1]
		const size = 500_000
		src, dst := a.memory(size).fill(randSource(8)), b.memory(size)
		a.post(ca, ca.PostWrite(src.seg(0, size), 1, dst.at(0), 0))
		w.until("the write", 60*time.Second, func() bool { return a.request.Len() > 0 })
		if l.mostHeld > room || room > 0 && l.mostHeld == 0 {
			t.Errorf("%d bytes were held, at most %d are allowed", l.mostHeld, room)
		}
		if string(dst.mem) != string(src.mem) {
			t.Error("the data is wrong")
		}
		w.over(ca, cb)
		if l.held != 0 || l.open != 0 {
			t.Errorf("%d bytes, %d grants left", l.held, l.open)
		}
	}
}
