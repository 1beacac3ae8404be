package dat

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

// refuses checks that attributes are not those of an endpoint, neither new nor changed.
func refuses(t *testing.T, h *host, name string, change func(*EPAttr), want error) {
	t.Helper()
	attr := DefaultEPAttr()
	change(&attr)
	p := h.point(nil)
	_, err := h.ia.CreateEP(h.pz, p.recv, p.request, p.connect, &attr)
	wants(t, "CreateEP: "+name, err, want)
	was := must(p.Query())(t)
	wants(t, "Modify: "+name, p.Modify(epSetUp, &EPParam{RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect, Attr: attr}), want)
	if now := must(p.Query())(t); now != was {
		t.Errorf("%s: changed to %+v", name, now)
	}
}

// attributes are each attribute with a limit, and how it is set.
var attributes = []struct {
	name  string
	field EPMask
	limit int
	set   func(*EPAttr, int)
	get   func(*EPAttr) int
}{
	{"MaxRecvDTOs", EPFieldMaxRecvDTOs, maxDTOs, func(a *EPAttr, n int) { a.MaxRecvDTOs = n }, func(a *EPAttr) int { return a.MaxRecvDTOs }},
	{"MaxRequestDTOs", EPFieldMaxRequestDTOs, maxDTOs, func(a *EPAttr, n int) { a.MaxRequestDTOs = n }, func(a *EPAttr) int { return a.MaxRequestDTOs }},
	{"MaxRecvIOV", EPFieldMaxRecvIOV, maxIOV, func(a *EPAttr, n int) { a.MaxRecvIOV = n }, func(a *EPAttr) int { return a.MaxRecvIOV }},
	{"MaxRequestIOV", EPFieldMaxRequestIOV, maxIOV, func(a *EPAttr, n int) { a.MaxRequestIOV = n }, func(a *EPAttr) int { return a.MaxRequestIOV }},
	{"MaxRDMAReadIOV", EPFieldMaxRDMAReadIOV, maxIOV, func(a *EPAttr, n int) { a.MaxRDMAReadIOV = n }, func(a *EPAttr) int { return a.MaxRDMAReadIOV }},
	{"MaxRDMAWriteIOV", EPFieldMaxRDMAWriteIOV, maxIOV, func(a *EPAttr, n int) { a.MaxRDMAWriteIOV = n }, func(a *EPAttr) int { return a.MaxRDMAWriteIOV }},
	{"MaxRDMAReadIn", EPFieldMaxRDMAReadIn, maxReads, func(a *EPAttr, n int) { a.MaxRDMAReadIn = n }, func(a *EPAttr) int { return a.MaxRDMAReadIn }},
	{"MaxRDMAReadOut", EPFieldMaxRDMAReadOut, maxReads, func(a *EPAttr, n int) { a.MaxRDMAReadOut = n }, func(a *EPAttr) int { return a.MaxRDMAReadOut }},
	{"MaxMessageSize", EPFieldMaxMessageSize, maxSize, func(a *EPAttr, n int) { a.MaxMessageSize = uint32(n) }, func(a *EPAttr) int { return int(a.MaxMessageSize) }},
	{"MaxRDMASize", EPFieldMaxRDMASize, maxSize, func(a *EPAttr, n int) { a.MaxRDMASize = uint32(n) }, func(a *EPAttr) int { return int(a.MaxRDMASize) }},
}

// limitRules are a rule for each attribute.
func limitRules() (all []rule) {
	for _, f := range attributes {
		all = append(all, rule{f.name + " has a limit, up to which it is granted as asked for", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			refuses(t, h, "beyond the limit", func(a *EPAttr) { f.set(a, f.limit+1) }, ErrInvalidParameter)
			if f.limit != maxSize {
				refuses(t, h, "negative", func(a *EPAttr) { f.set(a, -1) }, ErrInvalidParameter)
			}
			for _, v := range []int{1, f.limit} {
				attr := DefaultEPAttr()
				f.set(&attr, v)
				p := must(h.point(&attr).Query())(t)
				if got := f.get(&p.Attr); got != v {
					t.Errorf("created with %d, it is %d", v, got)
				}
			}
		}})
	}
	return all
}

// modifyRules are a rule for each attribute.
func modifyRules() (all []rule) {
	for _, f := range attributes {
		all = append(all, rule{f.name + " is changed alone", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).point(nil)
			want := must(p.Query())(t)
			var change EPParam // everything else in it is left out
			f.set(&change.Attr, 3)
			ok(t, p.Modify(f.field, &change))
			f.set(&want.Attr, 3)
			if got := must(p.Query())(t); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}})
	}
	return all
}

var epCreateRules = append(limitRules(), []rule{
	{"a new endpoint is unconnected", func(t *testing.T, n network) {
		s := newStage(t, n, EPUnconnected, Options{})
		s.is(EPUnconnected)
		s.p.still()
	}},
	{"attributes that are nil are the defaults", func(t *testing.T, n network) {
		p := must(newHost(t, n, 0, Options{}).point(nil).Query())(t)
		if p.Attr != DefaultEPAttr() {
			t.Errorf("got %+v", p.Attr)
		}
	}},
	{"sizes and limits of segments that are 0 are the defaults", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		x := h.point(&EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 2, MaxRequestIOV: 3})
		d := DefaultEPAttr()
		want := EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 2, MaxRequestIOV: 3, MaxRecvIOV: d.MaxRecvIOV, MaxMessageSize: d.MaxMessageSize,
			MaxRDMASize: d.MaxRDMASize, MaxRDMAReadIOV: 3, MaxRDMAWriteIOV: 3}
		if got := must(x.Query())(t).Attr; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}},
	{"the service type is reliable connection, the quality of service best effort", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		refuses(t, h, "service type", func(a *EPAttr) { a.ServiceType = 1 }, ErrModelNotSupported)
		for _, q := range []QoS{QoSHighThroughput, QoSLowLatency, QoSEconomy, QoSPremium} {
			refuses(t, h, "quality of service", func(a *EPAttr) { a.QoS = q }, ErrModelNotSupported)
		}
	}},
	{"a zone that is freed or of another adapter is no handle", func(t *testing.T, n network) {
		h, other := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		freed := must(h.ia.CreatePZ())(t)
		ok(t, freed.Free())
		for name, pz := range map[string]*PZ{"freed": freed, "of another adapter": other.pz} {
			_, err := h.ia.CreateEP(pz, nil, nil, nil, nil)
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
	{"a dispatcher that is freed, of another adapter or without the stream is no handle", func(t *testing.T, n network) {
		h, other := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		const both = EVDDTO | EVDConnection
		freed := must(h.ia.CreateEVD(8, nil, both))(t)
		ok(t, freed.Free())
		foreign := must(other.ia.CreateEVD(8, nil, both))(t)
		dto, connection := must(h.ia.CreateEVD(8, nil, EVDDTO))(t), must(h.ia.CreateEVD(8, nil, EVDConnection))(t)
		for name, evds := range map[string][3]*EVD{
			"receive, freed": {freed, dto, connection}, "receive, foreign": {foreign, dto, connection}, "receive, stream": {connection, dto, connection},
			"request, freed": {dto, freed, connection}, "request, foreign": {dto, foreign, connection}, "request, stream": {dto, connection, connection},
			"connect, freed": {dto, dto, freed}, "connect, foreign": {dto, dto, foreign}, "connect, stream": {dto, dto, dto},
		} {
			_, err := h.ia.CreateEP(h.pz, evds[0], evds[1], evds[2], nil)
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
	{"one dispatcher may take everything of an endpoint, and of several", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		all := must(b.ia.CreateEVD(64, nil, EVDDTO|EVDConnection|EVDRMRBind))(t)
		x, y := a.point(nil), b.point(nil)
		must(b.ia.CreateEP(b.pz, all, all, all, nil))(t)
		y.EP = must(b.ia.CreateEP(b.pz, all, all, all, nil))(t)
		y.recv, y.request, y.connect = all, all, all
		join(x, y)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		y.done(all, 1, DTOReceive, DTOSuccess, 8)
	}},
	{"a dispatcher may come from another open of the adapter", func(t *testing.T, n network) {
		if _, simulated := n.(*sim); simulated {
			t.Skip("links that a caller brings are an adapter of their own each time")
		}
		a, b := newHosts(t, n, Options{})
		second := newHost(t, n, 1, Options{})
		x, y := a.point(nil), b.point(nil)
		foreign := must(second.ia.CreateEVD(8, nil, EVDConnection))(t)
		y.EP, y.connect = must(b.ia.CreateEP(b.pz, y.recv, y.request, foreign, nil))(t), foreign
		join(x, y)
		wants(t, "free of the dispatcher", foreign.Free(), ErrInvalidState)
		ok(t, b.ia.Close(CloseAbrupt)) // lets go of what is not its own
		ok(t, foreign.Free())
	}},
	{"a depth does not ask for a dispatcher, nor a dispatcher for a depth", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDDTO))(t)
		for _, recv := range []*EVD{nil, evd} {
			for _, depth := range []int{0, 1} {
				ep := must(h.ia.CreateEP(h.pz, recv, nil, nil, &EPAttr{MaxRecvDTOs: depth, MaxRequestDTOs: 1 - depth}))(t)
				if a := must(ep.Query())(t).Attr; a.MaxRecvDTOs != depth || a.MaxRequestDTOs != 1-depth {
					t.Errorf("depths %d and %d, want %d and %d", a.MaxRecvDTOs, a.MaxRequestDTOs, depth, 1-depth)
				}
				ok(t, ep.Free())
			}
		}
	}},
	{"without dispatchers nothing is told and everything works", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		x.EP = must(a.ia.CreateEP(a.pz, nil, nil, x.connect, nil))(t)
		join(x, y)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
		ok(t, y.PostSend(y.seg(0, 8), 3, 0))
		y.done(y.request, 3, DTOSend, DTOSuccess, 8)
		eventually(t, "idleness", func() bool { _, recv, request, _ := x.Status(); return recv && request })
	}},
	{"without a zone no memory can be posted and nothing connected", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := a.point(nil)
		ep := must(a.ia.CreateEP(nil, x.recv, x.request, x.connect, nil))(t)
		wants(t, "receive", ep.PostRecv(x.seg(0, 8), 1, 0), ErrProtectionViolation)
		wants(t, "connect", ep.Connect(b.addr, testQual, patience, nil), ErrInvalidState)
		ok(t, ep.PostRecv(nil, 1, 0))
	}},
	{"it keeps zone and dispatchers from being freed, and a graceful close from succeeding", func(t *testing.T, n network) {
		ia := must(n.open(0, Options{}))(t)
		pz, evd := must(ia.CreatePZ())(t), must(ia.CreateEVD(8, nil, EVDDTO|EVDConnection))(t)
		ep := must(ia.CreateEP(pz, evd, evd, evd, nil))(t)
		wants(t, "zone", pz.Free(), ErrInvalidState)
		wants(t, "dispatcher", evd.Free(), ErrInvalidState)
		wants(t, "close", ia.Close(CloseGraceful), ErrInvalidState)
		ok(t, ep.Free())
		ok(t, pz.Free())
		ok(t, evd.Free())
		ok(t, ia.Close(CloseGraceful))
	}},
	{"a closed adapter, and nil, is no handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		ok(t, h.ia.Close(CloseAbrupt))
		for name, ia := range map[string]*IA{"closed": h.ia, "nil": nil} {
			_, err := ia.CreateEP(nil, nil, nil, nil, &EPAttr{MaxRecvDTOs: -1}) // the handle is checked first
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
}...)

var epModifyRules = append(modifyRules(), []rule{
	{"what identifies an endpoint never changes", func(t *testing.T, n network) {
		s := newStage(t, n, EPUnconnected, Options{})
		for _, f := range []EPMask{EPFieldIA, EPFieldState, EPFieldComm, EPFieldLocalAddress, EPFieldLocalPort,
			EPFieldRemoteAddress, EPFieldRemotePort, EPFieldSRQ} {
			wants(t, "a fixed parameter", s.p.Modify(f|EPFieldMaxRecvDTOs, &EPParam{}), ErrInvalidParameter)
		}
	}},
	{"a mask has no bits but those of parameters", func(t *testing.T, n network) {
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
	{"an empty mask changes nothing, another needs parameters", func(t *testing.T, n network) {
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
	{"all is changed, or nothing", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		p := h.point(nil)
		pz := must(h.ia.CreatePZ())(t)
		was := must(p.Query())(t)
		change := EPParam{PZ: pz, Attr: EPAttr{MaxRecvDTOs: 3, MaxRequestDTOs: maxDTOs + 1}}
		wants(t, "one is bad", p.Modify(EPFieldPZ|EPFieldMaxRecvDTOs|EPFieldMaxRequestDTOs, &change), ErrInvalidParameter)
		if now := must(p.Query())(t); now != was {
			t.Errorf("changed to %+v", now)
		}
		ok(t, pz.Free()) // nothing refers to it
	}},
	{"in a state for some of it nothing is changed", func(t *testing.T, n network) {
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
	{"zone and dispatchers that are replaced are let go, the new ones are in use", func(t *testing.T, n network) {
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
		still(t, old...)
	}},
	{"a dispatcher that is nil is none", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).point(nil)
		ok(t, p.Modify(EPFieldRecvEVD, &EPParam{}))
		if got := must(p.Query())(t); got.RecvEVD != nil || got.RequestEVD != p.request {
			t.Errorf("got %+v", got)
		}
		ok(t, p.recv.Free())
	}},
	{"what was changed counts for the next connection", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		attr := EPAttr{MaxRequestDTOs: 7, MaxRecvDTOs: 9, MaxRequestIOV: 2, MaxRecvIOV: 6, MaxRDMAReadIOV: 5, MaxRDMAWriteIOV: 3,
			MaxMessageSize: 1000, MaxRDMASize: 2000, MaxRDMAReadOut: 2, MaxRDMAReadIn: 2}
		ok(t, x.Modify(epSetUp, &EPParam{RecvEVD: x.recv, RequestEVD: x.request, ConnectEVD: x.connect, Attr: attr}))
		join(x, y)
		iov := make([]LMRTriplet, maxIOV)
		to := y.lmr.Remote(0, 4000)
		wants(t, "long message", x.PostSend(x.seg(0, 1001), 1, 0), ErrInvalidParameter)
		wants(t, "long write", x.PostRDMAWrite(x.seg(0, 2001), 1, to, 0), ErrInvalidParameter)
		wants(t, "segments of a send", x.PostSend(iov[:3], 1, 0), ErrInvalidParameter)
		wants(t, "segments of a write", x.PostRDMAWrite(iov[:4], 1, to, 0), ErrInvalidParameter)
		wants(t, "segments of a read", x.PostRDMARead(iov[:6], 1, RMRTriplet{}, 0), ErrInvalidParameter)
		wants(t, "segments of a receive", x.PostRecv(iov[:7], 1, 0), ErrInvalidParameter)
		for range attr.MaxRecvDTOs {
			ok(t, x.PostRecv(iov[:6], 1, 0))
		}
		wants(t, "one receive more", x.PostRecv(nil, 1, 0), ErrInsufficientResources)
		for range attr.MaxRequestDTOs {
			ok(t, x.PostSend(iov[:2], 1, 0)) // the peer receives none
		}
		wants(t, "one request more", x.PostSend(nil, 1, 0), ErrInsufficientResources)
	}},
	{"it may grow and shrink around receives that are posted, which stay", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(&EPAttr{MaxRecvDTOs: 5, MaxRequestDTOs: 5, MaxRecvIOV: 3})
		depth := func(dtos, iov int) error {
			return y.Modify(EPFieldMaxRecvDTOs|EPFieldMaxRecvIOV, &EPParam{Attr: EPAttr{MaxRecvDTOs: dtos, MaxRecvIOV: iov}})
		}
		for i := range 5 { // each of two pieces, the second apart
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
	{"a receive with memory of the zone before fails with local protection when a message comes", func(t *testing.T, n network) {
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
		ok(t, h.ia.Close(CloseAbrupt))
		wants(t, "closed", open.Modify(EPFieldPZ, &EPParam{}), ErrInvalidHandle)
	}},
}...)

// connectRules are those that Connect and DupConnect have in common; connect makes x ask host b.
func connectRules(connect func(x *point, b *host, timeout time.Duration, private []byte, qos QoS) error) []rule {
	return []rule{
		{"timeout 0 is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			wants(t, "0", connect(a.point(nil), b, 0, nil, QoSBestEffort), ErrInvalidParameter)
		}},
		{"a negative timeout is for ever", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			ok(t, connect(x, b, -1, nil, QoSBestEffort))
			ok(t, b.request(t).Accept(y.EP, nil))
			x.expect(EventEstablished)
		}},
		{"private data has a limit", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			wants(t, "too much", connect(x, b, patience, make([]byte, maxPrivateData+1), QoSBestEffort), ErrInvalidParameter)
			ok(t, connect(x, b, patience, make([]byte, maxPrivateData), QoSBestEffort))
		}},
		{"private data is copied and comes with the request", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			private := []byte("hello")
			ok(t, connect(a.point(nil), b, patience, private, QoSBestEffort))
			copy(private, "12345")
			if p := must(b.request(t).Query())(t); string(p.PrivateData) != "hello" {
				t.Errorf("private data %q", p.PrivateData)
			}
		}},
		{"a quality of service that is not supported is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			for _, q := range []QoS{QoSHighThroughput, QoSLowLatency, QoSEconomy, QoSPremium, 0x80} {
				wants(t, "quality", connect(x, b, patience, nil, q), ErrModelNotSupported)
			}
			if x.State() != EPUnconnected {
				t.Errorf("state %v", x.State())
			}
		}},
		{"an endpoint without a zone or a connect dispatcher is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			for name, f := range map[string]EPMask{"zone": EPFieldPZ, "dispatcher": EPFieldConnectEVD} {
				x := a.point(nil)
				ok(t, x.Modify(f, &EPParam{}))
				wants(t, name, connect(x, b, patience, nil, QoSBestEffort), ErrInvalidState)
			}
		}},
		{"a freed endpoint and nil is no handle", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			ok(t, x.Free())
			wants(t, "freed", connect(x, b, 0, nil, QoSBestEffort), ErrInvalidHandle)
			wants(t, "nil", connect(&point{host: a}, b, 0, nil, QoSBestEffort), ErrInvalidHandle)
		}},
		{"after a time-out and a reset it can be tried again", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
			ok(t, connect(x, b, 20*time.Millisecond, []byte("late"), QoSBestEffort))
			x.done(x.recv, 1, DTOReceive, DTOFlushed, 0)
			x.expect(EventTimedOut)
			ok(t, x.Reset())
			ok(t, x.Connect(b.addr, testQual, patience, nil))
			cr := b.request(t)
			if p := must(cr.Query())(t); len(p.PrivateData) > 0 { // it has arrived, and nobody waits for it
				ok(t, cr.Reject(nil))
				cr = b.request(t)
			}
			ok(t, cr.Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			proves(x, y)
		}},
	}
}

var epConnectRules = append(connectRules(func(x *point, b *host, timeout time.Duration, private []byte, qos QoS) error {
	return x.ConnectQoS(b.addr, testQual, timeout, private, qos, ConnectDefault)
}), []rule{
	{"an address is needed", func(t *testing.T, n network) {
		x := newHost(t, n, 0, Options{}).point(nil)
		wants(t, "none", x.Connect(netip.Addr{}, testQual, patience, nil), ErrInvalidParameter)
	}},
	{"an address without a route is refused, and nothing has happened", func(t *testing.T, n network) {
		x := newHost(t, n, 0, Options{}).point(nil)
		wants(t, "no route", x.Connect(netip.MustParseAddr("2001:db8::1"), testQual, patience, nil), ErrInvalidAddress)
		wants(t, "no address of a host", x.Connect(netip.IPv4Unspecified(), testQual, patience, nil), ErrInvalidAddress)
		if x.State() != EPUnconnected {
			t.Errorf("state %v", x.State())
		}
		x.still()
	}},
	{"several paths can be requested, and not be required", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		for _, f := range []ConnectFlags{ConnectMultipathRequired, ConnectMultipathRequired | ConnectMultipathRequested} {
			wants(t, "required", x.ConnectQoS(b.addr, testQual, patience, nil, QoSBestEffort, f), ErrModelNotSupported)
		}
		wants(t, "unknown flag", x.ConnectQoS(b.addr, testQual, patience, nil, QoSBestEffort, 4), ErrInvalidParameter)
		ok(t, x.ConnectQoS(b.addr, testQual, patience, nil, QoSBestEffort, ConnectMultipathRequested))
		ok(t, b.request(t).Accept(y.EP, nil))
		x.expect(EventEstablished)
	}},
	{"an adapter connects to itself, both ends in one dispatcher", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		h.listen(testQual, 8)
		x, y := pair(h, h, nil)
		proves(x, y)
		ok(t, x.Disconnect(CloseGraceful))
		x.expect(EventDisconnected)
		y.expect(EventDisconnected)
	}},
	{"opens of one adapter connect to each other", func(t *testing.T, n network) {
		if _, simulated := n.(*sim); simulated {
			t.Skip("links that a caller brings are an adapter of their own each time")
		}
		a, b := newHost(t, n, 0, Options{}), newHost(t, n, 0, Options{})
		b.listen(testQual, 8)
		x, y := pair(a, b, nil)
		proves(x, y)
	}},
	{"adapters of one process connect to each other, in both directions at once", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		a.listen(testQual, 8)
		x, y := pair(a, b, nil)
		v, u := pair(b, a, nil)
		proves(x, y)
		proves(u, v)
	}},
	{"one reservation connects to another's service point", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		for range 3 {
			y := b.point(nil)
			rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
			x := asks(a, b, 9)
			ok(t, b.request(t).Accept(nil, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			ok(t, rsp.Free())
			proves(x, y)
		}
	}},
	{"nobody listening is a refusal", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		asks(a, b, 9).expect(EventNonPeerRejected)
	}},
	{"nobody there is a time-out", func(t *testing.T, n network) {
		x := newHost(t, n, 0, Options{}).point(nil)
		ok(t, x.Connect(n.absent(), testQual, 20*time.Millisecond, nil))
		x.expect(EventTimedOut)
		x.still()
	}},
	{"a request that is disconnected before the answer ends in one event", func(t *testing.T, n network) {
		s := newStage(t, n, EPActiveConnectionPending, Options{})
		ok(t, s.p.PostRecv(s.p.seg(0, 8), 1, 0))
		ok(t, s.p.Disconnect(CloseGraceful))
		s.p.done(s.p.recv, 1, DTOReceive, DTOFlushed, 0)
		s.p.expect(EventDisconnected)
		ok(t, s.cr.Reject(nil))
		s.p.still()
	}},
	{"receives posted before are there from the first message", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
		x.dial(b, nil)
		ok(t, x.PostRecv(x.seg(8, 8), 2, 0))
		ok(t, b.request(t).Accept(y.EP, nil))
		y.expect(EventEstablished)
		ok(t, y.PostSend(y.seg(0, 8), 3, 0))
		ok(t, y.PostSend(y.seg(0, 8), 4, 0))
		x.done(x.recv, 1, DTOReceive, DTOSuccess, 8)
		x.done(x.recv, 2, DTOReceive, DTOSuccess, 8)
	}},
}...)

var epDupConnectRules = append(connectRules(func(x *point, b *host, timeout time.Duration, private []byte, qos QoS) error {
	dup, _ := pair(x.host, b, nil)
	return x.DupConnect(dup.EP, timeout, private, qos)
}), []rule{
	{"it goes to the same address and qualifier", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		x, y := a.point(nil), b.point(nil)
		ok(t, x.DupConnect(u.EP, patience, nil, QoSBestEffort))
		ev := await(t, b.cr, EventConnectionRequest)
		if ev.ConnQual != testQual {
			t.Errorf("request: %+v", ev)
		}
		ok(t, ev.CR.Accept(y.EP, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		proves(x, y)
		proves(u, v)
	}},
	{"an endpoint to be duplicated that is freed or nil is no handle", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, _ := pair(a, b, nil)
		ok(t, u.Free())
		x := a.point(nil)
		wants(t, "freed", x.DupConnect(u.EP, 0, nil, QoSBestEffort), ErrInvalidHandle)
		wants(t, "nil", x.DupConnect(nil, 0, nil, QoSBestEffort), ErrInvalidHandle)
	}},
	{"an endpoint is no duplicate of itself", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		wants(t, "connected", x.DupConnect(x.EP, patience, nil, QoSBestEffort), ErrInvalidState)
		z := a.point(nil)
		wants(t, "unconnected", z.DupConnect(z.EP, patience, nil, QoSBestEffort), ErrInvalidState)
		proves(x, y)
	}},
}...)

var epRules = []topic{
	{"states", stateRules()},
	{"dat_ep_create", epCreateRules},
	{"dat_ep_modify", epModifyRules},
	{"dat_ep_connect", epConnectRules},
	{"dat_ep_dup_connect", epDupConnectRules},
	{"dat_ep_query", []rule{
		{"it tells what the endpoint was created with", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			attr := EPAttr{MaxRecvDTOs: 3, MaxRequestDTOs: 5, MaxRecvIOV: 2, MaxRequestIOV: 6, MaxRDMAReadIn: 1, MaxRDMAReadOut: 7,
				MaxMessageSize: 99, MaxRDMASize: 77, MaxRDMAReadIOV: 8, MaxRDMAWriteIOV: 9}
			p := h.point(&attr)
			got := must(p.Query())(t)
			want := EPParam{IA: h.ia, LocalAddress: h.addr, LocalPort: got.LocalPort, PZ: h.pz, RecvEVD: p.recv, RequestEVD: p.request,
				ConnectEVD: p.connect, Attr: attr}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}},
		{"each endpoint has a port qualifier of its own", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			x, y := must(h.point(nil).Query())(t), must(h.point(nil).Query())(t)
			if x.LocalPort == y.LocalPort || x.LocalPort == 0 {
				t.Errorf("port qualifiers %d and %d", x.LocalPort, y.LocalPort)
			}
		}},
		{"the remote address is there from the request to the end of the connection, on either side", func(t *testing.T, n network) {
			for _, state := range allStates {
				s := newStage(t, n, state, Options{})
				p := must(s.p.Query())(t)
				var want netip.Addr
				if remoteDefined.has(state) {
					want = s.b.addr
				}
				if p.RemoteAddress != want || (p.RemotePort != 0) != want.IsValid() {
					t.Errorf("%v: %v, port %d", state, p.RemoteAddress, p.RemotePort)
				}
				ok(t, s.a.ia.Close(CloseAbrupt))
				ok(t, s.b.ia.Close(CloseAbrupt))
			}
		}},
		{"the remote port is the qualifier that was dialled, or the port of who asked", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			px, py := must(x.Query())(t), must(y.Query())(t)
			if px.RemotePort != uint64(testQual) || py.RemotePort != px.LocalPort {
				t.Errorf("remote ports %d, %d", px.RemotePort, py.RemotePort)
			}
		}},
		{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			freed, open := h.point(nil), h.point(nil)
			ok(t, freed.Free())
			for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP} {
				_, err := ep.Query()
				wants(t, name, err, ErrInvalidHandle)
			}
			ok(t, h.ia.Close(CloseAbrupt))
			_, err := open.Query()
			wants(t, "closed", err, ErrInvalidHandle)
		}},
	}},
	{"dat_ep_get_status", []rule{
		{"receives are idle until one is posted, and again when all are taken", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			idle := func(want bool) {
				t.Helper()
				if _, recv, request, err := y.Status(); recv != want || !request || err != nil {
					t.Errorf("receives idle: %v, requests: %v, error %v", recv, request, err)
				}
			}
			idle(true)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			idle(false)
			ok(t, x.PostSend(x.seg(0, 8), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
			idle(true)
		}},
		{"requests are idle until one is posted, and again when all are done", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			idle := func(want bool) {
				t.Helper()
				if _, recv, request, err := x.Status(); request != want || !recv || err != nil {
					t.Errorf("requests idle: %v, receives: %v, error %v", request, recv, err)
				}
			}
			idle(true)
			ok(t, x.PostSend(x.seg(0, 8), 2, CompletionSuppress)) // nothing receives it yet
			idle(false)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
			eventually(t, "idleness", func() bool { _, _, request, _ := x.Status(); return request })
		}},
		{"the state is the new one when its event can be taken", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			check := func(p *point, event EventNumber, want EPState) {
				t.Helper()
				if p.expect(event); p.State() != want {
					t.Errorf("at %v: %v", event, p.State())
				}
			}
			x.dial(b, nil)
			ok(t, b.request(t).Accept(y.EP, nil))
			check(x, EventEstablished, EPConnected)
			check(y, EventEstablished, EPConnected)
			ok(t, x.Disconnect(CloseAbrupt))
			check(x, EventDisconnected, EPDisconnected)
			check(y, EventDisconnected, EPDisconnected)
		}},
		{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			freed, open := h.point(nil), h.point(nil)
			ok(t, freed.Free())
			ok(t, h.ia.Close(CloseAbrupt))
			for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP, "closed": open.EP} {
				_, _, _, err := ep.Status()
				wants(t, name, err, ErrInvalidHandle)
			}
		}},
	}},
	{"dat_ep_disconnect", []rule{
		{"flags are abrupt or graceful", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			wants(t, "flags 2", s.p.Disconnect(2), ErrInvalidParameter)
			s.is(EPConnected)
		}},
		{"both ends get one event", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			ok(t, s.p.Disconnect(CloseAbrupt))
			s.p.expect(EventDisconnected)
			s.peer.expect(EventDisconnected)
			ok(t, s.p.Disconnect(CloseAbrupt))
			ok(t, s.peer.Disconnect(CloseGraceful))
			still(t, s.p.connect, s.peer.connect)
		}},
		{"both ends get one event when both disconnect at once", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			atOnce(t, s.p, s.peer, CloseAbrupt)
			s.p.expect(EventDisconnected)
			s.peer.expect(EventDisconnected)
			still(t, s.p.connect, s.peer.connect)
		}},
		{"abruptly, what is outstanding is flushed in posting order", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			for i := range uint64(4) {
				ok(t, s.p.PostRecv(s.p.seg(0, 8), i, 0))
				ok(t, s.p.PostSend(s.p.seg(0, 8), 10+i, CompletionSuppress)) // nothing receives it
			}
			ok(t, s.p.Disconnect(CloseAbrupt))
			for i := range uint64(4) {
				s.p.done(s.p.recv, i, DTOReceive, DTOFlushed, 0)
				s.p.done(s.p.request, 10+i, DTOSend, DTOFlushed, 0)
			}
			s.p.expect(EventDisconnected)
		}},
		{"gracefully, requests finish and receives are flushed", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			ok(t, s.p.PostRecv(s.p.seg(0, 8), 1, 0))
			ok(t, s.p.PostRecv(s.p.seg(0, 8), 2, 0))
			ok(t, s.p.PostSend(s.p.seg(8, 8), 3, 0))
			ok(t, s.p.Disconnect(CloseGraceful))
			ok(t, s.peer.PostSend(s.peer.seg(0, 8), 4, 0)) // is still served
			s.p.done(s.p.recv, 1, DTOReceive, DTOSuccess, 8)
			ok(t, s.peer.PostRecv(s.peer.seg(8, 8), 5, 0))
			s.p.done(s.p.request, 3, DTOSend, DTOSuccess, 8)
			s.peer.done(s.peer.recv, 5, DTOReceive, DTOSuccess, 8)
			s.p.expect(EventDisconnected)
			s.p.done(s.p.recv, 2, DTOReceive, DTOFlushed, 0)
			s.peer.expect(EventDisconnected)
		}},
		{"an abrupt one cuts a graceful one short", func(t *testing.T, n network) {
			s := newStage(t, n, EPDisconnectPending, Options{})
			ok(t, s.p.Disconnect(CloseAbrupt))
			s.p.done(s.p.request, 77, DTOSend, DTOFlushed, 0)
			s.p.expect(EventDisconnected)
			s.peer.expect(EventDisconnected)
		}},
		{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			freed, open := h.point(nil), h.point(nil)
			ok(t, freed.Free())
			ok(t, h.ia.Close(CloseAbrupt))
			for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP, "closed": open.EP} {
				wants(t, name, ep.Disconnect(2), ErrInvalidHandle)
			}
		}},
	}},
	{"dat_ep_reset", []rule{
		{"an unconnected endpoint keeps its receives", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, y.Reset())
			y.still()
			join(x, y)
			ok(t, x.PostSend(x.seg(0, 8), 2, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
		}},
		{"completions that were not taken stay on their dispatchers", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			ok(t, s.p.PostRecv(s.p.seg(0, 8), 1, 0))
			ok(t, s.p.Disconnect(CloseAbrupt))
			ok(t, s.p.PostSend(s.p.seg(0, 8), 2, 0))
			ok(t, s.p.Reset())
			s.p.expect(EventDisconnected)
			s.p.done(s.p.recv, 1, DTOReceive, DTOFlushed, 0)
			s.p.done(s.p.request, 2, DTOSend, DTOFlushed, 0)
			s.is(EPUnconnected)
		}},
		{"the endpoint can be connected again, as active and as passive side", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			for i := range 4 {
				ok(t, s.p.Disconnect(CloseAbrupt))
				s.p.expect(EventDisconnected)
				s.peer.expect(EventDisconnected)
				ok(t, s.p.Reset())
				ok(t, s.peer.Reset())
				if i%2 == 0 {
					join(s.peer, s.p)
				} else {
					join(s.p, s.peer)
				}
				proves(s.p, s.peer)
			}
		}},
		{"after a reset the endpoint can be reserved", func(t *testing.T, n network) {
			s := newStage(t, n, EPDisconnected, Options{})
			ok(t, s.p.Reset())
			s.reserve()
			s.is(EPReserved)
		}},
		{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			freed, open := h.point(nil), h.point(nil)
			ok(t, freed.Free())
			ok(t, h.ia.Close(CloseAbrupt))
			for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP, "closed": open.EP} {
				wants(t, name, ep.Reset(), ErrInvalidHandle)
			}
		}},
	}},
	{"dat_ep_free", []rule{
		{"the peer of a connection sees a disconnect, and nothing is told here", func(t *testing.T, n network) {
			s := newStage(t, n, EPConnected, Options{})
			ok(t, s.p.PostRecv(s.p.seg(0, 8), 1, 0))
			ok(t, s.p.PostSend(s.p.seg(0, 8), 2, 0))
			ok(t, s.p.Free())
			s.peer.expect(EventDisconnected)
			s.p.still()
		}},
		{"with receives posted it lets memory, dispatchers and zone be freed, in any order", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			p := h.point(nil)
			for i := range uint64(4) {
				ok(t, p.PostRecv(p.seg(0, 8), i, 0))
			}
			ok(t, p.lmr.Free())
			ok(t, p.Free())
			for _, e := range []*EVD{p.recv, p.request, p.connect} {
				ok(t, e.Free())
			}
			ok(t, h.pz.Free())
			ok(t, h.ia.Close(CloseGraceful))
		}},
		{"while reserved it is refused, and works once the service point is freed", func(t *testing.T, n network) {
			s := newStage(t, n, EPReserved, Options{})
			wants(t, "reserved", s.p.Free(), ErrInvalidState)
			ok(t, s.rsp.Free())
			ok(t, s.p.Free())
		}},
		{"with a request it is refused, and works once that is rejected", func(t *testing.T, n network) {
			s := newStage(t, n, EPPassiveConnectionPending, Options{})
			wants(t, "passive", s.p.Free(), ErrInvalidState)
			ok(t, s.cr.Reject(nil))
			ok(t, s.p.Free())
		}},
		{"every call on it afterwards is refused", func(t *testing.T, n network) {
			s := newStage(t, n, EPUnconnected, Options{})
			ok(t, s.p.Free())
			for _, c := range stateCalls {
				wants(t, c.name, c.call(s), ErrInvalidHandle)
			}
		}},
		{"a second free, and nil, is no handle", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).point(nil)
			ok(t, p.Free())
			wants(t, "again", p.Free(), ErrInvalidHandle)
			wants(t, "nil", (*EP)(nil).Free(), ErrInvalidHandle)
		}},
	}},
}
