package dat

import (
	"testing"
)

var orderingRules = []rule{
	{"the k-th message fills the k-th receive", joined(func(t *testing.T, x, y *point) {
		const messages = 200
		for i := range messages {
			ok(t, y.PostRecv(y.seg(i*64, 64), uint64(i), 0))
			x.mem[i] = byte(i)
		}
		for i := range messages {
			ok(t, x.PostSend(x.seg(i, 1+i%2), uint64(i), 0))
		}
		for i := range messages {
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 1+i%2)
			if y.mem[i*64] != byte(i) {
				t.Fatalf("receive %d has message %d", i, y.mem[i*64])
			}
		}
	})},
	{"requests of all kinds complete in the order of their posts", joined(func(t *testing.T, x, y *point) {
		posts := []post{postRead, postWrite, postSend, postWrite, postRead, postRead, postSend}
		for i := range 10 * len(posts) {
			ok(t, y.PostRecv(y.seg(0, 3000), 1, 0))
			ok(t, posts[i%len(posts)].post(x, x.seg(0, 1+i*29%3000), uint64(i), 0))
		}
		for i := range 10 * len(posts) {
			x.done(x.request, uint64(i), posts[i%len(posts)].op, DTOSuccess, 1+i*29%3000)
		}
	})},
	{"a completion means that all earlier requests succeeded, suppressed ones too", joined(func(t *testing.T, x, y *point) {
		fillRandom(x.mem[:40000], 1)
		ok(t, x.PostRDMAWrite(x.seg(0, 40000), 1, y.lmr.Remote(0, 40000), CompletionSuppress))
		ok(t, x.PostRDMARead(x.seg(50000, 1), 2, y.lmr.Remote(0, 1), 0))
		x.done(x.request, 2, DTORDMARead, DTOSuccess, 1)
		same(t, y.mem[:40000], x.mem[:40000])
	})},
	{"when the completion of a receive is taken, the data of earlier writes is in memory", joined(func(t *testing.T, x, y *point) {
		for i := range 20 {
			fillRandom(x.mem[:20000], uint64(i))
			y.memoryBarrier()
			ok(t, y.PostRecv(y.seg(60000, 8), 1, 0))
			ok(t, x.PostRDMAWrite(x.seg(0, 20000), 1, y.lmr.Remote(0, 20000), CompletionSuppress))
			ok(t, x.PostSend(x.seg(60000, 8), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
			same(t, y.mem[:20000], x.mem[:20000])
			x.done(x.request, 2, DTOSend, DTOSuccess, 8)
		}
	})},
	{"a read sees the writes that were posted before it", joined(func(t *testing.T, x, y *point) {
		for i := range 20 {
			fillRandom(x.mem[:5000], uint64(i))
			ok(t, x.PostRDMAWrite(x.seg(0, 5000), 1, y.lmr.Remote(0, 5000), 0))
			ok(t, x.PostRDMARead(x.seg(10000, 5000), 2, y.lmr.Remote(0, 5000), 0))
			x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 5000)
			x.done(x.request, 2, DTORDMARead, DTOSuccess, 5000)
			same(t, x.mem[10000:15000], x.mem[:5000])
		}
	})},
	{"of two writes to the same memory the later one stays", joined(func(t *testing.T, x, y *point) {
		for i := range 50 {
			fill(x.mem[:4000], byte(i))
			fill(x.mem[4000:8000], byte(i+1))
			y.memoryBarrier()
			ok(t, x.PostRDMAWrite(x.seg(0, 4000), 1, y.lmr.Remote(0, 4000), CompletionSuppress))
			ok(t, x.PostRDMAWrite(x.seg(4000, 4000), 2, y.lmr.Remote(0, 4000), 0))
			x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 4000)
			same(t, y.mem[:4000], x.mem[4000:8000])
		}
	})},
	{"a fenced send carries the data of an earlier read", fenced(postSend)},
	{"a fenced write carries the data of an earlier read", fenced(postWrite)},
	{"completions come before the disconnect on one dispatcher", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		all := must(b.ia.CreateEVD(64, nil, EVDDTO|EVDConnection))(t)
		ok(t, y.Free())
		y.recv, y.request, y.connect = all, all, all
		y.EP = must(b.ia.CreateEP(b.pz, EPConfig{RecvEVD: all, RequestEVD: all, ConnectEVD: all}))(t)
		join(x, y)
		for i := range uint64(4) {
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		ok(t, x.PostSend(x.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		ok(t, x.Disconnect(CloseGraceful))
		y.done(all, 0, DTOReceive, DTOSuccess, 8)
		y.done(all, 1, DTOReceive, DTOSuccess, 8)
		y.done(all, 2, DTOReceive, DTOFlushed, 0)
		y.done(all, 3, DTOReceive, DTOFlushed, 0)
		y.expect(EventDisconnected)
	}},
	{"the connection is established before it ends", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		x.dial(b, nil)
		ok(t, b.request(t).Accept(y.EP, nil))
		x.expect(EventEstablished)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		y.expect(EventEstablished)
		y.expect(EventDisconnected)
	}},
}

// fenced checks that a fenced request waits for an earlier read: the request sends the data of that read.
func fenced(p post) func(*testing.T, network) {
	return joined(func(t *testing.T, x, y *point) {
		for i := range 10 {
			fillRandom(y.mem[40000:60000], uint64(i))
			y.memoryBarrier()
			ok(t, y.PostRecv(y.seg(0, 20000), 9, 0))
			ok(t, x.PostRDMARead(x.seg(0, 20000), 1, y.lmr.Remote(40000, 20000), 0))
			ok(t, p.post(x, x.seg(0, 20000), 2, CompletionBarrierFence))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 20000)
			x.done(x.request, 2, p.op, DTOSuccess, 20000)
			if p.op == DTOSend {
				y.done(y.recv, 9, DTOReceive, DTOSuccess, 20000)
			}
			same(t, y.mem[:20000], y.mem[40000:60000])
		}
	})
}

var flushRules = []rule{
	{"receives of both ends are flushed in order by a disconnect", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(5) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 10+i, 0))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		for i := range uint64(5) {
			x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
			y.done(y.recv, 10+i, DTOReceive, DTOFlushed, 0)
		}
	})},
	{"requests are flushed in order by an abrupt disconnect", joined(func(t *testing.T, x, y *point) {
		ops := []post{postSend, postWrite, postRead, postSend}
		for i, p := range ops {
			ok(t, p.post(x, x.seg(0, 8), uint64(i), CompletionBarrierFence))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		failed := false
		for i, p := range ops {
			ev := await(t, x.request, EventDTOCompletion)
			if ev.Cookie != uint64(i) || ev.Op != p.op {
				t.Fatalf("completion %d is %d, %d", i, ev.Cookie, ev.Op)
			}
			if failed && ev.Status != DTOFlushed || ev.Status != DTOFlushed && ev.Status != DTOSuccess {
				t.Errorf("%d ended with %v", i, ev.Status)
			}
			failed = failed || ev.Status != DTOSuccess
		}
		if !failed {
			t.Error("a send that nobody received succeeded")
		}
	})},
	{"a graceful disconnect lets the requests finish and flushes the receives", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, 0))
		}
		ok(t, x.Disconnect(CloseGraceful))
		for i := range uint64(4) {
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		for i := range uint64(3) {
			x.done(x.request, i, DTOSend, DTOSuccess, 8)
			y.done(y.recv, i, DTOReceive, DTOSuccess, 8)
			x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
		}
		y.done(y.recv, 3, DTOReceive, DTOFlushed, 0)
		x.expect(EventDisconnected)
		y.expect(EventDisconnected)
	})},
	{"flushed completions can be taken as soon as the end of the connection", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, y.PostRecv(y.seg(0, 8), i, 0))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		for _, p := range []*point{x, y} {
			p.expect(EventDisconnected)
			if n := p.recv.Len(); n != 3 {
				t.Errorf("%d of 3 completions are there", n)
			}
		}
	})},
	{"completions taken before that of a post on a disconnected endpoint were posted before it", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(5) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, CompletionSuppress))
		}
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.PostRecv(nil, 99, 0))
		ok(t, x.PostSend(nil, 99, 0))
		for _, i := range []uint64{0, 1, 2, 3, 4, 99} {
			x.done(x.recv, i, DTOReceive, DTOFlushed, 0)
			x.done(x.request, i, DTOSend, DTOFlushed, 0)
		}
		x.still()
	})},
	{"a set-up that fails flushes the receives", func(t *testing.T, n network) {
		a, b := newHosts(t, n, hasty)
		for what, fails := range map[string]func(x *point) EventNumber{
			"rejected": func(x *point) EventNumber {
				x.dial(b, nil)
				ok(t, b.request(t).Reject(nil))
				return EventPeerRejected
			},
			"nothing listens": func(x *point) EventNumber {
				ok(t, x.Connect(b.addr, 9999, patience, nil))
				return EventNonPeerRejected
			},
			"the address does not answer": func(x *point) EventNumber {
				ok(t, x.Connect(n.absent(), testQual, 5*hasty.Limits.ListenGrace, nil))
				return EventTimedOut
			},
			"given up": func(x *point) EventNumber {
				ok(t, x.Connect(n.absent(), testQual, patience, nil))
				ok(t, x.Disconnect(CloseAbrupt))
				return EventDisconnected
			},
		} {
			x := a.point(nil)
			ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
			ok(t, x.PostRecv(x.seg(0, 8), 2, 0))
			var ev Event
			want := fails(x)
			if _, err := x.connect.Wait(patience, 1, &ev); err != nil || ev.Number != want &&
				(want != EventTimedOut && want != EventNonPeerRejected || ev.Number != EventUnreachable) {
				t.Fatalf("%s: %v, %v, want %v", what, ev.Number, err, want)
			}
			x.done(x.recv, 1, DTOReceive, DTOFlushed, 0)
			x.done(x.recv, 2, DTOReceive, DTOFlushed, 0)
		}
	}},
	{"a reset leaves completions that were not taken", joined(func(t *testing.T, x, y *point) {
		ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.Reset())
		x.done(x.recv, 1, DTOReceive, DTOFlushed, 0)
		x.done(x.request, 2, DTOSend, DTOFlushed, 0)
	})},
	{"no completion appears after the endpoint was freed", joined(func(t *testing.T, x, y *point) {
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
			ok(t, x.PostSend(x.seg(0, 8), i, 0))
		}
		ok(t, x.Free())
		n := x.recv.Len() + x.request.Len()
		y.expect(EventDisconnected)
		expectNoEvent(t, x.connect)
		if x.recv.Len()+x.request.Len() != n {
			t.Error("completions appeared")
		}
	})},
	{"an endpoint with receives posted can be freed, and then all that it used", joined(func(t *testing.T, x, y *point) {
		pz := must(x.host.ia.CreatePZ())(t)
		l := must(x.host.ia.CreateLMR(make([]byte, 8), pz, MemAll))(t)
		evd := must(x.host.ia.CreateEVD(8, nil, EVDDTO))(t)
		ep := must(x.host.ia.CreateEP(pz, EPConfig{RecvEVD: evd}))(t)
		ok(t, ep.PostRecv([]LMRTriplet{l.Segment(0, 8)}, 1, 0))
		ok(t, l.Free())
		ok(t, ep.Free())
		ok(t, evd.Free())
		ok(t, pz.Free())
	})},
}
