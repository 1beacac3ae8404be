package dat

import (
	"testing"
)

var epCreateWithSRQRules = []rule{
	{"attributes are required", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		c := h.common(1, 8)
		_, err := h.ia.CreateEP(h.pz, EPConfig{SRQ: c.SRQ})
		wants(t, "none", err, ErrInvalidParameter)
	}},
	{"attributes have to be in range", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		c := h.common(1, 8)
		for _, a := range []EPAttr{{MaxRequestDTOs: -1}, {MaxRequestIOV: maxIOV + 1}, {MaxRecvDTOs: maxDTOs + 1}, {SRQSoftHW: -2}} {
			_, err := h.ia.CreateEP(h.pz, EPConfig{SRQ: c.SRQ, Attr: &a})
			wants(t, "creation", err, ErrInvalidParameter)
		}
		ok(t, c.Free())
	}},
	{"every handle has to be there, of the adapter and of its kind", func(t *testing.T, n network) {
		a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		c, other, gone := a.common(1, 8), b.common(1, 8), a.common(1, 8)
		ok(t, gone.SRQ.Free())
		freed := must(a.ia.CreatePZ())(t)
		ok(t, freed.Free())
		old := must(a.ia.CreateEVD(1, nil, EVDDTO))(t)
		ok(t, old.Free())
		connect := must(a.ia.CreateEVD(1, nil, EVDConnection))(t)
		for what, tc := range map[string]struct {
			pz   *PZ
			evds [3]*EVD
			srq  *SRQ
		}{
			"freed queue":                {a.pz, [3]*EVD{}, gone.SRQ},
			"queue of another adapter":   {a.pz, [3]*EVD{}, other.SRQ},
			"freed zone":                 {freed, [3]*EVD{}, c.SRQ},
			"zone of another adapter":    {b.pz, [3]*EVD{}, c.SRQ},
			"freed receive dispatcher":   {a.pz, [3]*EVD{0: old}, c.SRQ},
			"receive dispatcher's kind":  {a.pz, [3]*EVD{0: connect}, c.SRQ},
			"request dispatcher's kind":  {a.pz, [3]*EVD{1: connect}, c.SRQ},
			"connect dispatcher's kind":  {a.pz, [3]*EVD{2: c.recv}, c.SRQ},
			"dispatcher of another host": {a.pz, [3]*EVD{0: other.recv}, c.SRQ},
		} {
			_, err := a.ia.CreateEP(tc.pz, EPConfig{RecvEVD: tc.evds[0], RequestEVD: tc.evds[1], ConnectEVD: tc.evds[2], SRQ: tc.srq, Attr: &EPAttr{}})
			wants(t, what, err, ErrInvalidHandle)
		}
		ok(t, c.SRQ.Free())
	}},
	{"the limit of receive segments is the queue's, whatever the attributes say", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := b.common(1, 256)
		x, y := a.point(nil), c.point(&EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 4, MaxRecvIOV: maxIOV + 1})
		join(x, y)
		seg := c.lmr.Segment(0, 64)
		ok(t, c.PostRecv([]LMRTriplet{seg, seg, seg, seg}, 3))
		x.message(256)
		y.done(c.recv, 3, DTOReceive, DTOSuccess, 256)
	}},
	{"sizes are granted exactly as asked for", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).common(1, 8).point(&EPAttr{MaxRequestDTOs: 1, MaxMessageSize: 100, MaxRDMASize: 200})
		if a := must(p.Query())(t).Attr; a.MaxMessageSize != 100 || a.MaxRDMASize != 200 {
			t.Errorf("granted %d and %d bytes", a.MaxMessageSize, a.MaxRDMASize)
		}
	}},
	{"sizes of 0 are the provider's default", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := b.common(1, 1<<16)
		x, y := a.point(nil), c.point(&EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 1, MaxRecvIOV: 1, MaxRequestIOV: 1})
		join(x, y)
		c.post(0, 1)
		x.message(1 << 16)
		y.done(c.recv, 0, DTOReceive, DTOSuccess, 1<<16)
	}},
	{"receives are in the zone of the queue, all else in that of the endpoint", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := b.common(2, 64)
		x, y := a.point(nil), c.point(nil)
		ok(t, y.Free())
		pz := must(b.ia.CreatePZ())(t)
		mem := make([]byte, 64)
		own := must(b.ia.CreateLMR(mem, pz, MemAll))(t)
		y.EP = must(b.ia.CreateEP(pz, EPConfig{RecvEVD: c.recv, RequestEVD: y.request, ConnectEVD: y.connect, SRQ: c.SRQ, Attr: &EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 4}}))(t)
		join(x, y)
		c.post(0, 1)
		x.message(64)
		y.got(0)
		wants(t, "send from the queue's zone", y.PostSend([]LMRTriplet{c.lmr.Segment(0, 8)}, 0, 0), ErrProtectionViolation)
		ok(t, x.PostRecv(x.seg(0, 64), 1, 0))
		ok(t, y.PostSend([]LMRTriplet{own.Segment(0, 64)}, 2, 0))
		x.done(x.recv, 1, DTOReceive, DTOSuccess, 64)
		ok(t, x.PostRDMAWrite(x.seg(0, 64), 9, c.lmr.Remote(0, 64), 0))
		x.done(x.request, 9, DTORDMAWrite, DTORemoteAccess, 0)
		x.expect(EventBroken)
		y.expect(EventBroken)
	}},
	{"no receive is posted to the endpoint itself, in any state", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 1)
		idle := c.point(nil)
		refused := func(p *point) {
			t.Helper()
			wants(t, "post in state "+p.State().String(), p.PostRecv(p.seg(0, 8), 0, 0), ErrInvalidState)
		}
		refused(idle)
		refused(ys[0])
		ok(t, xs[0].Disconnect(CloseAbrupt))
		ys[0].expect(EventDisconnected)
		refused(ys[0])
		expectNoEvent(t, c.recv)
	}},
	{"a fresh endpoint is unconnected and idle", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(1, 8)
		c.post(0, 1)
		s, recv, request, err := c.point(nil).Status()
		if s != EPUnconnected || !recv || !request || err != nil {
			t.Error(s, recv, request, err)
		}
	}},
	{"an endpoint is not idle while a message arrives", func(t *testing.T, n network) {
		_, _, y, _ := sendPart(t, n)
		if _, recv, _, err := y.Status(); recv || err != nil {
			t.Error(recv, err)
		}
	}},
	{"reset keeps the queue", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 4)
		c.post(0, 4)
		for i := range uint64(3) {
			xs[0].message(64)
			ys[0].got(i)
			ok(t, xs[0].Disconnect(CloseAbrupt))
			xs[0].expect(EventDisconnected)
			ys[0].expect(EventDisconnected)
			ys[0].lastReceive()
			ok(t, xs[0].Reset())
			ok(t, ys[0].Reset())
			c.counts(3-int(i), 3-int(i))
			join(xs[0], ys[0])
		}
	}},
	{"either side may connect, and both may share queues", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c, d := a.common(1, 64), b.common(1, 64)
		x, y := c.point(nil), d.point(nil)
		join(x, y)
		c.post(0, 1)
		d.post(0, 1)
		x.message(64)
		y.got(0)
		y.message(64)
		x.got(0)
	}},
	{"ordinary endpoints and endpoints with a shared receive queue can share a dispatcher", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 1)
		u, v := xs[0].host.point(nil), c.host.point(nil)
		ok(t, v.Free())
		v.recv = c.recv
		v.EP = must(c.host.ia.CreateEP(c.host.pz, EPConfig{RecvEVD: c.recv, RequestEVD: v.request, ConnectEVD: v.connect}))(t)
		join(u, v)
		c.post(0, 1)
		ok(t, v.PostRecv(v.seg(0, 64), 8, 0))
		u.message(64)
		v.got(8)
		xs[0].message(64)
		ys[0].got(0)
	}},
	{"a disconnect flushes the receives that the endpoint has taken, and no others", func(t *testing.T, n network) {
		c, x, y, v := sendPart(t, n)
		ok(t, y.Disconnect(CloseAbrupt))
		v.shut.Store(false)
		y.flushed(0)
		y.expect(EventDisconnected)
		x.expect(EventDisconnected)
		c.counts(2, 2)
		u, w := x.host.point(nil), c.point(nil)
		join(u, w)
		u.message(64)
		w.got(1)
	}},
	{"the event for the end of the connection comes when the endpoint takes no more receives", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 3, 4)
		c.host.nothingAsync()
		ok(t, xs[0].Disconnect(CloseGraceful))
		ys[0].expect(EventDisconnected)
		ys[0].lastReceive()
		ok(t, ys[1].Disconnect(CloseAbrupt))
		ys[1].expect(EventDisconnected)
		ys[1].lastReceive()
		c.post(0, 1)
		xs[2].send(257)
		ys[2].expect(EventBroken)
		ys[2].lastReceive()
		c.host.nothingAsync()
		xs[0].host.nothingAsync()
	}},
	{"a connection that never was has no end to tell of", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := a.common(1, 8)
		x := c.point(nil)
		x.dial(b, nil)
		ok(t, b.request(t).Reject(nil))
		x.expect(EventPeerRejected)
		a.nothingAsync()
	}},
	{"freeing the endpoint causes no event", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 1)
		ok(t, ys[0].Free())
		xs[0].expect(EventDisconnected)
		c.host.nothingAsync()
	}},
	{"the soft high watermark of the attributes is armed, 0 is none", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := b.common(4, 64)
		c.post(0, 4)
		for i, soft := range []int{0, WatermarkInfinite, 1} {
			x, y := a.point(nil), c.point(&EPAttr{MaxRecvDTOs: 4, MaxRequestDTOs: 4, SRQSoftHW: soft})
			join(x, y)
			x.message(64)
			b.nothingAsync()
			if i == 2 {
				x.message(64)
				y.softMark()
			}
		}
	}},
}

var epRecvQueryRules = []rule{
	{"the endpoint has to be there", func(t *testing.T, n network) {
		p := newHost(t, n, 0, Options{}).common(1, 8).point(nil)
		ok(t, p.Free())
		_, _, err := p.RecvQuery()
		wants(t, "freed", err, ErrInvalidHandle)
		_, _, err = (*EP)(nil).RecvQuery()
		wants(t, "none", err, ErrInvalidHandle)
	}},
	{"receives in the queue do not belong to the endpoint", func(t *testing.T, n network) {
		c, _, ys := sharing(t, n, 1, 2)
		c.post(0, 2)
		has(t, ys[0], 0)
	}},
	{"a receive is the endpoint's while its message arrives", func(t *testing.T, n network) {
		c, x, y, v := sendPart(t, n)
		has(t, y, 1)
		v.shut.Store(false)
		x.done(x.request, 9, DTOSend, DTOSuccess, len(x.mem))
		has(t, y, 0)
		c.counts(2, 3)
	}},
	{"a flushed receive is not the endpoint's", func(t *testing.T, n network) {
		_, _, y, _ := sendPart(t, n)
		ok(t, y.Disconnect(CloseAbrupt))
		has(t, y, 0)
	}},
	{"receives posted on an ordinary endpoint belong to the endpoint", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		ok(t, y.PostRecv(y.seg(0, 64), 0, 0))
		ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
		has(t, y, 2)
		join(x, y)
		x.message(64)
		has(t, y, 1)
		ok(t, y.Disconnect(CloseAbrupt))
		has(t, y, 0)
	}},
	{"it is legal in every state", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := a.common(1, 8)
		x, y := c.point(nil), b.point(nil)
		has(t, x, 0)
		x.dial(b, nil)
		has(t, x, 0)
		cr := b.request(t)
		ok(t, cr.Accept(y.EP, nil))
		x.expect(EventEstablished)
		has(t, x, 0)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		has(t, x, 0)
	}},
}

// has compares the result of RecvQuery.
func has(t *testing.T, p *point, want int) {
	t.Helper()
	n, span, err := p.RecvQuery()
	if n != want || span != want || err != nil {
		t.Errorf("%d receives over %d messages, %v; want %d", n, span, err, want)
	}
}
