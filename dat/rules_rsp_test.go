package dat

import (
	"testing"
)

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
		expectNoEvent(t, b.cr)
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
		ok(t, ia.CloseWith(CloseGraceful))
		x.expect(EventPeerRejected)
	}},
}...)

var rspQueryRules = []rule{
	{"it returns adapter, qualifier, dispatcher and endpoint, before and after the request", func(t *testing.T, n network) {
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
		ok(t, b.ia.Close())
		_, err := open.Query()
		wants(t, "closed", err, ErrInvalidHandle)
	}},
}

var rspFreeRules = []rule{
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
		expectNoEvent(t, y.recv)
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
}
