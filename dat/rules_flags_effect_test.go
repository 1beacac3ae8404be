package dat

import (
	"testing"
	"time"
)

// sendMessages transfers messages of 8 bytes from x to y. The receives have the cookies 0, 1, 2 and so on. sendMessages
// returns when y has received all messages, even if y's dispatcher had no room for the completions.
func sendMessages(x, y *point, messages int) { sendMessagesWith(x, y, messages, 0) }

func sendMessagesWith(x, y *point, messages int, flags CompletionFlags) {
	t := x.host.t
	t.Helper()
	for i := range messages {
		ok(t, y.PostRecv(y.seg(8*i, 8), uint64(i), 0))
		ok(t, x.PostSend(x.seg(0, 8), uint64(i), flags))
	}
	for i := range messages {
		x.done(x.request, uint64(i), DTOSend, DTOSuccess, 8)
	}
}

// asleepStill fails the test if a sleeping waiter has been woken.
func asleepStill(t testing.TB, e *EVD, got <-chan waited) {
	t.Helper()
	for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); {
		if !e.armed.Load() || len(e.wake) > 0 || len(got) > 0 {
			t.Fatal("the waiter was woken")
		}
	}
}

// write posts an RDMA write of 8 bytes.
func (p *point) write(cookie uint64, flags CompletionFlags) error {
	return p.PostRDMAWrite(p.seg(0, 8), cookie, p.peer.lmr.Remote(0, 8), flags)
}

// flagEffectRules has the rules for the effect of flags on events, waiters and CNOs.
var flagEffectRules = []rule{
	{"by default every completion wakes the waiter", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, flagged(0, 0))
		got := waits(t, x.request, 1)
		ok(t, x.write(1, 0))
		ok(t, result(t, got).err)
		got = waits(t, y.recv, 1)
		sendMessages(x, y, 1)
		ok(t, result(t, got).err)
	}},
	{"an unsignalled request does not wake the waiter, and the next notification does", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, _ := pair(a, b, flagged(0, CompletionUnsignalled))
		got := waits(t, x.request, 1)
		ok(t, x.write(1, CompletionUnsignalled))
		eventually(t, "completion", func() bool { return x.request.Len() == 1 })
		asleepStill(t, x.request, got)
		ok(t, x.write(2, 0))
		if w := result(t, got); w.err != nil || w.ev.Cookie != 1 || w.more != 1 {
			t.Errorf("got %d, %d more, %v", w.ev.Cookie, w.more, w.err)
		}
		x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 8)
	}},
	{"an unsignalled receive does not wake the waiter, and the next notification does", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		y.rebuild(y.recv, y.request, flagged(CompletionUnsignalled, 0))
		join(x, y)
		got := waits(t, y.recv, 1)
		ok(t, y.PostRecv(y.seg(0, 8), 1, CompletionUnsignalled))
		ok(t, y.PostRecv(y.seg(8, 8), 2, 0))
		ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSolicitedWait)) // the flag has no effect here
		eventually(t, "completion", func() bool { return y.recv.Len() == 1 })
		asleepStill(t, y.recv, got)
		ok(t, x.PostSend(x.seg(0, 8), 2, 0))
		if w := result(t, got); w.err != nil || w.ev.Cookie != 1 || w.more != 1 {
			t.Errorf("got %d, %d more, %v", w.ev.Cookie, w.more, w.err)
		}
	}},
	{"an unsignalled completion can be dequeued and counts for a later waiter", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, _ := pair(a, b, flagged(0, CompletionUnsignalled))
		for i := range uint64(2) {
			ok(t, x.write(i, CompletionUnsignalled))
		}
		eventually(t, "completions", func() bool { return x.request.Len() == 2 })
		var ev Event
		ok(t, x.request.Dequeue(&ev))
		if more, err := x.request.Wait(0, 1, &ev); err != nil || more != 0 || ev.Cookie != 1 {
			t.Errorf("got %d, %d more, %v", ev.Cookie, more, err)
		}
	}},
	{"a waiter that times out returns the number of unsignalled completions", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, _ := pair(a, b, flagged(0, CompletionUnsignalled))
		got := make(chan waited, 1)
		go func() {
			var w waited
			w.more, w.err = x.request.Wait(30*time.Millisecond, 1, &w.ev)
			got <- w
		}()
		parked(t, x.request)
		ok(t, x.write(1, CompletionUnsignalled))
		if w := result(t, got); w.err != ErrTimeoutExpired || w.more != 1 {
			t.Errorf("%d more, %v", w.more, w.err)
		}
		x.done(x.request, 1, DTORDMAWrite, DTOSuccess, 8)
	}},
	{"a failed request wakes the waiter though it is unsignalled", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, flagged(0, CompletionUnsignalled))
		got := waits(t, x.request, 1)
		bad := y.lmr.Remote(0, 8)
		bad.Context++
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, bad, CompletionUnsignalled))
		if w := result(t, got); w.err != nil || w.ev.Status != DTORemoteAccess {
			t.Errorf("got %v, %v", w.ev.Status, w.err)
		}
	}},
	{"flushed receives wake the waiter, unsignalled or not solicited", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, recv := range []CompletionFlags{CompletionUnsignalled, CompletionSolicitedWait} {
			x, y := a.point(nil), b.point(nil)
			y.rebuild(y.recv, y.request, flagged(recv, 0))
			join(x, y)
			got := waits(t, y.recv, 1)
			ok(t, y.PostRecv(y.seg(0, 8), 1, recv&CompletionUnsignalled))
			ok(t, x.Disconnect(CloseAbrupt))
			if w := result(t, got); w.err != nil || w.ev.Status != DTOFlushed {
				t.Errorf("got %v, %v", w.ev.Status, w.err)
			}
		}
	}},
	{"a failed receive wakes the waiter even if its message was not solicited", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		y.rebuild(y.recv, y.request, flagged(CompletionSolicitedWait, 0))
		join(x, y)
		got := waits(t, y.recv, 1)
		ok(t, y.PostRecv(y.seg(0, 4), 1, 0))
		ok(t, x.PostSend(x.seg(0, 8), 1, 0))
		if w := result(t, got); w.err != nil || w.ev.Status != DTOLocalLength {
			t.Errorf("got %v, %v", w.ev.Status, w.err)
		}
	}},
	{"on a solicited endpoint a receive wakes the waiter only if the send asked for it", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		y.rebuild(y.recv, y.request, flagged(CompletionSolicitedWait, 0))
		join(x, y)
		got := waits(t, y.recv, 1)
		sendMessages(x, y, 2)
		asleepStill(t, y.recv, got)
		sendMessagesWith(x, y, 1, CompletionSolicitedWait)
		if w := result(t, got); w.err != nil || w.ev.Cookie != 0 || w.more != 2 {
			t.Errorf("got %d, %d more, %v", w.ev.Cookie, w.more, w.err)
		}
	}},
	{"on other endpoints solicited wait has no effect", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		for _, flags := range []CompletionFlags{0, CompletionSolicitedWait} {
			got := waits(t, y.recv, 1)
			sendMessagesWith(x, y, 1, flags)
			ok(t, result(t, got).err)
		}
	}},
	{"completions count for a threshold", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(0, 0)} {
			x, y := pair(a, b, attr)
			got := waits(t, y.recv, 3)
			sendMessages(x, y, 2)
			asleepStill(t, y.recv, got)
			sendMessages(x, y, 1)
			if w := result(t, got); w.err != nil || w.more != 2 {
				t.Errorf("%d more, %v", w.more, w.err)
			}
		}
	}},
	{"a suppressed request has no event when it succeeds", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.write(1, CompletionSuppress))
		ok(t, x.PostRDMARead(x.seg(0, 8), 2, y.lmr.Remote(0, 8), CompletionSuppress))
		ok(t, x.PostSend(x.seg(0, 8), 3, CompletionSuppress))
		ok(t, x.write(4, 0))
		x.done(x.request, 4, DTORDMAWrite, DTOSuccess, 8)
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 8)
		expectNoEvent(t, x.request)
	}},
	{"a suppressed request that fails has a completion, which is a notification; so have requests flushed after it", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, flagged(0, CompletionUnsignalled))
		got := waits(t, x.request, 1)
		bad := y.lmr.Remote(0, 8)
		bad.Context++
		ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, bad, CompletionSuppress|CompletionUnsignalled))
		if w := result(t, got); w.err != nil || w.ev.Cookie != 1 || w.ev.Status != DTORemoteAccess {
			t.Errorf("got %d %v, %v", w.ev.Cookie, w.ev.Status, w.err)
		}
		x.expect(EventBroken)
		ok(t, x.PostSend(nil, 2, CompletionSuppress))
		x.done(x.request, 2, DTOSend, DTOFlushed, 0)
	}},
	{"a CNO is triggered by notifications alone", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, _ := pair(a, b, flagged(0, CompletionUnsignalled))
		c := must(a.ia.CreateCNO(nil))(t)
		ok(t, x.request.ModifyCNO(c))
		ok(t, x.write(1, CompletionUnsignalled))
		eventually(t, "completion", func() bool { return x.request.Len() == 1 })
		expectTrigger(t, c, nil)
		ok(t, x.write(2, 0))
		if e, err := c.Wait(patience); e != x.request || err != nil {
			t.Errorf("got %p, %v", e, err)
		}
	}},
	{"a CNO is triggered by a receive only if it was solicited, on a solicited endpoint", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		y.rebuild(y.recv, y.request, flagged(CompletionSolicitedWait, 0))
		join(x, y)
		c := must(b.ia.CreateCNO(nil))(t)
		ok(t, y.recv.ModifyCNO(c))
		sendMessages(x, y, 1)
		expectTrigger(t, c, nil)
		sendMessagesWith(x, y, 1, CompletionSolicitedWait)
		if e, err := c.Wait(patience); e != y.recv || err != nil {
			t.Errorf("got %p, %v", e, err)
		}
	}},
	{"a full dispatcher of unsignalled completions wakes its waiter when it overflows", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.pointWith(nil, pointMem, 2), b.point(nil)
		x.rebuild(x.recv, x.request, flagged(0, CompletionUnsignalled))
		join(x, y)
		got := waits(t, x.request, 1)
		for i := range x.request.QLen() + 1 {
			ok(t, x.write(uint64(i), CompletionUnsignalled))
		}
		if w := result(t, got); w.err != nil || w.ev.Cookie != 0 {
			t.Errorf("got %d, %v", w.ev.Cookie, w.err)
		}
		await(t, a.ia.AsyncEVD(), EventAsyncEVDOverflow)
	}},
}
