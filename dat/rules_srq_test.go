package dat

import (
	"errors"
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire"
)

var srqRules = []topic{
	{"dat_srq_create", []rule{
		{"a queue has what was asked for, and no receives", func(t *testing.T, n network) {
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
		{"attributes out of range are refused and leave nothing", func(t *testing.T, n network) {
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
			ok(t, h.ia.Close(CloseGraceful))
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
			wants(t, "close", h.ia.Close(CloseGraceful), ErrInvalidState)
			ok(t, s.Free())
			ok(t, h.pz.Free())
			ok(t, h.ia.Close(CloseGraceful))
		}},
		{"an abrupt close ends a queue in use", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 2, 4)
			c.post(0, 4)
			xs[0].message(64)
			ok(t, c.host.ia.Close(CloseAbrupt))
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
	}},
	{"dat_srq_query", []rule{
		{"the queue has to be there", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			c := h.common(1, 8)
			ok(t, c.Free())
			_, err := c.Query()
			wants(t, "freed", err, ErrInvalidHandle)
			_, err = (*SRQ)(nil).Query()
			wants(t, "none", err, ErrInvalidHandle)
		}},
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
			c, x, y, v := halfway(t, n)
			c.counts(2, 3)
			v.shut.Store(false)
			x.done(x.request, 9, DTOSend, DTOSuccess, len(x.mem))
			y.done(y.recv, 0, DTOReceive, DTOSuccess, len(x.mem))
			c.counts(2, 2)
			same(t, c.place(0), x.mem)
		}},
		{"a flushed receive is outstanding until its completion is taken", func(t *testing.T, n network) {
			c, _, y, _ := halfway(t, n)
			ok(t, y.Disconnect(CloseAbrupt))
			y.expect(EventDisconnected)
			c.counts(2, 3)
			y.flushed(0)
			c.counts(2, 2)
		}},
		{"a receive of a freed endpoint is not outstanding", func(t *testing.T, n network) {
			c, _, y, _ := halfway(t, n)
			ok(t, y.Free())
			c.counts(2, 2)
			still(t, c.recv)
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
			y.EP = must(b.ia.CreateEPWithSRQ(b.pz, nil, y.request, y.connect, c.SRQ, &EPAttr{MaxRequestDTOs: 4}))(t)
			join(x, y)
			c.post(0, 2)
			x.message(64)
			c.counts(1, 1)
		}},
		{"depth and low watermark are those of the last call", func(t *testing.T, n network) {
			c := newHost(t, n, 0, Options{}).common(8, 8)
			ok(t, c.SetLW(5))
			ok(t, c.Resize(9))
			if p := must(c.Query())(t); p.MaxRecvDTOs != 9 || p.LowWatermark != 5 {
				t.Errorf("got %+v", p)
			}
		}},
	}},
	{"dat_srq_resize", []rule{
		{"the queue has to be there", func(t *testing.T, n network) {
			c := newHost(t, n, 0, Options{}).common(1, 8)
			ok(t, c.Free())
			wants(t, "freed", c.Resize(2), ErrInvalidHandle)
			wants(t, "none", (*SRQ)(nil).Resize(2), ErrInvalidHandle)
		}},
		{"the depth has to be in range", func(t *testing.T, n network) {
			c := newHost(t, n, 0, Options{}).common(1, 8)
			wants(t, "none", c.Resize(0), ErrInvalidParameter)
			wants(t, "negative", c.Resize(-1), ErrInvalidParameter)
			wants(t, "too many", c.Resize(maxSRQDTOs+1), ErrInsufficientResources)
			if got := must(c.Query())(t).MaxRecvDTOs; got != 1 {
				t.Errorf("depth %d, want 1", got)
			}
		}},
		{"a larger queue takes more, and keeps what it had in order", func(t *testing.T, n network) {
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
		{"a queue may become as small as what is outstanding, not smaller", func(t *testing.T, n network) {
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
	}},
	{"dat_srq_set_lw", []rule{
		{"the queue has to be there", func(t *testing.T, n network) {
			c := newHost(t, n, 0, Options{}).common(1, 8)
			ok(t, c.Free())
			wants(t, "freed", c.SetLW(1), ErrInvalidHandle)
			wants(t, "none", (*SRQ)(nil).SetLW(1), ErrInvalidHandle)
		}},
		{"the mark may be 0 to the depth", func(t *testing.T, n network) {
			c := newHost(t, n, 0, Options{}).common(4, 8)
			c.post(0, 4)
			wants(t, "negative", c.SetLW(-1), ErrInvalidParameter)
			wants(t, "5 of 4", c.SetLW(5), ErrInvalidParameter)
			ok(t, c.SetLW(0))
			ok(t, c.SetLW(4))
			c.host.nothingAsync()
		}},
		{"below the mark already, the event comes at once", func(t *testing.T, n network) {
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
		{"the event comes once, until set again", func(t *testing.T, n network) {
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
		{"without a mark nothing is told", func(t *testing.T, n network) {
			c, xs, _ := sharing(t, n, 1, 4)
			c.post(0, 1)
			xs[0].message(64)
			c.host.nothingAsync()
		}},
	}},
	{"dat_srq_post_recv", []rule{
		{"the queue has to be there", func(t *testing.T, n network) {
			c := newHost(t, n, 0, Options{}).common(1, 8)
			ok(t, c.Free())
			wants(t, "freed", c.PostRecv(nil, 0), ErrInvalidHandle)
			wants(t, "none", (*SRQ)(nil).PostRecv(nil, 0), ErrInvalidHandle)
		}},
		{"memory is checked at the post, in the zone of the queue", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			c := h.common(2, 64)
			pz := must(h.ia.CreatePZ())(t)
			other := must(h.ia.CreateLMR(make([]byte, 64), pz, MemAll))(t)
			readOnly := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemLocalRead|MemRemoteWrite))(t)
			gone := must(h.ia.CreateLMR(make([]byte, 64), h.pz, MemAll))(t)
			ok(t, gone.Free())
			whole := c.lmr.Segment(0, 128)
			for what, tc := range map[string]struct {
				iov  []LMRTriplet
				want error
			}{
				"too many segments":       {[]LMRTriplet{whole, whole, whole, whole, whole}, ErrInvalidParameter},
				"a byte beyond":           {[]LMRTriplet{c.lmr.Segment(65, 64)}, ErrInvalidParameter},
				"a byte before":           {[]LMRTriplet{c.lmr.Segment(-1, 64)}, ErrInvalidParameter},
				"the second wrong":        {[]LMRTriplet{whole, c.lmr.Segment(0, 129)}, ErrInvalidParameter},
				"no such context":         {[]LMRTriplet{{Context: ^whole.Context, Address: whole.Address, Length: 8}}, ErrPrivilegesViolation},
				"a freed region":          {[]LMRTriplet{gone.Segment(0, 8)}, ErrPrivilegesViolation},
				"no privilege of writing": {[]LMRTriplet{readOnly.Segment(0, 8)}, ErrPrivilegesViolation},
				"another zone":            {[]LMRTriplet{other.Segment(0, 8)}, ErrProtectionViolation},
			} {
				wants(t, what, c.PostRecv(tc.iov, 0), tc.want)
			}
			c.counts(0, 0)
		}},
		{"a segment without bytes is ignored, whatever it names", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 2)
			ok(t, c.PostRecv([]LMRTriplet{{Context: 77, Address: 1}, c.lmr.Segment(0, 64)}, 5))
			xs[0].message(64)
			ys[0].got(5)
			same(t, c.mem[:64], xs[0].mem[:64])
		}},
		{"no segments take an empty message", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 2)
			ok(t, c.PostRecv(nil, 5))
			xs[0].message(0)
			ys[0].done(c.recv, 5, DTOReceive, DTOSuccess, 0)
		}},
		{"a full queue refuses, until a completion was taken", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 2)
			c.post(0, 2)
			wants(t, "post", c.PostRecv(nil, 0), ErrInsufficientResources)
			xs[0].message(64)
			wants(t, "post, completion not taken", c.PostRecv(nil, 0), ErrInsufficientResources)
			ys[0].got(0)
			ok(t, c.PostRecv(nil, 0))
			wants(t, "post", c.PostRecv(nil, 0), ErrInsufficientResources)
		}},
		{"the completion goes to the dispatcher of the endpoint that took it, cookie and all", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 3, 6)
			for i := range uint64(6) {
				ok(t, c.PostRecv([]LMRTriplet{c.lmr.Segment(int(i)*64, 64)}, ^i))
			}
			for i := range uint64(6) {
				xs[i%3].message(64)
				ys[i%3].got(^i)
			}
		}},
		{"pieces are filled in order, and a short message fills the front", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 2)
			fillRandom(c.mem, 1)
			was := append([]byte(nil), c.mem...)
			ok(t, c.PostRecv([]LMRTriplet{c.lmr.Segment(100, 10), c.lmr.Segment(0, 40), c.lmr.Segment(50, 30)}, 1))
			copy(xs[0].mem, "0123456789abcdefghijklmnopqrstuvwxyz")
			xs[0].message(36)
			ys[0].done(c.recv, 1, DTOReceive, DTOSuccess, 36)
			copy(was[100:], xs[0].mem[:10])
			copy(was, xs[0].mem[10:36])
			same(t, c.mem, was)
		}},
		{"the messages of one connection take the receives in the order of their posts", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 32)
			c.post(0, 32)
			for range 32 {
				xs[0].send(64)
			}
			for i := range uint64(32) {
				ys[0].got(i)
			}
		}},
		{"a message that is longer than its receive breaks its connection alone", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 2, 3)
			c.post(0, 3)
			xs[0].send(257)
			xs[0].done(xs[0].request, 9, DTOSend, DTORemoteResponder, 0)
			xs[0].expect(EventBroken)
			ys[0].done(c.recv, 0, DTOReceive, DTOLocalLength, 0)
			ys[0].expect(EventBroken)
			xs[1].message(64)
			ys[1].got(1)
			c.counts(1, 1)
		}},
		{"a region that was freed under a receive breaks the connection that takes it", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 2, 3)
			gone := must(c.host.ia.CreateLMR(make([]byte, 64), c.host.pz, MemAll))(t)
			ok(t, c.PostRecv([]LMRTriplet{gone.Segment(0, 64)}, 7))
			ok(t, gone.Free())
			c.post(0, 1)
			xs[0].send(64)
			ys[0].done(c.recv, 7, DTOReceive, DTOLocalProtection, 0)
			ys[0].expect(EventBroken)
			xs[0].expect(EventBroken)
			xs[1].message(64)
			ys[1].got(0)
		}},
		{"receives that are posted late are found by the messages that wait", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 3, 8)
			for _, x := range xs {
				x.send(64)
				x.send(64)
			}
			still(t, c.recv)
			got := map[*EP]int{}
			for i := range 6 {
				c.post(i, i+1)
				ev := await(t, c.recv, EventDTOCompletion)
				if ev.Status != DTOSuccess || ev.Cookie != uint64(i) {
					t.Errorf("completion %d: %d %v", i, ev.Cookie, ev.Status)
				}
				got[ev.EP]++
			}
			for i, x := range xs {
				x.done(x.request, 9, DTOSend, DTOSuccess, 64)
				x.done(x.request, 9, DTOSend, DTOSuccess, 64)
				if got[ys[i].EP] != 2 {
					t.Errorf("endpoint %d received %d messages, want 2", i, got[ys[i].EP])
				}
			}
			c.counts(0, 0)
		}},
		{"a message that finds no receive for long enough fails, and breaks its connection alone", func(t *testing.T, n network) {
			c, xs, ys := sharingWith(t, n, 2, 3, Options{Limits: wire.Limits{NotReady: 50 * time.Millisecond}})
			xs[0].send(64)
			xs[0].done(xs[0].request, 9, DTOSend, DTOReceiverNotReady, 0)
			xs[0].expect(EventBroken)
			ys[0].expect(EventBroken)
			c.post(0, 1)
			xs[1].message(64)
			ys[1].got(0)
		}},
		{"receives outlive the connections that did not take them", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 2, 4)
			c.post(0, 4)
			ok(t, ys[0].Disconnect(CloseAbrupt))
			xs[0].expect(EventDisconnected)
			ys[0].expect(EventDisconnected)
			ok(t, ys[0].Free())
			c.counts(4, 4)
			still(t, c.recv)
			xs[1].message(64)
			ys[1].got(0)
		}},
		{"a completion wakes who waits for it", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 1)
			c.post(0, 1)
			done := make(chan error, 1)
			go func() {
				var ev Event
				_, err := c.recv.Wait(patience, 1, &ev)
				if err == nil && ev.EP != ys[0].EP {
					err = errors.New("the completion of another endpoint")
				}
				done <- err
			}()
			parked(t, c.recv)
			xs[0].message(64)
			ok(t, <-done)
		}},
	}},
	{"dat_srq_free", []rule{
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
		{"receives that nobody took vanish", func(t *testing.T, n network) {
			c, _, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			ok(t, ys[0].Free())
			ok(t, c.Free())
			still(t, c.recv)
			ok(t, c.lmr.Free())
		}},
		{"completions outlive the queue", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 2)
			c.post(0, 2)
			xs[0].message(64)
			ok(t, ys[0].Free())
			ok(t, c.Free())
			ys[0].got(0)
			still(t, c.recv)
		}},
	}},
	{"dat_ep_create_with_srq", []rule{
		{"attributes are required", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			c := h.common(1, 8)
			_, err := h.ia.CreateEPWithSRQ(h.pz, nil, nil, nil, c.SRQ, nil)
			wants(t, "none", err, ErrInvalidParameter)
		}},
		{"attributes have to be in range", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			c := h.common(1, 8)
			for _, a := range []EPAttr{{MaxRequestDTOs: -1}, {MaxRequestIOV: maxIOV + 1}, {MaxRecvDTOs: maxDTOs + 1}, {SRQSoftHW: -2}} {
				_, err := h.ia.CreateEPWithSRQ(h.pz, nil, nil, nil, c.SRQ, &a)
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
				"no queue":                   {a.pz, [3]*EVD{}, nil},
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
				_, err := a.ia.CreateEPWithSRQ(tc.pz, tc.evds[0], tc.evds[1], tc.evds[2], tc.srq, &EPAttr{})
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
			y.EP = must(b.ia.CreateEPWithSRQ(pz, c.recv, y.request, y.connect, c.SRQ, &EPAttr{MaxRecvDTOs: 1, MaxRequestDTOs: 4}))(t)
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
			still(t, c.recv)
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
			_, _, y, _ := halfway(t, n)
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
		{"ordinary endpoints and those that share have one dispatcher", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 1)
			u, v := xs[0].host.point(nil), c.host.point(nil)
			ok(t, v.Free())
			v.recv = c.recv
			v.EP = must(c.host.ia.CreateEP(c.host.pz, c.recv, v.request, v.connect, nil))(t)
			join(u, v)
			c.post(0, 1)
			ok(t, v.PostRecv(v.seg(0, 64), 8, 0))
			u.message(64)
			v.got(8)
			xs[0].message(64)
			ys[0].got(0)
		}},
		{"a disconnect flushes what was taken, and leaves the rest", func(t *testing.T, n network) {
			c, x, y, v := halfway(t, n)
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
		{"the end of a connection is told when no more receives are taken", func(t *testing.T, n network) {
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
		{"who frees the endpoint is not told of its end", func(t *testing.T, n network) {
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
	}},
	{"dat_ep_recv_query", []rule{
		{"the endpoint has to be there", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).common(1, 8).point(nil)
			ok(t, p.Free())
			_, _, err := p.RecvQuery()
			wants(t, "freed", err, ErrInvalidHandle)
			_, _, err = (*EP)(nil).RecvQuery()
			wants(t, "none", err, ErrInvalidHandle)
		}},
		{"what the queue has is not the endpoint's", func(t *testing.T, n network) {
			c, _, ys := sharing(t, n, 1, 2)
			c.post(0, 2)
			has(t, ys[0], 0)
		}},
		{"a receive is the endpoint's while its message arrives", func(t *testing.T, n network) {
			c, x, y, v := halfway(t, n)
			has(t, y, 1)
			v.shut.Store(false)
			x.done(x.request, 9, DTOSend, DTOSuccess, len(x.mem))
			has(t, y, 0)
			c.counts(2, 3)
		}},
		{"a flushed receive is not the endpoint's", func(t *testing.T, n network) {
			_, _, y, _ := halfway(t, n)
			ok(t, y.Disconnect(CloseAbrupt))
			has(t, y, 0)
		}},
		{"what is posted to an ordinary endpoint is its own", func(t *testing.T, n network) {
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
	}},
	{"dat_ep_set_watermark", []rule{
		{"the endpoint has to be there", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).common(1, 8).point(nil)
			ok(t, p.Free())
			wants(t, "freed", p.SetWatermark(1, 1), ErrInvalidHandle)
			wants(t, "none", (*EP)(nil).SetWatermark(1, 1), ErrInvalidHandle)
		}},
		{"the endpoint has to share a queue", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).point(nil)
			wants(t, "an ordinary one", p.SetWatermark(1, 1), ErrModelNotSupported)
		}},
		{"marks may be 0 or more, or infinite", func(t *testing.T, n network) {
			p := newHost(t, n, 0, Options{}).common(1, 8).point(nil)
			wants(t, "soft", p.SetWatermark(-2, 1), ErrInvalidParameter)
			wants(t, "hard", p.SetWatermark(1, -2), ErrInvalidParameter)
			ok(t, p.SetWatermark(WatermarkInfinite, WatermarkInfinite))
			ok(t, p.SetWatermark(0, 0))
			ok(t, p.SetWatermark(1<<40, 1<<40))
		}},
		{"beyond the soft mark there is one event", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			ok(t, ys[0].SetWatermark(2, WatermarkInfinite))
			xs[0].message(64)
			xs[0].message(64)
			c.host.nothingAsync()
			xs[0].message(64)
			ys[0].softMark()
			xs[0].message(64)
			c.host.nothingAsync()
		}},
		{"the soft event comes again when it is set again, at once if it is crossed", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			for range 2 {
				xs[0].message(64)
			}
			for range 3 {
				ok(t, ys[0].SetWatermark(1, WatermarkInfinite))
				ys[0].softMark()
				c.host.nothingAsync()
			}
			ok(t, ys[0].SetWatermark(2, WatermarkInfinite))
			c.host.nothingAsync()
		}},
		{"a receive that is being filled counts", func(t *testing.T, n network) {
			_, _, y, _ := halfway(t, n)
			ok(t, y.SetWatermark(1, 1))
			y.host.nothingAsync()
			ok(t, y.SetWatermark(0, WatermarkInfinite))
			y.softMark()
		}},
		{"a completion that was taken does not count", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			ok(t, ys[0].SetWatermark(1, 1))
			for i := range uint64(8) {
				xs[0].message(64)
				ys[0].got(i)
			}
			c.host.nothingAsync()
			ys[0].still()
		}},
		{"beyond the hard mark the connection breaks", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			ok(t, ys[0].SetWatermark(WatermarkInfinite, 2))
			xs[0].message(64)
			xs[0].message(64)
			ys[0].host.nothingAsync()
			xs[0].send(64)
			xs[0].expect(EventBroken)
			ys[0].expect(EventBroken)
			ys[0].got(0)
			ys[0].got(1)
			ys[0].flushed(2)
			c.counts(5, 5)
			if s := ys[0].State(); s != EPDisconnected {
				t.Error(s)
			}
		}},
		{"a hard mark that is crossed breaks the connection at once", func(t *testing.T, n network) {
			_, x, y, v := halfway(t, n)
			ok(t, y.SetWatermark(WatermarkInfinite, 0))
			v.shut.Store(false)
			y.expect(EventBroken)
			y.flushed(0)
			x.expect(EventBroken)
		}},
		{"the marks are independent of each other", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			ok(t, ys[0].SetWatermark(3, 1))
			xs[0].message(64)
			xs[0].send(64)
			ys[0].expect(EventBroken)
			ys[0].lastReceive()
			c.host.nothingAsync()
		}},
		{"infinite disarms", func(t *testing.T, n network) {
			c, xs, ys := sharing(t, n, 1, 8)
			c.post(0, 8)
			ok(t, ys[0].SetWatermark(0, 0))
			ok(t, ys[0].SetWatermark(WatermarkInfinite, WatermarkInfinite))
			for range 4 {
				xs[0].message(64)
			}
			c.host.nothingAsync()
		}},
		{"marks are one endpoint's, and live through connections", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			c := b.common(8, 64)
			c.post(0, 8)
			u, v := a.point(nil), c.point(nil)
			x, y := a.point(nil), c.point(nil)
			ok(t, y.SetWatermark(0, WatermarkInfinite))
			join(u, v)
			join(x, y)
			u.message(64)
			u.message(64)
			b.nothingAsync()
			x.message(64)
			y.softMark()
			ok(t, y.Disconnect(CloseAbrupt))
			y.lastReceive()
			ok(t, y.SetWatermark(0, WatermarkInfinite))
			y.softMark() // its completion was not taken
		}},
	}},
}

// has compares what an endpoint has of receives.
func has(t *testing.T, p *point, want int) {
	t.Helper()
	n, span, err := p.RecvQuery()
	if n != want || span != want || err != nil {
		t.Errorf("%d receives over %d messages, %v; want %d", n, span, err, want)
	}
}
