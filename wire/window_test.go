package wire

import (
	"bytes"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// bind binds a window to size bytes of a node's memory and waits for the completion.
func (w *world) bind(n *node, c *Conn, win *Window, m memory, off, size int, rights Rights) uint32 {
	w.t.Helper()
	key, err := c.PostBind(win, m.Region, m.base+uint64(off), uint32(size), rights, 9, Suppress)
	n.post(c, err)
	w.until("the bind", time.Second, func() bool { return c.sq.empty() })
	return key
}

// kept returns the number of windows that are bound to the region.
func (m memory) kept() int { return int(m.pins.Load()) }

// On a bad network, one side binds a window and sends its key in a message. The peer writes through the window, and
// then sends a message that invalidates the window. When this message completes, the written bytes must be in place and
// the window must be unbound. Each round uses its own window. Meanwhile epoch changes cut the outstanding data into new
// packets.
func TestWindowForEachMessage(t *testing.T) {
	const rounds = 60
	for seed := range uint64(20) {
		w := newWorld(t, simlink.Config{Seed: seed, Delay: 10 * time.Microsecond, MTU: 3000, Loss: 0.05, Duplicate: 0.05, Reorder: 0.1}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, cb := w.pair(plain)
		ma, mb := a.memory(rounds*64), b.memory(rounds*64)
		var wins []*Window
		for i := range rounds {
			wins = append(wins, a.host.NewWindow(1, i%2 == 0, nil))
		}
		posted, answered, done := 0, 0, 0
		for steps := 0; done < rounds; steps++ {
			for ; posted < rounds && posted-done < 20; posted++ {
				off := posted * 64
				key, err := ca.PostBind(wins[posted], ma.Region, ma.base+uint64(off), 32, RemoteWrite, 1, 0)
				a.post(ca, err)
				binary.BigEndian.PutUint32(ma.mem[off+32:], key)
				b.postRecv(cb, mb.seg(off, 4), uint64(posted))
				a.postRecv(ca, nil, uint64(posted))
				a.post(ca, ca.PostSend(ma.seg(off+32, 4), 2, 0))
			}
			for e := (Completion{}); b.recv.Pop(&e); answered++ {
				off := answered * 64
				key := binary.BigEndian.Uint32(mb.mem[off:])
				copy(mb.mem[off+32:], bytes.Repeat([]byte{byte(answered + 1)}, 32))
				b.post(cb, cb.PostWrite(mb.seg(off+32, 32), 3, Remote{Key: key, Addr: ma.base + uint64(off)}, Suppress))
				b.post(cb, cb.PostSendInvalidate(nil, 4, key, 0))
			}
			for e := (Completion{}); a.recv.Pop(&e); done++ {
				off := done * 64
				if e.Op != OpRecvInvalidate || e.Data != binary.BigEndian.Uint32(ma.mem[off+32:]) || e.Status != StatusSuccess {
					t.Fatalf("seed %d: receive %d is %+v", seed, done, e)
				}
				if _, bound := wins[done].Binding(); bound || !bytes.Equal(ma.mem[off:off+32], bytes.Repeat([]byte{byte(done + 1)}, 32)) {
					t.Fatalf("seed %d: round %d: bound is %v, memory %x", seed, done, bound, ma.mem[off:off+32])
				}
			}
			if steps%50 == 0 && !ca.sent.Empty() && !ca.epoch.changing {
				ca.changeEpoch()
			}
			if !w.step() && done < rounds {
				t.Fatalf("seed %d: round %d of %d, and nothing happens any more", seed, done, rounds)
			}
		}
		w.until("the last requests", time.Minute, func() bool { return ca.sq.empty() && cb.sq.empty() })
		if got := w.drain(a.request); got != 2*rounds {
			t.Errorf("seed %d: %d completions", seed, got)
		}
		if ma.kept() != 0 {
			t.Errorf("seed %d: %d windows keep the region", seed, ma.kept())
		}
	}
}

// The peer does not count binds. The request that it refuses must be the one that fails, wherever binds are posted.
func TestBlameBetweenBinds(t *testing.T) {
	for _, script := range []string{"x", "bx", "wx", "wbx", "bwbbxb", "bbwwbbwbxbwb", "xbw", "wwwwwbbbbbx"} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
		a, b := w.nodes[0], w.nodes[1]
		ca, _ := w.pair(plain)
		src, dst := a.memory(64), b.memory(64)
		win := a.host.NewWindow(1, false, nil)
		for i, what := range script {
			var err error
			switch what {
			case 'b':
				_, err = ca.PostBind(win, src.Region, src.base, 8, RemoteRead, uint64(i), 0)
			case 'w':
				err = ca.PostWrite(src.seg(0, 8), uint64(i), dst.at(0), 0)
			case 'x':
				err = ca.PostWrite(src.seg(0, 8), uint64(i), Remote{}, 0)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		a.eng.Kick(ca)
		w.until("the end", time.Second, func() bool { return ca.State() == Closed })
		bad := bytes.IndexByte([]byte(script), 'x')
		for i := range script {
			want := StatusSuccess
			switch {
			case i == bad:
				want = StatusRemoteAccess
			case i > bad:
				want = StatusFlushed
			}
			var e Completion
			if !a.request.Pop(&e) || e.Cookie != uint64(i) || e.Status != want {
				t.Errorf("%s: request %d ended as %+v, want status %d", script, i, e, want)
			}
		}
		if _, bound := win.Binding(); bound != (src.kept() == 1) || src.kept() > 1 {
			t.Errorf("%s: bound %v, and %d windows keep the region", script, bound, src.kept())
		}
	}
}

// Binds must free everything, however they end.
func TestBindsLeaveNothing(t *testing.T) {
	for name, end := range map[string]func(w *world, c *Conn) error{
		"disconnect": func(w *world, c *Conn) error { return w.nodes[0].eng.Disconnect(c, false) },
		"drop":       func(w *world, c *Conn) error { w.nodes[0].eng.Drop(c); return nil },
		"close":      func(w *world, _ *Conn) error { w.nodes[0].eng.Close(); return nil },
		"crash of the peer": func(w *world, c *Conn) error {
			w.crash(w.nodes[1])
			w.run(time.Minute)
			return nil
		},
		"a Close that names a request which was not sent": func(w *world, c *Conn) error {
			w.nodes[0].post(c, c.PostSend(nil, 0, 0))
			c.peerClosed(&proto.Header{}, &proto.Goodbye{Reason: proto.ReasonAccess, Num: 1})
			for e := (Completion{}); w.nodes[0].request.Pop(&e); {
				if e.Status != StatusFlushed {
					w.t.Errorf("%+v was never executed", e)
				}
			}
			return nil
		},
	} {
		w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
		a := w.nodes[0]
		ca, _ := w.pair(plain)
		src := a.memory(64)
		win, other := a.host.NewWindow(1, false, nil), a.host.NewWindow(1, true, nil)
		w.bind(a, ca, win, src, 0, 8, RemoteRead)
		a.post(ca, ca.PostSend(nil, 0, 0)) // there is no receive, so the following requests wait
		for range 5 {
			for _, win := range []*Window{win, other} {
				_, err := ca.PostBind(win, src.Region, src.base, 8, RemoteRead, 0, 0)
				a.post(ca, err)
			}
		}
		if src.kept() != 11 || src.Retire() {
			t.Errorf("%s: %d windows keep the region, want 11", name, src.kept())
		}
		if err := end(w, ca); err != nil {
			t.Fatal(err)
		}
		if src.kept() != 1 {
			t.Errorf("%s: %d windows keep the region, want 1", name, src.kept())
		}
		win.Free()
		other.Free()
		if used, free := a.host.regions.Counts(); used-free != 1 || !src.Retire() {
			t.Errorf("%s: %d slots, %d of them free, one has a region", name, used, free)
		}
	}
}

// A bind must be executed at once even if nothing can be sent.
func TestBindNeedsNoPacket(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	ca, _ := w.pair(plain)
	src := a.memory(64)
	win := a.host.NewWindow(1, false, nil)
	ca.sent.Limit = 0 // the peer's receive window is full
	sent := a.eng.Stats().TxPackets
	key, err := ca.PostBind(win, src.Region, src.base, 8, RemoteRead, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	a.eng.Kick(ca)
	a.eng.Poll(Time(w.net.Now()))
	var e Completion
	if !a.request.Pop(&e) || e.Op != OpBind || e.Window != win || e.Cookie != 5 || e.Status != StatusSuccess {
		t.Errorf("completion %+v", e)
	}
	if got, bound := win.Binding(); !bound || got != (Binding{Key: key, Context: src.local, Address: src.base, Length: 8, Rights: RemoteRead}) {
		t.Errorf("bound %v to %+v", bound, got)
	}
	if n := a.eng.Stats().TxPackets - sent; n != 0 {
		t.Errorf("%d packets left", n)
	}
}

// A lookup of a window key during a rebind must find the binding of that key or nothing.
func TestWindowReadersAndBinds(t *testing.T) {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	ca, _ := w.pair(plain)
	src := a.memory(1 << 16)
	win := a.host.NewWindow(1, false, nil)
	var last atomic.Uint64 // key and offset
	var stop atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for !stop.Load() {
				key, off := uint32(last.Load()>>32), last.Load()&0xffff
				if v := last.Load(); uint32(v>>32) != key || v&0xffff != off {
					continue
				}
				b := a.host.regions.binding(a.host.keys.Decrypt(key))
				mem, err := b.findMemory(ca, key, src.base+off, 8, RemoteRead)
				if err == nil && &mem[0] != &src.mem[off] || err != nil && err != ErrBadKey {
					t.Errorf("key %#x: %v", key, err)
					return
				}
				if got, bound := win.Binding(); bound && got.Context != src.local {
					t.Errorf("bound to %+v", got)
					return
				}
			}
		})
	}
	for i := range 20000 {
		off := i * 8 % (1 << 16)
		key, err := ca.PostBind(win, src.Region, src.base+uint64(off), 8, RemoteRead, 0, Suppress)
		if err != nil {
			t.Fatal(err)
		}
		last.Store(uint64(key)<<32 | uint64(off))
		a.eng.Kick(ca)
		a.eng.Poll(Time(w.net.Now()))
		if i%3 == 0 {
			a.host.unbind(a.host.keys.Decrypt(key))
		}
	}
	stop.Store(true)
	readers.Wait()
	win.Free()
	if src.kept() != 0 {
		t.Errorf("%d windows keep the region", src.kept())
	}
}

// engines runs a benchmark of hosts with one engine, and of hosts with two engines of which one is idle.
func engines(b *testing.B, f func(b *testing.B, w *world)) {
	for n, name := range []string{"one engine", "two engines"} {
		b.Run(name, func(b *testing.B) {
			w := benchWorld(b, 1472)
			for i := range n * len(w.nodes) {
				if _, err := w.nodes[i].host.NewEngine(w.net.Link(netipOf(uint32(8+i))), 0); err != nil {
					b.Fatal(err)
				}
			}
			f(b, w)
		})
	}
}

// The time of one bind, until it completes.
func BenchmarkBind(b *testing.B) {
	engines(b, func(b *testing.B, w *world) {
		n0 := w.nodes[0]
		ca, _ := w.pair(deep)
		m := n0.memory(64)
		win := n0.host.NewWindow(1, false, nil)
		b.ReportAllocs()
		for b.Loop() {
			_, err := ca.PostBind(win, m.Region, m.base, 64, RemoteWrite, 0, 0)
			n0.post(ca, err)
			n0.eng.Poll(Time(w.net.Now()))
			w.drain(n0.request)
		}
	})
}

// Like BenchmarkWrite1400, but through a window.
func BenchmarkWriteWindow1400(b *testing.B) {
	engines(b, func(b *testing.B, w *world) {
		n0, n1 := w.nodes[0], w.nodes[1]
		ca, cb := w.pair(deep)
		const size = 1400
		src, dst := n0.memory(size), n1.memory(size)
		key := w.bind(n1, cb, n1.host.NewWindow(1, false, nil), dst, 0, size, RemoteWrite)
		benchWrites(b, w, ca, src.seg(0, size), Remote{Key: key, Addr: dst.base})
	})
}
