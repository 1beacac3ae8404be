package dat

import (
	"net/netip"
	"testing"
)

var epRules = []topic{
	{"states", stateRules()},
	{"dat_ep_create", epCreateRules},
	{"dat_ep_modify", epModifyRules},
	{"dat_ep_connect", epConnectRules},
	{"dat_ep_dup_connect", epDupConnectRules},
	{"dat_ep_query", epQueryRules},
	{"dat_ep_get_status", epGetStatusRules},
	{"dat_ep_disconnect", epDisconnectRules},
	{"dat_ep_reset", epResetRules},
	{"dat_ep_free", epFreeRules},
}

var epQueryRules = []rule{
	{"it returns the parameters with which the endpoint was created", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		attr := EPAttr{MaxRecvDTOs: 3, MaxRequestDTOs: 5, MaxRecvIOV: 2, MaxRequestIOV: 6, MaxRDMAReadIn: 1, MaxRDMAReadOut: 7,
			MaxMessageSize: 99, MaxRDMASize: 77, MaxRDMAReadIOV: 8, MaxRDMAWriteIOV: 9}
		p := h.point(&attr)
		got := must(p.Query())(t)
		attr.MaxMessageSize, attr.MaxRDMASize = maxSize, maxSize // as granted
		want := EPParam{IA: h.ia, LocalAddress: h.addr, LocalPort: got.LocalPort, PZ: h.pz, RecvEVD: p.recv, RequestEVD: p.request,
			ConnectEVD: p.connect, Attr: attr}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}},
	{"the port qualifiers of endpoints are unique", func(t *testing.T, n network) {
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
			ok(t, s.a.ia.Close())
			if s.other == s.b {
				ok(t, s.b.ia.Close())
			}
		}
	}},
	{"the remote port is the requested qualifier on the active side and the requester's port on the passive side", func(t *testing.T, n network) {
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
		ok(t, h.ia.Close())
		_, err := open.Query()
		wants(t, "closed", err, ErrInvalidHandle)
	}},
}

var epGetStatusRules = []rule{
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
		ok(t, x.PostSend(x.seg(0, 8), 2, CompletionSuppress)) // the peer has no receive yet
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
		ok(t, h.ia.Close())
		for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP, "closed": open.EP} {
			_, _, _, err := ep.Status()
			wants(t, name, err, ErrInvalidHandle)
		}
	}},
}

var epDisconnectRules = []rule{
	{"flags are abrupt or graceful", func(t *testing.T, n network) {
		s := newStage(t, n, EPConnected, Options{})
		wants(t, "flags 2", s.p.Disconnect(2), ErrInvalidParameter)
		s.checkState(EPConnected)
	}},
	{"both ends get one event", func(t *testing.T, n network) {
		s := newStage(t, n, EPConnected, Options{})
		ok(t, s.p.Disconnect(CloseAbrupt))
		s.p.expect(EventDisconnected)
		s.peer.expect(EventDisconnected)
		ok(t, s.p.Disconnect(CloseAbrupt))
		ok(t, s.peer.Disconnect(CloseGraceful))
		expectNoEvent(t, s.p.connect, s.peer.connect)
	}},
	{"both sides get one event if both disconnect at the same time", func(t *testing.T, n network) {
		s := newStage(t, n, EPConnected, Options{})
		atOnce(t, s.p, s.peer, CloseAbrupt)
		s.p.expect(EventDisconnected)
		s.peer.expect(EventDisconnected)
		expectNoEvent(t, s.p.connect, s.peer.connect)
	}},
	{"an abrupt disconnect flushes outstanding operations in posting order", func(t *testing.T, n network) {
		s := newStage(t, n, EPConnected, Options{})
		for i := range uint64(4) {
			ok(t, s.p.PostRecv(s.p.seg(0, 8), i, 0))
			ok(t, s.p.PostSend(s.p.seg(0, 8), 10+i, CompletionSuppress)) // the peer has no receive
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
		ok(t, s.peer.PostSend(s.peer.seg(0, 8), 4, 0)) // the receive is still used
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
		ok(t, h.ia.Close())
		for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP, "closed": open.EP} {
			wants(t, name, ep.Disconnect(2), ErrInvalidHandle)
		}
	}},
}

var epResetRules = []rule{
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
		s.checkState(EPUnconnected)
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
		s.checkState(EPReserved)
	}},
	{"one that is freed, of a closed adapter or nil is no handle", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		freed, open := h.point(nil), h.point(nil)
		ok(t, freed.Free())
		ok(t, h.ia.Close())
		for name, ep := range map[string]*EP{"nil": nil, "freed": freed.EP, "closed": open.EP} {
			wants(t, name, ep.Reset(), ErrInvalidHandle)
		}
	}},
}

var epFreeRules = []rule{
	{"the peer of a connection gets a disconnect, and this side gets no event", func(t *testing.T, n network) {
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
		ok(t, h.ia.CloseWith(CloseGraceful))
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
}
