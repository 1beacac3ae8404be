package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
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

// An RDMA access that is not allowed ends that connection at both sides and touches nothing.
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
				a.post(ca, ca.PostWrite(src.seg(0, n), 1, good.at(0), 0)) // before it, in the same packet
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
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
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

// Random work over random networks: every message arrives once, in order and whole; every write and
// read moves the right bytes; every request completes once, in posting order; nothing is left over.
func TestRandomWork(t *testing.T) {
	seeds := 40
	if s, err := strconv.Atoi(os.Getenv("DATXDP_SEEDS")); err == nil {
		seeds = s
	}
	failed := 0
	for seed := range uint64(seeds) {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) { randomWork(t, seed) })
		if !ok {
			failed++
			fmt.Printf("seed %d failed; again with: go test ./wire -run 'TestRandomWork/^%d$'\n", seed, seed)
		}
	}
	fmt.Printf("%d seeds, %d failures\n", seeds, failed)
}

func randomWork(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 99))
	cfg := simlink.Config{Seed: seed, Delay: time.Duration(r.IntN(100_000)), MTU: 1472, QueueFrames: 256}
	if seed%4 != 0 {
		cfg.Loss, cfg.Duplicate, cfg.Reorder = r.Float64()*0.1, r.Float64()*0.05, r.Float64()*0.1
		cfg.Corrupt = r.Float64() * 0.02
	}
	if seed%3 == 0 {
		cfg.MTU, cfg.FrameSize, cfg.RxFrameSize = 9000, 2048, 300+r.IntN(1500)
	}
	w := newWorld(t, cfg, 2)
	ca, cb := w.pair(plain)
	const size = 1 << 17
	a, b := w.nodes[0], w.nodes[1]
	flows := []*flow{newFlow(w, r, a, b, ca, cb, size), newFlow(w, r, b, a, cb, ca, size)}
	for range 150 {
		for _, f := range flows {
			f.act()
		}
		for range 1 + r.IntN(4) {
			w.step()
		}
		flows[0].check(flows[1])
		flows[1].check(flows[0])
	}
	w.until("all work to complete", time.Minute, func() bool {
		flows[0].check(flows[1])
		flows[1].check(flows[0])
		return flows[0].idle() && flows[1].idle()
	})
	if !bytes.Equal(flows[0].target.mem, flows[0].model) || !bytes.Equal(flows[1].target.mem, flows[1].model) {
		t.Fatal("remote memory differs from the model")
	}
	if err := a.eng.Disconnect(ca, true); err != nil {
		t.Fatal(err)
	}
	w.until("both to disconnect", 10*time.Second, func() bool { return ca.State() == Closed && cb.State() == Closed })
	w.run(2 * time.Second)
	for _, n := range w.nodes {
		if n.eng.Connections() != 0 || n.eng.held != 0 || n.eng.wheel.Len() != 0 {
			t.Errorf("left over: %d connections, %d frames, %d timers", n.eng.Connections(), n.eng.held, n.eng.wheel.Len())
		}
		n.eng.Close()
		if got := n.link.Outstanding(); got != 0 {
			t.Errorf("%d frames not returned", got)
		}
	}
}

// flow is the work in one direction and its model.
type flow struct {
	w          *world
	r          *rand.Rand
	from, to   *node
	c, peer    *Conn
	src        memory // random bytes, never changed
	sink       memory // where reads go, by cookie
	target     memory // what writes change at the peer
	model      []byte
	source     memory // what reads find at the peer, never changed
	inbox      memory // receives
	sent       [][]byte
	posted     uint64
	completed  uint64
	received   int
	recvPosted uint64
	reads      map[uint64][2]int
}

const (
	slotSize = 8192
	nslots   = 16
)

func newFlow(w *world, r *rand.Rand, from, to *node, c, peer *Conn, size int) *flow {
	f := &flow{w: w, r: r, from: from, to: to, c: c, peer: peer, reads: map[uint64][2]int{},
		src: from.memory(size), sink: from.memory(64 * slotSize), target: to.memory(size),
		source: to.memory(size), inbox: to.memory(nslots * slotSize)}
	for _, m := range [][]byte{f.src.mem, f.source.mem} {
		for i := range m {
			m[i] = byte(r.Uint32())
		}
	}
	f.model = make([]byte, size)
	return f
}

// split cuts a range into up to 3 segments.
func (f *flow) split(m memory, off, n int) []Segment {
	var s []Segment
	for len(s) < 2 && n > 1 && f.r.IntN(2) == 0 {
		k := f.r.IntN(n)
		s = append(s, m.seg(off, k)...)
		off, n = off+k, n-k
	}
	return append(s, m.seg(off, n)...)
}

func (f *flow) length() int {
	if f.r.IntN(2) == 0 {
		return f.r.IntN(200)
	}
	return f.r.IntN(slotSize)
}

func (f *flow) act() {
	for f.recvPosted < uint64(f.received+nslots) && f.r.IntN(4) != 0 {
		off := int(f.recvPosted%nslots) * slotSize
		if f.to.postRecv(f.peer, f.split(f.inbox, off, slotSize), f.recvPosted) {
			f.recvPosted++
		}
	}
	for range f.r.IntN(8) {
		n := f.length()
		off := f.r.IntN(len(f.src.mem) - n)
		flags := WorkFlags(0)
		if f.r.IntN(8) == 0 {
			flags = Fence
		}
		var err error
		var done func()
		switch f.r.IntN(3) {
		case 0:
			err = f.c.PostSend(f.split(f.src, off, n), f.posted, flags)
			done = func() { f.sent = append(f.sent, f.src.mem[off:off+n]) }
		case 1:
			dst := f.r.IntN(len(f.model) - n)
			err = f.c.PostWrite(f.split(f.src, off, n), f.posted, f.target.at(dst), flags)
			done = func() { copy(f.model[dst:], f.src.mem[off:off+n]) }
		default:
			slot := int(f.posted%64) * slotSize
			err = f.c.PostRead(f.split(f.sink, slot, n), f.posted, f.source.at(off), uint32(n), flags)
			done = func() { f.reads[f.posted] = [2]int{off, n} }
		}
		if !f.from.post(f.c, err) {
			return
		}
		done()
		f.posted++
	}
}

// check takes completions out and compares; back is the flow in the other direction, whose receives
// complete at the same node as our requests.
func (f *flow) check(back *flow) {
	t := f.w.t
	var c Completion
	for f.from.request.Pop(&c) {
		if c.Status != StatusSuccess || c.Cookie != f.completed {
			t.Fatalf("seed %d: request completion %+v, want cookie %d", f.w.seed, c, f.completed)
		}
		if rd, ok := f.reads[c.Cookie]; ok {
			slot := int(c.Cookie%64) * slotSize
			if !bytes.Equal(f.sink.mem[slot:slot+rd[1]], f.source.mem[rd[0]:rd[0]+rd[1]]) {
				t.Fatalf("seed %d: read %d brought wrong bytes", f.w.seed, c.Cookie)
			}
			delete(f.reads, c.Cookie)
		}
		f.completed++
	}
	for f.from.recv.Pop(&c) {
		if c.Status != StatusSuccess || c.Cookie != uint64(back.received) {
			t.Fatalf("seed %d: receive completion %+v, want cookie %d", f.w.seed, c, back.received)
		}
		off := back.received % nslots * slotSize
		want := back.sent[back.received]
		if got := back.inbox.mem[off : off+int(c.Length)]; !bytes.Equal(got, want) {
			t.Fatalf("seed %d: message %d: %d bytes differ from the %d sent", f.w.seed, back.received, len(got), len(want))
		}
		back.received++
	}
}

func (f *flow) idle() bool {
	for f.recvPosted < uint64(len(f.sent)) {
		off := int(f.recvPosted%nslots) * slotSize
		if f.recvPosted >= uint64(f.received+nslots) || !f.to.postRecv(f.peer, f.inbox.seg(off, slotSize), f.recvPosted) {
			break
		}
		f.recvPosted++
	}
	return f.completed == f.posted && f.received == len(f.sent)
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
