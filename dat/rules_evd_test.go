package dat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// soft makes a dispatcher of software events.
func (h *host) soft(qlen int, cno *CNO) *EVD {
	h.t.Helper()
	return must(h.ia.CreateEVD(qlen, cno, EVDSoftware))(h.t)
}

// says posts software events that carry numbers.
func says(t testing.TB, e *EVD, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		ok(t, e.PostSE(n))
	}
}

// hears takes software events out, which have to carry numbers.
func hears(t testing.TB, e *EVD, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		var ev Event
		ok(t, e.Dequeue(&ev))
		if ev.Number != EventSoftware || ev.Software != n || ev.EVD != e {
			t.Fatalf("got %v with %v, want %d", ev.Number, ev.Software, n)
		}
	}
}

// waited is what a Wait returned.
type waited struct {
	ev   Event
	more int
	err  error
}

// waits calls Wait for ever in another goroutine and returns when it sleeps.
func waits(t testing.TB, e *EVD, threshold int) <-chan waited {
	t.Helper()
	got := make(chan waited, 1)
	go func() {
		var w waited
		w.more, w.err = e.Wait(-1, threshold, &w.ev)
		got <- w
	}()
	parked(t, e)
	return got
}

// result awaits what a call in another goroutine returned.
func result[T any](t testing.TB, got <-chan T) T {
	t.Helper()
	select {
	case v := <-got:
		return v
	case <-time.After(patience):
		t.Fatal("the call did not return")
		panic("unreachable")
	}
}

// onHost is a rule that needs one adapter.
func onHost(name string, f func(t *testing.T, h *host)) rule {
	return rule{name, func(t *testing.T, n network) { f(t, newHost(t, n, 0, Options{})) }}
}

// freedEVD is a rule: a call on a freed dispatcher, on nil and on one of a closed adapter.
func freedEVD(call func(e *EVD) error) rule {
	return onHost("a dispatcher that is gone is an invalid handle", func(t *testing.T, h *host) {
		freed, closed := h.soft(4, nil), h.soft(4, nil)
		ok(t, freed.Free())
		wants(t, "freed", call(freed), ErrInvalidHandle)
		wants(t, "nil", call(nil), ErrInvalidHandle)
		ok(t, h.ia.Close(CloseAbrupt))
		wants(t, "closed", call(closed), ErrInvalidHandle)
	})
}

func stateOf(t testing.TB, e *EVD) EVDState {
	t.Helper()
	return must(e.Query())(t).State
}

var evdRules = []topic{
	{"dat_evd_create", []rule{
		onHost("every set of streams may share a dispatcher", func(t *testing.T, h *host) {
			for set := range 1 << 6 {
				var flags EVDFlags
				for i, f := range []EVDFlags{EVDSoftware, EVDCR, EVDDTO, EVDConnection, EVDRMRBind, EVDAsync} {
					flags |= f * EVDFlags(set>>i&1)
				}
				if flags != 0 {
					ok(t, must(h.ia.CreateEVD(1, nil, flags))(t).Free())
				}
			}
		}),
		onHost("no stream and streams that do not exist are invalid", func(t *testing.T, h *host) {
			for _, flags := range []EVDFlags{0, 0x8000, 0x8000 | EVDDTO, 0x002} {
				_, err := h.ia.CreateEVD(1, nil, flags)
				wants(t, fmt.Sprintf("flags %#x", flags), err, ErrInvalidParameter)
			}
		}),
		onHost("a queue length below one is invalid", func(t *testing.T, h *host) {
			for _, qlen := range []int{0, -1, -1 << 31} {
				_, err := h.ia.CreateEVD(qlen, nil, EVDDTO)
				wants(t, fmt.Sprint(qlen), err, ErrInvalidParameter)
			}
		}),
		onHost("a queue length above the limit needs too many resources", func(t *testing.T, h *host) {
			_, err := h.ia.CreateEVD(must(h.ia.Query())(t).MaxEVDQLen+1, nil, EVDDTO)
			wants(t, "create", err, ErrInsufficientResources)
		}),
		onHost("it holds at least as many events as were asked for", func(t *testing.T, h *host) {
			for _, qlen := range []int{1, 2, 3, 64, 100} {
				e := h.soft(qlen, nil)
				if e.QLen() < qlen {
					t.Errorf("length %d, want at least %d", e.QLen(), qlen)
				}
				for i := range e.QLen() {
					says(t, e, i)
				}
				wants(t, "one more", e.PostSE(0), ErrQueueFull)
				for i := range e.QLen() {
					hears(t, e, i)
				}
			}
		}),
		onHost("it is enabled, waitable and empty at first", func(t *testing.T, h *host) {
			e := h.soft(1, nil)
			if got, want := stateOf(t, e), EVDStateEnabled|EVDStateWaitable|EVDStateConfigThreshold; got != want {
				t.Errorf("state %#x, want %#x", got, want)
			}
			if e.Len() != 0 {
				t.Errorf("%d events", e.Len())
			}
		}),
		onHost("a CNO that is gone is an invalid handle", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			ok(t, c.Free())
			_, err := h.ia.CreateEVD(1, c, EVDDTO)
			wants(t, "create", err, ErrInvalidHandle)
		}),
		{"a CNO of another adapter is an invalid handle", func(t *testing.T, n network) {
			a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
			_, err := a.ia.CreateEVD(1, must(b.ia.CreateCNO(nil))(t), EVDDTO)
			wants(t, "create", err, ErrInvalidHandle)
		}},
		onHost("handles are checked before parameters", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			ok(t, c.Free())
			_, err := h.ia.CreateEVD(0, c, 0)
			wants(t, "create", err, ErrInvalidHandle)
		}),
		onHost("a closed adapter is an invalid handle", func(t *testing.T, h *host) {
			ok(t, h.ia.Close(CloseAbrupt))
			_, err := h.ia.CreateEVD(0, nil, 0)
			wants(t, "create", err, ErrInvalidHandle)
		}),
		{"an event that finds it full is lost, and the asynchronous EVD names it once", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.pointWith(nil, pointMem, 3)
			join(x, y)
			for round := range 2 { // the second, once it was emptied, is told again
				sends(x, y, y.recv.QLen()+2)
				ev := await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
				if ev.Source != any(y.recv) || ev.Reason != ReasonEVDOverflow || ev.EVD != b.ia.AsyncEVD() {
					t.Errorf("round %d: %+v names another dispatcher or reason", round, ev)
				}
				for i := range y.recv.QLen() {
					y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
				}
				still(t, y.recv, b.ia.AsyncEVD())
			}
		}},
		{"its length bounds completions and software events together", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			e := must(b.ia.CreateEVD(4, nil, EVDDTO|EVDSoftware))(t)
			y.rebuild(e, y.request, nil)
			join(x, y)
			says(t, e, 0, 1)
			sends(x, y, 3)
			await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
			wants(t, "software event", e.PostSE(2), ErrQueueFull)
			if e.Len() != 4 {
				t.Errorf("%d events, want 4", e.Len())
			}
		}},
		{"a full asynchronous EVD shows as a catastrophe of the adapter, after what is queued", func(t *testing.T, n network) {
			a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{AsyncQLen: 1})
			b.listen(testQual, 8)
			var ys [3]*point
			for i := range ys {
				x := a.point(nil)
				ys[i] = b.pointWith(nil, pointMem, 1)
				join(x, ys[i])
				sends(x, ys[i], 2)
			}
			async := b.ia.AsyncEVD()
			eventually(t, "catastrophe", func() bool { return async.Len() == 2 })
			if ev := await(t, async, EventAsyncEVDOverflow); ev.Source != any(ys[0].recv) {
				t.Error("the overflow is of another dispatcher")
			}
			if ev := await(t, async, EventAsyncIACatastrophic); ev.Source != any(b.ia) || ev.Reason != ReasonIACatastrophic {
				t.Errorf("the catastrophe is of %v, reason %d", ev.Source, ev.Reason)
			}
			still(t, async)
		}},
	}},

	{"dat_evd_query", []rule{
		onHost("it tells adapter, length, CNO and streams", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			for _, cno := range []*CNO{c, nil} {
				got := must(must(h.ia.CreateEVD(5, cno, EVDDTO|EVDCR))(t).Query())(t)
				if got.IA != h.ia || got.QLen < 5 || got.CNO != cno || got.Flags != EVDDTO|EVDCR {
					t.Errorf("got %+v", got)
				}
			}
		}),
		onHost("the state has one value of each band", func(t *testing.T, h *host) {
			e := h.soft(1, nil)
			for _, step := range []struct {
				name string
				call func() error
				want EVDState
			}{
				{"disable", e.Disable, EVDStateDisabled | EVDStateWaitable},
				{"set unwaitable", e.SetUnwaitable, EVDStateDisabled | EVDStateUnwaitable},
				{"enable", e.Enable, EVDStateEnabled | EVDStateUnwaitable},
				{"clear unwaitable", e.ClearUnwaitable, EVDStateEnabled | EVDStateWaitable},
			} {
				ok(t, step.call())
				if got, want := stateOf(t, e), step.want|EVDStateConfigThreshold; got != want {
					t.Errorf("%s: state %#x, want %#x", step.name, got, want)
				}
			}
		}),
		onHost("the configuration follows the streams that feed it", func(t *testing.T, h *host) {
			e := must(h.ia.CreateEVD(8, nil, EVDDTO))(t)
			for _, tc := range []struct {
				recv CompletionFlags
				want EVDState
			}{
				{CompletionUnsignalled, EVDStateConfigNotify}, {CompletionSolicitedWait, EVDStateConfigSolicited},
				{CompletionEVDThreshold, EVDStateConfigThreshold}, {CompletionDefault, EVDStateConfigThreshold},
			} {
				ep := must(h.feeder(e, nil, nil, tc.recv, 0))(t)
				if got := stateOf(t, e).Config(); got != tc.want {
					t.Errorf("flags %#x: configuration %#x, want %#x", tc.recv, got, tc.want)
				}
				ok(t, ep.Free())
				if got := stateOf(t, e).Config(); got != EVDStateConfigThreshold {
					t.Errorf("no streams: configuration %#x", got)
				}
			}
		}),
		freedEVD(func(e *EVD) error { _, err := e.Query(); return err }),
	}},

	{"dat_evd_modify_cno", []rule{
		onHost("notifications trigger the new CNO and not the old one", func(t *testing.T, h *host) {
			before, after := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, before)
			ok(t, e.ModifyCNO(after))
			says(t, e, 1)
			triggered(t, before, nil)
			triggered(t, after, e)
			if got := must(e.Query())(t).CNO; got != after {
				t.Error("the query names another CNO")
			}
		}),
		onHost("nil takes the CNO away", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, c)
			ok(t, e.ModifyCNO(nil))
			says(t, e, 1)
			triggered(t, c, nil)
			ok(t, c.Free())
			hears(t, e, 1)
		}),
		onHost("events that are queued trigger the new CNO", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, nil)
			says(t, e, 1)
			ok(t, e.ModifyCNO(c))
			triggered(t, c, e)
		}),
		onHost("a disabled dispatcher with events does not trigger the new CNO", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, nil)
			says(t, e, 1)
			ok(t, e.Disable())
			ok(t, e.ModifyCNO(c))
			triggered(t, c, nil)
		}),
		onHost("the same CNO again changes nothing", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, c)
			says(t, e, 1)
			triggered(t, c, e)
			ok(t, e.ModifyCNO(c))
			triggered(t, c, nil)
		}),
		onHost("a trigger that the old CNO keeps passes to another of its dispatchers with events", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			first, last, idle := h.soft(4, c), h.soft(4, c), h.soft(4, c)
			says(t, first, 1)
			says(t, last, 1)
			ok(t, last.ModifyCNO(nil))
			triggered(t, c, first)
			says(t, idle, 1)
			hears(t, first, 1)
			ok(t, idle.ModifyCNO(nil))
			triggered(t, c, nil)
		}),
		{"a CNO that is gone or of another adapter is an invalid handle, and the old one stays", func(t *testing.T, n network) {
			h, other := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
			c, gone := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
			ok(t, gone.Free())
			e := h.soft(4, c)
			wants(t, "gone", e.ModifyCNO(gone), ErrInvalidHandle)
			wants(t, "foreign", e.ModifyCNO(must(other.ia.CreateCNO(nil))(t)), ErrInvalidHandle)
			says(t, e, 1)
			triggered(t, c, e)
		}},
		freedEVD(func(e *EVD) error { return e.ModifyCNO(nil) }),
	}},

	{"dat_evd_enable", []rule{
		onHost("events that are queued trigger the CNO", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, c)
			ok(t, e.Disable())
			says(t, e, 1)
			triggered(t, c, nil)
			ok(t, e.Enable())
			triggered(t, c, e)
		}),
		onHost("an empty dispatcher does not trigger the CNO", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, c)
			ok(t, e.Disable())
			ok(t, e.Enable())
			triggered(t, c, nil)
			says(t, e, 1)
			triggered(t, c, e)
		}),
		onHost("enabling an enabled dispatcher does nothing", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, c)
			says(t, e, 1)
			triggered(t, c, e)
			ok(t, e.Enable())
			triggered(t, c, nil)
		}),
		{"completions trigger the CNO again", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			c := must(b.ia.CreateCNO(nil))(t)
			ok(t, y.recv.Disable())
			ok(t, y.recv.ModifyCNO(c))
			ok(t, y.recv.Enable())
			sends(x, y, 1)
			if e, err := c.Wait(patience); e != y.recv || err != nil {
				t.Errorf("got %p, %v, want %p", e, err, y.recv)
			}
		}},
		freedEVD((*EVD).Enable),
	}},

	{"dat_evd_disable", []rule{
		{"completions queue and do not trigger the CNO", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			c := must(b.ia.CreateCNO(nil))(t)
			ok(t, y.recv.ModifyCNO(c))
			ok(t, y.recv.Disable())
			sends(x, y, 1)
			y.done(y.recv, 0, DTOReceive, DTOSuccess, 8)
			triggered(t, c, nil)
		}},
		onHost("software events queue and do not trigger the CNO", func(t *testing.T, h *host) {
			c := must(h.ia.CreateCNO(nil))(t)
			e := h.soft(4, c)
			ok(t, e.Disable())
			says(t, e, 1, 2)
			triggered(t, c, nil)
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
			triggered(t, c, other)
		}),
		freedEVD((*EVD).Disable),
	}},

	{"dat_evd_wait", waitRules},
	{"dat_evd_dequeue", dequeueRules},
	{"dat_evd_post_se", postSERules},
	{"dat_evd_resize", resizeRules},

	{"dat_evd_set_unwaitable", []rule{
		onHost("a blocked waiter returns with an invalid state", func(t *testing.T, h *host) {
			e := h.soft(4, nil)
			got := waits(t, e, 1)
			ok(t, e.SetUnwaitable())
			wants(t, "waiter", result(t, got).err, ErrInvalidState)
		}),
		onHost("a blocked waiter returns though waiting is allowed again at once", func(t *testing.T, h *host) {
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
		onHost("dequeue goes on", func(t *testing.T, h *host) {
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
			triggered(t, c, e)
		}),
		{"the queue can still overflow", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.pointWith(nil, pointMem, 1)
			join(x, y)
			ok(t, y.recv.SetUnwaitable())
			sends(x, y, y.recv.QLen()+1)
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
	}},

	{"dat_evd_clear_unwaitable", []rule{
		onHost("waiting is allowed again", func(t *testing.T, h *host) {
			e := h.soft(4, nil)
			ok(t, e.SetUnwaitable())
			ok(t, e.ClearUnwaitable())
			got := waits(t, e, 1)
			says(t, e, 1)
			ok(t, result(t, got).err)
		}),
		onHost("a waitable dispatcher stays so, and its waiter too", func(t *testing.T, h *host) {
			e := h.soft(4, nil)
			got := waits(t, e, 1)
			ok(t, e.ClearUnwaitable())
			says(t, e, 1)
			ok(t, result(t, got).err)
		}),
		freedEVD((*EVD).ClearUnwaitable),
	}},

	{"dat_evd_free", []rule{
		onHost("events that are queued are lost with it", func(t *testing.T, h *host) {
			e := h.soft(4, nil)
			says(t, e, 1, 2)
			ok(t, e.Free())
			wants(t, "dequeue", e.Dequeue(new(Event)), ErrInvalidHandle)
		}),
		onHost("it is an invalid state while a stream feeds it", func(t *testing.T, h *host) {
			e := must(h.ia.CreateEVD(4, nil, EVDDTO|EVDConnection|EVDCR))(t)
			for _, of := range [][3]*EVD{{e, nil, nil}, {nil, e, nil}, {nil, nil, e}, {e, e, e}} {
				ep := must(h.ia.CreateEP(h.pz, of[0], of[1], of[2], nil))(t)
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
			h.ia.raise(EventAsyncEVDOverflow, h.ia, ReasonEVDOverflow)
			if async.Len() != 0 {
				t.Error("it has an event")
			}
		}),
		freedEVD((*EVD).Free),
	}},

	{"flags", flagRules},
}

var waitRules = []rule{
	onHost("it returns as soon as threshold events are queued, takes the first and tells the rest", func(t *testing.T, h *host) {
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
	onHost("a threshold that is met is answered at once whatever the timeout", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		says(t, e, 1, 2, 3)
		for i, timeout := range []time.Duration{0, time.Nanosecond, -1} {
			var ev Event
			if more, err := e.Wait(timeout, 1, &ev); err != nil || more != 2-i || ev.Software != i+1 {
				t.Errorf("timeout %v: %v, %d more, %v", timeout, ev.Software, more, err)
			}
		}
	}),
	onHost("a timeout takes nothing and tells how many events are there", func(t *testing.T, h *host) {
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
	onHost("the longest timeout does not pass at once", func(t *testing.T, h *host) {
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
		triggered(t, c, nil)
		says(t, e, 3)
		triggered(t, c, e)
	}),
	onHost("an abrupt close aborts the waiter", func(t *testing.T, h *host) {
		e := h.soft(8, nil)
		got := waits(t, e, 1)
		ok(t, h.ia.Close(CloseAbrupt))
		wants(t, "waiter", result(t, got).err, ErrAbort)
	}),
	onHost("the end of a context interrupts it, takes nothing and tells how many events are there", func(t *testing.T, h *host) {
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
	onHost("a context that is done does not keep from taking what is there", func(t *testing.T, h *host) {
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
		sends(x, y, 1)
		if w := result(t, got); w.err != nil || w.ev.Op != DTOReceive {
			t.Errorf("got %+v", w)
		}
	}},
	freedEVD(func(e *EVD) error { _, err := e.Wait(0, 1, new(Event)); return err }),
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
	{"no stream keeps another waiting for ever", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		e := must(b.ia.CreateEVD(300, nil, EVDDTO|EVDSoftware))(t)
		y.rebuild(e, y.request, nil)
		join(x, y)
		sends(x, y, 100)
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
	onHost("a full queue says so, keeps what it has and reports no overflow", func(t *testing.T, h *host) {
		e := h.soft(2, nil)
		says(t, e, 0, 1)
		for range 3 {
			wants(t, "post", e.PostSE(2), ErrQueueFull)
		}
		hears(t, e, 0, 1)
		still(t, e, h.ia.AsyncEVD())
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
		triggered(t, c, e)
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
	onHost("it is an invalid state with more events than the new length, and nothing changes", func(t *testing.T, h *host) {
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
		sends(x, y, 4)
		eventually(t, "arrival of four", func() bool { return y.recv.Len() == 4 })
		wants(t, "too small", y.recv.Resize(3), ErrInvalidState)
		ok(t, y.recv.Resize(6))
		room := y.recv.QLen() - 4
		sends(x, y, room+1)
		await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
		for i := range 4 {
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
		}
		for i := range room {
			y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
		}
		still(t, y.recv)
		proves(x, y)
	}},
	{"completions that arrive meanwhile are not lost", func(t *testing.T, n network) {
		const count = 2000
		a, b := newHosts(t, n, Options{})
		x, y := a.pointWith(nil, pointMem, 400), b.point(nil)
		join(x, y)
		got := make(chan error, 1)
		go func() {
			for i := 0; i < count; {
				switch err := x.PostRDMAWrite(x.seg(0, 8), uint64(i), y.lmr.Remote(0, 8), 0); {
				case err == nil:
					i++
				case !errors.Is(err, ErrInsufficientResources):
					got <- err
					return
				}
				if x.request.Len() > 32 { // with what is outstanding there is room in the smallest
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
		}
		ok(t, result(t, got))
		still(t, x.request, a.ia.AsyncEVD())
	}},
	freedEVD(func(e *EVD) error { return e.Resize(1) }),
}
