package dat

import (
	"errors"
	"fmt"
	"testing"
)

const (
	localRights  = MemLocalRead | MemLocalWrite
	remoteRights = MemRemoteRead | MemRemoteWrite
)

// bound awaits the completion of a bind.
func (p *point) bound(r *RMR, cookie uint64, want DTOStatus) {
	t := p.host.t
	t.Helper()
	ev := await(t, p.request, EventRMRBindCompletion)
	if ev.RMR != r || ev.EP != p.EP || ev.EVD != p.request || ev.Cookie != cookie || ev.Op != DTOBind || ev.Status != want {
		t.Errorf("bind completes as %+v, want cookie %d and %v", ev, cookie, want)
	}
}

// bind binds a region to n bytes of an LMR from an offset on, and awaits that.
func (p *point) bind(r *RMR, l *LMR, off, n int, priv MemPriv) RMRTriplet {
	p.host.t.Helper()
	context := must(r.Bind(l, l.Segment(off, n), priv, p.EP, 70, 0))(p.host.t)
	p.bound(r, 70, DTOSuccess)
	return RMRTriplet{Context: context, Address: l.Address() + uint64(off), Length: uint64(n)}
}

// window is a new region that gives peers all rights to n bytes of p's memory from an offset on.
func (p *point) window(off, n int) (*RMR, RMRTriplet) {
	p.host.t.Helper()
	r := must(p.host.pz.CreateRMR())(p.host.t)
	return r, p.bind(r, p.lmr, off, n, remoteRights)
}

// private registers memory that peers can reach through a window only.
func (p *point) private(n int, priv MemPriv) ([]byte, *LMR) {
	p.host.t.Helper()
	mem := make([]byte, n)
	return mem, must(p.host.ia.CreateLMR(mem, p.host.pz, priv))(p.host.t)
}

// part is n bytes of a remote range from an offset on; nothing is checked.
func part(to RMRTriplet, off, n int) RMRTriplet {
	return RMRTriplet{Context: to.Context, Address: to.Address + uint64(off), Length: uint64(n)}
}

// writes has p write to its peer's range, which must succeed.
func (p *point) writes(to RMRTriplet) {
	t := p.host.t
	t.Helper()
	ok(t, p.PostRDMAWrite(p.seg(0, int(to.Length)), 71, to, 0))
	p.done(p.request, 71, DTORDMAWrite, DTOSuccess, int(to.Length))
}

// cannot has a request of p be refused by its peer, which breaks the connection.
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

// holdUp makes p's request queue wait, with a message that has no receive, until letOn.
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

// together are two connected endpoints.
func together(f func(t *testing.T, x, y *point)) func(*testing.T, network) {
	return func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		f(t, x, y)
	}
}

// broken runs a case for each entry on a connection of its own, since each breaks it.
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
	{"dat_rmr_create", []rule{
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
			ok(t, h.ia.Close(CloseAbrupt))
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
			wants(t, "graceful close", h.ia.Close(CloseGraceful), ErrInvalidState)
			ok(t, r.Free())
			ok(t, h.pz.Free())
			ok(t, h.ia.Close(CloseGraceful))
		}},
		{"an abrupt close ends regions, bound or not", together(func(t *testing.T, x, y *point) {
			r, _ := y.window(0, 64)
			other := must(y.host.pz.CreateRMR())(t)
			ok(t, y.host.ia.Close(CloseAbrupt))
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
	}},
	{"dat_rmr_create_for_ep", []rule{
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
	}},
	{"dat_rmr_query", []rule{
		{"a bound region tells its context, range and privileges", together(func(t *testing.T, _, y *point) {
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
			must(r.Bind(x.lmr, x.lmr.Segment(8, 8), remoteRights, x.EP, 1, 0))(t)
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
			must(r.Bind(y.lmr, y.lmr.Segment(8, 8), remoteRights, y.EP, 1, 0))(t)
			y.bound(r, 1, DTOFlushed)
			if q := must(r.Query())(t); q.Context != to.Context {
				t.Errorf("got %+v", q)
			}
			x.expect(EventDisconnected)
		})},
		{"a region that a peer has invalidated is not bound", together(func(t *testing.T, x, y *point) {
			r, to := y.window(0, 8)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSendWithInvalidate(nil, 2, 0, true, to.Context))
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
	}},
	{"dat_rmr_bind", []rule{
		{"each handle must be valid", together(func(t *testing.T, x, y *point) {
			r := must(x.host.pz.CreateRMR())(t)
			freed := must(x.host.pz.CreateRMR())(t)
			ok(t, freed.Free())
			_, l := x.private(64, MemAll)
			ok(t, l.Free())
			gone := x.host.point(nil)
			ok(t, gone.Free())
			for what, c := range map[string]struct {
				r  *RMR
				l  *LMR
				ep *EP
			}{
				"nil RMR": {nil, x.lmr, x.EP}, "freed RMR": {freed, x.lmr, x.EP}, "nil LMR": {r, nil, x.EP},
				"freed LMR": {r, l, x.EP}, "nil EP": {r, x.lmr, nil}, "freed EP": {r, x.lmr, gone.EP},
			} {
				_, err := c.r.Bind(c.l, x.lmr.Segment(0, 8), remoteRights, c.ep, 1, 0)
				wants(t, what, err, ErrInvalidHandle)
			}
			x.still()
			_ = y
		})},
		{"the request EVD must take binds", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			p := h.point(nil)
			for _, flags := range []EVDFlags{EVDDTO, EVDDTO | EVDRMRBind} {
				e := must(h.ia.CreateEVD(8, nil, flags))(t)
				ep := must(h.ia.CreateEP(h.pz, p.recv, e, p.connect, nil))(t)
				r := must(h.pz.CreateRMR())(t)
				want := ErrInvalidHandle
				if flags&EVDRMRBind != 0 {
					want = ErrInvalidState // it is not connected
				}
				_, err := r.Bind(p.lmr, p.lmr.Segment(0, 8), remoteRights, ep, 1, 0)
				wants(t, fmt.Sprintf("EVD flags %#x", flags), err, want)
			}
		}},
		{"only the flags for suppressing, unsignalled completion and the fence are legal", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			for _, f := range []CompletionFlags{CompletionSolicitedWait, 0x10, 0x20, 0x40, 0x80, 0xff} {
				_, err := r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, f)
				wants(t, fmt.Sprintf("flags %#x", f), err, ErrInvalidParameter)
			}
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, CompletionBarrierFence))(t)
			x.bound(r, 1, DTOSuccess)
		})},
		{"privileges that are not defined are refused", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			for _, p := range []MemPriv{0x04, 0x08, 0x80, 0xff} {
				_, err := r.Bind(x.lmr, x.lmr.Segment(0, 8), p, x.EP, 1, 0)
				wants(t, fmt.Sprintf("privileges %#x", p), err, ErrInvalidParameter)
			}
		})},
		{"the segment must be inside the LMR", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			base := x.lmr.Address()
			for what, c := range map[string]struct {
				addr uint64
				n    uint32
			}{
				"below": {base - 1, 1}, "beyond": {base + pointMem, 1}, "over the end": {base + pointMem - 8, 9},
				"too long": {base, pointMem + 1}, "wrap": {1<<64 - 8, 16}, "4 GiB": {base, 1<<32 - 1},
			} {
				s := LMRTriplet{Context: x.lmr.Context(), Address: c.addr, Length: c.n}
				_, err := r.Bind(x.lmr, s, remoteRights, x.EP, 1, 0)
				wants(t, what, err, ErrInvalidParameter)
			}
		})},
		{"the segment must name the LMR that is given", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			_, other := x.private(64, MemAll)
			for what, c := range map[string]uint32{"another": other.Context(), "remote": x.lmr.RMRContext(), "none": 0} {
				s := x.lmr.Segment(0, 8)
				s.Context = c
				_, err := r.Bind(x.lmr, s, remoteRights, x.EP, 1, 0)
				wants(t, what, err, ErrInvalidParameter)
			}
		})},
		{"region, LMR and endpoint must be of one zone", together(func(t *testing.T, x, y *point) {
			other := must(x.host.ia.CreatePZ())(t)
			ours, theirs := must(x.host.pz.CreateRMR())(t), must(other.CreateRMR())(t)
			l := must(x.host.ia.CreateLMR(make([]byte, 64), other, MemAll))(t)
			for what, c := range map[string]struct {
				r *RMR
				l *LMR
			}{"RMR": {theirs, x.lmr}, "LMR": {ours, l}, "endpoint": {theirs, l}} {
				_, err := c.r.Bind(c.l, c.l.Segment(0, 8), remoteRights, x.EP, 1, 0)
				wants(t, "another zone of "+what, err, ErrProtectionViolation)
			}
			_, err := ours.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, y.EP, 1, 0)
			wants(t, "endpoint of another adapter", err, ErrProtectionViolation)
			_, err = ours.Bind(y.lmr, y.lmr.Segment(0, 8), remoteRights, x.EP, 1, 0)
			wants(t, "LMR of another adapter", err, ErrProtectionViolation)
		})},
		{"remote rights need the local right to the same", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			for _, c := range []struct {
				lmr, rmr MemPriv
				want     error
			}{
				{MemNone, MemRemoteRead, ErrPrivilegesViolation}, {remoteRights, MemRemoteRead, ErrPrivilegesViolation},
				{MemNone, MemRemoteWrite, ErrPrivilegesViolation}, {remoteRights, MemRemoteWrite, ErrPrivilegesViolation},
				{MemLocalRead, MemRemoteWrite, ErrPrivilegesViolation}, {MemLocalRead, remoteRights, ErrPrivilegesViolation},
				{MemLocalRead, MemRemoteRead, nil}, {MemLocalWrite, MemRemoteWrite, nil}, {MemNone, MemNone, nil},
			} {
				_, l := x.private(64, c.lmr)
				_, err := r.Bind(l, l.Segment(0, 8), c.rmr, x.EP, 1, 0)
				if !errors.Is(err, c.want) {
					t.Errorf("LMR %#x, RMR %#x: got %v, want %v", c.lmr, c.rmr, err, c.want)
				}
				if c.want == nil {
					x.bound(r, 1, DTOSuccess)
				}
			}
		})},
		{"a region gives rights that its LMR does not give", together(func(t *testing.T, x, y *point) {
			mem, l := y.private(64, localRights)
			r := must(y.host.pz.CreateRMR())(t)
			to := y.bind(r, l, 0, 64, remoteRights)
			fillRandom(x.mem[:64], 2)
			x.writes(to)
			same(t, mem, x.mem[:64])
			ok(t, x.PostRDMARead(x.seg(64, 64), 1, to, 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 64)
			same(t, x.mem[64:128], mem)
		})},
		{"a region gives no right but those bound, though its LMR does", broken(map[string]MemPriv{
			"write": MemRemoteRead, "read": MemRemoteWrite, "either": MemNone,
		}, func(t *testing.T, x, y *point, what string, priv MemPriv) {
			r := must(y.host.pz.CreateRMR())(t)
			to := y.bind(r, y.lmr, 0, 64, priv)
			if what == "read" {
				x.cannotRead(what, to)
			} else {
				x.cannotWrite(what, to)
			}
			same(t, y.mem[:64], make([]byte, 64))
		})},
		{"a region ends where its range ends, though the LMR goes on", broken(map[string][2]int{
			"below": {-1, 8}, "beyond": {64, 1}, "over the end": {57, 8}, "longer": {0, 65}, "far": {1 << 20, 8},
		}, func(t *testing.T, x, y *point, what string, at [2]int) {
			_, to := y.window(100, 64)
			x.writes(part(to, 0, 64))
			x.cannotWrite(what, part(to, at[0], at[1]))
			same(t, y.mem[164:256], make([]byte, 92))
		})},
		{"a range may be one byte or the whole LMR", together(func(t *testing.T, x, y *point) {
			_, one := y.window(7, 1)
			x.mem[0] = 0xee
			x.writes(one)
			same(t, y.mem[6:9], []byte{0, 0xee, 0})
			_, all := y.window(0, pointMem)
			fillRandom(x.mem, 3)
			x.writes(all)
			same(t, y.mem, x.mem)
		})},
		{"it is refused unless the endpoint is connected or disconnected", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			r := must(a.pz.CreateRMR())(t)
			refused := func(want EPState) {
				t.Helper()
				if s := x.State(); s != want {
					t.Errorf("state %v, want %v", s, want)
				}
				_, err := r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, 0)
				wants(t, want.String(), err, ErrInvalidState)
			}
			refused(EPUnconnected)
			x.dial(b, nil)
			refused(EPActiveConnectionPending)
			ok(t, b.request(t).Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			x.peer = y
			x.holdUp()
			ok(t, x.Disconnect(CloseGraceful))
			refused(EPDisconnectPending)
			x.letOn()
			x.expect(EventDisconnected)
			ok(t, x.Reset())
			refused(EPUnconnected)
			x.still()
		}},
		{"while disconnected it completes as flushed", together(func(t *testing.T, x, y *point) {
			r := must(x.host.pz.CreateRMR())(t)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			for i := range uint64(3) {
				must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, i, CompletionSuppress))(t)
				x.bound(r, i, DTOFlushed)
			}
			must(r.Bind(nil, LMRTriplet{}, 0, x.EP, 9, 0))(t)
			x.bound(r, 9, DTOFlushed)
			unbound(t, r)
			ok(t, x.lmr.Free())
		})},
		{"a flushed bind leaves the context before valid and its own invalid", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			x2, y2 := pair(a, b, nil)
			r, to := y.window(0, 8)
			ok(t, y2.Disconnect(CloseAbrupt))
			y2.expect(EventDisconnected)
			x2.expect(EventDisconnected)
			to2 := to
			to2.Context = must(r.Bind(y.lmr, y.lmr.Segment(0, 8), remoteRights, y2.EP, 1, 0))(t)
			y2.bound(r, 1, DTOFlushed)
			x.writes(to)
			x.cannotWrite("the context of the flushed bind", to2)
		}},
		{"binds count in MaxRequestDTOs", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRequestDTOs = 4
			x, _ := pair(a, b, &attr)
			r := must(a.pz.CreateRMR())(t)
			x.holdUp()
			for i := range uint64(3) {
				must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, i, 0))(t)
			}
			_, err := r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 9, 0)
			wants(t, "one more", err, ErrInsufficientResources)
			wants(t, "a send", x.PostSend(nil, 9, 0), ErrInsufficientResources)
			x.letOn()
			for i := range uint64(3) {
				x.bound(r, i, DTOSuccess)
			}
			x.still()
		}},
		{"a bind that is refused changes nothing", together(func(t *testing.T, x, y *point) {
			r, to := y.window(0, 8)
			_, l := y.private(64, MemLocalRead)
			_, err := r.Bind(l, l.Segment(0, 8), MemRemoteWrite, y.EP, 1, 0)
			wants(t, "bind", err, ErrPrivilegesViolation)
			ok(t, l.Free())
			y.still()
			if _, _, idle, _ := y.Status(); !idle {
				t.Error("a request is outstanding")
			}
			x.writes(to)
		})},
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
		{"contexts cannot be told from those before", together(func(t *testing.T, _, y *point) {
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
			c := must(r.Bind(y.lmr, y.lmr.Segment(64, 8), remoteRights, y.EP, 1, 0))(t)
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
		{"unbinding ignores the LMR and the rest of the segment", together(func(t *testing.T, _, y *point) {
			r, _ := y.window(0, 8)
			for i, s := range []LMRTriplet{{}, {Context: 1, Address: 1}, {Address: 1<<64 - 1}} {
				c := must(r.Bind(nil, s, remoteRights, y.EP, uint64(i), 0))(t)
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
				must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, cookie, 0))(t)
				x.bound(r, cookie, DTOSuccess)
			}
			x.still()
		})},
		{"suppressing hides success", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, CompletionSuppress))(t)
			must(r.Bind(x.lmr, x.lmr.Segment(8, 8), remoteRights, x.EP, 2, 0))(t)
			x.bound(r, 2, DTOSuccess)
			x.still()
		})},
		{"suppressing does not hide a flush", together(func(t *testing.T, x, _ *point) {
			r := must(x.host.pz.CreateRMR())(t)
			x.holdUp()
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, CompletionSuppress))(t)
			ok(t, x.Disconnect(CloseAbrupt))
			x.done(x.request, 73, DTOSend, DTOFlushed, 0)
			x.bound(r, 1, DTOFlushed)
		})},
		{"without a request EVD nobody is told", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			x.EP = must(a.ia.CreateEP(a.pz, x.recv, nil, x.connect, nil))(t)
			join(x, y)
			r := must(a.pz.CreateRMR())(t)
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, 0))(t)
			eventually(t, "the bind", func() bool { q, _ := r.Query(); return q.Bound })
		}},
		{"binds complete in posting order with all other requests", together(func(t *testing.T, x, y *point) {
			r := must(x.host.pz.CreateRMR())(t)
			for i := range uint64(8) {
				ok(t, y.PostRecv(y.seg(0, 64), i, 0))
			}
			for i := range uint64(8) {
				ok(t, x.PostSend(x.seg(0, 64), 5*i, 0))
				must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 5*i+1, 0))(t)
				ok(t, x.PostRDMARead(x.seg(4096, 4096), 5*i+2, y.lmr.Remote(4096, 4096), 0))
				must(r.Bind(x.lmr, x.lmr.Segment(8, 8), remoteRights, x.EP, 5*i+3, 0))(t)
				ok(t, x.PostRDMAWrite(x.seg(0, 64), 5*i+4, y.lmr.Remote(64, 64), 0))
			}
			var ev Event
			for i := range uint64(40) {
				if _, err := x.request.Wait(patience, 1, &ev); err != nil || ev.Cookie != i || ev.Status != DTOSuccess {
					t.Fatalf("completion %d is %v %v of %d: %v", i, ev.Number, ev.Status, ev.Cookie, err)
				}
			}
			y.letGo()
		})},
		{"what is posted after a bind waits for it, so that a send may carry the context", together(func(t *testing.T, x, y *point) {
			r := must(y.host.pz.CreateRMR())(t)
			for i := range 20 {
				ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
				c := must(r.Bind(y.lmr, y.lmr.Segment(64, 8), remoteRights, y.EP, 2, CompletionSuppress))(t)
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
			y.letGo()
			for i := range uint64(8) {
				r := must(x.host.pz.CreateRMR())(t)
				to := x.bind(r, x.lmr, 0, 30000, remoteRights)
				ok(t, x.PostRDMAReadToRMR(to, i, y.lmr.Remote(0, 30000), 0))
				must(r.Bind(nil, LMRTriplet{}, 0, x.EP, i, CompletionBarrierFence))(t)
				x.done(x.request, i, DTORDMARead, DTOSuccess, 30000)
				x.bound(r, i, DTOSuccess)
				same(t, x.mem[:30000], y.mem[:30000])
			}
		})},
		{"a graceful disconnect waits for binds", together(func(t *testing.T, x, y *point) {
			r := must(x.host.pz.CreateRMR())(t)
			x.holdUp()
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, 0))(t)
			ok(t, x.Disconnect(CloseGraceful))
			x.letOn()
			x.bound(r, 1, DTOSuccess)
			x.expect(EventDisconnected)
			y.expect(EventDisconnected)
		})},
		{"an abrupt disconnect flushes binds", together(func(t *testing.T, x, y *point) {
			r := must(x.host.pz.CreateRMR())(t)
			x.holdUp()
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, 0))(t)
			must(r.Bind(nil, LMRTriplet{}, 0, x.EP, 2, 0))(t)
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
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, CompletionSuppress))(t)
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
			must(r.Bind(l, l.Segment(0, 8), remoteRights, x.EP, 1, 0))(t)
			must(r.Bind(nil, LMRTriplet{}, 0, x.EP, 2, 0))(t)
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
			must(r.Bind(l, l.Segment(0, 8), remoteRights, x.EP, 1, 0))(t)
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
	}},
	{"dat_rmr_free", []rule{
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
			must(r.Bind(x.lmr, x.lmr.Segment(0, 8), remoteRights, x.EP, 1, 0))(t)
			eventually(t, "the bind", func() bool { return x.request.Len() == 1 })
			ok(t, r.Free())
			x.bound(r, 1, DTOSuccess)
		})},
	}},
	{"dat_ep_post_send_with_invalidate", []rule{
		{"without the flag it is a plain send", together(func(t *testing.T, x, y *point) {
			r, to := y.window(0, 8)
			copy(x.mem, "plain")
			ok(t, y.PostRecv(y.seg(64, 64), 1, 0))
			ok(t, x.PostSendWithInvalidate(x.seg(0, 5), 2, 0, false, to.Context))
			x.done(x.request, 2, DTOSend, DTOSuccess, 5)
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 5)
			same(t, y.mem[64:69], []byte("plain"))
			if q := must(r.Query())(t); !q.Bound {
				t.Error("the region is not bound any more")
			}
		})},
		{"the receive tells the context, and the data is there", together(func(t *testing.T, x, y *point) {
			for _, n := range []int{0, 1, 200, 60000} {
				_, to := y.window(0, 8)
				fillRandom(x.mem[:n], uint64(n))
				ok(t, y.PostRecv(y.seg(64, 61000), 1, 0))
				ok(t, x.PostSendWithInvalidate(x.seg(0, n), 2, 0, true, to.Context))
				ev := await(t, y.recv, EventDTOCompletion)
				if ev.Op != DTOReceiveWithInvalidate || ev.RMRContext != to.Context || ev.Cookie != 1 || ev.Length != uint64(n) || ev.Status != DTOSuccess {
					t.Errorf("%d bytes: receive completes as %+v", n, ev)
				}
				x.done(x.request, 2, DTOSend, DTOSuccess, n)
				same(t, y.mem[64:64+n], x.mem[:n])
			}
		})},
		{"a plain receive after it tells no context", together(func(t *testing.T, x, y *point) {
			_, to := y.window(0, 8)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, y.PostRecv(nil, 2, 0))
			ok(t, x.PostSendWithInvalidate(nil, 3, 0, true, to.Context))
			ok(t, x.PostSend(nil, 4, 0))
			y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
			if ev := await(t, y.recv, EventDTOCompletion); ev.Op != DTOReceive || ev.RMRContext != 0 || ev.Cookie != 2 {
				t.Errorf("got %+v", ev)
			}
		})},
		{"the context is invalid when the receive completes", together(func(t *testing.T, x, y *point) {
			_, l := y.private(64, localRights)
			r := must(y.host.pz.CreateRMR())(t)
			to := y.bind(r, l, 0, 64, remoteRights)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSendWithInvalidate(nil, 2, 0, true, to.Context))
			y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
			unbound(t, r)
			ok(t, l.Free())
			x.done(x.request, 2, DTOSend, DTOSuccess, 0)
			x.cannotWrite("the context", to)
		})},
		{"what was posted before it may use the context", together(func(t *testing.T, x, y *point) {
			_, to := y.window(100, 64)
			fillRandom(x.mem[:64], 6)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostRDMAWrite(x.seg(0, 64), 2, to, 0))
			ok(t, x.PostSendWithInvalidate(nil, 3, 0, true, to.Context))
			y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
			same(t, y.mem[100:164], x.mem[:64])
			x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 64)
			x.done(x.request, 3, DTOSend, DTOSuccess, 0)
		})},
		{"a region that was invalidated can be bound again", together(func(t *testing.T, x, y *point) {
			r, to := y.window(0, 8)
			for range 5 {
				ok(t, y.PostRecv(nil, 1, 0))
				ok(t, x.PostSendWithInvalidate(nil, 2, 0, true, to.Context))
				y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
				x.done(x.request, 2, DTOSend, DTOSuccess, 0)
				to = y.bind(r, y.lmr, 0, 8, remoteRights)
				x.writes(to)
			}
		})},
		{"a region for the endpoint can be invalidated through it", together(func(t *testing.T, x, y *point) {
			r := must(y.host.pz.CreateRMRForEP())(t)
			to := y.bind(r, y.lmr, 0, 8, remoteRights)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSendWithInvalidate(nil, 2, 0, true, to.Context))
			y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
			unbound(t, r)
		})},
		{"a context that is not one of a bound region here breaks the connection", broken(map[string]func(x, y *point) uint32{
			"none":               func(_, _ *point) uint32 { return 0 },
			"nobody's":           func(_, y *point) uint32 { return y.lmr.RMRContext() ^ 1 },
			"an LMR's":           func(_, y *point) uint32 { return y.lmr.RMRContext() },
			"the sender's own":   func(x, _ *point) uint32 { _, to := x.window(0, 8); return to.Context },
			"of the bind before": func(_, y *point) uint32 { r, to := y.window(0, 8); y.bind(r, y.lmr, 0, 8, 0); return to.Context },
			"of a freed region":  func(_, y *point) uint32 { r, to := y.window(0, 8); _ = r.Free(); return to.Context },
			"another endpoint's": func(x, y *point) uint32 {
				_, y2 := pair(x.host, y.host, nil)
				r, _ := y.host.pz.CreateRMRForEP()
				return y2.bind(r, y.lmr, 0, 8, remoteRights).Context
			},
			"another zone's": func(x, y *point) uint32 {
				pz := y.host.pz
				y.host.pz, _ = y.host.ia.CreatePZ()
				_, y2 := pair(x.host, y.host, nil)
				_, to := y2.window(0, 8)
				y.host.pz = pz
				return to.Context
			},
		}, func(t *testing.T, x, y *point, what string, context func(x, y *point) uint32) {
			c := context(x, y)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			x.cannot(what, DTOSend, x.PostSendWithInvalidate(x.seg(0, 8), 2, 0, true, c))
			y.done(y.recv, 1, DTOReceive, DTOFlushed, 0)
		})},
		{"flags are those of a send", together(func(t *testing.T, x, y *point) {
			for _, f := range []CompletionFlags{0x10, 0x20, 0x40, 0x80} {
				wants(t, fmt.Sprintf("flags %#x", f), x.PostSendWithInvalidate(nil, 1, f, true, 0), ErrInvalidParameter)
				wants(t, fmt.Sprintf("flags %#x, plain", f), x.PostSendWithInvalidate(nil, 1, f, false, 0), ErrInvalidParameter)
			}
			_, to := y.window(0, 8)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSendWithInvalidate(nil, 2, CompletionSuppress|CompletionSolicitedWait|CompletionBarrierFence, true, to.Context))
			y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
			x.still()
		})},
		{"the endpoint must be valid", together(func(t *testing.T, x, _ *point) {
			ok(t, x.Free())
			wants(t, "freed", x.PostSendWithInvalidate(nil, 1, 0, true, 1), ErrInvalidHandle)
			var none *EP
			for _, invalidate := range []bool{false, true} {
				wants(t, "nil", none.PostSendWithInvalidate(nil, 1, 0, invalidate, 1), ErrInvalidHandle)
			}
		})},
		{"segments are checked as those of a send", together(func(t *testing.T, x, _ *point) {
			other := must(x.host.ia.CreatePZ())(t)
			zoned := must(x.host.ia.CreateLMR(make([]byte, 64), other, MemAll))(t)
			_, bare := x.private(64, MemNone)
			for what, c := range map[string]struct {
				iov  []LMRTriplet
				want error
			}{
				"outside":      {x.seg(pointMem-7, 8), ErrInvalidParameter},
				"too many":     {make([]LMRTriplet, maxIOV+1), ErrInvalidParameter},
				"another zone": {[]LMRTriplet{zoned.Segment(0, 8)}, ErrProtectionViolation},
				"no right":     {[]LMRTriplet{bare.Segment(0, 8)}, ErrPrivilegesViolation},
				"no context":   {[]LMRTriplet{{Length: 8}}, ErrPrivilegesViolation},
			} {
				wants(t, what, x.PostSendWithInvalidate(c.iov, 1, 0, true, 1), c.want)
			}
			x.still()
		})},
		{"a message longer than the endpoint allows is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxMessageSize = 100
			x, _ := pair(a, b, &attr)
			wants(t, "101 bytes", x.PostSendWithInvalidate(x.seg(0, 101), 1, 0, true, 1), ErrInvalidParameter)
		}},
		{"it is refused before the connection and flushed after", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			wants(t, "unconnected", x.PostSendWithInvalidate(nil, 1, 0, true, 1), ErrInvalidState)
			join(x, y)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			ok(t, x.PostSendWithInvalidate(nil, 1, CompletionSuppress, true, 1))
			x.done(x.request, 1, DTOSend, DTOFlushed, 0)
		}},
		{"it waits for a receive as a send does", together(func(t *testing.T, x, y *point) {
			r, to := y.window(0, 8)
			ok(t, x.PostSendWithInvalidate(x.seg(0, 8), 1, 0, true, to.Context))
			x.still()
			if q := must(r.Query())(t); !q.Bound {
				t.Error("the region was invalidated without a receive")
			}
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
			y.done(y.recv, 2, DTOReceiveWithInvalidate, DTOSuccess, 8)
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
		})},
		{"a message longer than its receive invalidates nothing", together(func(t *testing.T, x, y *point) {
			r, to := y.window(0, 8)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, x.PostSendWithInvalidate(x.seg(0, 9), 2, 0, true, to.Context))
			x.done(x.request, 2, DTOSend, DTORemoteResponder, 0)
			y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
			if q := must(r.Query())(t); !q.Bound {
				t.Error("the region was invalidated")
			}
		})},
		{"the request queue is as long as for sends", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRequestDTOs = 2
			x, _ := pair(a, b, &attr)
			x.holdUp()
			ok(t, x.PostSendWithInvalidate(nil, 1, 0, true, 1))
			wants(t, "a third", x.PostSendWithInvalidate(nil, 2, 0, true, 1), ErrInsufficientResources)
		}},
	}},
	{"dat_ep_post_rdma_read_to_rmr", []rule{
		{"it brings the peer's bytes to the range of the region", together(func(t *testing.T, x, y *point) {
			for i, n := range []int{1, 64, 5000, 60000} {
				mem, l := x.private(61000, localRights)
				r := must(x.host.pz.CreateRMR())(t)
				to := x.bind(r, l, 100, n+200, MemRemoteWrite)
				fillRandom(y.mem[:n], uint64(i))
				y.letGo()
				ok(t, x.PostRDMAReadToRMR(part(to, 50, n), 1, y.lmr.Remote(0, n), 0))
				x.done(x.request, 1, DTORDMARead, DTOSuccess, n)
				same(t, mem[150:150+n], y.mem[:n])
				same(t, mem[:150], make([]byte, 150))
				same(t, mem[150+n:250+n], make([]byte, 100))
			}
		})},
		{"a region that serves one endpoint takes what that reads", together(func(t *testing.T, x, y *point) {
			r := must(x.host.pz.CreateRMRForEP())(t)
			to := x.bind(r, x.lmr, 0, 64, MemRemoteWrite)
			fillRandom(y.mem[:64], 7)
			y.letGo()
			ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 64)
			same(t, x.mem[:64], y.mem[:64])
		})},
		{"the source may be a region too", together(func(t *testing.T, x, y *point) {
			_, to := x.window(0, 64)
			_, from := y.window(100, 64)
			fillRandom(y.mem[100:164], 8)
			y.letGo()
			ok(t, x.PostRDMAReadToRMR(to, 1, from, 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 64)
			same(t, x.mem[:64], y.mem[100:164])
		})},
		{"the context must be one of a bound region", together(func(t *testing.T, x, y *point) {
			r, to := x.window(0, 64)
			gone, ended := x.window(0, 64)
			ok(t, gone.Free())
			_, theirs := y.window(0, 64)
			old := to
			to = x.bind(r, x.lmr, 0, 64, remoteRights)
			for what, c := range map[string]uint32{"none": 0, "nobody's": to.Context ^ 1, "an LMR's": x.lmr.RMRContext(),
				"local": x.lmr.Context(), "of the bind before": old.Context, "freed": ended.Context, "the peer's": theirs.Context} {
				to.Context = c
				wants(t, what, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrPrivilegesViolation)
			}
			x.still()
		})},
		{"the region must give the right to write", together(func(t *testing.T, x, y *point) {
			for _, priv := range []MemPriv{MemNone, MemRemoteRead} {
				r := must(x.host.pz.CreateRMR())(t)
				to := x.bind(r, x.lmr, 0, 64, priv)
				wants(t, fmt.Sprintf("privileges %#x", priv), x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrPrivilegesViolation)
			}
		})},
		{"the region must be of the endpoint's zone", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			a.pz = must(a.ia.CreatePZ())(t)
			x2, _ := pair(a, b, nil)
			_, to := x2.window(0, 64)
			wants(t, "another zone", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrProtectionViolation)
		}},
		{"the region must not be bound for another endpoint", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			x2, _ := pair(a, b, nil)
			r := must(a.pz.CreateRMRForEP())(t)
			to := x2.bind(r, x.lmr, 0, 64, remoteRights)
			wants(t, "another endpoint", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrProtectionViolation)
		}},
		{"the local range must be inside the region", together(func(t *testing.T, x, y *point) {
			_, to := x.window(100, 64)
			for what, at := range map[string][2]int{"below": {-1, 8}, "beyond": {64, 1}, "over the end": {57, 8}, "longer": {0, 65}} {
				wants(t, what, x.PostRDMAReadToRMR(part(to, at[0], at[1]), 1, y.lmr.Remote(0, 1), 0), ErrInvalidParameter)
			}
			to.Length = 1 << 63
			wants(t, "huge", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 1), 0), ErrInvalidParameter)
			to.Address, to.Length = 1<<64-8, 16
			wants(t, "wrap", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 1), 0), ErrInvalidParameter)
		})},
		{"the local range must be as long as the remote one", together(func(t *testing.T, x, y *point) {
			_, to := x.window(0, 64)
			wants(t, "shorter", x.PostRDMAReadToRMR(part(to, 0, 63), 1, y.lmr.Remote(0, 64), 0), ErrLengthError)
			wants(t, "empty", x.PostRDMAReadToRMR(RMRTriplet{}, 1, y.lmr.Remote(0, 1), 0), ErrLengthError)
		})},
		{"a read of no bytes is legal and ignores the region", together(func(t *testing.T, x, _ *point) {
			ok(t, x.PostRDMAReadToRMR(RMRTriplet{Context: 1, Address: 2}, 1, RMRTriplet{}, 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, 0)
		})},
		{"flags are those of a read", together(func(t *testing.T, x, y *point) {
			_, to := x.window(0, 64)
			for _, f := range []CompletionFlags{CompletionSolicitedWait, 0x10, 0x20, 0x40, 0x80} {
				wants(t, fmt.Sprintf("flags %#x", f), x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), f), ErrInvalidParameter)
			}
			ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), CompletionSuppress))
			ok(t, x.PostRDMAReadToRMR(to, 2, y.lmr.Remote(0, 64), CompletionBarrierFence))
			x.done(x.request, 2, DTORDMARead, DTOSuccess, 64)
		})},
		{"the endpoint must be valid", together(func(t *testing.T, x, _ *point) {
			ok(t, x.Free())
			wants(t, "freed", x.PostRDMAReadToRMR(RMRTriplet{}, 1, RMRTriplet{}, 0), ErrInvalidHandle)
			var none *EP
			wants(t, "nil", none.PostRDMAReadToRMR(RMRTriplet{}, 1, RMRTriplet{}, 0), ErrInvalidHandle)
		})},
		{"it is refused before the connection and flushed after", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			wants(t, "unconnected", x.PostRDMAReadToRMR(RMRTriplet{}, 1, RMRTriplet{}, 0), ErrInvalidState)
			join(x, y)
			_, to := x.window(0, 64)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), CompletionSuppress))
			x.peer = nil
			x.done(x.request, 1, DTORDMARead, DTOFlushed, 0)
		}},
		{"an endpoint that allows no reads refuses it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMAReadOut = 0
			x, y := pair(a, b, &attr)
			_, to := x.window(0, 64)
			wants(t, "no reads", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrInvalidParameter)
		}},
		{"a read longer than the endpoint allows is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMASize = 63
			x, y := pair(a, b, &attr)
			_, to := x.window(0, 64)
			wants(t, "64 bytes", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrInvalidParameter)
			to.Length = 1 << 31
			wants(t, "2 GiB", x.PostRDMAReadToRMR(to, 1, RMRTriplet{Length: 1 << 31}, 0), ErrInvalidParameter)
		}},
		{"a remote range that may not be read is REMOTE_ACCESS", together(func(t *testing.T, x, y *point) {
			_, to := x.window(0, 64)
			from := y.lmr.Remote(0, 64)
			from.Context ^= 1
			x.cannot("wrong context", DTORDMARead, x.PostRDMAReadToRMR(to, 1, from, 0))
		})},
		{"a region that ends before the data is there breaks the connection", together(func(t *testing.T, x, y *point) {
			r, to := x.window(0, 64)
			x.holdUp()
			ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0))
			ok(t, r.Free())
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
			x.expect(EventBroken)
			y.expect(EventBroken)
			x.done(x.request, 73, DTOSend, DTOSuccess, 8)
			x.peer = nil
			x.done(x.request, 1, DTORDMARead, DTOLocalProtection, 0)
		})},
	}},
}
