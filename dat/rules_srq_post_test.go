package dat

import (
	"errors"
	"testing"
)

var srqPostRecvRules = []rule{
	freedSRQ(func(q *SRQ) error { return q.PostRecv(nil, 0) }),
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
	{"the completion, with its cookie, goes to the dispatcher of the endpoint that took the receive", func(t *testing.T, n network) {
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
		expectNoEvent(t, c.recv)
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
		c, xs, ys := sharingWith(t, n, 2, 3, Options{Limits: Limits{NotReady: shortNotReady}})
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
		expectNoEvent(t, c.recv)
		xs[1].message(64)
		ys[1].got(0)
	}},
	{"a completion wakes a waiter", func(t *testing.T, n network) {
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
}
