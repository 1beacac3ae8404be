package dat

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

var evdFreeRules = []rule{
	onHost("events that are queued are lost with it", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		says(t, e, 1, 2)
		ok(t, e.Free())
		wants(t, "dequeue", e.Dequeue(new(Event)), ErrInvalidHandle)
	}),
	onHost("it is an invalid state while a stream feeds it", func(t *testing.T, h *host) {
		e := must(h.ia.CreateEVD(4, nil, EVDDTO|EVDConnection|EVDCR))(t)
		for _, of := range [][3]*EVD{{e, nil, nil}, {nil, e, nil}, {nil, nil, e}, {e, e, e}} {
			ep := must(h.ia.CreateEP(h.pz, EPConfig{RecvEVD: of[0], RequestEVD: of[1], ConnectEVD: of[2]}))(t)
			wants(t, "free", e.Free(), ErrInvalidState)
			ok(t, ep.Free())
		}
		psp := must(h.ia.CreatePSP(testQual, e, PSPConsumer))(t)
		wants(t, "free", e.Free(), ErrInvalidState)
		ok(t, psp.Free())
		ok(t, e.Free())
	}),
	onHost("it is an invalid state while a goroutine waits", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		got := waits(t, e, 1)
		wants(t, "free", e.Free(), ErrInvalidState)
		says(t, e, 1)
		ok(t, result(t, got).err)
		ok(t, e.Free())
	}),
	onHost("the last of a CNO releases its waiters without an EVD", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		first, last := h.soft(4, c), h.soft(4, c)
		got := cnoWaits(t, c, 3)
		ok(t, first.Free())
		cnoWaiting(t, c, 3)
		ok(t, last.Free())
		for range 3 {
			if w := result(t, got); w.evd != nil || w.err != nil {
				t.Errorf("got %v, %v", w.evd, w.err)
			}
		}
		ok(t, c.Free())
	}),
	onHost("the asynchronous EVD may be freed, and its errors are dropped from then on", func(t *testing.T, h *host) {
		async := h.ia.AsyncEVD()
		ok(t, async.Free())
		wants(t, "query", async.usable(), ErrInvalidHandle)
		h.ia.postAsync(EventAsyncEVDOverflow, h.ia, ReasonEVDOverflow)
		if async.Len() != 0 {
			t.Error("it has an event")
		}
	}),
	freedEVD((*EVD).Free),
}

var dequeueRules = []rule{
	onHost("events come out in the order in which they went in, each once", func(t *testing.T, h *host) {
		e := h.soft(200, nil)
		for i := range 200 {
			says(t, e, i)
		}
		for i := range 200 {
			hears(t, e, i)
		}
		wants(t, "then", e.Dequeue(new(Event)), ErrQueueEmpty)
	}),
	onHost("an empty queue says so", func(t *testing.T, h *host) {
		wants(t, "dequeue", h.soft(1, nil).Dequeue(new(Event)), ErrQueueEmpty)
	}),
	onHost("it is an invalid state while a goroutine waits", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		got := waits(t, e, 2)
		says(t, e, 1)
		wants(t, "dequeue", e.Dequeue(new(Event)), ErrInvalidState)
		says(t, e, 2)
		result(t, got)
		hears(t, e, 2)
	}),
	onHost("no event to fill is invalid, and loses none", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		says(t, e, 1)
		wants(t, "dequeue", e.Dequeue(nil), ErrInvalidParameter)
		hears(t, e, 1)
	}),
	onHost("it works on disabled and unwaitable dispatchers", func(t *testing.T, h *host) {
		e := h.soft(4, nil)
		ok(t, e.Disable())
		ok(t, e.SetUnwaitable())
		says(t, e, 1)
		hears(t, e, 1)
	}),
	{"no stream can block another stream", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		e := must(b.ia.CreateEVD(300, nil, EVDDTO|EVDSoftware))(t)
		y.rebuild(e, y.request, nil)
		join(x, y)
		sendMessages(x, y, 100)
		eventually(t, "arrival of all", func() bool { return e.Len() == 100 })
		for range 100 {
			says(t, e, 1)
		}
		var ev Event
		kinds := map[EventNumber]int{}
		for i := range 200 {
			ok(t, e.Dequeue(&ev))
			kinds[ev.Number]++
			if i >= 2*fairShare && len(kinds) < 2 {
				t.Fatalf("%d events of one stream came first", i)
			}
		}
		if kinds[EventSoftware] != 100 || kinds[EventDTOCompletion] != 100 {
			t.Errorf("got %v", kinds)
		}
	}},
	onHost("an iterator takes events until the context is done", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 0, 1, 2)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		i := 0
		for ev, err := range e.Events(ctx) {
			if last = err; err != nil {
				continue
			}
			if ev.Software != i {
				t.Errorf("got %v, want %d", ev.Software, i)
			}
			if i++; i == 3 {
				cancel()
			}
		}
		if i != 3 || !errors.Is(last, context.Canceled) {
			t.Errorf("%d events, then %v", i, last)
		}
	}),
	{"an iterator over a dispatcher that has overflowed ends with an error, until it is emptied", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.pointWith(nil, pointMem, 4)
		join(x, y)
		sendMessages(x, y, y.recv.QLen()+1)
		await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		next := func() (err error) {
			for _, err = range y.recv.Events(ctx) {
				break
			}
			return err
		}
		wants(t, "overflowed", next(), ErrQueueFull)
		for range y.recv.QLen() { // the overflow is reported before the events ahead of it are visible
			await(t, y.recv, EventDTOCompletion)
		}
		wants(t, "emptied", y.recv.Dequeue(new(Event)), ErrQueueEmpty)
		sendMessages(x, y, 1)
		ok(t, next())
	}},
	onHost("leaving an iterator leaves the other events", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 0, 1)
		for _, err := range e.Events(t.Context()) {
			ok(t, err)
			break
		}
		hears(t, e, 1)
	}),
	freedEVD(func(e *EVD) error { return e.Dequeue(new(Event)) }),
}

var postSERules = []rule{
	onHost("the event carries the value and the dispatcher", func(t *testing.T, h *host) {
		e, value := h.soft(4, nil), new(int)
		for _, v := range []any{value, "text", nil} {
			ok(t, e.PostSE(v))
			var ev Event
			ok(t, e.Dequeue(&ev))
			if ev.Number != 0x10001 || ev.Software != v || ev.EVD != e || ev.Number.String() != "DAT_SOFTWARE_EVENT" {
				t.Errorf("got %+v", ev)
			}
		}
	}),
	onHost("a full queue returns an error, keeps its events and reports no overflow", func(t *testing.T, h *host) {
		e := h.soft(2, nil)
		says(t, e, 0, 1)
		for range 3 {
			wants(t, "post", e.PostSE(2), ErrQueueFull)
		}
		hears(t, e, 0, 1)
		expectNoEvent(t, e, h.ia.AsyncEVD())
		says(t, e, 3)
	}),
	onHost("a dispatcher without the software stream refuses it", func(t *testing.T, h *host) {
		for _, flags := range []EVDFlags{EVDDTO, EVDCR, EVDAsync | EVDCR | EVDDTO | EVDConnection | EVDRMRBind} {
			e := must(h.ia.CreateEVD(2, nil, flags))(t)
			wants(t, "post", e.PostSE(1), ErrInvalidParameter)
			if e.Len() != 0 {
				t.Error("it was queued")
			}
		}
	}),
	onHost("it wakes a waiter", func(t *testing.T, h *host) {
		e := h.soft(2, nil)
		got := waits(t, e, 1)
		says(t, e, 7)
		if w := result(t, got); w.err != nil || w.ev.Software != 7 {
			t.Errorf("got %+v", w)
		}
	}),
	onHost("it triggers the CNO", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(2, c)
		says(t, e, 7)
		expectTrigger(t, c, e)
	}),
	freedEVD(func(e *EVD) error { return e.PostSE(nil) }),
}

var resizeRules = []rule{
	onHost("a larger queue holds more and keeps order", func(t *testing.T, h *host) {
		e := h.soft(2, nil)
		says(t, e, 0, 1)
		wants(t, "full", e.PostSE(2), ErrQueueFull)
		ok(t, e.Resize(5))
		if got := must(e.Query())(t).QLen; got != e.QLen() || got < 5 {
			t.Errorf("length %d", got)
		}
		for i := 2; i < e.QLen(); i++ {
			says(t, e, i)
		}
		wants(t, "full", e.PostSE(0), ErrQueueFull)
		for i := range e.QLen() {
			hears(t, e, i)
		}
	}),
	onHost("a smaller queue holds fewer", func(t *testing.T, h *host) {
		e := h.soft(64, nil)
		says(t, e, 0, 1)
		ok(t, e.Resize(2))
		for i := 2; i < e.QLen(); i++ {
			says(t, e, i)
		}
		wants(t, "full", e.PostSE(9), ErrQueueFull)
		_, err := e.Wait(0, e.QLen()+1, new(Event))
		wants(t, "threshold", err, ErrInvalidParameter)
	}),
	onHost("if more events are queued than the new length, it returns an invalid state and changes nothing", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 0, 1, 2)
		wants(t, "resize", e.Resize(2), ErrInvalidState)
		if e.QLen() < 8 {
			t.Errorf("length %d", e.QLen())
		}
		ok(t, e.Resize(3))
		hears(t, e, 0, 1, 2)
	}),
	onHost("it is an invalid state while a goroutine waits", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		got := waits(t, e, 1)
		wants(t, "resize", e.Resize(16), ErrInvalidState)
		says(t, e, 1)
		ok(t, result(t, got).err)
		ok(t, e.Resize(16))
	}),
	onHost("lengths below one and above the limit are invalid", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		for _, qlen := range []int{0, -1, must(h.ia.Query())(t).MaxEVDQLen + 1} {
			wants(t, fmt.Sprint(qlen), e.Resize(qlen), ErrInvalidParameter)
		}
		if e.QLen() < 8 {
			t.Errorf("length %d", e.QLen())
		}
	}),
	{"completions are kept, in order, and overflow at the new length", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.pointWith(nil, pointMem, 4)
		join(x, y)
		sendMessages(x, y, 4)
		eventually(t, "arrival of four", func() bool { return y.recv.Len() == 4 })
		wants(t, "too small", y.recv.Resize(3), ErrInvalidState)
		ok(t, y.recv.Resize(6))
		room := y.recv.QLen() - 4
		sendMessages(x, y, room+1)
		await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
		for i := range 4 {
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
		}
		for i := range room {
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
		}
		expectNoEvent(t, y.recv)
		proves(x, y)
	}},
	{"completions that arrive meanwhile are not lost", func(t *testing.T, n network) {
		const count = 2000
		a, b := newHosts(t, n, Options{})
		x, y := a.pointWith(nil, pointMem, 400), b.point(nil)
		join(x, y)
		got := make(chan error, 1)
		var taken atomic.Int64
		go func() {
			for i := 0; i < count; {
				switch err := x.PostRDMAWrite(x.seg(0, 8), uint64(i), y.lmr.Remote(0, 8), 0); {
				case err == nil:
					i++
				case !errors.Is(err, ErrInsufficientResources):
					got <- err
					return
				}
				for int64(i)-taken.Load() >= 400 { // the smallest queue length can hold them all
					time.Sleep(10 * time.Microsecond)
				}
			}
			got <- nil
		}()
		for i := range count {
			if i%10 == 0 {
				if err := x.request.Resize(400 + i%7*100); err != nil && !errors.Is(err, ErrInvalidState) {
					t.Fatal(err)
				}
			}
			x.done(x.request, uint64(i), DTORDMAWrite, DTOSuccess, 8)
			taken.Add(1)
		}
		ok(t, result(t, got))
		expectNoEvent(t, x.request, a.ia.AsyncEVD())
	}},
	freedEVD(func(e *EVD) error { return e.Resize(1) }),
}
