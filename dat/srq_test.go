package dat

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/datxdp/datxdp/link"
)

// common has a shared receive queue and the memory of its receives. The receive with cookie i uses place i.
type common struct {
	*SRQ
	t    testing.TB
	host *host
	recv *EVD // of the endpoints
	lmr  *LMR
	mem  []byte
	size int // bytes of a place
}

// common makes a shared receive queue of n receives.
func (h *host) common(n, size int) *common {
	t := h.t
	t.Helper()
	c := &common{t: t, host: h, mem: make([]byte, n*size), size: size}
	c.recv = must(h.ia.CreateEVD(1024, nil, EVDDTO))(t)
	c.lmr = must(h.ia.CreateLMR(c.mem, h.pz, MemAll))(t)
	c.SRQ = must(h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: n}))(t)
	return c
}

// post posts receives with consecutive cookies.
func (c *common) post(from, to int) {
	c.t.Helper()
	for i := from; i < to; i++ {
		ok(c.t, c.PostRecv([]LMRTriplet{c.lmr.Segment(i*c.size, c.size)}, uint64(i)))
	}
}

// place returns the memory of a receive.
func (c *common) place(cookie uint64) []byte { return c.mem[int(cookie)*c.size:][:c.size] }

// point makes an endpoint that takes its receives from the queue.
func (c *common) point(attr *EPAttr) *point {
	t := c.t
	t.Helper()
	if attr == nil {
		a := DefaultEPAttr()
		attr = &a
	}
	p := c.host.point(nil)
	ok(t, p.EP.Free())
	p.recv = c.recv
	p.EP = must(c.host.ia.CreateEP(c.host.pz, EPConfig{RecvEVD: c.recv, RequestEVD: p.request, ConnectEVD: p.connect, SRQ: c.SRQ, Attr: attr}))(t)
	return p
}

// counts compares the numbers of available and outstanding receives.
func (c *common) counts(available, outstanding int) {
	c.t.Helper()
	p := must(c.Query())(c.t)
	if p.Available != available || p.Outstanding != outstanding {
		c.t.Errorf("%d receives available and %d outstanding, want %d and %d", p.Available, p.Outstanding, available, outstanding)
	}
}

// async waits for an asynchronous event and compares its fields.
func (h *host) async(number EventNumber, source any, reason int) {
	h.t.Helper()
	ev := await(h.t, h.ia.AsyncEVD(), number)
	if ev.Source != source || ev.Reason != reason {
		h.t.Errorf("%v is of %T %v for reason %d, want %T %v for %d", number, ev.Source, ev.Source, ev.Reason, source, source, reason)
	}
}

func (c *common) low() {
	c.host.t.Helper()
	c.host.async(EventAsyncProviderInternalError, c.SRQ, ReasonSRQLowWatermark)
}
func (p *point) softMark() {
	p.host.t.Helper()
	p.host.async(EventAsyncEPBroken, p.EP, ReasonSRQSoftHighWatermark)
}
func (p *point) lastReceive() {
	p.host.t.Helper()
	p.host.async(EventAsyncEPBroken, p.EP, ReasonEPTransferToError)
}
func (h *host) nothingAsync() { h.t.Helper(); expectNoEvent(h.t, h.ia.AsyncEVD()) }
func (p *point) message(n int) {
	p.host.t.Helper()
	p.send(n)
	p.done(p.request, 9, DTOSend, DTOSuccess, n)
}
func (p *point) send(n int) { p.host.t.Helper(); ok(p.host.t, p.PostSend(p.seg(0, n), 9, 0)) }
func (p *point) got(cookie uint64) {
	p.host.t.Helper()
	p.done(p.recv, cookie, DTOReceive, DTOSuccess, 64)
}
func (p *point) flushed(cookie uint64) {
	p.host.t.Helper()
	p.done(p.recv, cookie, DTOReceive, DTOFlushed, 0)
}

// sharing connects n endpoints of a with n endpoints of b. Those of b share a queue with receives of 256 bytes.
func sharing(t testing.TB, nw network, n, receives int) (c *common, xs, ys []*point) {
	t.Helper()
	return sharingWith(t, nw, n, receives, Options{})
}

func sharingWith(t testing.TB, nw network, n, receives int, o Options) (c *common, xs, ys []*point) {
	t.Helper()
	a, b := newHosts(t, nw, o)
	c = b.common(receives, 256)
	for range n {
		x, y := a.point(nil), c.point(nil)
		join(x, y)
		xs, ys = append(xs, x), append(ys, y)
	}
	return c, xs, ys
}

// valve is a link that loses the packets it is to send while it is shut.
type valve struct {
	link.Link
	*flow
}

// flow is the state of the valves of an adapter.
type flow struct {
	shut atomic.Bool
	left atomic.Int32 // number of packets that pass while they are shut
}

func (v valve) Send(bufs []link.Buf) {
	if !v.shut.Load() {
		v.Link.Send(bufs)
		return
	}
	for i := 0; i < len(bufs); {
		j := i + 1
		for bufs[j-1].Flags&link.More != 0 {
			j++
		}
		if v.left.Add(-1) >= 0 {
			v.Link.Send(bufs[i:j])
		} else {
			v.Link.Free(bufs[i:j])
		}
		i = j
	}
}

// sendPart connects the endpoint x with the endpoint y, which uses a shared receive queue of three receives. When
// sendPart returns, part of a message from x is in the first receive. Opening the valve v lets the rest of the message
// pass.
func sendPart(t testing.TB, n network) (c *common, x, y *point, v *flow) {
	t.Helper()
	const size = 4 << 20
	v = &flow{}
	a := newHost(t, n, 0, Options{Wrap: func(l link.Link) link.Link { return valve{l, v} }})
	b := newHost(t, n, 1, Options{})
	b.listen(testQual, 8)
	c = b.common(3, size)
	x, y = a.pointWith(nil, size, 64), c.point(nil)
	join(x, y)
	c.post(0, 3)
	t.Cleanup(func() { v.shut.Store(false) })
	v.left.Store(16) // some of these packets may be probes of the path MTU
	v.shut.Store(true)
	ok(t, x.PostSend(x.seg(0, size), 9, 0))
	eventually(t, "the first piece of a message", func() bool {
		n, _, _ := y.RecvQuery()
		return n == 1
	})
	return c, x, y, v
}

// TestSharedQueueOfSeveralEngines: endpoints on several engines share a receive queue with too few receives. Several
// goroutines post receives to the queue. Every message is received once and in order, and no receive is lost or used
// twice.
func TestSharedQueueOfSeveralEngines(t *testing.T) {
	a, b := newManyQueued(t)
	const pairs, each, receives = 6, 300, 8
	c := a.common(receives, 16)
	var xs, ys [pairs]*point
	engines := map[*driver]bool{}
	for i := range pairs {
		x, y := c.point(nil), b.point(nil)
		join(x, y)
		xs[i], ys[i] = x, y
		engines[x.drv.Load()] = true
	}
	if len(engines) != 3 {
		t.Fatalf("%d engines are in use, want 3", len(engines))
	}
	var wg sync.WaitGroup
	for i, y := range ys {
		wg.Go(func() {
			var ev Event
			for n := range each {
				copy(y.mem, fmt.Sprintf("%d of %d    ", n, i))
				if err := y.PostSend(y.seg(0, 16), 0, 0); err != nil {
					t.Error(err)
					return
				}
				if _, err := y.request.Wait(patience, 1, &ev); err != nil || ev.Status != DTOSuccess {
					t.Errorf("endpoint %d, message %d: %v %v", i, n, ev.Status, err)
					return
				}
			}
		})
	}
	var free [2]chan uint64 // cookies of receives to be posted by two goroutines
	for i := range free {
		free[i] = make(chan uint64, receives)
		wg.Go(func() {
			for cookie := range free[i] {
				if err := c.PostRecv([]LMRTriplet{c.lmr.Segment(int(cookie)*16, 16)}, cookie); err != nil {
					t.Error(err)
				}
			}
		})
	}
	give := func(cookie uint64) { free[rand.IntN(2)] <- cookie }
	for i := range uint64(receives) {
		give(i)
	}
	next := map[*EP]int{}
	index := map[*EP]int{}
	for i, x := range xs {
		index[x.EP] = i
	}
	for range pairs * each {
		ev := await(t, c.recv, EventDTOCompletion)
		want := fmt.Sprintf("%d of %d    ", next[ev.EP], index[ev.EP])
		if got := string(c.place(ev.Cookie)[:len(want)]); ev.Status != DTOSuccess || got != want {
			t.Fatalf("%v: got message %q, want %q", ev.Status, got, want)
		}
		next[ev.EP]++
		give(ev.Cookie)
	}
	for _, f := range free {
		close(f)
	}
	wg.Wait()
	expectNoEvent(t, c.recv)
	c.counts(receives, receives)
}
