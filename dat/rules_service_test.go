package dat

import (
	"testing"
	"time"
)

// CreatePSP, CreatePSPAny and CreateRSP have the same rules for invalid arguments. serviceArguments returns these rules
// for one of the three methods, which createPoint calls.
func serviceArguments(createPoint func(ia *IA, evd *EVD) error) []rule {
	return []rule{
		{"a closed adapter is no handle", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
			ok(t, h.ia.Close())
			wants(t, "closed", createPoint(h.ia, evd), ErrInvalidHandle)
			wants(t, "nil", createPoint(nil, evd), ErrInvalidHandle)
		}},
		{"the dispatcher has to be there, and to take requests", func(t *testing.T, n network) {
			h, other := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
			freed := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
			ok(t, freed.Free())
			for name, evd := range map[string]*EVD{
				"nil":                nil,
				"freed":              freed,
				"of other streams":   must(h.ia.CreateEVD(8, nil, EVDDTO|EVDConnection|EVDRMRBind))(t),
				"of another adapter": must(other.ia.CreateEVD(8, nil, EVDCR))(t),
			} {
				wants(t, name, createPoint(h.ia, evd), ErrInvalidHandle)
			}
		}},
		{"it keeps its dispatcher from being freed, and a graceful close from succeeding", func(t *testing.T, n network) {
			ia := must(n.open(0, Options{}))(t)
			evd := must(ia.CreateEVD(8, nil, EVDCR))(t)
			ok(t, createPoint(ia, evd))
			wants(t, "free of the dispatcher", evd.Free(), ErrInvalidState)
			wants(t, "graceful close", ia.CloseWith(CloseGraceful), ErrInvalidState)
			ok(t, ia.Close())
		}},
	}
}

// hasty has a short ListenGrace.
var hasty = Options{Limits: Limits{ListenGrace: 20 * time.Millisecond}}

// listener returns host a, and host b with a dispatcher for connection requests.
func listener(t *testing.T, n network, backlog int) (a, b *host) {
	a, b = newHost(t, n, 0, hasty), newHost(t, n, 1, hasty)
	b.cr = must(b.ia.CreateEVD(backlog, nil, EVDCR))(t)
	return a, b
}

// asks connects a new endpoint of host a to a qualifier of host b.
func asks(a, b *host, qual ConnQual) *point {
	a.t.Helper()
	x := a.point(nil)
	ok(a.t, x.Connect(b.addr, qual, patience, nil))
	return x
}

// configure gives the zone and dispatchers of a point to an endpoint that the provider has created.
func (p *point) configure(ep *EP) {
	p.host.t.Helper()
	ok(p.host.t, p.EP.Free())
	p.EP = ep
	ok(p.host.t, ep.Modify(epHandles, &EPParam{PZ: p.host.pz, RecvEVD: p.recv, RequestEVD: p.request, ConnectEVD: p.connect}))
}

var pspCreateRules = append(serviceArguments(func(ia *IA, evd *EVD) error {
	_, err := ia.CreatePSP(9, evd, PSPConsumer)
	return err
}), []rule{
	{"flags are consumer or provider", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		_, err := h.ia.CreatePSP(9, evd, 2)
		wants(t, "flags 2", err, ErrInvalidParameter)
		must(h.ia.CreatePSP(9, evd, PSPProvider))(t)
	}},
	{"a qualifier has one service point", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		must(h.ia.CreatePSP(9, evd, PSPConsumer))(t)
		_, err := h.ia.CreatePSP(9, evd, PSPConsumer)
		wants(t, "second", err, ErrConnQualInUse)
	}},
	{"a qualifier that a reserved service point has is in use", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		must(h.ia.CreateRSP(9, h.point(nil).EP, evd))(t)
		_, err := h.ia.CreatePSP(9, evd, PSPConsumer)
		wants(t, "second", err, ErrConnQualInUse)
	}},
	{"two adapters may use one qualifier", func(t *testing.T, n network) {
		for side := range 2 {
			h := newHost(t, n, side, Options{})
			must(h.ia.CreatePSP(9, must(h.ia.CreateEVD(8, nil, EVDCR))(t), PSPConsumer))(t)
		}
	}},
	{"qualifiers have 64 bits", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		for _, q := range []ConnQual{0, 0x0affab1e, 1<<64 - 1} {
			psp := must(b.ia.CreatePSP(q, b.cr, PSPConsumer))(t)
			x := asks(a, b, q)
			ev := await(t, b.cr, EventConnectionRequest)
			if ev.PSP != psp || ev.ConnQual != q {
				t.Errorf("request for %#x: %+v", q, ev)
			}
			ok(t, ev.CR.Reject(nil))
			x.expect(EventPeerRejected)
		}
	}},
	{"several service points may share a dispatcher", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		one, two := must(b.ia.CreatePSP(1, b.cr, PSPConsumer))(t), must(b.ia.CreatePSP(2, b.cr, PSPConsumer))(t)
		asks(a, b, 1)
		if ev := await(t, b.cr, EventConnectionRequest); ev.PSP != one || ev.RSP != nil {
			t.Errorf("first request: %+v", ev)
		}
		asks(a, b, 2)
		if ev := await(t, b.cr, EventConnectionRequest); ev.PSP != two {
			t.Errorf("second request: %+v", ev)
		}
	}},
	{"any number of requests may arrive", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for range 5 {
			pair(a, b, nil)
		}
	}},
	{"the backlog is the room of the dispatcher: a request beyond is refused and no overflow", func(t *testing.T, n network) {
		a, b := listener(t, n, 2)
		must(b.ia.CreatePSP(9, b.cr, PSPConsumer))(t)
		for i := range b.cr.QLen() {
			asks(a, b, 9)
			eventually(t, "request", func() bool { return b.cr.Len() == i+1 })
		}
		asks(a, b, 9).expect(EventNonPeerRejected)
		expectNoEvent(t, b.ia.AsyncEVD())
	}},
	{"with the provider flag, a request has a tentative endpoint without zone and dispatchers", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		asks(a, b, 9)
		ep := must(b.request(t).Query())(t).LocalEP
		p := must(ep.Query())(t)
		if p.State != EPTentativeConnectionPending || p.IA != b.ia || p.PZ != nil || p.RecvEVD != nil || p.RequestEVD != nil || p.ConnectEVD != nil {
			t.Errorf("endpoint: %+v", p)
		}
	}},
	{"the attributes of a tentative endpoint match those of the requester", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		attr := DefaultEPAttr()
		attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = 11, 17
		x := a.point(&attr)
		ok(t, x.Connect(b.addr, 9, patience, nil))
		p := must(must(b.request(t).Query())(t).LocalEP.Query())(t)
		if p.Attr.MaxRDMAReadIn != 17 || p.Attr.MaxRDMAReadOut != 11 {
			t.Errorf("reads: %d in, %d out", p.Attr.MaxRDMAReadIn, p.Attr.MaxRDMAReadOut)
		}
	}},
	{"a tentative endpoint that was configured is accepted with nil, and works", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		x, y := asks(a, b, 9), b.point(nil)
		cr := b.request(t)
		y.configure(must(cr.Query())(t).LocalEP)
		ok(t, cr.Accept(nil, []byte("yes")))
		if ev := x.expect(EventEstablished); string(ev.PrivateData) != "yes" {
			t.Errorf("private data %q", ev.PrivateData)
		}
		y.expect(EventEstablished)
		proves(x, y)
		ok(t, y.Free())
		x.expect(EventDisconnected)
	}},
	{"a tentative endpoint is the consumer's when it is accepted: it ends with the adapter", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		x, y := asks(a, b, 9), b.point(nil)
		cr := b.request(t)
		y.configure(must(cr.Query())(t).LocalEP)
		ok(t, cr.Accept(nil, nil))
		x.expect(EventEstablished)
		ok(t, b.ia.Close())
		x.expect(EventDisconnected)
		wants(t, "endpoint after the close", y.PostRecv(nil, 1, 0), ErrInvalidHandle)
	}},
	{"receives posted to a tentative endpoint are there when the connection is", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		x, y := asks(a, b, 9), b.point(nil)
		cr := b.request(t)
		ep := must(cr.Query())(t).LocalEP
		wants(t, "memory before there is a zone", ep.PostRecv(y.seg(0, 8), 1, 0), ErrProtectionViolation)
		y.configure(ep)
		ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
		ok(t, cr.Accept(nil, nil))
		x.expect(EventEstablished)
		ok(t, x.PostSend(x.seg(0, 8), 3, 0))
		y.done(y.recv, 2, DTOReceive, DTOSuccess, 8)
	}},
	{"a tentative endpoint is not the consumer's until it is accepted: a graceful close does not count it", func(t *testing.T, n network) {
		a := newHost(t, n, 0, Options{})
		ia := must(n.open(1, Options{}))(t)
		evd := must(ia.CreateEVD(8, nil, EVDCR))(t)
		psp := must(ia.CreatePSP(9, evd, PSPProvider))(t)
		x := a.point(nil)
		ok(t, x.Connect(n.addr(1), 9, patience, nil))
		ep := must(await(t, evd, EventConnectionRequest).CR.Query())(t).LocalEP
		ok(t, psp.Free())
		ok(t, evd.Free())
		ok(t, ia.CloseWith(CloseGraceful))
		wants(t, "endpoint after the close", ep.PostRecv(nil, 1, 0), ErrInvalidHandle)
		x.expect(EventNonPeerRejected)
	}},
}...)

var pspCreateAnyRules = append(serviceArguments(func(ia *IA, evd *EVD) error {
	_, err := ia.CreatePSPAny(evd, PSPConsumer)
	return err
}), []rule{
	{"flags are consumer or provider", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		_, err := h.ia.CreatePSPAny(must(h.ia.CreateEVD(8, nil, EVDCR))(t), 2)
		wants(t, "flags 2", err, ErrInvalidParameter)
	}},
	{"it returns the picked qualifier, which works", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		psp := must(b.ia.CreatePSPAny(b.cr, PSPConsumer))(t)
		x, y := asks(a, b, psp.Qual()), b.point(nil)
		ok(t, b.request(t).Accept(y.EP, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		proves(x, y)
	}},
	{"each service point gets a different qualifier that is not in use", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		seen := map[ConnQual]bool{}
		for q := range ConnQual(8) {
			must(h.ia.CreatePSP(firstAnyQual+q, evd, PSPConsumer))(t)
			seen[firstAnyQual+q] = true
		}
		for range 8 {
			q := must(h.ia.CreatePSPAny(evd, PSPConsumer))(t).Qual()
			if seen[q] {
				t.Errorf("qualifier %d is there twice", q)
			}
			seen[q] = true
		}
	}},
	{"when all are in use there is none, until one is freed", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		var last *PSP
		for range numAnyQuals {
			last = must(h.ia.CreatePSPAny(evd, PSPConsumer))(t)
		}
		_, err := h.ia.CreatePSPAny(evd, PSPConsumer)
		wants(t, "one more", err, ErrConnQualUnavailable)
		ok(t, last.Free())
		if q := must(h.ia.CreatePSPAny(evd, PSPConsumer))(t).Qual(); q != last.Qual() {
			t.Errorf("qualifier %d, want %d", q, last.Qual())
		}
	}},
}...)

var serviceRules = []topic{
	{"dat_psp_create", pspCreateRules},
	{"dat_psp_create_any", pspCreateAnyRules},
	{"dat_psp_query", pspQueryRules},
	{"dat_psp_free", pspFreeRules},
	{"dat_rsp_create", rspCreateRules},
	{"dat_rsp_query", rspQueryRules},
	{"dat_rsp_free", rspFreeRules},
	{"dat_cr_query", crQueryRules},
	{"dat_cr_accept", crAcceptRules},
	{"dat_cr_reject", crRejectRules},
	{"dat_cr_handoff", crHandoffRules},
}

var pspQueryRules = []rule{
	{"it returns adapter, qualifier, dispatcher and flags", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		for _, flags := range []PSPFlags{PSPConsumer, PSPProvider} {
			psp := must(h.ia.CreatePSP(9+ConnQual(flags), evd, flags))(t)
			if got, want := must(psp.Query())(t), (PSPParam{h.ia, 9 + ConnQual(flags), evd, flags}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}},
	{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		freed, open := must(h.ia.CreatePSP(9, evd, PSPConsumer))(t), must(h.ia.CreatePSP(10, evd, PSPConsumer))(t)
		ok(t, freed.Free())
		for name, p := range map[string]*PSP{"nil": nil, "freed": freed} {
			_, err := p.Query()
			wants(t, name, err, ErrInvalidHandle)
		}
		ok(t, h.ia.Close())
		_, err := open.Query()
		wants(t, "closed", err, ErrInvalidHandle)
	}},
}

var pspFreeRules = []rule{
	{"the qualifier and the dispatcher are free when it returns", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
		for range 3 {
			ok(t, must(h.ia.CreatePSP(9, evd, PSPConsumer))(t).Free())
		}
		ok(t, evd.Free())
	}},
	{"a second free, and nil, is no handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		psp := must(h.ia.CreatePSP(9, must(h.ia.CreateEVD(8, nil, EVDCR))(t), PSPConsumer))(t)
		ok(t, psp.Free())
		wants(t, "again", psp.Free(), ErrInvalidHandle)
		wants(t, "nil", (*PSP)(nil).Free(), ErrInvalidHandle)
	}},
	{"a request that was delivered can be accepted, and connections go on", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		x, y := asks(a, b, testQual), b.point(nil)
		cr := b.request(t)
		ok(t, b.psp.Free())
		ok(t, cr.Accept(y.EP, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		proves(x, y)
		proves(u, v)
	}},
	{"a request that was delivered can be rejected", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := asks(a, b, testQual)
		cr := b.request(t)
		ok(t, b.psp.Free())
		ok(t, cr.Reject(nil))
		x.expect(EventPeerRejected)
	}},
	{"later requests find no listener", func(t *testing.T, n network) {
		a, b := newHosts(t, n, hasty)
		ok(t, b.psp.Free())
		asks(a, b, testQual).expect(EventNonPeerRejected)
	}},
}
