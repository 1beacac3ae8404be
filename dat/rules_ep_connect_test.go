package dat

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// connectRules has the rules that Connect and DupConnect have in common. connect connects x to host b.
func connectRules(connect func(x *point, b *host, timeout time.Duration, private []byte, qos QoS) error) []rule {
	return []rule{
		{"timeout 0 is refused", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			wants(t, "0", connect(a.point(nil), b, 0, nil, QoSBestEffort), ErrInvalidParameter)
		}},
		{"a negative timeout means no timeout", func(t *testing.T, n network) {
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
		{"private data is copied, and the request carries it", func(t *testing.T, n network) {
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
			if p := must(cr.Query())(t); len(p.PrivateData) > 0 { // the request has arrived, and no requester waits for the answer
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
	return x.ConnectWith(b.addr, testQual, ConnectConfig{Timeout: timeout, PrivateData: private, QoS: qos})
}), []rule{
	{"an address is needed", func(t *testing.T, n network) {
		x := newHost(t, n, 0, Options{}).point(nil)
		wants(t, "none", x.Connect(netip.Addr{}, testQual, patience, nil), ErrInvalidParameter)
	}},
	{"an address without a route is an error and changes nothing", func(t *testing.T, n network) {
		x := newHost(t, n, 0, Options{}).point(nil)
		wants(t, "no route", x.Connect(netip.MustParseAddr("2001:db8::1"), testQual, patience, nil), ErrInvalidAddress)
		for _, addr := range []string{"0.0.0.0", "224.0.0.1", "255.255.255.255", "::ffff:224.0.0.1", "ff02::1"} {
			wants(t, addr, x.Connect(netip.MustParseAddr(addr), testQual, patience, nil), ErrInvalidAddress)
		}
		if x.State() != EPUnconnected {
			t.Errorf("state %v", x.State())
		}
		x.still()
	}},
	{"several paths can be requested, and not be required", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		for _, f := range []ConnectFlags{ConnectMultipathRequired, ConnectMultipathRequired | ConnectMultipathRequested} {
			wants(t, "required", x.ConnectWith(b.addr, testQual, ConnectConfig{Timeout: patience, Flags: f}), ErrModelNotSupported)
		}
		wants(t, "unknown flag", x.ConnectWith(b.addr, testQual, ConnectConfig{Timeout: patience, Flags: 4}), ErrInvalidParameter)
		ok(t, x.ConnectWith(b.addr, testQual, ConnectConfig{Timeout: patience, Flags: ConnectMultipathRequested}))
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
	{"adapters of one process can connect to each other, in both directions at the same time", func(t *testing.T, n network) {
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
	{"if nothing listens, the request is refused", func(t *testing.T, n network) {
		a, b := newHosts(t, n, hasty)
		asks(a, b, 9).expect(EventNonPeerRejected)
	}},
	{"if the address does not answer, the request times out", func(t *testing.T, n network) {
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
	return x.DupConnect(dup.EP, ConnectConfig{Timeout: timeout, PrivateData: private, QoS: qos})
}), []rule{
	{"it connects to the same address and qualifier", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil)
		x, y := a.point(nil), b.point(nil)
		ok(t, x.DupConnect(u.EP, ConnectConfig{Timeout: patience}))
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
		wants(t, "freed", x.DupConnect(u.EP, ConnectConfig{Timeout: 0}), ErrInvalidHandle)
		wants(t, "nil", x.DupConnect(nil, ConnectConfig{Timeout: 0}), ErrInvalidHandle)
	}},
	{"it uses the flags of the other endpoint and refuses flags in its parameters", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, _ := pair(a, b, nil)
		x := a.point(nil)
		for _, f := range []ConnectFlags{ConnectMultipathRequested, ConnectMultipathRequired, 4} {
			wants(t, fmt.Sprint(f), x.DupConnect(u.EP, ConnectConfig{Timeout: patience, Flags: f}), ErrInvalidParameter)
		}
	}},
	{"an endpoint is no duplicate of itself", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		wants(t, "connected", x.DupConnect(x.EP, ConnectConfig{Timeout: patience}), ErrInvalidState)
		z := a.point(nil)
		wants(t, "unconnected", z.DupConnect(z.EP, ConnectConfig{Timeout: patience}), ErrInvalidState)
		proves(x, y)
	}},
}...)
