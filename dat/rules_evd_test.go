package dat

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// soft makes a dispatcher of software events.
func (h *host) soft(qlen int, cno *CNO) *EVD {
	h.t.Helper()
	return must(h.ia.CreateEVD(qlen, cno, EVDSoftware))(h.t)
}

// says posts software events with the given numbers.
func says(t testing.TB, e *EVD, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		ok(t, e.PostSE(n))
	}
}

// hears takes software events. It fails the test if they do not have the given numbers.
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

// waited is the result of a Wait.
type waited struct {
	ev   Event
	more int
	err  error
}

// waits calls Wait without a timeout in another goroutine. It returns when that goroutine sleeps.
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

// result waits for the result of a call in another goroutine.
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

// onHost returns a rule that needs only one adapter.
func onHost(name string, f func(t *testing.T, h *host)) rule {
	return rule{name, func(t *testing.T, n network) { f(t, newHost(t, n, 0, Options{})) }}
}

// freedEVD returns a rule: a call fails on an EVD that is freed or nil, or whose IA is closed.
func freedEVD(call func(e *EVD) error) rule {
	return onHost("a dispatcher that is gone is an invalid handle", func(t *testing.T, h *host) {
		freed, closed := h.soft(4, nil), h.soft(4, nil)
		ok(t, freed.Free())
		wants(t, "freed", call(freed), ErrInvalidHandle)
		wants(t, "nil", call(nil), ErrInvalidHandle)
		ok(t, h.ia.Close())
		wants(t, "closed", call(closed), ErrInvalidHandle)
	})
}

func stateOf(t testing.TB, e *EVD) EVDState {
	t.Helper()
	return must(e.Query())(t).State
}

var evdRules = []topic{
	{"dat_evd_create", evdCreateRules},

	{"dat_evd_query", evdQueryRules},

	{"dat_evd_modify_cno", evdModifyCNORules},

	{"dat_evd_enable", evdEnableRules},

	{"dat_evd_disable", evdDisableRules},

	{"dat_evd_wait", waitRules},
	{"dat_evd_dequeue", dequeueRules},
	{"dat_evd_post_se", postSERules},
	{"dat_evd_resize", resizeRules},

	{"dat_evd_set_unwaitable", evdSetUnwaitableRules},

	{"dat_evd_clear_unwaitable", evdClearUnwaitableRules},

	{"dat_evd_free", evdFreeRules},

	{"flags", slices.Concat(flagRules, flagEffectRules)},
}

var evdCreateRules = []rule{
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
	onHost("it holds at least the requested number of events", func(t *testing.T, h *host) {
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
		ok(t, h.ia.Close())
		_, err := h.ia.CreateEVD(0, nil, 0)
		wants(t, "create", err, ErrInvalidHandle)
	}),
	{"an event that finds it full is lost, and the asynchronous EVD names it once", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.pointWith(nil, pointMem, 3)
		join(x, y)
		for round := range 2 { // the second overflow is reported too, because the queue was emptied
			sendMessages(x, y, y.recv.QLen()+2)
			ev := await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
			if ev.Source != any(y.recv) || ev.Reason != ReasonEVDOverflow || ev.EVD != b.ia.AsyncEVD() {
				t.Errorf("round %d: %+v names another dispatcher or reason", round, ev)
			}
			for i := range y.recv.QLen() {
				y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 8)
			}
			expectNoEvent(t, y.recv, b.ia.AsyncEVD())
		}
	}},
	{"its length bounds completions and software events together", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		e := must(b.ia.CreateEVD(4, nil, EVDDTO|EVDSoftware))(t)
		y.rebuild(e, y.request, nil)
		join(x, y)
		says(t, e, 0, 1)
		sendMessages(x, y, 3)
		await(t, b.ia.AsyncEVD(), EventAsyncEVDOverflow)
		wants(t, "software event", e.PostSE(2), ErrQueueFull)
		eventually(t, "the other events", func() bool { return e.Len() == 4 }) // the engine reports the overflow first
	}},
	{"if the asynchronous EVD is full, a catastrophic event follows the queued events", func(t *testing.T, n network) {
		a, b := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{AsyncQLen: 1})
		b.listen(testQual, 8)
		var ys [3]*point
		for i := range ys {
			x := a.point(nil)
			ys[i] = b.pointWith(nil, pointMem, 1)
			join(x, ys[i])
			sendMessages(x, ys[i], 2)
		}
		async := b.ia.AsyncEVD()
		eventually(t, "catastrophe", func() bool { return async.Len() == 2 })
		if ev := await(t, async, EventAsyncEVDOverflow); ev.Source != any(ys[0].recv) {
			t.Error("the overflow is of another dispatcher")
		}
		if ev := await(t, async, EventAsyncIACatastrophic); ev.Source != any(b.ia) || ev.Reason != ReasonIACatastrophic {
			t.Errorf("the catastrophe is of %v, reason %d", ev.Source, ev.Reason)
		}
		expectNoEvent(t, async)
	}},
}

var evdQueryRules = []rule{
	onHost("it returns adapter, length, CNO and streams", func(t *testing.T, h *host) {
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
}

var evdModifyCNORules = []rule{
	onHost("notifications trigger the new CNO and not the old one", func(t *testing.T, h *host) {
		before, after := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, before)
		ok(t, e.ModifyCNO(after))
		says(t, e, 1)
		expectTrigger(t, before, nil)
		expectTrigger(t, after, e)
		if got := must(e.Query())(t).CNO; got != after {
			t.Error("the query names another CNO")
		}
	}),
	onHost("nil takes the CNO away", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		ok(t, e.ModifyCNO(nil))
		says(t, e, 1)
		expectTrigger(t, c, nil)
		ok(t, c.Free())
		hears(t, e, 1)
	}),
	onHost("events that are queued trigger the new CNO", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, nil)
		says(t, e, 1)
		ok(t, e.ModifyCNO(c))
		expectTrigger(t, c, e)
	}),
	onHost("a disabled dispatcher with events does not trigger the new CNO", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, nil)
		says(t, e, 1)
		ok(t, e.Disable())
		ok(t, e.ModifyCNO(c))
		expectTrigger(t, c, nil)
	}),
	onHost("the current CNO changes nothing", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		e := h.soft(4, c)
		says(t, e, 1)
		expectTrigger(t, c, e)
		ok(t, e.ModifyCNO(c))
		expectTrigger(t, c, nil)
	}),
	onHost("a trigger that the old CNO keeps passes to another of its dispatchers with events", func(t *testing.T, h *host) {
		c := must(h.ia.CreateCNO(nil))(t)
		first, last, idle := h.soft(4, c), h.soft(4, c), h.soft(4, c)
		says(t, first, 1)
		says(t, last, 1)
		ok(t, last.ModifyCNO(nil))
		expectTrigger(t, c, first)
		says(t, idle, 1)
		hears(t, first, 1)
		ok(t, idle.ModifyCNO(nil))
		expectTrigger(t, c, nil)
	}),
	{"a CNO that is freed or of another adapter is an invalid handle, and the old CNO stays", func(t *testing.T, n network) {
		h, other := newHost(t, n, 0, Options{}), newHost(t, n, 1, Options{})
		c, gone := must(h.ia.CreateCNO(nil))(t), must(h.ia.CreateCNO(nil))(t)
		ok(t, gone.Free())
		e := h.soft(4, c)
		wants(t, "gone", e.ModifyCNO(gone), ErrInvalidHandle)
		wants(t, "foreign", e.ModifyCNO(must(other.ia.CreateCNO(nil))(t)), ErrInvalidHandle)
		says(t, e, 1)
		expectTrigger(t, c, e)
	}},
	freedEVD(func(e *EVD) error { return e.ModifyCNO(nil) }),
}
