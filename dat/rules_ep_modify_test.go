package dat

import (
	"bytes"
	"testing"
)

// modifyRules returns a rule for each attribute.
func modifyRules() (all []rule) {
	for _, f := range attributes {
		all = append(all, rule{f.name + " is changed alone", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).point(nil)
			want := must(p.Query())(t)
			var change EPParam // all other fields are zero
			f.set(&change.Attr, 3)
			ok(t, p.Modify(f.field, &change))
			f.set(&want.Attr, granted(f.limit, 3))
			if got := must(p.Query())(t); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}})
	}
	return all
}

var epModifyRules = append(modifyRules(), []rule{
	{"the parameters that identify an endpoint cannot change", func(t *testing.T, n network) {
		s := newStage(t, n, EPUnconnected, Options{})
		for _, f := range []EPMask{EPFieldIA, EPFieldState, EPFieldComm, EPFieldLocalAddress, EPFieldLocalPort,
			EPFieldRemoteAddress, EPFieldRemotePort, EPFieldSRQ} {
			wants(t, "a fixed parameter", s.p.Modify(f|EPFieldMaxRecvDTOs, &EPParam{}), ErrInvalidParameter)
		}
	}},
	{"a mask with unknown bits is invalid", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		wants(t, "bit 31", p.Modify(1<<31, &EPParam{}), ErrInvalidParameter)
		wants(t, "bit 63", p.Modify(1<<63|EPFieldPZ, &EPParam{}), ErrInvalidParameter)
	}},
	{"the bits of a mask are those of uDAPL 2.0", func(t *testing.T, _ network) {
		for want, got := range map[EPMask]EPMask{0x1: EPFieldIA, 0x80: EPFieldPZ, 0x800: EPFieldSRQ, 0x1000: EPFieldServiceType,
			0x8000: EPFieldQoS, 0x40000: EPFieldMaxRecvDTOs, 0x1000000: EPFieldSRQSoftHW, 0x4000000: EPFieldMaxRDMAWriteIOV,
			0x40000000: EPFieldProviderAttr, 0x7fffffff: EPFieldAll} {
			if got != want {
				t.Errorf("got %#x, want %#x", got, want)
			}
		}
	}},
	{"an empty mask changes nothing; another mask needs parameters", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		ok(t, p.Modify(0, nil))
		wants(t, "nothing", p.Modify(EPFieldMaxRecvDTOs, nil), ErrInvalidParameter)
	}},
	{"a zone or dispatcher that could not be given to CreateEP is no handle", func(t *testing.T, n network) {
		h, other := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		p, q := h.point(nil), other.point(nil)
		freed := must(h.ia.CreatePZ())(t)
		ok(t, freed.Free())
		for name, tc := range map[string]struct {
			mask  EPMask
			param EPParam
		}{
			"freed zone":                 {EPFieldPZ, EPParam{PZ: freed}},
			"foreign zone":               {EPFieldPZ, EPParam{PZ: other.pz}},
			"foreign receive dispatcher": {EPFieldRecvEVD, EPParam{RecvEVD: q.recv}},
			"foreign request dispatcher": {EPFieldRequestEVD, EPParam{RequestEVD: q.request}},
			"receive stream":             {EPFieldRecvEVD, EPParam{RecvEVD: p.connect}},
			"request stream":             {EPFieldRequestEVD, EPParam{RequestEVD: p.connect}},
			"connect stream":             {EPFieldConnectEVD, EPParam{ConnectEVD: p.recv}},
		} {
			wants(t, name, p.Modify(tc.mask, &tc.param), ErrInvalidHandle)
		}
	}},
	{"it changes all parameters or none", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		p := h.point(nil)
		pz := must(h.ia.CreatePZ())(t)
		was := must(p.Query())(t)
		change := EPParam{PZ: pz, Attr: EPAttr{MaxRecvDTOs: 3, MaxRequestDTOs: maxDTOs + 1}}
		wants(t, "one is bad", p.Modify(EPFieldPZ|EPFieldMaxRecvDTOs|EPFieldMaxRequestDTOs, &change), ErrInvalidParameter)
		if now := must(p.Query())(t); now != was {
			t.Errorf("changed to %+v", now)
		}
		ok(t, pz.Free()) // the old zone is not in use
	}},
	{"if the state does not allow one of the changes, nothing is changed", func(t *testing.T, n network) {
		s := newStage(t, n, EPReserved, Options{})
		was := must(s.p.Query())(t)
		change := EPParam{PZ: must(s.a.ia.CreatePZ())(t), Attr: EPAttr{MaxRecvDTOs: 3}}
		wants(t, "zone while reserved", s.p.Modify(EPFieldPZ|EPFieldMaxRecvDTOs, &change), ErrInvalidState)
		if now := must(s.p.Query())(t); now != was {
			t.Errorf("changed to %+v", now)
		}
	}},
	{"parameters are checked before the state", func(t *testing.T, n network) {
		s := newStage(t, n, EPConnected, Options{})
		wants(t, "bad value", s.p.Modify(EPFieldMaxRecvDTOs, &EPParam{Attr: EPAttr{MaxRecvDTOs: -1}}), ErrInvalidParameter)
		wants(t, "fixed", s.p.Modify(EPFieldState, &EPParam{}), ErrInvalidParameter)
	}},
	{"the old zone and dispatchers are released, and the new ones are in use", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		p, q := h.point(nil), h.point(nil)
		pz := must(h.ia.CreatePZ())(t)
		evd := must(h.ia.CreateEVD(8, nil, EVDDTO|EVDConnection))(t)
		ok(t, p.Modify(epHandles, &EPParam{PZ: pz, RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd}))
		for _, e := range []*EVD{p.recv, p.request, p.connect} {
			ok(t, e.Free())
		}
		wants(t, "new zone", pz.Free(), ErrInvalidState)
		wants(t, "new dispatcher", evd.Free(), ErrInvalidState)
		ok(t, p.EP.Free())
		ok(t, pz.Free())
		ok(t, evd.Free())
		ok(t, q.EP.Free())
	}},
	{"a dispatcher that was set gets the events", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		p := EPParam{RecvEVD: must(a.ia.CreateEVD(8, nil, EVDDTO))(t), RequestEVD: must(a.ia.CreateEVD(8, nil, EVDDTO))(t),
			ConnectEVD: must(a.ia.CreateEVD(8, nil, EVDConnection))(t)}
		ok(t, x.Modify(EPFieldRecvEVD|EPFieldRequestEVD|EPFieldConnectEVD, &p))
		old := []*EVD{x.recv, x.request, x.connect}
		x.recv, x.request, x.connect = p.RecvEVD, p.RequestEVD, p.ConnectEVD
		join(x, y)
		proves(x, y)
		expectNoEvent(t, old...)
	}},
	{"a dispatcher that is nil is none", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		ok(t, p.Modify(EPFieldRecvEVD, &EPParam{}))
		if got := must(p.Query())(t); got.RecvEVD != nil || got.RequestEVD != p.request {
			t.Errorf("got %+v", got)
		}
		ok(t, p.recv.Free())
	}},
	{"changes apply to the next connection", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		attr := EPAttr{MaxRequestDTOs: 7, MaxRecvDTOs: 9, MaxRequestIOV: 2, MaxRecvIOV: 6, MaxRDMAReadIOV: 5, MaxRDMAWriteIOV: 3,
			MaxRDMAReadOut: 2, MaxRDMAReadIn: 2}
		ok(t, x.Modify(epSetUp, &EPParam{RecvEVD: x.recv, RequestEVD: x.request, ConnectEVD: x.connect, Attr: attr}))
		join(x, y)
		iov := make([]LMRTriplet, maxIOV)
		to := y.lmr.Remote(0, 4000)
		wants(t, "segments of a send", x.PostSend(iov[:3], 1, 0), ErrInvalidParameter)
		wants(t, "segments of a write", x.PostRDMAWrite(iov[:4], 1, to, 0), ErrInvalidParameter)
		wants(t, "segments of a read", x.PostRDMARead(iov[:6], 1, RMRTriplet{}, 0), ErrInvalidParameter)
		wants(t, "segments of a receive", x.PostRecv(iov[:7], 1, 0), ErrInvalidParameter)
		for range attr.MaxRecvDTOs {
			ok(t, x.PostRecv(iov[:6], 1, 0))
		}
		wants(t, "one receive more", x.PostRecv(nil, 1, 0), ErrInsufficientResources)
		for range attr.MaxRequestDTOs {
			ok(t, x.PostSend(iov[:2], 1, 0)) // the peer has no receives
		}
		wants(t, "one request more", x.PostSend(nil, 1, 0), ErrInsufficientResources)
	}},
	{"sizes that were changed count for the next connection of an endpoint with a shared receive queue", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.common(1, 64).point(nil), b.point(nil)
		ok(t, x.Modify(EPFieldMaxMessageSize|EPFieldMaxRDMASize, &EPParam{Attr: EPAttr{MaxMessageSize: 1000, MaxRDMASize: 2000}}))
		join(x, y)
		wants(t, "long message", x.PostSend(x.seg(0, 1001), 1, 0), ErrInvalidParameter)
		wants(t, "long write", x.PostRDMAWrite(x.seg(0, 2001), 1, y.lmr.Remote(0, 4000), 0), ErrInvalidParameter)
		ok(t, x.PostRDMAWrite(x.seg(0, 2000), 1, y.lmr.Remote(0, 4000), 0))
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 2000)
	}},
	{"sizes are minimums: an endpoint without a shared receive queue gets the maximum", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		ok(t, p.Modify(EPFieldMaxMessageSize|EPFieldMaxRDMASize, &EPParam{Attr: EPAttr{MaxMessageSize: 1000, MaxRDMASize: 2000}}))
		if a := must(p.Query())(t).Attr; a.MaxMessageSize != maxSize || a.MaxRDMASize != maxSize {
			t.Errorf("granted %d and %d bytes", a.MaxMessageSize, a.MaxRDMASize)
		}
	}},
	{"it may grow and shrink around receives that are posted, which stay", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(&EPAttr{MaxRecvDTOs: 5, MaxRequestDTOs: 5, MaxRecvIOV: 3})
		depth := func(dtos, iov int) error {
			return y.Modify(EPFieldMaxRecvDTOs|EPFieldMaxRecvIOV, &EPParam{Attr: EPAttr{MaxRecvDTOs: dtos, MaxRecvIOV: iov}})
		}
		for i := range 5 { // each with two segments, which are not adjacent
			ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(100*i, 10), y.lmr.Segment(1000+100*i, 10)}, uint64(i), 0))
		}
		ok(t, depth(300, 7))
		ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(500, 10), y.lmr.Segment(1500, 10)}, 5, 0))
		ok(t, depth(6, 2))
		wants(t, "one more", y.PostRecv(nil, 6, 0), ErrInsufficientResources)
		wants(t, "three pieces", y.PostRecv(make([]LMRTriplet, 3), 6, 0), ErrInvalidParameter)
		join(x, y)
		fillRandom(x.mem[:120], 1)
		for i := range 6 {
			ok(t, x.PostSend(x.seg(20*i, 20), 9, 0))
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 20)
			same(t, y.mem[100*i:100*i+10], x.mem[20*i:20*i+10])
			same(t, y.mem[1000+100*i:1000+100*i+10], x.mem[20*i+10:20*i+20])
		}
	}},
	{"a depth or limit that receives which are posted exceed is refused, and they stay", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		for i := range 3 {
			ok(t, y.PostRecv([]LMRTriplet{y.lmr.Segment(0, 4), y.lmr.Segment(4, 4)}, uint64(i), 0))
		}
		was := must(y.Query())(t)
		wants(t, "depth", y.Modify(EPFieldMaxRecvDTOs, &EPParam{Attr: EPAttr{MaxRecvDTOs: 2}}), ErrInvalidState)
		wants(t, "segments", y.Modify(EPFieldMaxRecvIOV, &EPParam{Attr: EPAttr{MaxRecvIOV: 1}}), ErrInvalidState)
		if now := must(y.Query())(t); now != was {
			t.Errorf("changed to %+v", now)
		}
		join(x, y)
		for i := range 3 {
			ok(t, x.PostSend(x.seg(0, 8), 9, 0))
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
		}
	}},
	{"a receive with memory of the old zone fails with local protection when a message arrives", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, y.Modify(EPFieldPZ, &EPParam{PZ: must(b.ia.CreatePZ())(t)}))
		wants(t, "a receive after it", y.PostRecv(y.seg(0, 8), 2, 0), ErrProtectionViolation)
		join(x, y)
		was := bytes.Clone(y.mem[:8])
		fillRandom(x.mem[:8], 2)
		ok(t, x.PostSend(x.seg(0, 8), 3, 0))
		y.done(y.recv, 1, DTOReceive, DTOLocalProtection, 0)
		y.expect(EventBroken)
		x.expect(EventBroken)
		same(t, y.mem[:8], was)
	}},
	{"a receive is good again when the zone is set back before the connection", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, y.Modify(EPFieldPZ, &EPParam{PZ: must(b.ia.CreatePZ())(t)}))
		ok(t, y.Modify(EPFieldPZ, &EPParam{PZ: b.pz}))
		join(x, y)
		ok(t, x.PostSend(x.seg(0, 8), 3, 0))
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
	}},
	{"the peer reaches memory of the zone that was set, and no other", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		pz := must(b.ia.CreatePZ())(t)
		lmr := must(b.ia.CreateLMR(make([]byte, 8), pz, MemAll))(t)
		ok(t, y.Modify(EPFieldPZ, &EPParam{PZ: pz}))
		join(x, y)
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, lmr.Remote(0, 8), 0))
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, y.lmr.Remote(0, 8), 0))
		x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0)
	}},
	{"completion flags of receives change only before the first receive", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		param := must(p.Query())(t)
		ok(t, p.Modify(EPFieldRecvCompletionFlags, &param))
		ok(t, p.PostRecv(nil, 1, 0))
		wants(t, "receives", p.Modify(EPFieldRecvCompletionFlags, &param), ErrInvalidState)
		ok(t, p.Modify(EPFieldRequestCompletionFlags, &param))
	}},
	{"after a reset an endpoint may be changed", func(t *testing.T, n network) {
		s := newStage(t, n, EPDisconnected, Options{})
		ok(t, s.p.Reset())
		ok(t, s.p.Modify(EPFieldMaxRecvDTOs|EPFieldMaxRecvIOV, &EPParam{Attr: EPAttr{MaxRecvDTOs: 1000, MaxRecvIOV: 9}}))
		y := s.b.point(nil)
		join(s.p, y)
		proves(s.p, y)
	}},
	{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		freed, open := h.point(nil), h.point(nil)
		ok(t, freed.Free())
		wants(t, "freed", freed.Modify(1<<63, nil), ErrInvalidHandle)
		wants(t, "nil", (*EP)(nil).Modify(1<<63, nil), ErrInvalidHandle)
		ok(t, h.ia.Close())
		wants(t, "closed", open.Modify(EPFieldPZ, &EPParam{}), ErrInvalidHandle)
	}},
}...)
