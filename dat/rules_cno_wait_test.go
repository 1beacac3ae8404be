package dat

import (
	"context"
	"errors"
	"testing"
	"time"
)

var cnoWaitRules = []rule{
	onHost("a timeout is an empty queue and no EVD", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		for _, timeout := range []time.Duration{0, time.Microsecond, 5 * time.Millisecond} {
			begun := time.Now()
			e, err := c.Wait(timeout)
			if e != nil || err != ErrQueueEmpty || time.Since(begun) < timeout {
				t.Errorf("timeout %v: %p, %v after %v", timeout, e, err, time.Since(begun))
			}
		}
		cnoWaiting(t, c, 0)
	}),
	onHost("an earlier trigger is taken immediately", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		says(t, e, 1)
		if got, err := c.Wait(-1); got != e || err != nil {
			t.Errorf("got %p, %v", got, err)
		}
		expectTrigger(t, c, nil)
	}),
	onHost("kept triggers count as one trigger, of the EVD that triggered last", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e, last := h.soft(8, c), h.soft(8, c)
		says(t, e, 1, 2)
		says(t, last, 1)
		expectTrigger(t, c, last)
		expectTrigger(t, c, nil)
		hears(t, e, 1, 2)
	}),
	onHost("a waiter is released by a trigger", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		for i := range 5 {
			got := cnoWaits(t, c, 1)
			says(t, e, i)
			if w := result(t, got); w.evd != e || w.err != nil {
				t.Errorf("got %p, %v", w.evd, w.err)
			}
			expectTrigger(t, c, nil)
		}
	}),
	onHost("each trigger releases one of many waiters", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e, f := h.soft(8, c), h.soft(8, c)
		got := cnoWaits(t, c, 4)
		for i, evd := range []*EVD{e, f, e, f} {
			says(t, evd, i)
			if w := result(t, got); w.evd != evd || w.err != nil {
				t.Errorf("got %p, %v, want %p", w.evd, w.err, evd)
			}
			cnoWaiting(t, c, 3-i)
		}
		expectTrigger(t, c, nil)
	}),
	{"a completion releases a waiter that sleeps", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		c := must(b.ia.CreateCNO(nil))(t)
		ok(t, y.recv.ModifyCNO(c))
		got := cnoWaits(t, c, 1)
		asleep(t, b)
		sendMessages(x, y, 1)
		if w := result(t, got); w.evd != y.recv || w.err != nil {
			t.Errorf("got %p, %v", w.evd, w.err)
		}
		y.done(y.recv, 0, DTOReceive, DTOSuccess, 8)
	}},
	{"connection events and requests trigger it", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		c, d := must(a.ia.CreateCNO(nil))(t), must(b.ia.CreateCNO(nil))(t)
		x, y := a.point(nil), b.point(nil)
		ok(t, x.connect.ModifyCNO(c))
		ok(t, b.cr.ModifyCNO(d))
		x.dial(b, nil)
		if e, err := d.Wait(patience); e != b.cr || err != nil {
			t.Fatalf("request: %p, %v", e, err)
		}
		ok(t, b.request(t).Accept(y.EP, nil))
		if e, err := c.Wait(patience); e != x.connect || err != nil {
			t.Fatalf("established: %p, %v", e, err)
		}
	}},
	{"it drives the adapter: a completion is seen by polling it", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		c := must(b.ia.CreateCNO(nil))(t)
		ok(t, y.recv.ModifyCNO(c))
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 1, 0))
		eventually(t, "trigger", func() bool { e, _ := c.Wait(0); return e == y.recv })
	}},
	{"a completion that the call which dequeues it has brought does not trigger it", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		c := must(b.ia.CreateCNO(nil))(t)
		ok(t, y.recv.ModifyCNO(c))
		for i := range 200 {
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSuppress))
			var ev Event
			eventually(t, "message", func() bool { return y.recv.Dequeue(&ev) == nil })
			if e, _ := c.Trigger(); e != nil {
				t.Fatalf("message %d: triggered, with %d events", i, e.Len())
			}
		}
	}},
	onHost("events that were dequeued do not trigger it, others do", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e, other := h.soft(8, c), h.soft(8, c)
		says(t, e, 1, 2)
		says(t, other, 3)
		var ev Event
		ok(t, e.Dequeue(&ev))
		ok(t, other.Dequeue(&ev))
		expectTrigger(t, c, e) // one event remains queued
		expectTrigger(t, c, nil)
		ok(t, e.Dequeue(&ev))
		expectTrigger(t, c, nil)
		says(t, e, 4)
		expectTrigger(t, c, e)
	}),
	onHost("a disabled EVD does not trigger it", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		ok(t, e.Disable())
		got := cnoWaits(t, c, 1)
		says(t, e, 1)
		cnoWaiting(t, c, 1)
		ok(t, e.Enable())
		if w := result(t, got); w.evd != e {
			t.Errorf("got %p", w.evd)
		}
	}),
	onHost("an EVD on which a goroutine waits does not trigger it", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		got := waits(t, e, 1)
		says(t, e, 1)
		ok(t, result(t, got).err)
		expectTrigger(t, c, nil)
	}),
	onHost("an abrupt close releases every waiter without an EVD and without an error", func(t *testing.T, h *host) {
		c, empty := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
		h.soft(8, c)
		got, others := cnoWaits(t, c, 3), cnoWaits(t, empty, 2)
		ok(t, h.ia.Close())
		for range 3 {
			if w := result(t, got); w.evd != nil || w.err != nil {
				t.Errorf("got %p, %v", w.evd, w.err)
			}
		}
		for range 2 {
			if w := result(t, others); w.evd != nil || w.err != nil {
				t.Errorf("without EVDs: got %p, %v", w.evd, w.err)
			}
		}
	}),
	onHost("taking the last EVD away does not release a waiter", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		got := cnoWaits(t, c, 1)
		ok(t, e.ModifyCNO(nil))
		cnoWaiting(t, c, 1)
		ok(t, e.ModifyCNO(c))
		says(t, e, 1)
		if w := result(t, got); w.evd != e {
			t.Errorf("got %p", w.evd)
		}
	}),
	onHost("the end of a context interrupts it", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan cnoWaited, 1)
		go func() {
			e, err := c.WaitContext(ctx)
			got <- cnoWaited{e, err}
		}()
		cnoWaiting(t, c, 1)
		cancel()
		if w := result(t, got); w.evd != nil || !errors.Is(w.err, ErrInterruptedCall) || !errors.Is(w.err, context.Canceled) {
			t.Errorf("got %p, %v", w.evd, w.err)
		}
		cnoWaiting(t, c, 0)
	}),
	onHost("a context is not needed for a trigger that is there, and none is invalid", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		says(t, e, 1)
		var none context.Context
		_, err := c.WaitContext(none)
		wants(t, "no context", err, ErrInvalidParameter)
		got, err := c.WaitContext(t.Context())
		ok(t, err)
		if got != e {
			t.Errorf("got %p", got)
		}
	}),
	freedCNO(func(c *CNO) error { _, err := c.Wait(0); return err }),
}
