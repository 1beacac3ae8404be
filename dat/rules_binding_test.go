package dat

import (
	"testing"
)

// bindLifeRules has the rules for the lifetime of a binding and for the order of binds and other requests.
var bindLifeRules = []rule{
	{"every bind has another context", together(func(t *testing.T, _, y *point) {
		r := must(y.host.pz.CreateRMR())(t)
		seen := map[uint32]bool{0: true, y.lmr.RMRContext(): true}
		for range 3000 {
			c := y.bind(r, y.lmr, 0, 64, remoteRights).Context
			if seen[c] {
				t.Fatalf("context %#x is used again", c)
			}
			seen[c] = true
		}
	})},
	{"the next context cannot be predicted from earlier contexts", together(func(t *testing.T, _, y *point) {
		r := must(y.host.pz.CreateRMR())(t)
		steps, last := map[uint32]int{}, uint32(0)
		for range 64 {
			c := y.bind(r, y.lmr, 0, 64, remoteRights).Context
			steps[c-last]++
			last = c
		}
		if len(steps) < 60 {
			t.Errorf("only %d different steps from one context to the next", len(steps))
		}
	})},
	{"the context is not valid before the bind is done", together(func(t *testing.T, x, y *point) {
		r := must(y.host.pz.CreateRMR())(t)
		y.holdUp()
		c := must(r.Bind(y.EP, Binding{LMR: y.lmr, Segment: y.lmr.Segment(64, 8), Priv: remoteRights}, 1, 0))(t)
		to := y.lmr.Remote(64, 8)
		to.Context = c
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, to, 0))
		x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0)
		y.done(y.request, 73, DTOSend, DTOFlushed, 0)
		y.bound(r, 1, DTOFlushed)
		unbound(t, r)
	})},
	{"the next bind makes the context before invalid", together(func(t *testing.T, x, y *point) {
		r, old := y.window(0, 8)
		x.writes(old)
		to := y.bind(r, y.lmr, 0, 8, remoteRights)
		x.writes(to)
		x.cannotWrite("the old context", old)
	})},
	{"the next bind lets the LMR before go", together(func(t *testing.T, x, y *point) {
		_, l := y.private(64, localRights)
		r := must(y.host.pz.CreateRMR())(t)
		y.bind(r, l, 0, 64, remoteRights)
		wants(t, "free while bound", l.Free(), ErrInvalidState)
		x.writes(y.bind(r, y.lmr, 0, 64, remoteRights))
		ok(t, l.Free())
	})},
	{"length 0 unbinds", together(func(t *testing.T, x, y *point) {
		_, l := y.private(64, localRights)
		r := must(y.host.pz.CreateRMR())(t)
		to := y.bind(r, l, 0, 64, remoteRights)
		x.writes(to)
		y.bind(r, l, 0, 0, remoteRights)
		unbound(t, r)
		ok(t, l.Free())
		x.cannotWrite("the old context", to)
	})},
	{"unbinding ignores the LMR and the other fields of the segment", together(func(t *testing.T, _, y *point) {
		r, _ := y.window(0, 8)
		for i, s := range []LMRTriplet{{}, {Context: 1, Address: 1}, {Address: 1<<64 - 1}} {
			c := must(r.Bind(y.EP, Binding{Segment: s, Priv: remoteRights}, uint64(i), 0))(t)
			y.bound(r, uint64(i), DTOSuccess)
			if c != 0 {
				t.Errorf("context %#x", c)
			}
			unbound(t, r)
		}
	})},
	{"several regions may be bound to one LMR, each keeps it", together(func(t *testing.T, x, y *point) {
		mem, l := y.private(64, localRights)
		var all []*RMR
		fillRandom(x.mem[:16], 4)
		for i := range 4 {
			r := must(y.host.pz.CreateRMR())(t)
			all = append(all, r)
			x.writes(y.bind(r, l, 16*i, 16, remoteRights))
			same(t, mem[16*i:16*i+16], x.mem[:16])
		}
		for _, r := range all {
			wants(t, "free of the LMR", l.Free(), ErrInvalidState)
			ok(t, r.Free())
		}
		ok(t, l.Free())
	})},
	{"the event carries region, endpoint and cookie", together(func(t *testing.T, x, _ *point) {
		for _, cookie := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
			r := must(x.host.pz.CreateRMR())(t)
			must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, cookie, 0))(t)
			x.bound(r, cookie, DTOSuccess)
		}
		x.still()
	})},
	{"suppressing hides success", together(func(t *testing.T, x, _ *point) {
		r := must(x.host.pz.CreateRMR())(t)
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, CompletionSuppress))(t)
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(8, 8), Priv: remoteRights}, 2, 0))(t)
		x.bound(r, 2, DTOSuccess)
		x.still()
	})},
	{"suppressing does not hide a flush", together(func(t *testing.T, x, _ *point) {
		r := must(x.host.pz.CreateRMR())(t)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, CompletionSuppress))(t)
		ok(t, x.Disconnect(CloseAbrupt))
		x.done(x.request, 73, DTOSend, DTOFlushed, 0)
		x.bound(r, 1, DTOFlushed)
	})},
	{"without a request EVD there is no completion event", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		x.EP = must(a.ia.CreateEP(a.pz, EPConfig{RecvEVD: x.recv, ConnectEVD: x.connect}))(t)
		join(x, y)
		r := must(a.pz.CreateRMR())(t)
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
		eventually(t, "the bind", func() bool { q, _ := r.Query(); return q.Bound })
	}},
	{"binds complete in posting order with all other requests", together(func(t *testing.T, x, y *point) {
		r := must(x.host.pz.CreateRMR())(t)
		for i := range uint64(8) {
			ok(t, y.PostRecv(y.seg(0, 64), i, 0))
		}
		for i := range uint64(8) {
			ok(t, x.PostSend(x.seg(0, 64), 5*i, 0))
			must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 5*i+1, 0))(t)
			ok(t, x.PostRDMARead(x.seg(4096, 4096), 5*i+2, y.lmr.Remote(4096, 4096), 0))
			must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(8, 8), Priv: remoteRights}, 5*i+3, 0))(t)
			ok(t, x.PostRDMAWrite(x.seg(0, 64), 5*i+4, y.lmr.Remote(64, 64), 0))
		}
		var ev Event
		for i := range uint64(40) {
			if _, err := x.request.Wait(patience, 1, &ev); err != nil || ev.Cookie != i || ev.Status != DTOSuccess {
				t.Fatalf("completion %d is %v %v of %d: %v", i, ev.Number, ev.Status, ev.Cookie, err)
			}
		}
		y.memoryBarrier()
	})},
	{"requests posted after a bind wait for the bind, so that a send may carry the context", together(func(t *testing.T, x, y *point) {
		r := must(y.host.pz.CreateRMR())(t)
		for i := range 20 {
			ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
			c := must(r.Bind(y.EP, Binding{LMR: y.lmr, Segment: y.lmr.Segment(64, 8), Priv: remoteRights}, 2, CompletionSuppress))(t)
			ok(t, y.PostSend(nil, 3, 0))
			x.done(x.recv, 1, DTOReceive, DTOSuccess, 0)
			to := y.lmr.Remote(64, 8)
			to.Context = c
			x.mem[0] = byte(i)
			x.writes(to)
			y.done(y.request, 3, DTOSend, DTOSuccess, 0)
		}
	})},
	{"a fence makes a bind wait for the reads before it", together(func(t *testing.T, x, y *point) {
		fillRandom(y.mem, 5)
		y.memoryBarrier()
		for i := range uint64(8) {
			r := must(x.host.pz.CreateRMR())(t)
			to := x.bind(r, x.lmr, 0, 30000, remoteRights)
			ok(t, x.PostRDMAReadToRMR(to, i, y.lmr.Remote(0, 30000), 0))
			must(r.Bind(x.EP, Binding{}, i, CompletionBarrierFence))(t)
			x.done(x.request, i, DTORDMARead, DTOSuccess, 30000)
			x.bound(r, i, DTOSuccess)
			same(t, x.mem[:30000], y.mem[:30000])
		}
	})},
	{"a graceful disconnect waits for binds", together(func(t *testing.T, x, y *point) {
		r := must(x.host.pz.CreateRMR())(t)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
		ok(t, x.Disconnect(CloseGraceful))
		x.letOn()
		x.bound(r, 1, DTOSuccess)
		x.expect(EventDisconnected)
		y.expect(EventDisconnected)
	})},
	{"an abrupt disconnect flushes binds", together(func(t *testing.T, x, y *point) {
		r := must(x.host.pz.CreateRMR())(t)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
		must(r.Bind(x.EP, Binding{}, 2, 0))(t)
		ok(t, x.Disconnect(CloseAbrupt))
		x.done(x.request, 73, DTOSend, DTOFlushed, 0)
		x.bound(r, 1, DTOFlushed)
		x.bound(r, 2, DTOFlushed)
		x.expect(EventDisconnected)
		ok(t, x.lmr.Free())
	})},
	{"a bind that fails later breaks the connection", together(func(t *testing.T, x, y *point) {
		r := must(x.host.pz.CreateRMR())(t)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, CompletionSuppress))(t)
		ok(t, x.PostSend(nil, 2, 0))
		ok(t, r.Free())
		ok(t, y.PostRecv(y.seg(0, 8), 3, 0))
		x.expect(EventBroken)
		y.expect(EventBroken)
		ev := await(t, x.request, EventDTOCompletion)
		if ev.Cookie != 73 {
			t.Errorf("the first completion is %+v", ev)
		}
		x.bound(r, 1, DTORMRFailed)
		x.done(x.request, 2, DTOSend, DTOFlushed, 0)
		if x.State() != EPDisconnected || y.State() != EPDisconnected {
			t.Errorf("states %v and %v", x.State(), y.State())
		}
		ok(t, x.lmr.Free())
	})},
	{"an LMR cannot be freed while a bind to it waits", together(func(t *testing.T, x, _ *point) {
		_, l := x.private(64, localRights)
		r := must(x.host.pz.CreateRMR())(t)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: l, Segment: l.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
		must(r.Bind(x.EP, Binding{}, 2, 0))(t)
		wants(t, "free", l.Free(), ErrInvalidState)
		x.letOn()
		x.bound(r, 1, DTOSuccess)
		x.bound(r, 2, DTOSuccess)
		ok(t, l.Free())
	})},
	{"freeing the endpoint forgets its binds", together(func(t *testing.T, x, _ *point) {
		_, l := x.private(64, localRights)
		r := must(x.host.pz.CreateRMR())(t)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: l, Segment: l.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
		ok(t, x.Free())
		unbound(t, r)
		ok(t, l.Free())
		ok(t, r.Free())
	})},
	{"a region outlives the connection that it was bound on", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		x2, _ := pair(a, b, nil)
		_, to := y.window(0, 8)
		ok(t, x.Disconnect(CloseAbrupt))
		y.expect(EventDisconnected)
		x2.peer = y
		x2.writes(to)
	}},
	{"a peer of another zone cannot use a region", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		_, y := pair(a, b, nil)
		_, to := y.window(0, 8)
		b.pz = must(b.ia.CreatePZ())(t)
		x2, _ := pair(a, b, nil)
		x2.cannotWrite("write from another zone", to)
	}},
}
