package dat

import (
	"testing"
)

var srqRules = []topic{
	{"dat_srq_create", srqCreateRules},
	{"dat_srq_query", srqQueryRules},
	{"dat_srq_resize", srqResizeRules},
	{"dat_srq_set_lw", srqSetLWRules},
	{"dat_srq_post_recv", srqPostRecvRules},
	{"dat_srq_free", srqFreeRules},
	{"dat_ep_create_with_srq", epCreateWithSRQRules},
	{"dat_ep_recv_query", epRecvQueryRules},
	{"dat_ep_set_watermark", epSetWatermarkRules},
}

// freedSRQ returns a rule: a call fails on a queue that is freed or nil.
func freedSRQ(call func(q *SRQ) error) rule {
	return onHost("the queue has to be there", func(t *testing.T, h *host) {
		c := h.common(1, 8)
		ok(t, c.Free())
		wants(t, "freed", call(c.SRQ), ErrInvalidHandle)
		wants(t, "none", call(nil), ErrInvalidHandle)
	})
}

var srqCreateRules = []rule{
	{"a queue has the requested attributes and no receives", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		s := must(h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: 7, MaxRecvIOV: 3}))(t)
		want := SRQParam{IA: h.ia, State: SRQOperational, PZ: h.pz, SRQAttr: SRQAttr{MaxRecvDTOs: 7, MaxRecvIOV: 3}}
		if got := must(s.Query())(t); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}},
	{"the zone has to be one of the adapter's", func(t *testing.T, n network) {
		a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		gone := must(a.ia.CreatePZ())(t)
		ok(t, gone.Free())
		for what, pz := range map[string]*PZ{"none": nil, "freed": gone, "of another adapter": b.pz} {
			_, err := a.ia.CreateSRQ(pz, SRQAttr{MaxRecvDTOs: 1})
			wants(t, "zone "+what, err, ErrInvalidHandle)
		}
	}},
	{"attributes out of range are refused, and no queue is created", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		for _, tc := range []struct {
			attr SRQAttr
			want error
		}{
			{SRQAttr{}, ErrInvalidParameter},
			{SRQAttr{MaxRecvDTOs: -1}, ErrInvalidParameter},
			{SRQAttr{MaxRecvDTOs: 1, MaxRecvIOV: -1}, ErrInvalidParameter},
			{SRQAttr{MaxRecvDTOs: 1, MaxRecvIOV: maxIOV + 1}, ErrInvalidParameter},
			{SRQAttr{MaxRecvDTOs: maxSRQDTOs + 1}, ErrInsufficientResources},
		} {
			_, err := h.ia.CreateSRQ(h.pz, tc.attr)
			wants(t, "creation", err, tc.want)
		}
		ok(t, h.pz.Free())
		ok(t, h.ia.CloseWith(CloseGraceful))
	}},
	{"the low watermark has to be the default", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		for _, lw := range []int{1, -1} {
			_, err := h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: 4, LowWatermark: lw})
			wants(t, "creation", err, ErrInvalidParameter)
		}
	}},
	{"segments that were left out are the default", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		s := must(h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: 1}))(t)
		if got, want := must(s.Query())(t).MaxRecvIOV, DefaultEPAttr().MaxRecvIOV; got != want {
			t.Errorf("got %d segments, want %d", got, want)
		}
	}},
	{"the largest limits can be used", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		s := must(h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: maxDTOs, MaxRecvIOV: maxIOV}))(t)
		for i := range uint64(maxDTOs) {
			ok(t, s.PostRecv(make([]LMRTriplet, maxIOV), i))
		}
		wants(t, "one more", s.PostRecv(nil, 0), ErrInsufficientResources)
	}},
	{"a queue keeps its zone", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		s := must(h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: 1}))(t)
		wants(t, "free of the zone", h.pz.Free(), ErrInvalidState)
		ok(t, s.Free())
		ok(t, h.pz.Free())
	}},
	{"a queue keeps its adapter from a graceful close", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		s := must(h.ia.CreateSRQ(h.pz, SRQAttr{MaxRecvDTOs: 1}))(t)
		wants(t, "close", h.ia.CloseWith(CloseGraceful), ErrInvalidState)
		ok(t, s.Free())
		ok(t, h.pz.Free())
		ok(t, h.ia.CloseWith(CloseGraceful))
	}},
	{"an abrupt close ends a queue in use", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 2, 4)
		c.post(0, 4)
		xs[0].message(64)
		ok(t, c.host.ia.Close())
		for _, x := range xs {
			x.expect(EventDisconnected)
		}
		wants(t, "post", c.PostRecv(nil, 0), ErrInvalidHandle)
		_, err := c.Query()
		wants(t, "query", err, ErrInvalidHandle)
		wants(t, "resize", c.Resize(8), ErrInvalidHandle)
		wants(t, "watermark", c.SetLW(1), ErrInvalidHandle)
		wants(t, "watermark of an endpoint", ys[0].SetWatermark(1, 1), ErrInvalidHandle)
		wants(t, "free", c.Free(), ErrInvalidHandle)
		_, err = c.host.ia.CreateSRQ(c.host.pz, SRQAttr{MaxRecvDTOs: 1})
		wants(t, "creation", err, ErrInvalidHandle)
	}},
}

var srqQueryRules = []rule{
	freedSRQ(func(q *SRQ) error { _, err := q.Query(); return err }),
	{"a receive is available until it is taken, outstanding until its completion is", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 10)
		c.counts(0, 0)
		c.post(0, 3)
		c.counts(3, 3)
		xs[0].message(64)
		c.counts(2, 3)
		ys[0].got(0)
		c.counts(2, 2)
	}},
	{"a receive that is being filled is outstanding and not available", func(t *testing.T, n network) {
		c, x, y, v := sendPart(t, n)
		c.counts(2, 3)
		v.shut.Store(false)
		x.done(x.request, 9, DTOSend, DTOSuccess, len(x.mem))
		y.done(y.recv, 0, DTOReceive, DTOSuccess, len(x.mem))
		c.counts(2, 2)
		same(t, c.place(0), x.mem)
	}},
	{"a flushed receive is outstanding until its completion is taken", func(t *testing.T, n network) {
		c, _, y, _ := sendPart(t, n)
		ok(t, y.Disconnect(CloseAbrupt))
		y.expect(EventDisconnected)
		c.counts(2, 3)
		y.flushed(0)
		c.counts(2, 2)
	}},
	{"a receive of a freed endpoint returns to the queue", func(t *testing.T, n network) {
		c, _, y, _ := sendPart(t, n)
		ok(t, y.Free())
		c.counts(3, 3)
		expectNoEvent(t, c.recv)
	}},
	{"completions that are lost with their dispatcher are not outstanding", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 3)
		c.post(0, 3)
		xs[0].message(64)
		xs[0].message(64)
		ok(t, ys[0].Free())
		c.counts(1, 3)
		ok(t, c.recv.Free())
		c.counts(1, 1)
	}},
	{"a receive of an endpoint that wants no completions is not outstanding", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c := b.common(2, 64)
		x, y := a.point(nil), c.point(nil)
		ok(t, y.Free())
		y.EP = must(b.ia.CreateEP(b.pz, EPConfig{RequestEVD: y.request, ConnectEVD: y.connect, SRQ: c.SRQ, Attr: &EPAttr{MaxRequestDTOs: 4}}))(t)
		join(x, y)
		c.post(0, 2)
		x.message(64)
		c.counts(1, 1)
	}},
	{"depth and low watermark are those of the last calls", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(8, 8)
		ok(t, c.SetLW(5))
		ok(t, c.Resize(9))
		if p := must(c.Query())(t); p.MaxRecvDTOs != 9 || p.LowWatermark != 5 {
			t.Errorf("got %+v", p)
		}
	}},
}

var srqResizeRules = []rule{
	freedSRQ(func(q *SRQ) error { return q.Resize(2) }),
	{"the depth has to be in range", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(1, 8)
		wants(t, "none", c.Resize(0), ErrInvalidParameter)
		wants(t, "negative", c.Resize(-1), ErrInvalidParameter)
		wants(t, "too many", c.Resize(maxSRQDTOs+1), ErrInsufficientResources)
		if got := must(c.Query())(t).MaxRecvDTOs; got != 1 {
			t.Errorf("depth %d, want 1", got)
		}
	}},
	{"a larger queue accepts more receives and keeps its receives in order", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 20)
		ok(t, c.Resize(3))
		c.post(0, 3)
		wants(t, "one too many", c.PostRecv(nil, 0), ErrInsufficientResources)
		ok(t, c.Resize(20))
		c.post(3, 20)
		wants(t, "one too many", c.PostRecv(nil, 0), ErrInsufficientResources)
		for i := range uint64(20) {
			xs[0].message(64)
			ys[0].got(i)
		}
	}},
	{"a queue may be as small as its number of outstanding receives, but not smaller", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(9, 8)
		c.post(0, 5)
		wants(t, "4", c.Resize(4), ErrInvalidState)
		c.counts(5, 5)
		ok(t, c.Resize(5))
		wants(t, "one too many", c.PostRecv(nil, 0), ErrInsufficientResources)
	}},
	{"completions that were not taken count", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 4)
		c.post(0, 4)
		xs[0].message(64)
		wants(t, "3 of 4", c.Resize(3), ErrInvalidState)
		ys[0].got(0)
		ok(t, c.Resize(3))
	}},
	{"a queue may not become smaller than its low watermark", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(9, 8)
		ok(t, c.SetLW(6))
		wants(t, "5", c.Resize(5), ErrInvalidState)
		ok(t, c.Resize(6))
	}},
	{"a queue may change while messages arrive", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		for i := range uint64(40) {
			xs[0].send(64)
			ok(t, c.Resize(8+int(i)%5))
			ys[0].got(i % 8)
			c.post(int(i%8), int(i%8)+1)
			xs[0].done(xs[0].request, 9, DTOSend, DTOSuccess, 64)
		}
		c.counts(8, 8)
	}},
}

var srqSetLWRules = []rule{
	freedSRQ(func(q *SRQ) error { return q.SetLW(1) }),
	{"the mark may be 0 to the depth", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(4, 8)
		c.post(0, 4)
		wants(t, "negative", c.SetLW(-1), ErrInvalidParameter)
		wants(t, "5 of 4", c.SetLW(5), ErrInvalidParameter)
		ok(t, c.SetLW(0))
		ok(t, c.SetLW(4))
		c.host.nothingAsync()
	}},
	{"the event comes immediately if fewer receives are available already", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(4, 8)
		c.post(0, 2)
		ok(t, c.SetLW(3))
		c.low()
		c.host.nothingAsync()
	}},
	{"at the mark there is no event, below it one", func(t *testing.T, n network) {
		c, xs, _ := sharing(t, n, 1, 4)
		c.post(0, 4)
		ok(t, c.SetLW(3))
		xs[0].message(64)
		c.host.nothingAsync()
		xs[0].message(64)
		c.low()
	}},
	{"the event comes once for each call", func(t *testing.T, n network) {
		c, xs, _ := sharing(t, n, 1, 4)
		c.post(0, 2)
		ok(t, c.SetLW(2))
		xs[0].message(64)
		c.low()
		c.post(2, 3)
		xs[0].message(64)
		c.host.nothingAsync()
		c.post(3, 4)
		ok(t, c.SetLW(2))
		c.host.nothingAsync()
		xs[0].message(64)
		c.low()
	}},
	{"0 disarms", func(t *testing.T, n network) {
		c, xs, _ := sharing(t, n, 1, 4)
		c.post(0, 2)
		ok(t, c.SetLW(2))
		ok(t, c.SetLW(0))
		xs[0].message(64)
		xs[0].message(64)
		c.host.nothingAsync()
	}},
	{"without a watermark there is no event", func(t *testing.T, n network) {
		c, xs, _ := sharing(t, n, 1, 4)
		c.post(0, 1)
		xs[0].message(64)
		c.host.nothingAsync()
	}},
}

var srqFreeRules = []rule{
	{"a queue is freed once", func(t *testing.T, n network) {
		c := newHost(t, n, 0, Options{}).common(1, 8)
		ok(t, c.Free())
		wants(t, "freed", c.Free(), ErrInvalidHandle)
		wants(t, "none", (*SRQ)(nil).Free(), ErrInvalidHandle)
	}},
	{"an endpoint keeps its queue in every state, until it is freed", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 1)
		kept := func() {
			t.Helper()
			err := c.Free()
			wants(t, "free", err, ErrInvalidState)
			wants(t, "free, subtype", err, errSRQInUse)
		}
		kept()
		ok(t, xs[0].Disconnect(CloseAbrupt))
		ys[0].expect(EventDisconnected)
		kept()
		ok(t, ys[0].Reset())
		kept()
		c.post(0, 1)
		ok(t, ys[0].Free())
		ok(t, c.Free())
	}},
	{"available receives are dropped without a completion", func(t *testing.T, n network) {
		c, _, ys := sharing(t, n, 1, 8)
		c.post(0, 8)
		ok(t, ys[0].Free())
		ok(t, c.Free())
		expectNoEvent(t, c.recv)
		ok(t, c.lmr.Free())
	}},
	{"completions outlive the queue", func(t *testing.T, n network) {
		c, xs, ys := sharing(t, n, 1, 2)
		c.post(0, 2)
		xs[0].message(64)
		ok(t, ys[0].Free())
		ok(t, c.Free())
		ys[0].got(0)
		expectNoEvent(t, c.recv)
	}},
}
