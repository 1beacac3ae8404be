package wire

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
)

func TestConnectCarriesPrivateData(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	if err := b.host.Listen(service, b); err != nil {
		t.Fatal(err)
	}
	ca, cb := a.host.NewConn(plain), b.host.NewConn(plain)
	w.dial(a, b, ca, []byte("from active"))
	w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
	if got := string(b.arrived[0].Private); got != "from active" {
		t.Errorf("request carries %q", got)
	}
	w.accept(b, cb, []byte("from passive"))
	w.until("active established", time.Second, func() bool { return ca.State() == Established })
	if cb.State() != Established {
		t.Error("the active side was established before the passive side")
	}
	if got := string(ca.PeerPrivate()); got != "from passive" {
		t.Errorf("accept carries %q", got)
	}
}

func TestDisconnectReachesBothOnce(t *testing.T) {
	for _, graceful := range []bool{false, true} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, cb := w.pair(plain)
		if err := a.eng.Disconnect(ca, graceful); err != nil {
			t.Fatal(err)
		}
		w.until("both closed", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
		w.run(time.Second)
		w.want(a.connect, KindDisconnected)
		w.want(b.connect, KindDisconnected)
		if a.connect.Len()+b.connect.Len() != 0 {
			t.Error("more than one event")
		}
		if a.eng.Connections()+b.eng.Connections() != 0 {
			t.Errorf("%d + %d table entries left", a.eng.Connections(), b.eng.Connections())
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		listen bool
		full   bool
		reject bool
		absent bool
		want   Kind
	}{
		{"no listener", false, false, false, false, KindRefused},
		{"backlog full", true, true, false, false, KindRefused},
		{"rejected", true, false, true, false, KindPeerRejected},
		{"nobody there", false, false, false, true, KindTimedOut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
			a, b := w.nodes[0], w.nodes[1]
			b.refuse = tc.full
			if tc.listen {
				if err := b.host.Listen(service, b); err != nil {
					t.Fatal(err)
				}
			}
			w.net.Partition(a.addr, b.addr, tc.absent)
			c := a.host.NewConn(plain)
			mem := a.memory(64)
			a.postRecv(c, mem.seg(0, 64), 7)
			w.dial(a, b, c, nil)
			if tc.reject {
				w.until("request", time.Second, func() bool { return len(b.arrived) == 1 })
				path, _ := b.link.Resolve(b.arrived[0].From, 1)
				if err := b.eng.Reject(b.arrived[0], path, []byte("sorry")); err != nil {
					t.Fatal(err)
				}
			}
			w.until("refusal", 40*time.Second, func() bool { return c.State() == Closed })
			w.want(a.connect, tc.want)
			var cmp Completion
			if !a.recv.Pop(&cmp) || cmp.Cookie != 7 || cmp.Status != StatusFlushed {
				t.Errorf("posted receive: %+v, want it flushed", cmp)
			}
			if tc.reject && string(c.PeerPrivate()) != "sorry" {
				t.Errorf("reject carries %q", c.PeerPrivate())
			}
			if a.eng.Connections()+b.eng.Connections() != 0 {
				t.Error("table entries left")
			}
		})
	}
}

// An RDMA access that is not allowed must break the connection at both ends and must not change memory.
func TestRemoteAccessErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(b *node, m memory, r *Remote, n *int)
		rights Rights
		zone   uint32
	}{
		{"wrong key", func(_ *node, _ memory, r *Remote, _ *int) { r.Key ^= 1 }, allRights, 1},
		{"revoked key", func(b *node, m memory, _ *Remote, _ *int) { b.host.Unregister(m.Region) }, allRights, 1},
		{"one byte below", func(_ *node, _ memory, r *Remote, _ *int) { r.Addr-- }, allRights, 1},
		{"one byte beyond", func(_ *node, _ memory, r *Remote, _ *int) { r.Addr++ }, allRights, 1},
		{"address wraps 64 bits", func(_ *node, _ memory, r *Remote, _ *int) { r.Addr = 1<<64 - 8 }, allRights, 1},
		{"no right", func(*node, memory, *Remote, *int) {}, LocalRead | LocalWrite | RemoteRead, 1},
		{"other zone", func(*node, memory, *Remote, *int) {}, allRights, 2},
	} {
		for _, op := range []Op{OpWrite, OpRead} {
			t.Run(fmt.Sprintf("%s/%d", tc.name, op), func(t *testing.T) {
				w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
				a, b := w.nodes[0], w.nodes[1]
				ca, _ := w.pair(plain)
				n := 64
				rights := tc.rights
				if op == OpRead && tc.name == "no right" {
					rights = rights&^RemoteRead | RemoteWrite
				}
				dst := bytes.Repeat([]byte{0xaa}, n)
				reg, err := b.host.Register(dst, 0x2000, tc.zone, rights)
				if err != nil {
					t.Fatal(err)
				}
				to := Remote{Key: reg.remote, Addr: reg.base}
				tc.change(b, memory{reg, dst}, &to, &n)
				src := a.memory(n)
				good := b.memory(n)
				a.post(ca, ca.PostWrite(src.seg(0, n), 1, good.at(0), 0)) // a valid write in the same packet, before the wrong one
				if op == OpWrite {
					a.post(ca, ca.PostWrite(src.seg(0, n), 2, to, 0))
				} else {
					a.post(ca, ca.PostRead(src.seg(0, n), 2, to, uint32(n), 0))
				}
				a.post(ca, ca.PostWrite(src.seg(0, n), 3, good.at(0), 0))
				w.until("the connection to break", time.Second, func() bool { return ca.State() == Closed })
				w.run(100 * time.Millisecond)
				for cookie, want := range []Status{1: StatusSuccess, 2: StatusRemoteAccess, 3: StatusFlushed} {
					var c Completion
					if cookie > 0 && (!a.request.Pop(&c) || c.Cookie != uint64(cookie) || c.Status != want) {
						t.Errorf("request %d: %+v, want status %d", cookie, c, want)
					}
				}
				w.want(a.connect, KindBroken)
				w.want(b.connect, KindBroken)
				if !bytes.Equal(dst, bytes.Repeat([]byte{0xaa}, n)) {
					t.Error("memory was touched")
				}
			})
		}
	}
}

func TestMessageLongerThanReceive(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	src, dst := a.memory(128), b.memory(128)
	b.postRecv(cb, dst.seg(0, 64), 1)
	b.postRecv(cb, dst.seg(64, 64), 2)
	a.post(ca, ca.PostSend(src.seg(0, 65), 9, 0))
	w.until("the connection to break", time.Second, func() bool { return ca.State() == Closed })
	var c Completion
	if !a.request.Pop(&c) || c.Status != StatusRemoteResponder {
		t.Errorf("send: %+v", c)
	}
	if !b.recv.Pop(&c) || c.Status != StatusLocalLength || c.Cookie != 1 {
		t.Errorf("receive 1: %+v", c)
	}
	if !b.recv.Pop(&c) || c.Status != StatusFlushed || c.Cookie != 2 {
		t.Errorf("receive 2: %+v", c)
	}
	w.want(a.connect, KindBroken)
	w.want(b.connect, KindBroken)
}

func TestSendWaitsForReceive(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond, Loss: 0.2, Seed: 3}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	a.post(ca, ca.PostSend(src.seg(0, 64), 9, 0))
	w.run(3 * time.Second)
	if a.request.Len() != 0 || ca.State() != Established {
		t.Fatal("a send completed, or broke, without a receive")
	}
	b.postRecv(cb, dst.seg(0, 64), 1)
	w.until("the message", time.Second, func() bool { return b.recv.Len() == 1 && a.request.Len() == 1 })
}

func TestPeerThatVanishes(t *testing.T) {
	w := newWorldOf(t, simlink.Config{Delay: time.Microsecond}, Limits{GiveUp: 2 * time.Second}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, _ := w.pair(plain)
	src, dst := a.memory(64), b.memory(64)
	w.net.Partition(a.addr, b.addr, true)
	a.post(ca, ca.PostWrite(src.seg(0, 64), 1, dst.at(0), 0))
	w.until("the connection to break", 4*time.Second, func() bool { return ca.State() == Closed })
	var c Completion
	if !a.request.Pop(&c) || c.Status != StatusTransport {
		t.Errorf("write: %+v", c)
	}
	w.want(a.connect, KindBroken)
	w.until("the idle side to notice", 20*time.Second, func() bool { return b.connect.Len() == 1 })
	w.want(b.connect, KindBroken)
}

// A connection may have both its ends on one engine.
func TestConnectToSelf(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 1)
	n := w.nodes[0]
	if err := n.host.Listen(service, n); err != nil {
		t.Fatal(err)
	}
	ca, cb := n.host.NewConn(plain), n.host.NewConn(plain)
	w.dial(n, n, ca, []byte("me"))
	w.until("request", time.Second, func() bool { return len(n.arrived) == 1 })
	w.accept(n, cb, nil)
	w.until("establishment", time.Second, func() bool { return ca.State() == Established && cb.State() == Established })
	src, dst := n.memory(5000), n.memory(5000)
	for i := range src.mem {
		src.mem[i] = byte(i * 7)
	}
	n.post(ca, ca.PostWrite(src.seg(0, 5000), 1, dst.at(0), 0))
	n.postRecv(cb, dst.seg(0, 8), 2)
	n.post(ca, ca.PostSend(nil, 3, 0))
	w.until("work", time.Second, func() bool { return n.request.Len() == 2 && n.recv.Len() == 1 })
	if !bytes.Equal(src.mem, dst.mem) {
		t.Error("wrong bytes")
	}
	if err := n.eng.Disconnect(cb, false); err != nil {
		t.Fatal(err)
	}
	w.until("the disconnect", time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	w.run(time.Second)
	if n.eng.Connections() != 0 {
		t.Errorf("%d table entries left", n.eng.Connections())
	}
}
