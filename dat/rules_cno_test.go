package dat

import (
	"context"
	"errors"
	"testing"
	"time"
)

// cnoWaited is what a CNO.Wait returned.
type cnoWaited struct {
	evd *EVD
	err error
}

// cnoWaits has so many more goroutines wait for ever, and returns when they do.
func cnoWaits(t testing.TB, c *CNO, n int) <-chan cnoWaited {
	t.Helper()
	got := make(chan cnoWaited, n)
	c.mu.Lock()
	before := len(c.waiters)
	c.mu.Unlock()
	for range n {
		go func() {
			evd, err := c.Wait(-1)
			got <- cnoWaited{evd, err}
		}()
	}
	cnoWaiting(t, c, before+n)
	return got
}

// cnoWaiting waits until so many goroutines wait.
func cnoWaiting(t testing.TB, c *CNO, n int) {
	t.Helper()
	eventually(t, "waiting", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.waiters) == n
	})
}

// triggered takes the trigger that a CNO keeps, which has to be of an EVD; nil for none.
func triggered(t testing.TB, c *CNO, want *EVD) {
	t.Helper()
	got, err := c.Wait(0)
	switch {
	case got != want:
		t.Fatalf("triggered by %p, want %p", got, want)
	case want == nil:
		wants(t, "wait", err, ErrQueueEmpty)
	default:
		ok(t, err)
	}
}

// agent makes an agent that tells of its calls.
func agent() (f func(*EVD), called chan *EVD) {
	called = make(chan *EVD, 16)
	return func(e *EVD) { called <- e }, called
}

// freedCNO is a rule: a call on a freed CNO, on nil and on one of a closed adapter.
func freedCNO(call func(c *CNO) error) rule {
	return onHost("a CNO that is gone is an invalid handle", func(t *testing.T, h *host) {
		freed, closed := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
		ok(t, freed.Free())
		wants(t, "freed", call(freed), ErrInvalidHandle)
		wants(t, "nil", call(nil), ErrInvalidHandle)
		ok(t, h.ia.Close(CloseAbrupt))
		wants(t, "closed", call(closed), ErrInvalidHandle)
	})
}

var cnoRules = []topic{
	{"dat_cno_create", []rule{
		onHost("it is idle at first", func(t *testing.T, h *host) {
			triggered(t, must(h.ia.CreateCNO(nil))(t), nil)
		}),
		onHost("the agent is called with the EVD at the first trigger, and not again", func(t *testing.T, h *host) {
			f, called := agent()
			c := must(h.ia.CreateCNO(f))(t)
			e := h.soft(8, c)
			for i := range 5 {
				says(t, e, i)
			}
			if got := result(t, called); got != e {
				t.Errorf("called with %p, want %p", got, e)
			}
			if must(c.Query())(t).Agent != nil {
				t.Error("it is still there")
			}
			ok(t, e.Free())
			if len(called) > 0 {
				t.Error("it was called again")
			}
		}),
		onHost("the agent may use every call", func(t *testing.T, h *host) {
			done := make(chan error, 1)
			var c *CNO
			c = must(h.ia.CreateCNO(func(e *EVD) {
				done <- errors.Join(e.Dequeue(new(Event)), e.Resize(3), e.ModifyCNO(nil), e.Free(), c.Free(), h.ia.Close(CloseAbrupt))
			}))(t)
			says(t, h.soft(8, c), 1)
			ok(t, result(t, done))
		}),
		{"the agent is called for a completion, and may post and disconnect", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			done := make(chan error, 1)
			c := must(b.ia.CreateCNO(func(*EVD) { done <- errors.Join(y.PostRecv(nil, 7, 0), y.Disconnect(CloseAbrupt)) }))(t)
			ok(t, y.recv.ModifyCNO(c))
			sends(x, y, 1)
			ok(t, result(t, done))
			x.expect(EventDisconnected)
		}},
		onHost("a waiter is released besides the agent", func(t *testing.T, h *host) {
			f, called := agent()
			c := must(h.ia.CreateCNO(f))(t)
			e := h.soft(8, c)
			got := cnoWaits(t, c, 1)
			says(t, e, 1)
			if w := result(t, got); w.evd != e || w.err != nil {
				t.Errorf("got %p, %v", w.evd, w.err)
			}
			result(t, called)
		}),
		onHost("the agent gets no EVD when the last is freed", func(t *testing.T, h *host) {
			f, called := agent()
			c := must(h.ia.CreateCNO(f))(t)
			first, last := h.soft(8, c), h.soft(8, c)
			ok(t, first.Free())
			ok(t, c.usable())
			if len(called) > 0 {
				t.Error("called with one left")
			}
			ok(t, last.Free())
			if got := result(t, called); got != nil {
				t.Errorf("called with %p", got)
			}
		}),
		onHost("the agent gets no EVD when the adapter is closed", func(t *testing.T, h *host) {
			f, called := agent()
			h.soft(8, must(h.ia.CreateCNO(f))(t))
			ok(t, h.ia.Close(CloseAbrupt))
			if got := result(t, called); got != nil {
				t.Errorf("called with %p", got)
			}
		}),
		onHost("a graceful close of the adapter is an invalid state while it is there", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			ok(t, h.pz.Free())
			wants(t, "close", h.ia.Close(CloseGraceful), ErrInvalidState)
			ok(t, c.Free())
			ok(t, h.ia.Close(CloseGraceful))
		}),
		onHost("a closed adapter is an invalid handle", func(t *testing.T, h *host) {
			ok(t, h.ia.Close(CloseAbrupt))
			_, err := h.ia.CreateCNO(nil)
			wants(t, "create", err, ErrInvalidHandle)
			_, err = (*IA)(nil).CreateCNO(nil)
			wants(t, "nil", err, ErrInvalidHandle)
		}),
	}},

	{"dat_cno_modify_agent", []rule{
		onHost("another agent is called at the next trigger, in place of the one before", func(t *testing.T, h *host) {
			f, called := agent()
			g, other := agent()
			c := must(h.ia.CreateCNO(f))(t)
			ok(t, c.ModifyAgent(g))
			e := h.soft(8, c)
			says(t, e, 1)
			if result(t, other) != e || len(called) > 0 {
				t.Error("the wrong agent was called")
			}
		}),
		onHost("an agent can be put back after each call", func(t *testing.T, h *host) {
			f, called := agent()
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(8, c)
			for i := range 3 {
				ok(t, c.ModifyAgent(f))
				says(t, e, i)
				result(t, called)
			}
		}),
		onHost("nil takes the agent away", func(t *testing.T, h *host) {
			f, called := agent()
			c := must(h.ia.CreateCNO(f))(t)
			ok(t, c.ModifyAgent(nil))
			e := h.soft(8, c)
			says(t, e, 1)
			triggered(t, c, e)
			if len(called) > 0 {
				t.Error("it was called")
			}
		}),
		freedCNO(func(c *CNO) error { return c.ModifyAgent(nil) }),
	}},

	{"dat_cno_query", []rule{
		onHost("it tells the adapter and whether there is an agent", func(t *testing.T, h *host) {
			f, _ := agent()
			c := must(h.ia.CreateCNO(f))(t)
			if got := must(c.Query())(t); got.IA != h.ia || got.Agent == nil {
				t.Errorf("got %+v", got)
			}
			ok(t, c.ModifyAgent(nil))
			if must(c.Query())(t).Agent != nil {
				t.Error("there is an agent")
			}
		}),
		freedCNO(func(c *CNO) error { _, err := c.Query(); return err }),
	}},

	{"dat_cno_wait", []rule{
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
		onHost("a trigger that came before is taken at once", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(8, c)
			says(t, e, 1)
			if got, err := c.Wait(-1); got != e || err != nil {
				t.Errorf("got %p, %v", got, err)
			}
			triggered(t, c, nil)
		}),
		onHost("triggers that nobody waited for are one, of the last EVD", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e, last := h.soft(8, c), h.soft(8, c)
			says(t, e, 1, 2)
			says(t, last, 1)
			triggered(t, c, last)
			triggered(t, c, nil)
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
				triggered(t, c, nil)
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
			triggered(t, c, nil)
		}),
		{"a completion releases a waiter that sleeps", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			c := must(b.ia.CreateCNO(nil))(t)
			ok(t, y.recv.ModifyCNO(c))
			got := cnoWaits(t, c, 1)
			asleep(t, b)
			sends(x, y, 1)
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
			triggered(t, c, nil)
		}),
		onHost("an abrupt close releases every waiter without an EVD and without an error", func(t *testing.T, h *host) {
			c, empty := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
			h.soft(8, c)
			got, others := cnoWaits(t, c, 3), cnoWaits(t, empty, 2)
			ok(t, h.ia.Close(CloseAbrupt))
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
	}},

	{"dat_cno_trigger", []rule{
		onHost("it takes the trigger of the last EVD, once", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e, last := h.soft(8, c), h.soft(8, c)
			says(t, e, 1)
			says(t, last, 1)
			for _, want := range []*EVD{last, nil} {
				got, err := c.Trigger()
				ok(t, err)
				if got != want {
					t.Errorf("got %p, want %p", got, want)
				}
			}
		}),
		onHost("without a trigger there is no EVD and no error", func(t *testing.T, h *host) {
			if e, err := must(h.ia.CreateCNO(nil))(t).Trigger(); e != nil || err != nil {
				t.Errorf("got %p, %v", e, err)
			}
		}),
		onHost("a trigger that it took does not release a waiter", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(8, c)
			says(t, e, 1)
			must(c.Trigger())(t)
			triggered(t, c, nil)
		}),
		onHost("the trigger of an EVD that was freed is gone", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(8, c)
			h.soft(8, c)
			says(t, e, 1)
			ok(t, e.Free())
			if e := must(c.Trigger())(t); e != nil {
				t.Errorf("got %p", e)
			}
		}),
		freedCNO(func(c *CNO) error { _, err := c.Trigger(); return err }),
	}},

	{"dat_cno_free", []rule{
		onHost("it is an invalid state while an EVD has it", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e, f := h.soft(8, c), h.soft(8, nil)
			ok(t, f.ModifyCNO(c))
			wants(t, "two", c.Free(), ErrInvalidState)
			ok(t, e.Free())
			wants(t, "one", c.Free(), ErrInvalidState)
			ok(t, f.ModifyCNO(nil))
			ok(t, c.Free())
		}),
		onHost("it is an invalid state while a goroutine waits", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() {
				_, err := c.WaitContext(ctx)
				got <- err
			}()
			cnoWaiting(t, c, 1)
			wants(t, "free", c.Free(), ErrInvalidState)
			cancel()
			wants(t, "wait", result(t, got), ErrInterruptedCall)
			ok(t, c.Free())
		}),
		onHost("a trigger that it keeps is lost with it", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(8, c)
			says(t, e, 1)
			ok(t, e.ModifyCNO(nil))
			ok(t, c.Free())
			hears(t, e, 1)
		}),
		onHost("its agent is not called", func(t *testing.T, h *host) {
			f, called := agent()
			c := must(h.ia.CreateCNO(f))(t)
			ok(t, c.Free())
			ok(t, h.ia.Close(CloseAbrupt))
			if len(called) > 0 {
				t.Error("it was called")
			}
		}),
		freedCNO((*CNO).Free),
	}},
}
