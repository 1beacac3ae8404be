package dat

import (
	"testing"
)

// refuses checks that CreateEP and Modify refuse the attributes.
func refuses(t *testing.T, h *host, name string, change func(*EPAttr), want error) {
	t.Helper()
	attr := DefaultEPAttr()
	change(&attr)
	p := h.point(nil)
	_, err := h.ia.CreateEP(h.pz, EPConfig{RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect, Attr: &attr})
	wants(t, "CreateEP: "+name, err, want)
	was := must(p.Query())(t)
	wants(t, "Modify: "+name, p.Modify(epSetUp, &EPParam{RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect, Attr: attr}), want)
	if now := must(p.Query())(t); now != was {
		t.Errorf("%s: changed to %+v", name, now)
	}
}

// attributes has each attribute with a limit, and a function that sets the attribute.
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

// granted returns the value of an attribute that an endpoint without a shared receive queue gets.
func granted(limit, asked int) int {
	if limit == maxSize {
		return maxSize
	}
	return asked
}

// limitRules returns a rule for each attribute. dat_ep_create grants at least the requested value, and dat_ep_query
// returns the granted value. For MaxMessageSize and MaxRDMASize, the limit itself is granted, whatever is requested,
// because programs request less than they use. Other attributes are granted as requested, because they cost memory or
// are agreed with the peer.
func limitRules() (all []rule) {
	for _, f := range attributes {
		name := f.name + " has a limit, up to which it is granted as asked for"
		if f.limit == maxSize {
			name = f.name + " has a limit, and that is granted"
		}
		all = append(all, rule{name, func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			refuses(t, h, "beyond the limit", func(a *EPAttr) { f.set(a, f.limit+1) }, ErrInvalidParameter)
			if f.limit != maxSize {
				refuses(t, h, "negative", func(a *EPAttr) { f.set(a, -1) }, ErrInvalidParameter)
			}
			for _, v := range []int{1, f.limit} {
				attr := DefaultEPAttr()
				f.set(&attr, v)
				p := must(h.point(&attr).Query())(t)
				if got := f.get(&p.Attr); got != granted(f.limit, v) {
					t.Errorf("created with %d, it is %d, want %d", v, got, granted(f.limit, v))
				}
			}
		}})
	}
	return all
}

var epCreateRules = append(limitRules(), []rule{
	{"a new endpoint is unconnected", func(t *testing.T, n network) {
		s := newStage(t, n, EPUnconnected, Options{})
		s.checkState(EPUnconnected)
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
			_, err := h.ia.CreateEP(pz, EPConfig{})
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
			_, err := h.ia.CreateEP(h.pz, EPConfig{RecvEVD: evds[0], RequestEVD: evds[1], ConnectEVD: evds[2]})
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
	{"one dispatcher may take everything of an endpoint, and of several", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		all := must(b.ia.CreateEVD(64, nil, EVDDTO|EVDConnection|EVDRMRBind))(t)
		x, y := a.point(nil), b.point(nil)
		must(b.ia.CreateEP(b.pz, EPConfig{RecvEVD: all, RequestEVD: all, ConnectEVD: all}))(t)
		y.EP = must(b.ia.CreateEP(b.pz, EPConfig{RecvEVD: all, RequestEVD: all, ConnectEVD: all}))(t)
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
		y.EP, y.connect = must(b.ia.CreateEP(b.pz, EPConfig{RecvEVD: y.recv, RequestEVD: y.request, ConnectEVD: foreign}))(t), foreign
		join(x, y)
		wants(t, "free of the dispatcher", foreign.Free(), ErrInvalidState)
		ok(t, b.ia.Close()) // drops its references to objects of the other open
		ok(t, foreign.Free())
	}},
	{"a depth does not ask for a dispatcher, nor a dispatcher for a depth", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDDTO))(t)
		for _, recv := range []*EVD{nil, evd} {
			for _, depth := range []int{0, 1} {
				ep := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: recv, Attr: &EPAttr{MaxRecvDTOs: depth, MaxRequestDTOs: 1 - depth}}))(t)
				if a := must(ep.Query())(t).Attr; a.MaxRecvDTOs != depth || a.MaxRequestDTOs != 1-depth {
					t.Errorf("depths %d and %d, want %d and %d", a.MaxRecvDTOs, a.MaxRequestDTOs, depth, 1-depth)
				}
				ok(t, ep.Free())
			}
		}
	}},
	{"without dispatchers there are no events, and operations work", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		x.EP = must(a.ia.CreateEP(a.pz, EPConfig{ConnectEVD: x.connect}))(t)
		join(x, y)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostRecv(x.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
		ok(t, y.PostSend(y.seg(0, 8), 3, 0))
		y.done(y.request, 3, DTOSend, DTOSuccess, 8)
		eventually(t, "idleness", func() bool { _, recv, request, _ := x.Status(); return recv && request })
	}},
	{"without a zone the endpoint can neither post memory nor connect", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := a.point(nil)
		ep := must(a.ia.CreateEP(nil, EPConfig{RecvEVD: x.recv, RequestEVD: x.request, ConnectEVD: x.connect}))(t)
		wants(t, "receive", ep.PostRecv(x.seg(0, 8), 1, 0), ErrProtectionViolation)
		wants(t, "connect", ep.Connect(b.addr, testQual, patience, nil), ErrInvalidState)
		ok(t, ep.PostRecv(nil, 1, 0))
	}},
	{"it keeps zone and dispatchers from being freed, and a graceful close from succeeding", func(t *testing.T, n network) {
		ia := must(n.open(0, Options{}))(t)
		pz, evd := must(ia.CreatePZ())(t), must(ia.CreateEVD(8, nil, EVDDTO|EVDConnection))(t)
		ep := must(ia.CreateEP(pz, EPConfig{RecvEVD: evd, RequestEVD: evd, ConnectEVD: evd}))(t)
		wants(t, "zone", pz.Free(), ErrInvalidState)
		wants(t, "dispatcher", evd.Free(), ErrInvalidState)
		wants(t, "close", ia.CloseWith(CloseGraceful), ErrInvalidState)
		ok(t, ep.Free())
		ok(t, pz.Free())
		ok(t, evd.Free())
		ok(t, ia.CloseWith(CloseGraceful))
	}},
	{"a closed adapter, and nil, is no handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		ok(t, h.ia.Close())
		for name, ia := range map[string]*IA{"closed": h.ia, "nil": nil} {
			_, err := ia.CreateEP(nil, EPConfig{Attr: &EPAttr{MaxRecvDTOs: -1}}) // the handle is checked first
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
}...)
