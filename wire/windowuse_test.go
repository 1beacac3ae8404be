package wire

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/link"
)

// midPoll is a link that calls a function once in the middle of a Poll: free when the engine frees frames and the
// memory placed is not 0 any more, and send when the engine sends frames.
type midPoll struct {
	link.Link
	placed     []byte
	free, send func()
}

func call(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

func (l *midPoll) Free(b []link.Buf) {
	if !bytes.Equal(l.placed, make([]byte, len(l.placed))) {
		call(&l.free)
	}
	l.Link.Free(b)
}

func (l *midPoll) Send(b []link.Buf) {
	call(&l.send)
	l.Link.Send(b)
}

// twoEngines is a world with a host that has the engines of nodes a and b, and a peer.
type twoEngines struct {
	*world
	a, b, peer         *node
	ca, beside, cb     *Conn // connections of the host: two of a, one of b
	toA, toBeside, toB *Conn // their other ends at the peer
	mem, src           memory
	stop               *midPoll // link of b
}

func newTwoEngines(t testing.TB) *twoEngines {
	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	x := &twoEngines{world: w, a: w.nodes[0], peer: w.nodes[1]}
	x.b = &node{t: t, host: x.a.host, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 9}), 17473)}
	x.b.link = w.net.Link(x.b.addr)
	x.b.recv, x.b.request, x.b.connect = NewQueue(64, nil, nil), NewQueue(64, nil, nil), NewQueue(64, nil, nil)
	x.stop = &midPoll{Link: x.b.link}
	var err error
	if x.b.eng, err = x.a.host.NewEngine(x.stop, Time(w.net.Now())); err != nil {
		t.Fatal(err)
	}
	x.ca, x.toA = w.pair(plain)
	x.beside, x.toBeside = w.pair(plain)
	w.nodes[0] = x.b
	x.cb, x.toB = w.pair(plain)
	w.nodes = []*node{x.a, x.peer, x.b}
	x.mem, x.src = x.a.memory(64), x.peer.memory(64).fill(randSource(1))
	x.stop.placed = x.mem.mem
	return x
}

// window binds a window of the host to the memory.
func (x *twoEngines) window() (*Window, Remote) {
	win := x.a.host.NewWindow(1, false, nil)
	return win, Remote{Key: x.bind(x.a, x.ca, win, x.mem, 0, 64, RemoteRead|RemoteWrite|RemoteAtomic), Addr: x.mem.base}
}

// whileStopped runs the rest of the world for the virtual time d, while the engine of b is in the middle of a Poll.
func (x *twoEngines) whileStopped(d time.Duration) {
	x.b.down = true
	x.run(d)
	x.b.down = false
}

// uses makes engine b use the memory behind a window's key. The function stopped runs in the middle of b's Poll.
var uses = map[string]func(x *twoEngines, at Remote, stopped func()){
	"a write": func(x *twoEngines, at Remote, stopped func()) {
		x.stop.free = stopped
		x.peer.post(x.toB, x.toB.PostWrite(x.src.seg(0, 64), 1, at, Suppress))
	},
	"a write with immediate data": func(x *twoEngines, at Remote, stopped func()) {
		x.b.postRecv(x.cb, nil, 0)
		x.stop.free = stopped
		x.peer.post(x.toB, x.toB.PostWriteImm(x.src.seg(0, 64), 1, at, 7, Suppress))
	},
	"an atomic": func(x *twoEngines, at Remote, stopped func()) {
		x.stop.free = stopped
		x.peer.post(x.toB, x.toB.PostFetchAdd(1, x.src.seg(0, 8)[0], 1, at, Suppress))
	},
	"a read": func(x *twoEngines, at Remote, stopped func()) {
		x.stop.send = stopped
		x.peer.post(x.toB, x.toB.PostRead(x.src.seg(0, 64), 1, at, 64, Suppress))
	},
	"a read into the window": func(x *twoEngines, at Remote, stopped func()) {
		x.stop.free = stopped
		to := WindowRange{Key: at.Key, Addr: at.Addr, Length: 64}
		x.b.post(x.cb, x.cb.PostReadToWindow(to, 1, x.src.at(0), 64, Suppress))
	},
}

// popAll pops all completions and returns their cookies.
func popAll(t *testing.T, q *Queue) (cookies []uint64) {
	t.Helper()
	for e := (Completion{}); q.Pop(&e); {
		if e.Status != StatusSuccess {
			t.Errorf("%+v failed", e)
		}
		cookies = append(cookies, e.Cookie)
	}
	return cookies
}

func equal(t *testing.T, what string, got []uint64, want ...uint64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: completions %d, want %d", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: completions %d, want %d", what, got, want)
		}
	}
}

// While another engine uses a window, the receive that has invalidated the window must not complete, nor any later
// completion of its connection. Other connections go on, and the engine must not ask for one Poll after the other.
func TestSendInvWaitsForOtherEngine(t *testing.T) {
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			x := newTwoEngines(t)
			win, at := x.window()
			for i := range 4 {
				x.a.postRecv(x.ca, nil, uint64(i))
			}
			x.a.postRecv(x.beside, nil, 10)
			x.postRecvs(x.toA, 3)
			stopped := false
			use(x, at, func() {
				stopped = true
				x.peer.post(x.toA, x.toA.PostSend(nil, 0, Suppress))
				x.peer.post(x.toA, x.toA.PostSendInvalidate(nil, 0, at.Key, Suppress))
				x.peer.post(x.toA, x.toA.PostSend(nil, 0, Suppress))
				x.peer.post(x.toBeside, x.toBeside.PostSend(nil, 0, Suppress))
				x.whileStopped(time.Millisecond)
				x.a.post(x.ca, x.ca.PostSend(nil, 20, 0))
				x.peer.post(x.toA, x.toA.PostSend(nil, 0, Suppress))
				polls := x.a.eng.Stats().Polls
				x.whileStopped(10 * time.Millisecond)
				if polls = x.a.eng.Stats().Polls - polls; polls > 2*10*uint64(time.Millisecond/windowRetry) {
					t.Errorf("%d polls in 10 ms", polls)
				}
				equal(t, "receives, other engine stopped", popAll(t, x.a.recv), 0, 10)
				equal(t, "requests, other engine stopped", popAll(t, x.a.request))
				if _, bound := win.Binding(); bound || !x.toA.sq.empty() {
					t.Error("the window is bound, or the peer has no acknowledgement")
				}
			})
			x.until("the stop", time.Second, func() bool { return stopped })
			x.until("the completions", time.Second, func() bool { return x.a.recv.Len() == 3 && x.a.request.Len() == 1 })
			equal(t, "receives", popAll(t, x.a.recv), 1, 2, 3)
			equal(t, "requests", popAll(t, x.a.request), 20)
			if x.ca.State() != Established || len(x.a.eng.waits) != 0 {
				t.Errorf("state %v, %d waits", x.ca.State(), len(x.a.eng.waits))
			}
		})
	}
}

// postRecvs posts n receives at the peer.
func (x *twoEngines) postRecvs(c *Conn, n int) {
	for range n {
		x.peer.postRecv(c, nil, 0)
	}
}

// While another engine uses the old key of a window, a bind of the window must not complete, and requests after it must
// not be sent. Other connections go on.
func TestBindWaitsForOtherEngine(t *testing.T) {
	for name, use := range uses {
		for size, how := range map[uint32]string{0: "unbind", 8: "rebind"} {
			t.Run(name+", "+how, func(t *testing.T) {
				x := newTwoEngines(t)
				win, at := x.window()
				x.postRecvs(x.toA, 2)
				x.postRecvs(x.toBeside, 1)
				stopped := false
				use(x, at, func() {
					stopped = true
					x.a.post(x.ca, x.ca.PostSend(nil, 0, 0))
					_, err := x.ca.PostBind(win, x.mem.Region, x.mem.base, size, RemoteRead, 1, 0)
					x.a.post(x.ca, err)
					x.a.post(x.ca, x.ca.PostSend(nil, 2, 0))
					x.a.post(x.beside, x.beside.PostSend(nil, 10, 0))
					polls := x.a.eng.Stats().Polls
					x.whileStopped(10 * time.Millisecond)
					if polls = x.a.eng.Stats().Polls - polls; polls > 2*10*uint64(time.Millisecond/windowRetry) {
						t.Errorf("%d polls in 10 ms", polls)
					}
					equal(t, "requests, other engine stopped", popAll(t, x.a.request), 0, 10)
					if n := x.drain(x.peer.recv); n != 2 {
						t.Errorf("%d messages arrived, want 2", n)
					}
				})
				x.until("the stop", time.Second, func() bool { return stopped })
				x.until("the completions", time.Second, func() bool { return x.a.request.Len() == 2 })
				equal(t, "requests", popAll(t, x.a.request), 1, 2)
				if n := x.drain(x.peer.recv); n != 1 || len(x.a.eng.waits) != 0 {
					t.Errorf("%d messages arrived, %d waits", n, len(x.a.eng.waits))
				}
			})
		}
	}
}

// A bind waits for an old key that SendInv, or a bind that failed, has made invalid before.
func TestBindWaitsForKeyInvalidatedBefore(t *testing.T) {
	x := newTwoEngines(t)
	win, at := x.window()
	x.a.host.unbind(x.a.host.keys.Decrypt(at.Key))
	x.b.eng.usedKey.Store(at.Key)
	_, err := x.ca.PostBind(win, x.mem.Region, x.mem.base, 8, RemoteRead, 1, 0)
	x.a.post(x.ca, err)
	x.run(time.Millisecond)
	equal(t, "while the other engine uses the key", popAll(t, x.a.request))
	if wait := x.a.eng.Next().Sub(x.a.eng.now); wait <= 0 || wait > windowRetry {
		t.Errorf("the engine asks to be polled in %v, want %v at most", wait, windowRetry)
	}
	x.b.eng.usedKey.Store(0)
	x.run(time.Millisecond)
	equal(t, "afterwards", popAll(t, x.a.request), 1)
}

// An engine announces the window that it uses until the end of the Poll, unless the key is refused. It announces nothing
// if the host has no other engine.
func TestAnnouncedWindow(t *testing.T) {
	x := newTwoEngines(t)
	_, at := x.window()
	_, other := x.window()
	var got uint32
	write := func(to Remote) uint32 {
		got = 0
		x.stop.free = func() { got = x.b.eng.usedKey.Load() }
		x.mem.mem[0] = 1
		x.peer.post(x.toB, x.toB.PostWrite(x.src.seg(0, 8), 0, to, Suppress))
		x.run(time.Millisecond)
		if key := x.b.eng.usedKey.Load(); key != 0 {
			t.Errorf("key %#x is announced after the Poll", key)
		}
		return got
	}
	for _, to := range []Remote{at, other, at} {
		if got := write(to); got != to.Key {
			t.Errorf("key %#x is announced, want %#x", got, to.Key)
		}
	}
	if got := write(x.mem.at(0)); got != 0 {
		t.Errorf("key %#x is announced for a region", got)
	}
	if got := write(Remote{Key: at.Key, Addr: at.Addr + 1000}); got != 0 || x.cb.State() != Closed {
		t.Errorf("key %#x is announced for a refused write, and the connection is %v", got, x.cb.State())
	}

	w := newWorld(t, simlink.Config{Delay: time.Microsecond}, 2)
	a := w.nodes[0]
	ca, _ := w.pair(plain)
	key := w.bind(a, ca, a.host.NewWindow(1, false, nil), a.memory(64), 0, 64, RemoteWrite)
	a.eng.useWindow(key)
	if key := a.eng.usedKey.Load(); key != 0 {
		t.Errorf("the only engine announces key %#x", key)
	}
}
