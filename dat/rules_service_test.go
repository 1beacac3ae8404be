package dat

import (
	"bytes"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire"
)

// serviceArguments are what CreatePSP, CreatePSPAny and CreateRSP refuse alike. create listens with a
// dispatcher.
func serviceArguments(create func(ia *IA, evd *EVD) error) []rule {
	return []rule{
		{"a closed adapter is no handle", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			evd := must(h.ia.CreateEVD(8, nil, EVDCR))(t)
			ok(t, h.ia.Close(CloseAbrupt))
			wants(t, "closed", create(h.ia, evd), ErrInvalidHandle)
			wants(t, "nil", create(nil, evd), ErrInvalidHandle)
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
				wants(t, name, create(h.ia, evd), ErrInvalidHandle)
			}
		}},
		{"it keeps its dispatcher from being freed, and a graceful close from succeeding", func(t *testing.T, n network) {
			ia := must(n.open(0, Options{}))(t)
			evd := must(ia.CreateEVD(8, nil, EVDCR))(t)
			ok(t, create(ia, evd))
			wants(t, "free of the dispatcher", evd.Free(), ErrInvalidState)
			wants(t, "graceful close", ia.Close(CloseGraceful), ErrInvalidState)
			ok(t, ia.Close(CloseAbrupt))
		}},
	}
}

// listener is host b with a dispatcher for requests, and a, which has none.
func listener(t *testing.T, n network, backlog int) (a, b *host) {
	a, b = newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
	b.cr = must(b.ia.CreateEVD(backlog, nil, EVDCR))(t)
	return a, b
}

// asks has a new endpoint of a request a connection from a qualifier of b.
func asks(a, b *host, qual ConnQual) *point {
	a.t.Helper()
	x := a.point(nil)
	ok(a.t, x.Connect(b.addr, qual, patience, nil))
	return x
}

// configure gives an endpoint that the provider made what the point has.
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
	{"any number of requests comes", func(t *testing.T, n network) {
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
		still(t, b.ia.AsyncEVD())
	}},
	{"with the provider flag, a request comes with a tentative endpoint without zone and dispatchers", func(t *testing.T, n network) {
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
		ok(t, b.ia.Close(CloseAbrupt))
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
		ok(t, ia.Close(CloseGraceful))
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
	{"the qualifier that was picked is told, and works", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		psp := must(b.ia.CreatePSPAny(b.cr, PSPConsumer))(t)
		x, y := asks(a, b, psp.Qual()), b.point(nil)
		ok(t, b.request(t).Accept(y.EP, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		proves(x, y)
	}},
	{"each has a qualifier of its own, and none that is taken", func(t *testing.T, n network) {
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

var rspCreateRules = append(serviceArguments(func(ia *IA, evd *EVD) error {
	_, err := ia.CreateRSP(9, nil, evd)
	return err
}), []rule{
	{"the endpoint is one of the adapter, and not freed", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		freed := b.point(nil)
		ok(t, freed.Free())
		for name, ep := range map[string]*EP{"freed": freed.EP, "of another adapter": a.point(nil).EP} {
			_, err := b.ia.CreateRSP(9, ep, b.cr)
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
	{"after an error the endpoint is unconnected and the qualifier free", func(t *testing.T, n network) {
		_, b := listener(t, n, 8)
		y := b.point(nil)
		psp := must(b.ia.CreatePSP(9, b.cr, PSPConsumer))(t)
		_, err := b.ia.CreateRSP(9, y.EP, b.cr)
		wants(t, "qualifier of a public service point", err, ErrConnQualInUse)
		if y.State() != EPUnconnected {
			t.Errorf("state %v", y.State())
		}
		ok(t, psp.Free())
		must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
	}},
	{"the request names service point and endpoint", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		y := b.point(nil)
		rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
		asks(a, b, 9)
		ev := await(t, b.cr, EventConnectionRequest)
		if ev.RSP != rsp || ev.PSP != nil || ev.ConnQual != 9 {
			t.Errorf("request: %+v", ev)
		}
		if p := must(ev.CR.Query())(t); p.LocalEP != y.EP {
			t.Error("the request names another endpoint")
		}
	}},
	{"a request is accepted with nil, and the connection works", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		y := b.point(nil)
		rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0)) // while it is reserved
		x := asks(a, b, 9)
		cr := b.request(t)
		ok(t, cr.Accept(nil, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
		x.done(x.request, 2, DTOSend, DTOSuccess, 8)
		proves(x, y)
		ok(t, rsp.Free())
		proves(x, y)
	}},
	{"a second request finds no listener", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreateRSP(9, b.point(nil).EP, b.cr))(t)
		asks(a, b, 9)
		cr := b.request(t)
		asks(a, b, 9).expect(EventNonPeerRejected)
		still(t, b.cr)
		ok(t, cr.Reject(nil))
	}},
	{"a request that finds the dispatcher full is refused, and the service point listens on", func(t *testing.T, n network) {
		a, b := listener(t, n, 1)
		y := b.point(nil)
		rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
		must(b.ia.CreatePSP(10, b.cr, PSPConsumer))(t)
		for i := range b.cr.QLen() {
			asks(a, b, 10)
			eventually(t, "request", func() bool { return b.cr.Len() == i+1 })
		}
		asks(a, b, 9).expect(EventNonPeerRejected)
		if y.State() != EPReserved {
			t.Errorf("state %v", y.State())
		}
		for range b.cr.QLen() {
			await(t, b.cr, EventConnectionRequest)
		}
		asks(a, b, 9)
		if ev := await(t, b.cr, EventConnectionRequest); ev.RSP != rsp {
			t.Errorf("request: %+v", ev)
		}
	}},
	{"without an endpoint the provider makes a tentative one", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		rsp := must(b.ia.CreateRSP(9, nil, b.cr))(t)
		x, y := asks(a, b, 9), b.point(nil)
		cr := b.request(t)
		ep := must(cr.Query())(t).LocalEP
		if ep.State() != EPTentativeConnectionPending {
			t.Errorf("state %v", ep.State())
		}
		if p := must(rsp.Query())(t); p.EP != ep {
			t.Error("the service point does not name it")
		}
		y.configure(ep)
		ok(t, cr.Accept(nil, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		proves(x, y)
	}},
	{"one that was used has given qualifier and dispatcher back, and does not count for a graceful close", func(t *testing.T, n network) {
		a := newHost(t, n, 0, Options{})
		ia := must(n.open(1, Options{}))(t)
		evd := must(ia.CreateEVD(8, nil, EVDCR))(t)
		must(ia.CreateRSP(9, nil, evd))(t)
		x := a.point(nil)
		ok(t, x.Connect(n.addr(1), 9, patience, nil))
		cr := await(t, evd, EventConnectionRequest).CR
		psp := must(ia.CreatePSP(9, evd, PSPConsumer))(t)
		ok(t, psp.Free())
		ok(t, evd.Free())
		ok(t, cr.Reject(nil))
		ok(t, ia.Close(CloseGraceful))
		x.expect(EventPeerRejected)
	}},
}...)

var serviceRules = []topic{
	{"dat_psp_create", pspCreateRules},
	{"dat_psp_create_any", pspCreateAnyRules},
	{"dat_psp_query", []rule{
		{"it tells adapter, qualifier, dispatcher and flags", func(t *testing.T, n network) {
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
			ok(t, h.ia.Close(CloseAbrupt))
			_, err := open.Query()
			wants(t, "closed", err, ErrInvalidHandle)
		}},
	}},
	{"dat_psp_free", []rule{
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
			a, b := newHosts(t, n, Options{})
			ok(t, b.psp.Free())
			asks(a, b, testQual).expect(EventNonPeerRejected)
		}},
	}},
	{"dat_rsp_create", rspCreateRules},
	{"dat_rsp_query", []rule{
		{"it tells adapter, qualifier, dispatcher and endpoint, before and after the request", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			y := b.point(nil)
			rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
			want := RSPParam{b.ia, 9, b.cr, y.EP}
			if got := must(rsp.Query())(t); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			asks(a, b, 9)
			b.request(t)
			if got := must(rsp.Query())(t); got != want {
				t.Errorf("after the request: got %+v, want %+v", got, want)
			}
		}},
		{"one whose endpoint the provider is to make has none yet", func(t *testing.T, n network) {
			_, b := listener(t, n, 8)
			if got := must(must(b.ia.CreateRSP(9, nil, b.cr))(t).Query())(t); got.EP != nil {
				t.Errorf("got %+v", got)
			}
		}},
		{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
			_, b := listener(t, n, 8)
			freed, open := must(b.ia.CreateRSP(9, nil, b.cr))(t), must(b.ia.CreateRSP(10, nil, b.cr))(t)
			ok(t, freed.Free())
			for name, r := range map[string]*RSP{"nil": nil, "freed": freed} {
				_, err := r.Query()
				wants(t, name, err, ErrInvalidHandle)
			}
			ok(t, b.ia.Close(CloseAbrupt))
			_, err := open.Query()
			wants(t, "closed", err, ErrInvalidHandle)
		}},
	}},
	{"dat_rsp_free", []rule{
		{"before a request, endpoint, qualifier and dispatcher are free when it returns", func(t *testing.T, n network) {
			_, b := listener(t, n, 8)
			y := b.point(nil)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			for range 3 {
				ok(t, must(b.ia.CreateRSP(9, y.EP, b.cr))(t).Free())
				if y.State() != EPUnconnected {
					t.Errorf("state %v", y.State())
				}
			}
			still(t, y.recv)
			ok(t, b.cr.Free())
			ok(t, y.Free())
		}},
		{"later requests find no listener", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			ok(t, must(b.ia.CreateRSP(9, b.point(nil).EP, b.cr))(t).Free())
			asks(a, b, 9).expect(EventNonPeerRejected)
		}},
		{"after the request it leaves request and endpoint alone", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			y := b.point(nil)
			rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
			x := asks(a, b, 9)
			cr := b.request(t)
			ok(t, rsp.Free())
			if y.State() != EPPassiveConnectionPending {
				t.Errorf("state %v", y.State())
			}
			ok(t, cr.Accept(nil, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			proves(x, y)
		}},
		{"after the request it leaves a service point alone that took the qualifier since", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			rsp := must(b.ia.CreateRSP(9, nil, b.cr))(t)
			asks(a, b, 9)
			ok(t, b.request(t).Reject(nil))
			psp := must(b.ia.CreatePSP(9, b.cr, PSPConsumer))(t)
			ok(t, rsp.Free())
			asks(a, b, 9)
			if ev := await(t, b.cr, EventConnectionRequest); ev.PSP != psp {
				t.Errorf("request: %+v", ev)
			}
		}},
		{"a second free, and nil, is no handle", func(t *testing.T, n network) {
			_, b := listener(t, n, 8)
			rsp := must(b.ia.CreateRSP(9, nil, b.cr))(t)
			ok(t, rsp.Free())
			wants(t, "again", rsp.Free(), ErrInvalidHandle)
			wants(t, "nil", (*RSP)(nil).Free(), ErrInvalidHandle)
		}},
	}},
	{"dat_cr_query", []rule{
		{"it tells address, port qualifier and private data of the requester", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			x.dial(b, []byte("hello"))
			p := must(b.request(t).Query())(t)
			if p.RemoteAddress != a.addr || p.RemotePort != must(x.Query())(t).LocalPort || string(p.PrivateData) != "hello" || p.LocalEP != nil {
				t.Errorf("request: %+v", p)
			}
		}},
		{"private data is the consumer's: it may be written to, and be the answer", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			x.dial(b, []byte("abc"))
			cr := b.request(t)
			data := must(cr.Query())(t).PrivateData
			copy(data, "xyz")
			ok(t, cr.Accept(b.point(nil).EP, data))
			copy(data, "...") // it was copied
			if ev := x.expect(EventEstablished); string(ev.PrivateData) != "xyz" {
				t.Errorf("private data %q", ev.PrivateData)
			}
		}},
		{"a request that is over, of a closed adapter, or nil is no handle", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			over := b.request(t)
			ok(t, over.Reject(nil))
			asks(a, b, testQual)
			open := b.request(t)
			for name, cr := range map[string]*CR{"nil": nil, "over": over} {
				_, err := cr.Query()
				wants(t, name, err, ErrInvalidHandle)
			}
			ok(t, b.ia.Close(CloseAbrupt))
			_, err := open.Query()
			wants(t, "closed", err, ErrInvalidHandle)
		}},
	}},
	{"dat_cr_accept", []rule{
		{"the private data of the accept comes with the requester's event, none with our own", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			most := bytes.Repeat([]byte("z"), maxPrivateData)
			x, y := asks(a, b, testQual), b.point(nil)
			ok(t, b.request(t).Accept(y.EP, most))
			if ev := x.expect(EventEstablished); !bytes.Equal(ev.PrivateData, most) {
				t.Errorf("%d bytes of private data", len(ev.PrivateData))
			}
			if ev := y.expect(EventEstablished); len(ev.PrivateData) != 0 {
				t.Errorf("private data %q", ev.PrivateData)
			}
		}},
		{"a request without an endpoint needs one", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			wants(t, "nil", b.request(t).Accept(nil, nil), ErrInvalidParameter)
		}},
		{"a request with an endpoint takes no other, nor its own", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			y := b.point(nil)
			must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
			asks(a, b, 9)
			cr := b.request(t)
			wants(t, "another", cr.Accept(b.point(nil).EP, nil), ErrInvalidParameter)
			wants(t, "its own", cr.Accept(y.EP, nil), ErrInvalidParameter)
			ok(t, cr.Accept(nil, nil))
		}},
		{"the endpoint is one of the adapter, and not freed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			cr := b.request(t)
			freed := b.point(nil)
			ok(t, freed.Free())
			wants(t, "freed", cr.Accept(freed.EP, nil), ErrInvalidHandle)
			wants(t, "of another adapter", cr.Accept(a.point(nil).EP, nil), ErrInvalidHandle)
		}},
		{"an endpoint without zone or connect dispatcher is no handle", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			cr := b.request(t)
			evd := must(b.ia.CreateEVD(8, nil, EVDConnection))(t)
			wants(t, "no zone", cr.Accept(must(b.ia.CreateEP(nil, nil, nil, evd, nil))(t), nil), ErrInvalidHandle)
			wants(t, "no dispatcher", cr.Accept(must(b.ia.CreateEP(b.pz, nil, nil, nil, nil))(t), nil), ErrInvalidHandle)
		}},
		{"a tentative endpoint without zone or connect dispatcher is no handle", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
			x := asks(a, b, 9)
			cr := b.request(t)
			ep := must(cr.Query())(t).LocalEP
			wants(t, "nothing", cr.Accept(nil, nil), ErrInvalidHandle)
			ok(t, ep.Modify(EPFieldPZ, &EPParam{PZ: b.pz}))
			wants(t, "no dispatcher", cr.Accept(nil, nil), ErrInvalidHandle)
			evd := must(b.ia.CreateEVD(8, nil, EVDConnection))(t)
			ok(t, ep.Modify(EPFieldConnectEVD, &EPParam{ConnectEVD: evd}))
			ok(t, cr.Accept(nil, nil))
			x.expect(EventEstablished)
			await(t, evd, EventEstablished)
		}},
		{"private data has a limit", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			wants(t, "too much", b.request(t).Accept(b.point(nil).EP, make([]byte, maxPrivateData+1)), ErrInvalidParameter)
		}},
		{"after an error request and endpoint are as before, and the request can be accepted", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := a.point(nil)
			x.dial(b, []byte("data"))
			cr := b.request(t)
			y := b.point(nil)
			_ = cr.Accept(nil, nil)
			_ = cr.Accept(y.EP, make([]byte, maxPrivateData+1))
			if p := must(cr.Query())(t); string(p.PrivateData) != "data" || y.State() != EPUnconnected {
				t.Errorf("request %+v, endpoint %v", p, y.State())
			}
			ok(t, cr.Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			proves(x, y)
		}},
		{"a request is answered once", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			cr := b.request(t)
			ok(t, cr.Accept(b.point(nil).EP, nil))
			wants(t, "accept", cr.Accept(b.point(nil).EP, nil), ErrInvalidHandle)
			wants(t, "reject", cr.Reject(nil), ErrInvalidHandle)
			wants(t, "handoff", cr.Handoff(testQual), ErrInvalidHandle)
			wants(t, "nil", (*CR)(nil).Accept(b.point(nil).EP, nil), ErrInvalidHandle)
		}},
		{"when the requester has given up it ends in an accept completion error, and receives are flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{Limits: wire.Limits{GiveUp: 50 * time.Millisecond}})
			x, y := asks(a, b, testQual), b.point(nil)
			cr := b.request(t)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, cr.Accept(y.EP, nil))
			y.done(y.recv, 1, DTOReceive, DTOFlushed, 0)
			y.expect(EventAcceptCompletionError)
			if y.State() != EPDisconnected {
				t.Errorf("state %v", y.State())
			}
		}},
	}},
	{"dat_cr_reject", []rule{
		{"the requester sees the private data", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := asks(a, b, testQual)
			ok(t, b.request(t).Reject([]byte("no")))
			if ev := x.expect(EventPeerRejected); string(ev.PrivateData) != "no" {
				t.Errorf("private data %q", ev.PrivateData)
			}
		}},
		{"private data has a limit, and the request stays", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := asks(a, b, testQual)
			cr := b.request(t)
			wants(t, "too much", cr.Reject(make([]byte, maxPrivateData+1)), ErrInvalidParameter)
			ok(t, cr.Reject(make([]byte, maxPrivateData)))
			x.expect(EventPeerRejected)
		}},
		{"a request is answered once", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			cr := b.request(t)
			ok(t, cr.Reject(nil))
			wants(t, "reject", cr.Reject(nil), ErrInvalidHandle)
			wants(t, "accept", cr.Accept(b.point(nil).EP, nil), ErrInvalidHandle)
			wants(t, "nil", (*CR)(nil).Reject(nil), ErrInvalidHandle)
		}},
		{"the endpoint of a reserved service point can be reserved again", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			y := b.point(nil)
			for range 3 {
				must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
				x := asks(a, b, 9)
				ok(t, b.request(t).Reject(nil))
				x.expect(EventPeerRejected)
			}
		}},
		{"the endpoint that the provider made is gone, and lets go of zone and dispatchers", func(t *testing.T, n network) {
			a, b := listener(t, n, 8)
			must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
			asks(a, b, 9)
			cr := b.request(t)
			y := b.point(nil)
			pz := must(b.ia.CreatePZ())(t)
			y.configure(must(cr.Query())(t).LocalEP)
			ok(t, y.Modify(EPFieldPZ, &EPParam{PZ: pz}))
			wants(t, "zone in use", pz.Free(), ErrInvalidState)
			wants(t, "dispatcher in use", y.connect.Free(), ErrInvalidState)
			ok(t, cr.Reject(nil))
			wants(t, "endpoint", y.PostRecv(nil, 1, 0), ErrInvalidHandle)
			ok(t, pz.Free())
			ok(t, y.connect.Free())
		}},
		{"when the requester has given up it succeeds, and nothing comes of it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := asks(a, b, testQual)
			cr := b.request(t)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			ok(t, cr.Reject(nil))
			still(t, x.connect, b.cr, b.ia.AsyncEVD())
		}},
		{"the requester can try again", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := asks(a, b, testQual)
			ok(t, b.request(t).Reject(nil))
			x.expect(EventPeerRejected)
			ok(t, x.Reset())
			y := b.point(nil)
			join(x, y)
			proves(x, y)
		}},
	}},
	{"dat_cr_handoff", []rule{
		{"the request comes to the other service point as a new one, and the requester notices nothing", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			evd := must(b.ia.CreateEVD(8, nil, EVDCR))(t)
			psp := must(b.ia.CreatePSP(9, evd, PSPConsumer))(t)
			x, y := a.point(nil), b.point(nil)
			x.dial(b, []byte("hello"))
			cr := b.request(t)
			ok(t, cr.Handoff(9))
			ev := await(t, evd, EventConnectionRequest)
			if ev.PSP != psp || ev.ConnQual != 9 || ev.CR == cr {
				t.Errorf("request: %+v", ev)
			}
			if p := must(ev.CR.Query())(t); string(p.PrivateData) != "hello" || p.RemoteAddress != a.addr {
				t.Errorf("request: %+v", p)
			}
			still(t, x.connect)
			wants(t, "the old request", cr.Accept(y.EP, nil), ErrInvalidHandle)
			ok(t, ev.CR.Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			proves(x, y)
		}},
		{"a request that was handed off can be rejected there", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			must(b.ia.CreatePSP(9, b.cr, PSPConsumer))(t)
			x := asks(a, b, testQual)
			ok(t, b.request(t).Handoff(9))
			ok(t, b.request(t).Reject([]byte("no")))
			if ev := x.expect(EventPeerRejected); string(ev.PrivateData) != "no" {
				t.Errorf("private data %q", ev.PrivateData)
			}
		}},
		{"it can be handed off again, and back", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			must(b.ia.CreatePSP(9, b.cr, PSPConsumer))(t)
			x, y := asks(a, b, testQual), b.point(nil)
			ok(t, b.request(t).Handoff(9))
			ok(t, b.request(t).Handoff(testQual))
			ok(t, b.request(t).Accept(y.EP, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
		}},
		{"a reserved service point takes it with its endpoint", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			y := b.point(nil)
			rsp := must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
			x := asks(a, b, testQual)
			ok(t, b.request(t).Handoff(9))
			ev := await(t, b.cr, EventConnectionRequest)
			if ev.RSP != rsp {
				t.Errorf("request: %+v", ev)
			}
			ok(t, ev.CR.Accept(nil, nil))
			x.expect(EventEstablished)
			y.expect(EventEstablished)
			proves(x, y)
		}},
		{"the endpoint of a reserved service point stays behind, unconnected", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			y := b.point(nil)
			must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
			x := asks(a, b, 9)
			ok(t, b.request(t).Handoff(testQual))
			if y.State() != EPUnconnected {
				t.Errorf("state %v", y.State())
			}
			ok(t, b.request(t).Accept(y.EP, nil)) // and can be used for the same request
			x.expect(EventEstablished)
			y.expect(EventEstablished)
		}},
		{"where nobody listens the requester is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x := asks(a, b, testQual)
			ok(t, b.request(t).Handoff(9))
			x.expect(EventNonPeerRejected)
			still(t, b.cr)
		}},
		{"where the backlog is full the requester is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			evd := must(b.ia.CreateEVD(1, nil, EVDCR))(t)
			must(b.ia.CreatePSP(9, evd, PSPConsumer))(t)
			for i := range evd.QLen() {
				asks(a, b, 9)
				eventually(t, "request", func() bool { return evd.Len() == i+1 })
			}
			x := asks(a, b, testQual)
			ok(t, b.request(t).Handoff(9))
			x.expect(EventNonPeerRejected)
		}},
		{"a request is handed off once", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			asks(a, b, testQual)
			cr := b.request(t)
			ok(t, cr.Handoff(testQual))
			wants(t, "again", cr.Handoff(testQual), ErrInvalidHandle)
			wants(t, "nil", (*CR)(nil).Handoff(testQual), ErrInvalidHandle)
			ok(t, b.request(t).Reject(nil))
		}},
		{"when the adapter closes, a request that was handed off is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
			x := asks(a, b, testQual)
			ok(t, b.request(t).Handoff(9))
			b.request(t)
			ok(t, b.ia.Close(CloseAbrupt))
			x.expect(EventNonPeerRejected)
		}},
	}},
}
