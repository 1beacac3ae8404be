package dat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

var evdEnableRules = []rule{
	onHost("events that are queued trigger the CNO", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		ok(t, e.Disable())
		says(t, e, 1)
		expectTrigger(t, c, nil)
		ok(t, e.Enable())
		expectTrigger(t, c, e)
	}),
	onHost("an empty dispatcher does not trigger the CNO", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		ok(t, e.Disable())
		ok(t, e.Enable())
		expectTrigger(t, c, nil)
		says(t, e, 1)
		expectTrigger(t, c, e)
	}),
	onHost("enabling an enabled dispatcher does nothing", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		says(t, e, 1)
		expectTrigger(t, c, e)
		ok(t, e.Enable())
		expectTrigger(t, c, nil)
	}),
	{"completions trigger the CNO again", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		c := must(b.ia.CreateCNO(nil))(t)
		ok(t, y.recv.Disable())
		ok(t, y.recv.ModifyCNO(c))
		ok(t, y.recv.Enable())
		sendMessages(x, y, 1)
		if e, err := c.Wait(patience); e != y.recv || err != nil {
			t.Errorf("got %p, %v, want %p", e, err, y.recv)
		}
	}},
	freedEVD((*EVD).Enable),
}

var evdDisableRules = []rule{
	{"completions queue and do not trigger the CNO", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		c := must(b.ia.CreateCNO(nil))(t)
		ok(t, y.recv.ModifyCNO(c))
		ok(t, y.recv.Disable())
		sendMessages(x, y, 1)
		y.done(y.recv, 0, DTOReceive, DTOSuccess, 8)
		expectTrigger(t, c, nil)
	}},
	onHost("software events queue and do not trigger the CNO", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		ok(t, e.Disable())
		says(t, e, 1, 2)
		expectTrigger(t, c, nil)
		hears(t, e, 1, 2)
	}),
	onHost("a waiter is woken as before", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.Disable())
		got := waits(t, e, 1)
		says(t, e, 1)
		if w := result(t, got); w.err != nil || w.ev.Software != 1 {
			t.Errorf("got %+v", w)
		}
	}),
	onHost("disabling a disabled dispatcher does nothing", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.Disable())
		ok(t, e.Disable())
		if stateOf(t, e)&EVDStateDisabled == 0 {
			t.Error("it is enabled")
		}
	}),
	onHost("other dispatchers of the CNO still trigger it", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e, other := h.soft(4, c), h.soft(4, c)
		ok(t, e.Disable())
		says(t, e, 1)
		says(t, other, 1)
		expectTrigger(t, c, other)
	}),
	freedEVD((*EVD).Disable),
}

var evdSetUnwaitableRules = []rule{
	onHost("a blocked waiter returns with an invalid state", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		got := waits(t, e, 1)
		ok(t, e.SetUnwaitable())
		wants(t, "waiter", result(t, got).err, ErrInvalidState)
	}),
	onHost("a blocked waiter returns even if waiting is allowed again immediately", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		for range 20 {
			got := waits(t, e, 1)
			ok(t, e.SetUnwaitable())
			ok(t, e.ClearUnwaitable())
			wants(t, "waiter", result(t, got).err, ErrInvalidState)
		}
	}),
	onHost("waiting is an invalid state, whatever is queued", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.SetUnwaitable())
		var ev Event
		for range 2 {
			_, err := e.Wait(-1, 1, &ev)
			wants(t, "wait", err, ErrInvalidState)
			_, err = e.WaitContext(t.Context(), 1, &ev)
			wants(t, "wait with a context", err, ErrInvalidState)
			says(t, e, 1)
		}
	}),
	onHost("Dequeue still works", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.SetUnwaitable())
		says(t, e, 1, 2)
		hears(t, e, 1, 2)
	}),
	onHost("the CNO is triggered as before", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		ok(t, e.SetUnwaitable())
		says(t, e, 1)
		expectTrigger(t, c, e)
	}),
	{"the queue can still overflow", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.pointWith(nil, pointMem, 1)
		join(x, y)
		ok(t, y.recv.SetUnwaitable())
		sendMessages(x, y, y.recv.QLen()+1)
		await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
	}},
	onHost("setting it twice is setting it once", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.SetUnwaitable())
		ok(t, e.SetUnwaitable())
		ok(t, e.ClearUnwaitable())
		var ev Event
		_, err := e.Wait(0, 1, &ev)
		wants(t, "wait", err, ErrTimeoutExpired)
	}),
	freedEVD((*EVD).SetUnwaitable),
}

var evdClearUnwaitableRules = []rule{
	onHost("waiting is allowed again", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.SetUnwaitable())
		ok(t, e.ClearUnwaitable())
		got := waits(t, e, 1)
		says(t, e, 1)
		ok(t, result(t, got).err)
	}),
	onHost("on a waitable dispatcher it does nothing, and a waiter keeps waiting", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		got := waits(t, e, 1)
		ok(t, e.ClearUnwaitable())
		says(t, e, 1)
		ok(t, result(t, got).err)
	}),
	freedEVD((*EVD).ClearUnwaitable),
}

var waitRules = []rule{
	onHost("it returns when threshold events are queued, takes the first and returns the number of the others", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		for _, threshold := range []int{1, 2, 8} {
			got := waits(t, e, threshold)
			for i := range threshold {
				says(t, e, i)
			}
			if w := result(t, got); w.err != nil || w.ev.Software != 0 || w.more != threshold-1 {
				t.Errorf("threshold %d: got %v, %d more, %v", threshold, w.ev.Software, w.more, w.err)
			}
			for i := 1; i < threshold; i++ {
				hears(t, e, i)
			}
		}
	}),
	onHost("fewer than threshold events do not wake the waiter", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		got := waits(t, e, 3)
		says(t, e, 1, 2)
		if !e.armed.Load() || len(e.wake) != 0 {
			t.Error("the waiter was woken")
		}
		says(t, e, 3)
		if w := result(t, got); w.more != 2 || w.ev.Software != 1 {
			t.Errorf("got %v, %d more", w.ev.Software, w.more)
		}
	}),
	onHost("it returns immediately if threshold events are queued, with any timeout", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 1, 2, 3)
		for i, timeout := range []time.Duration{0, time.Nanosecond, -1} {
			var ev Event
			if more, err := e.Wait(timeout, 1, &ev); err != nil || more != 2-i || ev.Software != i+1 {
				t.Errorf("timeout %v: %v, %d more, %v", timeout, ev.Software, more, err)
			}
		}
	}),
	onHost("after a timeout it has taken no event and returns the number of queued events", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		for n := range 3 {
			for _, timeout := range []time.Duration{0, time.Microsecond, 2 * time.Millisecond} {
				more, err := e.Wait(timeout, 4, new(Event))
				wants(t, "wait", err, ErrTimeoutExpired)
				if more != n {
					t.Errorf("%d events are told of %d", more, n)
				}
			}
			says(t, e, n)
		}
		hears(t, e, 0, 1, 2)
	}),
	onHost("a timeout is waited for", func(t *testing.T, h *host) {
		e, begun := h.soft(8, nil), time.Now()
		_, err := e.Wait(10*time.Millisecond, 1, new(Event))
		wants(t, "wait", err, ErrTimeoutExpired)
		if d := time.Since(begun); d < 10*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	}),
	onHost("the longest timeout does not expire immediately", func(t *testing.T, h *host) {
		e, got := h.soft(8, nil), make(chan error, 1)
		go func() {
			_, err := e.Wait(1<<63-1, 1, new(Event))
			got <- err
		}()
		parked(t, e)
		says(t, e, 1)
		ok(t, result(t, got))
	}),
	onHost("a threshold below one or above the length is invalid", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		for _, threshold := range []int{0, -1, e.QLen() + 1} {
			_, err := e.Wait(0, threshold, new(Event))
			wants(t, fmt.Sprint(threshold), err, ErrInvalidParameter)
		}
		_, err := e.Wait(0, e.QLen(), new(Event))
		wants(t, "the length", err, ErrTimeoutExpired)
	}),
	onHost("no event to fill is invalid", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 1)
		_, err := e.Wait(0, 1, nil)
		wants(t, "wait", err, ErrInvalidParameter)
		hears(t, e, 1)
	}),
	onHost("parameters are checked before the state", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		ok(t, e.SetUnwaitable())
		_, err := e.Wait(0, 0, new(Event))
		wants(t, "wait", err, ErrInvalidParameter)
	}),
	onHost("a threshold other than one is an invalid state with unsignalled or solicited streams", func(t *testing.T, h *host) {
		for _, flags := range []CompletionFlags{CompletionUnsignalled, CompletionSolicitedWait} {
			e := must(h.ia.CreateEVD(8, nil, EVDDTO))(t)
			ep := must(h.feeder(e, nil, nil, flags, 0))(t)
			_, err := e.Wait(0, 2, new(Event))
			wants(t, "two", err, ErrInvalidState)
			_, err = e.Wait(0, 1, new(Event))
			wants(t, "one", err, ErrTimeoutExpired)
			ok(t, ep.Free())
			_, err = e.Wait(0, 2, new(Event))
			wants(t, "without streams", err, ErrTimeoutExpired)
		}
	}),
	onHost("one goroutine waits: for another it is an invalid state", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		got := waits(t, e, 1)
		_, err := e.Wait(-1, 1, new(Event))
		wants(t, "second", err, ErrInvalidState)
		says(t, e, 1)
		ok(t, result(t, got).err)
	}),
	onHost("the CNO is not triggered while a goroutine waits", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(8, c)
		got := waits(t, e, 2)
		says(t, e, 1, 2)
		if w := result(t, got); w.more != 1 {
			t.Errorf("%d more", w.more)
		}
		expectTrigger(t, c, nil)
		says(t, e, 3)
		expectTrigger(t, c, e)
	}),
	onHost("an abrupt close aborts the waiter", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		got := waits(t, e, 1)
		ok(t, h.ia.Close())
		wants(t, "waiter", result(t, got).err, ErrAbort)
	}),
	onHost("when the context is done it returns, takes no event and returns the number of queued events", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 1)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan waited, 1)
		go func() {
			var w waited
			w.more, w.err = e.WaitContext(ctx, 2, &w.ev)
			got <- w
		}()
		parked(t, e)
		cancel()
		w := result(t, got)
		wants(t, "as DAT says", w.err, ErrInterruptedCall)
		wants(t, "as the context says", w.err, context.Canceled)
		if w.more != 1 {
			t.Errorf("%d events are told of one", w.more)
		}
		hears(t, e, 1)
	}),
	onHost("the deadline of a context interrupts it", func(t *testing.T, h *host) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := h.soft(8, nil).WaitContext(ctx, 1, new(Event))
		if !errors.Is(err, ErrInterruptedCall) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}),
	onHost("with a context that is done it still takes a queued event", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var ev Event
		_, err := e.WaitContext(ctx, 1, &ev)
		ok(t, err)
		_, err = e.WaitContext(ctx, 1, &ev)
		wants(t, "empty", err, ErrInterruptedCall)
	}),
	onHost("no context is invalid", func(t *testing.T, h *host) {
		var none context.Context
		_, err := h.soft(8, nil).WaitContext(none, 1, new(Event))
		wants(t, "wait", err, ErrInvalidParameter)
	}),
	{"the waiter drives its adapter, and is woken when it sleeps", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		got := waits(t, y.recv, 1)
		asleep(t, b)
		sendMessages(x, y, 1)
		if w := result(t, got); w.err != nil || w.ev.Op != DTOReceive {
			t.Errorf("got %+v", w)
		}
	}},
	freedEVD(func(e *EVD) error { _, err := e.Wait(0, 1, new(Event)); return err }),
}
