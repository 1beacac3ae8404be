package dat

import (
	"bytes"
	"testing"
	"time"
)

var crQueryRules = []rule{
	{"it returns address, port qualifier and private data of the requester", func(t *testing.T, n network) {
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
		copy(data, "...") // has no effect, because the data was copied
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
		ok(t, b.ia.Close())
		_, err := open.Query()
		wants(t, "closed", err, ErrInvalidHandle)
	}},
}

var crAcceptRules = []rule{
	{"the requester's event carries the private data of the accept, the acceptor's event carries none", func(t *testing.T, n network) {
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
	{"Accept of a request with an endpoint refuses any endpoint as argument", func(t *testing.T, n network) {
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
		wants(t, "no zone", cr.Accept(must(b.ia.CreateEP(nil, EPConfig{ConnectEVD: evd}))(t), nil), ErrInvalidHandle)
		wants(t, "no dispatcher", cr.Accept(must(b.ia.CreateEP(b.pz, EPConfig{}))(t), nil), ErrInvalidHandle)
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
	{"an endpoint that the provider made counts from then on, and is refused where the adapter has none left", func(t *testing.T, n network) {
		a, b := listener(t, n, 8)
		must(b.ia.CreatePSP(9, b.cr, PSPProvider))(t)
		x := asks(a, b, 9)
		cr := b.request(t)
		y := b.point(nil)
		y.configure(must(cr.Query())(t).LocalEP)
		b.mendsLimits()
		b.ia.a.attr.MaxEPs = int(b.ia.a.objectCounts[HandleEP].Load())
		wants(t, "none left", cr.Accept(nil, nil), ErrInsufficientResources)
		b.ia.a.attr.MaxEPs++
		ok(t, cr.Accept(nil, nil))
		x.expect(EventEstablished)
		y.expect(EventEstablished)
		_, err := b.ia.CreateEP(b.pz, EPConfig{})
		wants(t, "another", err, ErrInsufficientResources)
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
		a, b := newHosts(t, n, Options{Limits: Limits{GiveUp: 50 * time.Millisecond}})
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
}

var crRejectRules = []rule{
	{"the requester sees the private data", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := asks(a, b, testQual)
		ok(t, b.request(t).Reject([]byte("no")))
		if ev := x.expect(EventPeerRejected); string(ev.PrivateData) != "no" {
			t.Errorf("private data %q", ev.PrivateData)
		}
	}},
	{"too long private data is refused, and the request can still be answered", func(t *testing.T, n network) {
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
	{"after the requester has given up it succeeds and has no effect", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := asks(a, b, testQual)
		cr := b.request(t)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, cr.Reject(nil))
		expectNoEvent(t, x.connect, b.cr, b.ia.AsyncEVD())
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
}

var crHandoffRules = []rule{
	{"the request arrives at the other service point as a new request, and the requester gets no event", func(t *testing.T, n network) {
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
		expectNoEvent(t, x.connect)
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
	{"the endpoint of a reserved service point becomes unconnected", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		y := b.point(nil)
		must(b.ia.CreateRSP(9, y.EP, b.cr))(t)
		x := asks(a, b, 9)
		ok(t, b.request(t).Handoff(testQual))
		if y.State() != EPUnconnected {
			t.Errorf("state %v", y.State())
		}
		ok(t, b.request(t).Accept(y.EP, nil)) // the endpoint can be used for the same request
		x.expect(EventEstablished)
		y.expect(EventEstablished)
	}},
	{"if nothing listens on the qualifier, the requester is refused", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x := asks(a, b, testQual)
		ok(t, b.request(t).Handoff(9))
		x.expect(EventNonPeerRejected)
		expectNoEvent(t, b.cr)
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
		ok(t, b.ia.Close())
		x.expect(EventNonPeerRejected)
	}},
}
