package dat

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/datxdp/datxdp/link"
)

var errorRules = []rule{
	{"an atomic without the right ends its connection alone: the next pair connects, also on the same dispatchers", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		for _, priv := range []MemPriv{MemRemoteRead | MemRemoteWrite, MemRemoteAtomic, MemLocalRead, MemNone} {
			x1, y1 := pair(a, b, nil)
			ok(t, x1.PostFetchAdd(1, x1.lmr.Segment(0, 8), 1, b.word(priv).at(), 0))
			x1.awaitExtended(x1.request, 1, fetchAdd, DTORemoteAccess, 0)
			x2, y2 := x1.again(), y1.again()
			x2.dial(b, nil)
			ok(t, b.request(t).Accept(y2.EP, nil))
			for _, ends := range [][2]*point{{x1, x2}, {y1, y2}} {
				for i, want := range []EventNumber{EventBroken, EventEstablished} { // events of the first connection come first
					if ev := await(t, ends[i].connect, want); ev.EP != ends[i].EP {
						t.Errorf("%v of another endpoint", want)
					}
				}
			}
			x2.peer, y2.peer = y2, x2
			proves(x2, y2)
			expectNoEvent(t, x2.connect)
			expectNoEvent(t, y2.connect)
		}
		proves(x, y)
		x.still()
		y.still()
	}},
	{"a message longer than its receive ends the connection at both sides", joined(func(t *testing.T, x, y *point) {
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 9), 2, 0))
		x.done(x.request, 2, DTOSend, DTORemoteResponder, 0)
		y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	})},
	{"a message longer than its receive does not change memory behind the receive", joined(func(t *testing.T, x, y *point) {
		fill(x.mem[:6000], 0x55)
		ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(0, 8), y.lmr.Segment(100, 8)}, 1, 0))
		ok(t, x.PostSend(x.seg(0, 6000), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
		if !bytes.Equal(y.mem[8:100], make([]byte, 92)) || !bytes.Equal(y.mem[108:], make([]byte, pointMem-108)) {
			t.Error("memory behind the receive was touched")
		}
	})},
	{"a message that finds no receive waits, and in the end breaks the connection", joinedWith(
		Options{Limits: Limits{NotReady: shortNotReady}}, nil, func(t *testing.T, x, y *point) {
			ok(t, x.PostSend(x.seg(0, 8), 1, 0))
			x.done(x.request, 1, DTOSend, DTOReceiverNotReady, 0)
			x.expect(EventBroken)
			var ev Event
			if _, err := y.connect.Wait(patience, 1, &ev); err != nil || ev.Number != EventBroken && ev.Number != EventDisconnected {
				t.Errorf("the peer saw %v, %v", ev.Number, err)
			}
		})},
	{"an empty message without a receive breaks the connection too", joinedWith(
		Options{Limits: Limits{NotReady: shortNotReady}}, nil, func(t *testing.T, x, _ *point) {
			ok(t, x.PostSend(nil, 1, 0))
			x.done(x.request, 1, DTOSend, DTOReceiverNotReady, 0)
			x.expect(EventBroken)
		})},
	{"a write with a wrong context ends the connection at both sides", refusedAccess(postWrite, func(_ *point, r *RMRTriplet) { r.Context ^= 1 << 9 })},
	{"a read with a wrong context ends the connection at both sides", refusedAccess(postRead, func(_ *point, r *RMRTriplet) { r.Context ^= 1 << 9 })},
	{"a write out of the range ends the connection at both sides", refusedAccess(postWrite, func(_ *point, r *RMRTriplet) { r.Address += pointMem - 7 })},
	{"a read out of the range ends the connection at both sides", refusedAccess(postRead, func(_ *point, r *RMRTriplet) { r.Address -= 1 })},
	{"a write without the right ends the connection at both sides", refusedAccess(postWrite, func(y *point, r *RMRTriplet) {
		*r = y.region(MemAll&^MemRemoteWrite).Remote(0, 8)
	})},
	{"a read without the right ends the connection at both sides", refusedAccess(postRead, func(y *point, r *RMRTriplet) {
		*r = y.region(MemAll&^MemRemoteRead).Remote(0, 8)
	})},
	{"a write to another zone ends the connection at both sides", refusedAccess(postWrite, foreignZone)},
	{"a read of another zone ends the connection at both sides", refusedAccess(postRead, foreignZone)},
	{"a write to memory that was freed ends the connection at both sides", refusedAccess(postWrite, freedMemory)},
	{"a read of memory that was freed ends the connection at both sides", refusedAccess(postRead, freedMemory)},
	{"a local context is none for peers", refusedAccess(postWrite, func(y *point, r *RMRTriplet) { r.Context = y.lmr.Context() })},
	{"a peer that falls silent breaks the connection", func(t *testing.T, n network) {
		silent := new(atomic.Bool)
		a, b := newHosts(t, n, Options{Limits: Limits{GiveUp: 100 * time.Millisecond, KeepAlive: 100 * time.Millisecond},
			Wrap: func(l link.Link) link.Link { return &silence{l, silent} }})
		x, y := pair(a, b, nil)
		ok(t, x.PostRecv(x.seg(0, 8), 7, 0))
		silent.Store(true)
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0))
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, y.lmr.Remote(0, 8), 0))
		x.done(x.request, 1, DTORDMAWrite, DTOTransport, 0)
		x.done(x.request, 2, DTORDMAWrite, DTOFlushed, 0)
		x.done(x.recv, 7, DTOReceive, DTOFlushed, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	}},
	{"memory that is freed under a receive breaks the connection of the message", joined(func(t *testing.T, x, y *point) {
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, y.lmr.Free())
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOLocalProtection, 0)
		if ev := await(t, x.request, EventDTOCompletion); ev.Status == DTOSuccess {
			t.Error("the send succeeded")
		}
		x.expect(EventBroken)
		y.expect(EventBroken)
	})},
	{"memory that is freed under a send breaks the connection", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive
		ok(t, x.lmr.Free())
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		x.done(x.request, 1, DTOSend, DTOLocalProtection, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	})},
	{"behind the first operation that fails all are flushed, in both directions", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostRecv(x.seg(0, 8), 7, 0))
		ok(t, y.PostRecv(y.seg(0, 8), 8, 0))
		ok(t, x.PostRDMARead(x.seg(0, 8), 1, RMRTriplet{Context: 1, Address: 1, Length: 8}, 0))
		for i := range uint64(3) {
			if x.PostRDMAWrite(x.seg(0, 8), 2+i, y.lmr.Remote(0, 8), CompletionBarrierFence) != nil {
				t.Fatal("a post on a broken connection is refused")
			}
		}
		x.done(x.request, 1, DTORDMARead, DTORemoteAccess, 0)
		for i := range uint64(3) {
			x.done(x.request, 2+i, DTORDMAWrite, DTOFlushed, 0)
		}
		x.done(x.recv, 7, DTOReceive, DTOFlushed, 0)
		y.done(y.recv, 8, DTOReceive, DTOFlushed, 0)
	})},
	{"operations posted before a failed operation succeed", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0))
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, RMRTriplet{Context: 1, Address: 1, Length: 8}, 0))
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
		x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0)
	})},
	{"a fault of one connection is none of the others", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		x, y := pair(a, b, nil)
		access(t, x, DTORDMAWrite, 1, RMRTriplet{Context: 1, Address: 1, Length: 8})
		x.expect(EventBroken)
		y.expect(EventBroken)
		proves(u, v)
		for _, p := range []*point{x, y} {
			p.request, p.recv = must(p.host.ia.CreateEVD(64, nil, EVDDTO))(t), must(p.host.ia.CreateEVD(64, nil, EVDDTO))(t)
			p.EP = must(p.host.ia.CreateEP(p.host.pz, EPConfig{RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect}))(t)
		}
		join(x, y)
		proves(x, y)
	}},
	{"the end of a connection is reported once", joined(func(t *testing.T, x, y *point) {
		access(t, x, DTORDMARead, 1, RMRTriplet{Context: 1, Address: 1, Length: 8})
		x.done(x.request, 1, DTORDMARead, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		ok(t, x.Disconnect(CloseAbrupt))
		ok(t, y.Disconnect(CloseGraceful))
		x.still()
		y.still()
	})},
	{"an endpoint whose connection broke connects again after a reset", joined(func(t *testing.T, x, y *point) {
		access(t, x, DTORDMAWrite, 1, RMRTriplet{Context: 1, Address: 1, Length: 8})
		x.done(x.request, 1, DTORDMAWrite, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		ok(t, x.Reset())
		ok(t, y.Reset())
		join(x, y)
		proves(x, y)
	})},
}

// refusedAccess returns a test of an RDMA operation that the peer must refuse. The caller's function invalidate makes
// the remote range invalid. The refusal ends the connection at both sides.
func refusedAccess(p post, invalidate func(y *point, r *RMRTriplet)) func(*testing.T, network) {
	return joined(func(t *testing.T, x, y *point) {
		to := y.lmr.Remote(0, 8)
		invalidate(y, &to)
		fill(x.mem[:8], 0x55)
		access(t, x, p.op, 1, to)
		x.done(x.request, 1, p.op, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
		if !bytes.Equal(y.mem, make([]byte, pointMem)) {
			t.Error("memory of the peer was touched")
		}
		if p.op == DTORDMARead && !bytes.Equal(x.mem[:8], bytes.Repeat([]byte{0x55}, 8)) {
			t.Error("memory was touched")
		}
		y.still()
	})
}

func foreignZone(y *point, r *RMRTriplet) {
	t := y.host.t
	*r = must(y.host.ia.CreateLMR(y.mem, must(y.host.ia.CreatePZ())(t), MemAll))(t).Remote(0, 8)
}

func freedMemory(y *point, r *RMRTriplet) {
	l := y.region(MemAll)
	*r = l.Remote(0, 8)
	ok(y.host.t, l.Free())
}

// again returns a new endpoint with the dispatchers and memory of p.
func (p *point) again() *point {
	p.host.t.Helper()
	next := *p
	next.EP = must(p.host.ia.CreateEP(p.host.pz, EPConfig{RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect}))(p.host.t)
	return &next
}
