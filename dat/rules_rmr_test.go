package dat

import (
	"slices"
	"testing"
)

const (
	localRights  = MemLocalRead | MemLocalWrite
	remoteRights = MemRemoteRead | MemRemoteWrite
)

// bound waits for the completion of a bind.
func (p *point) bound(r *RMR, cookie uint64, want DTOStatus) {
	t := p.host.t
	t.Helper()
	ev := await(t, p.request, EventRMRBindCompletion)
	if ev.RMR != r || ev.EP != p.EP || ev.EVD != p.request || ev.Cookie != cookie || ev.Op != DTOBind || ev.Status != want {
		t.Errorf("bind completes as %+v, want cookie %d and %v", ev, cookie, want)
	}
}

// bind binds a region to n bytes of an LMR, from offset off, and waits for the completion.
func (p *point) bind(r *RMR, l *LMR, off, n int, priv MemPriv) RMRTriplet {
	p.host.t.Helper()
	context := must(r.Bind(p.EP, Binding{LMR: l, Segment: l.Segment(off, n), Priv: priv}, 70, 0))(p.host.t)
	p.bound(r, 70, DTOSuccess)
	return RMRTriplet{Context: context, Address: l.Address() + uint64(off), Length: uint64(n)}
}

// window returns a new region that gives peers all privileges on n bytes of p's memory, from an offset.
func (p *point) window(off, n int) (*RMR, RMRTriplet) {
	p.host.t.Helper()
	r := must(p.host.pz.CreateRMR())(p.host.t)
	return r, p.bind(r, p.lmr, off, n, remoteRights)
}

// private registers memory that peers can access only through a window.
func (p *point) private(n int, priv MemPriv) ([]byte, *LMR) {
	p.host.t.Helper()
	mem := make([]byte, n)
	return mem, must(p.host.ia.CreateLMR(mem, p.host.pz, priv))(p.host.t)
}

// part returns n bytes of a remote range, from an offset. It checks nothing.
func part(to RMRTriplet, off, n int) RMRTriplet {
	return RMRTriplet{Context: to.Context, Address: to.Address + uint64(off), Length: uint64(n)}
}

// writes makes p write to its peer's range. The write must succeed.
func (p *point) writes(to RMRTriplet) {
	t := p.host.t
	t.Helper()
	ok(t, p.PostRDMAWrite(p.seg(0, int(to.Length)), 71, to, 0))
	p.done(p.request, 71, DTORDMAWrite, DTOSuccess, int(to.Length))
}

// cannot checks that the peer refuses a request of p, which breaks the connection.
func (p *point) cannot(what string, op DTO, err error) {
	t := p.host.t
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	ev := await(t, p.request, EventDTOCompletion)
	if ev.Op != op || ev.Status != DTORemoteAccess {
		t.Errorf("%s: got %v %v, want %v", what, ev.Op, ev.Status, DTORemoteAccess)
	}
	p.expect(EventBroken)
	p.peer.expect(EventBroken)
}

func (p *point) cannotWrite(what string, to RMRTriplet) {
	p.host.t.Helper()
	p.cannot(what, DTORDMAWrite, p.PostRDMAWrite(p.seg(0, int(to.Length)), 72, to, 0))
}

func (p *point) cannotRead(what string, from RMRTriplet) {
	p.host.t.Helper()
	p.cannot(what, DTORDMARead, p.PostRDMARead(p.seg(0, int(from.Length)), 72, from, 0))
}

// holdUp blocks p's send queue with a message that has no receive, until letOn.
func (p *point) holdUp() {
	p.host.t.Helper()
	ok(p.host.t, p.PostSend(p.seg(0, 8), 73, 0))
}

func (p *point) letOn() {
	p.host.t.Helper()
	ok(p.host.t, p.peer.PostRecv(p.peer.seg(0, 8), 74, 0))
	p.done(p.request, 73, DTOSend, DTOSuccess, 8)
	p.peer.done(p.peer.recv, 74, DTOReceive, DTOSuccess, 8)
}

// unbound checks that a region is not bound.
func unbound(t testing.TB, r *RMR) {
	t.Helper()
	if q := must(r.Query())(t); q.Bound || q.Context != 0 || q.Triplet != (LMRTriplet{}) || q.Priv != 0 {
		t.Errorf("the region is bound: %+v", q)
	}
}

// together has two connected endpoints.
func together(f func(t *testing.T, x, y *point)) func(*testing.T, network) {
	return func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		f(t, x, y)
	}
}

// broken runs each case on a connection of its own, because each case breaks its connection.
func broken[C any](cases map[string]C, f func(t *testing.T, x, y *point, what string, c C)) func(*testing.T, network) {
	return func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for what, c := range cases {
			x, y := pair(a, b, nil)
			f(t, x, y, what, c)
		}
	}
}

var rmrRules = []topic{
	{"dat_rmr_create", rmrCreateRules},
	{"dat_rmr_create_for_ep", rmrCreateForEPRules},
	{"dat_rmr_query", rmrQueryRules},
	{"dat_rmr_bind", slices.Concat(bindRequestRules, bindLifeRules)},
	{"dat_rmr_free", rmrFreeRules},
	{"dat_ep_post_send_with_invalidate", epPostSendWithInvalidateRules},
	{"dat_ep_post_rdma_read_to_rmr", epPostRDMAReadToRMRRules},
}

var rmrCreateRules = []rule{
	{"a new region is not bound and of the scope of its zone", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMR())(t)
		unbound(t, r)
		if q := must(r.Query())(t); q.IA != h.ia || q.PZ != h.pz || q.Scope != RMRScopePZ {
			t.Errorf("got %+v", q)
		}
	}},
	{"a zone that is nil, freed, or of a closed adapter is an invalid handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		var none *PZ
		freed := must(h.ia.CreatePZ())(t)
		ok(t, freed.Free())
		for _, pz := range []*PZ{none, freed} {
			_, err := pz.CreateRMR()
			wants(t, "create", err, ErrInvalidHandle)
		}
		ok(t, h.ia.Close())
		_, err := h.pz.CreateRMR()
		wants(t, "create on a closed adapter", err, ErrInvalidHandle)
	}},
	{"a zone cannot be freed while a region is in it", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMR())(t)
		wants(t, "free of the zone", h.pz.Free(), ErrInvalidState)
		ok(t, r.Free())
		ok(t, h.pz.Free())
	}},
	{"an adapter with a region does not close gracefully", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMR())(t)
		wants(t, "graceful close", h.ia.CloseWith(CloseGraceful), ErrInvalidState)
		ok(t, r.Free())
		ok(t, h.pz.Free())
		ok(t, h.ia.CloseWith(CloseGraceful))
	}},
	{"an abrupt close ends regions, bound or not", together(func(t *testing.T, x, y *point) {
		r, _ := y.window(0, 64)
		other := must(y.host.pz.CreateRMR())(t)
		ok(t, y.host.ia.Close())
		for _, r := range []*RMR{r, other} {
			_, err := r.Query()
			wants(t, "query", err, ErrInvalidHandle)
			wants(t, "free", r.Free(), ErrInvalidHandle)
		}
		x.expect(EventDisconnected)
	})},
	{"a region serves every endpoint of its zone", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		_, y := pair(a, b, nil)
		x2, _ := pair(a, b, nil)
		_, to := y.window(100, 64)
		x2.peer = y
		fillRandom(x2.mem[:64], 1)
		x2.writes(to)
		same(t, y.mem[100:164], x2.mem[:64])
	}},
	{"thousands of regions may be there", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		var all []*RMR
		for range 3000 {
			all = append(all, must(h.pz.CreateRMR())(t))
		}
		for _, r := range all {
			ok(t, r.Free())
		}
		ok(t, h.pz.Free())
	}},
}

var rmrCreateForEPRules = []rule{
	{"a new region is not bound and of the scope of an endpoint", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMRForEP())(t)
		unbound(t, r)
		if q := must(r.Query())(t); q.Scope != RMRScopeEP {
			t.Errorf("scope %d", q.Scope)
		}
	}},
	{"a zone that is nil or freed is an invalid handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		var none *PZ
		ok(t, h.pz.Free())
		for _, pz := range []*PZ{none, h.pz} {
			_, err := pz.CreateRMRForEP()
			wants(t, "create", err, ErrInvalidHandle)
		}
	}},
	{"a zone cannot be freed while a region is in it", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMRForEP())(t)
		wants(t, "free of the zone", h.pz.Free(), ErrInvalidState)
		ok(t, r.Free())
		ok(t, h.pz.Free())
	}},
	{"a region serves the endpoint that it was bound on", together(func(t *testing.T, x, y *point) {
		r := must(y.host.pz.CreateRMRForEP())(t)
		to := y.bind(r, y.lmr, 0, 64, remoteRights)
		x.writes(to)
		ok(t, x.PostRDMARead(x.seg(64, 64), 1, to, 0))
		x.done(x.request, 1, DTORDMARead, DTOSuccess, 64)
	})},
	{"a region does not serve other endpoints of its zone", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		x2, _ := pair(a, b, nil)
		r := must(b.pz.CreateRMRForEP())(t)
		to := y.bind(r, y.lmr, 0, 64, remoteRights)
		x2.cannotWrite("write through another endpoint", to)
		x.writes(to)
	}},
	{"a bind on another endpoint moves a region there", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		x2, y2 := pair(a, b, nil)
		r := must(b.pz.CreateRMRForEP())(t)
		y.bind(r, y.lmr, 0, 64, remoteRights)
		to := y2.bind(r, y.lmr, 0, 64, remoteRights)
		x2.writes(to)
		x.cannotRead("read through the endpoint before", to)
	}},
}

var rmrQueryRules = []rule{
	{"it returns context, range and privileges of a bound region", together(func(t *testing.T, _, y *point) {
		for _, priv := range []MemPriv{MemRemoteRead, MemRemoteWrite, remoteRights, MemNone} {
			r := must(y.host.pz.CreateRMR())(t)
			to := y.bind(r, y.lmr, 10, 20, priv)
			want := RMRParam{IA: y.host.ia, PZ: y.host.pz, Scope: RMRScopePZ, Bound: true, Context: to.Context,
				Triplet: y.lmr.Segment(10, 20), Priv: priv}
			if got := must(r.Query())(t); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	})},
	{"a bind that is not done does not show", together(func(t *testing.T, x, y *point) {
		r, to := x.window(0, 8)
		x.holdUp()
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(8, 8), Priv: remoteRights}, 1, 0))(t)
		if q := must(r.Query())(t); q.Context != to.Context || q.Triplet != x.lmr.Segment(0, 8) {
			t.Errorf("got %+v", q)
		}
		x.letOn()
		x.bound(r, 1, DTOSuccess)
		if q := must(r.Query())(t); q.Context == to.Context || q.Triplet != x.lmr.Segment(8, 8) {
			t.Errorf("got %+v", q)
		}
	})},
	{"an unbound region is not bound", together(func(t *testing.T, _, y *point) {
		r, _ := y.window(0, 8)
		y.bind(r, y.lmr, 0, 0, 0)
		unbound(t, r)
	})},
	{"a region whose bind was flushed is as before", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		ok(t, y.Disconnect(CloseAbrupt))
		y.expect(EventDisconnected)
		must(r.Bind(y.EP, Binding{LMR: y.lmr, Segment: y.lmr.Segment(8, 8), Priv: remoteRights}, 1, 0))(t)
		y.bound(r, 1, DTOFlushed)
		if q := must(r.Query())(t); q.Context != to.Context {
			t.Errorf("got %+v", q)
		}
		x.expect(EventDisconnected)
	})},
	{"a region that a peer has invalidated is not bound", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, x.PostSendWithInvalidate(nil, 2, 0, to.Context))
		y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
		unbound(t, r)
	})},
	{"a nil or freed region is an invalid handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMR())(t)
		ok(t, r.Free())
		var none *RMR
		for _, r := range []*RMR{none, r} {
			_, err := r.Query()
			wants(t, "query", err, ErrInvalidHandle)
		}
	}},
}

var rmrFreeRules = []rule{
	{"a region that is not bound can be freed", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		ok(t, must(h.pz.CreateRMR())(t).Free())
		ok(t, must(h.pz.CreateRMRForEP())(t).Free())
		ok(t, h.pz.Free())
	}},
	{"a nil or freed region is an invalid handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		r := must(h.pz.CreateRMR())(t)
		ok(t, r.Free())
		wants(t, "a second free", r.Free(), ErrInvalidHandle)
		var none *RMR
		wants(t, "free of nil", none.Free(), ErrInvalidHandle)
	}},
	{"freeing a bound region makes its context invalid", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		x.writes(to)
		ok(t, r.Free())
		x.cannotWrite("write after free", to)
	})},
	{"a read after the free is refused too", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		ok(t, r.Free())
		x.cannotRead("read after free", to)
	})},
	{"freeing a bound region lets its LMR and its zone go", together(func(t *testing.T, _, y *point) {
		_, l := y.private(64, localRights)
		r := must(y.host.pz.CreateRMR())(t)
		y.bind(r, l, 0, 64, remoteRights)
		ok(t, r.Free())
		ok(t, l.Free())
	})},
	{"freeing a region does not harm a connection that does not use it", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		x.writes(to)
		ok(t, r.Free())
		proves(x, y)
	})},
	{"an event of a freed region still names it", together(func(t *testing.T, x, _ *point) {
		r := must(x.host.pz.CreateRMR())(t)
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
		eventually(t, "the bind", func() bool { return x.request.Len() == 1 })
		ok(t, r.Free())
		x.bound(r, 1, DTOSuccess)
	})},
}
