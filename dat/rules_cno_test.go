package dat

import (
	"context"
	"errors"
	"testing"
)

// cnoWaited is the result of a CNO.Wait.
type cnoWaited struct {
	evd *EVD
	err error
}

// cnoWaits starts n goroutines that wait on the CNO without a timeout. It returns when all of them wait.
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

// cnoWaiting waits until n goroutines wait on the CNO.
func cnoWaiting(t testing.TB, c *CNO, n int) {
	t.Helper()
	eventually(t, "waiting", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.waiters) == n
	})
}

// expectTrigger takes the trigger that a CNO keeps for the next Wait. It must be a trigger of the EVD want. If want is
// nil, the CNO must keep no trigger.
func expectTrigger(t testing.TB, c *CNO, want *EVD) {
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

// agent makes an agent and a channel that reports its calls.
func agent() (f func(*EVD), called chan *EVD) {
	called = make(chan *EVD, 16)
	return func(e *EVD) { called <- e }, called
}

// freedCNO returns a rule: a call fails on a CNO that is freed or nil, or whose IA is closed.
func freedCNO(call func(c *CNO) error) rule {
	return onHost("a CNO that is gone is an invalid handle", func(t *testing.T, h *host) {
		freed, closed := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
		ok(t, freed.Free())
		wants(t, "freed", call(freed), ErrInvalidHandle)
		wants(t, "nil", call(nil), ErrInvalidHandle)
		ok(t, h.ia.Close())
		wants(t, "closed", call(closed), ErrInvalidHandle)
	})
}

var cnoRules = []topic{
	{"dat_cno_create", []rule{
		onHost("it is idle at first", func(t *testing.T, h *host) {
			expectTrigger(t, must(h.ia.CreateCNO(nil))(t), nil)
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
				done <- errors.Join(e.Dequeue(new(Event)), e.Resize(3), e.ModifyCNO(nil), e.Free(), c.Free(), h.ia.Close())
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
			sendMessages(x, y, 1)
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
			ok(t, h.ia.Close())
			if got := result(t, called); got != nil {
				t.Errorf("called with %p", got)
			}
		}),
		onHost("a graceful close of the adapter is an invalid state while it is there", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			ok(t, h.pz.Free())
			wants(t, "close", h.ia.CloseWith(CloseGraceful), ErrInvalidState)
			ok(t, c.Free())
			ok(t, h.ia.CloseWith(CloseGraceful))
		}),
		onHost("a closed adapter is an invalid handle", func(t *testing.T, h *host) {
			ok(t, h.ia.Close())
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
			expectTrigger(t, c, e)
			if len(called) > 0 {
				t.Error("it was called")
			}
		}),
		freedCNO(func(c *CNO) error { return c.ModifyAgent(nil) }),
	}},

	{"dat_cno_query", []rule{
		onHost("it returns the adapter and the agent, if there is one", func(t *testing.T, h *host) {
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

	{"dat_cno_wait", cnoWaitRules},

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
			expectTrigger(t, c, nil)
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
			ok(t, h.ia.Close())
			if len(called) > 0 {
				t.Error("it was called")
			}
		}),
		freedCNO((*CNO).Free),
	}},
}
