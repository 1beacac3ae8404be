package dat

import (
	"errors"
	"fmt"
	"testing"
)

// bindRequestRules has the rules for the parameters and the results of a bind.
var bindRequestRules = []rule{
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
			_, err := c.r.Bind(c.ep, Binding{LMR: c.l, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0)
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
			ep := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: p.recv, RequestEVD: e, ConnectEVD: p.connect}))(t)
			r := must(h.pz.CreateRMR())(t)
			want := ErrInvalidHandle
			if flags&EVDRMRBind != 0 {
				want = ErrInvalidState // it is not connected
			}
			_, err := r.Bind(ep, Binding{LMR: p.lmr, Segment: p.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0)
			wants(t, fmt.Sprintf("EVD flags %#x", flags), err, want)
		}
	}},
	{"only the flags for suppressing, unsignalled completion and the fence are legal", together(func(t *testing.T, x, _ *point) {
		r := must(x.host.pz.CreateRMR())(t)
		for _, f := range []CompletionFlags{CompletionSolicitedWait, 0x10, 0x20, 0x40, 0x80, 0xff} {
			_, err := r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, f)
			wants(t, fmt.Sprintf("flags %#x", f), err, ErrInvalidParameter)
		}
		must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, CompletionBarrierFence))(t)
		x.bound(r, 1, DTOSuccess)
	})},
	{"privileges that are not defined are refused", together(func(t *testing.T, x, _ *point) {
		r := must(x.host.pz.CreateRMR())(t)
		for _, p := range []MemPriv{0x04, 0x08, 0x80, 0xff} {
			_, err := r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: p}, 1, 0)
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
			_, err := r.Bind(x.EP, Binding{LMR: x.lmr, Segment: s, Priv: remoteRights}, 1, 0)
			wants(t, what, err, ErrInvalidParameter)
		}
	})},
	{"the segment must name the LMR that is given", together(func(t *testing.T, x, _ *point) {
		r := must(x.host.pz.CreateRMR())(t)
		_, other := x.private(64, MemAll)
		for what, c := range map[string]uint32{"another": other.Context(), "remote": x.lmr.RMRContext(), "none": 0} {
			s := x.lmr.Segment(0, 8)
			s.Context = c
			_, err := r.Bind(x.EP, Binding{LMR: x.lmr, Segment: s, Priv: remoteRights}, 1, 0)
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
			_, err := c.r.Bind(x.EP, Binding{LMR: c.l, Segment: c.l.Segment(0, 8), Priv: remoteRights}, 1, 0)
			wants(t, "another zone of "+what, err, ErrProtectionViolation)
		}
		_, err := ours.Bind(y.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0)
		wants(t, "endpoint of another adapter", err, ErrProtectionViolation)
		_, err = ours.Bind(x.EP, Binding{LMR: y.lmr, Segment: y.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0)
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
			_, err := r.Bind(x.EP, Binding{LMR: l, Segment: l.Segment(0, 8), Priv: c.rmr}, 1, 0)
			if !errors.Is(err, c.want) {
				t.Errorf("LMR %#x, RMR %#x: got %v, want %v", c.lmr, c.rmr, err, c.want)
			}
			if c.want == nil {
				x.bound(r, 1, DTOSuccess)
			}
		}
	})},
	{"a region can have remote privileges that its LMR lacks", together(func(t *testing.T, x, y *point) {
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
	{"a region has only the bound privileges, even if its LMR has more", broken(map[string]MemPriv{
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
	{"a region ends at the end of its range, even if the LMR is longer", broken(map[string][2]int{
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
			_, err := r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0)
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
			must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, i, CompletionSuppress))(t)
			x.bound(r, i, DTOFlushed)
		}
		must(r.Bind(x.EP, Binding{}, 9, 0))(t)
		x.bound(r, 9, DTOFlushed)
		unbound(t, r)
		ok(t, x.lmr.Free())
	})},
	{"after a flushed bind the old context is valid and the new context is invalid", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		x2, y2 := pair(a, b, nil)
		r, to := y.window(0, 8)
		ok(t, y2.Disconnect(CloseAbrupt))
		y2.expect(EventDisconnected)
		x2.expect(EventDisconnected)
		to2 := to
		to2.Context = must(r.Bind(y2.EP, Binding{LMR: y.lmr, Segment: y.lmr.Segment(0, 8), Priv: remoteRights}, 1, 0))(t)
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
			must(r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, i, 0))(t)
		}
		_, err := r.Bind(x.EP, Binding{LMR: x.lmr, Segment: x.lmr.Segment(0, 8), Priv: remoteRights}, 9, 0)
		wants(t, "one more", err, ErrInsufficientResources)
		wants(t, "a send", x.PostSend(nil, 9, 0), ErrInsufficientResources)
		x.letOn()
		for i := range uint64(3) {
			x.bound(r, i, DTOSuccess)
		}
		x.still()
	}},
	{"a refused bind changes nothing", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		_, l := y.private(64, MemLocalRead)
		_, err := r.Bind(y.EP, Binding{LMR: l, Segment: l.Segment(0, 8), Priv: MemRemoteWrite}, 1, 0)
		wants(t, "bind", err, ErrPrivilegesViolation)
		ok(t, l.Free())
		y.still()
		if _, _, idle, _ := y.Status(); !idle {
			t.Error("a request is outstanding")
		}
		x.writes(to)
	})},
}
