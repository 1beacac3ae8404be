package dat

import (
	"fmt"
	"testing"
	"time"
)

// flagged are attributes with completion flags.
func flagged(recv, request CompletionFlags) *EPAttr {
	a := DefaultEPAttr()
	a.RecvCompletionFlags, a.RequestCompletionFlags = recv, request
	return &a
}

// feeder makes an endpoint for the streams that have a dispatcher, with completion flags.
func (h *host) feeder(recv, request, connect *EVD, recvFlags, requestFlags CompletionFlags) (*EP, error) {
	a := flagged(recvFlags, requestFlags)
	if recv == nil {
		a.MaxRecvDTOs = 0
	}
	if request == nil {
		a.MaxRequestDTOs = 0
	}
	return h.ia.CreateEP(h.pz, recv, request, connect, a)
}

// rebuild makes the endpoint of a point anew, with other dispatchers and attributes.
func (p *point) rebuild(recv, request *EVD, a *EPAttr) {
	t := p.host.t
	t.Helper()
	ok(t, p.Free())
	p.recv, p.request = recv, request
	p.EP = must(p.host.ia.CreateEP(p.host.pz, recv, request, p.connect, a))(t)
}

// sends moves messages of 8 bytes from x to y; the cookies of the receives count from 0. It returns
// when y has them, whether or not there was room for their completions.
func sends(x, y *point, messages int) { sendsWith(x, y, messages, 0) }

func sendsWith(x, y *point, messages int, flags CompletionFlags) {
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

// asleepStill fails if a waiter that sleeps was woken.
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

// posts are the ways to post, with flags.
func (p *point) posts(flags CompletionFlags) map[string]error {
	return map[string]error{
		"recv":  p.PostRecv(p.seg(0, 8), 1, flags),
		"send":  p.PostSend(nil, 1, flags),
		"write": p.PostRDMAWrite(nil, 1, RMRTriplet{}, flags),
		"read":  p.PostRDMARead(nil, 1, RMRTriplet{}, flags),
	}
}

var flagRules = []rule{
	onHost("the attributes are counted by threshold unless told otherwise", func(t *testing.T, _ *host) {
		a := DefaultEPAttr()
		if a.RecvCompletionFlags != 0x10 || a.RequestCompletionFlags != 0x10 {
			t.Errorf("got %#x, %#x", a.RecvCompletionFlags, a.RequestCompletionFlags)
		}
	}),
	onHost("attributes of receives are default, unsignalled, solicited or threshold", func(t *testing.T, h *host) {
		for flags := range CompletionFlags(0x40) {
			_, err := h.feeder(nil, nil, nil, flags, 0)
			switch flags {
			case CompletionDefault, CompletionUnsignalled, CompletionSolicitedWait, CompletionEVDThreshold:
				ok(t, err)
			default:
				wants(t, fmt.Sprintf("%#x", flags), err, ErrInvalidParameter)
			}
		}
	}),
	onHost("attributes of requests are default, unsignalled or threshold", func(t *testing.T, h *host) {
		for flags := range CompletionFlags(0x40) {
			_, err := h.feeder(nil, nil, nil, 0, flags)
			switch flags {
			case CompletionDefault, CompletionUnsignalled, CompletionEVDThreshold:
				ok(t, err)
			default:
				wants(t, fmt.Sprintf("%#x", flags), err, ErrInvalidParameter)
			}
		}
	}),
	onHost("the streams of a dispatcher have to agree", func(t *testing.T, h *host) {
		const none = CompletionFlags(0xff) // the direction does not feed the dispatcher
		for _, tc := range []struct {
			name                   string
			recv, request          CompletionFlags // of a first endpoint
			recv2, request2        CompletionFlags // of a second
			connect, service, fits bool
		}{
			{"threshold and default", CompletionEVDThreshold, 0, 0, CompletionEVDThreshold, true, true, true},
			{"all unsignalled", CompletionUnsignalled, CompletionUnsignalled, CompletionUnsignalled, CompletionUnsignalled, false, false, true},
			{"unsignalled requests alone", none, CompletionUnsignalled, none, CompletionUnsignalled, false, false, true},
			{"receives unsignalled, requests not", CompletionUnsignalled, 0, none, none, false, false, false},
			{"requests unsignalled, receives not", 0, CompletionUnsignalled, none, none, false, false, false},
			{"unsignalled after threshold", CompletionEVDThreshold, none, CompletionUnsignalled, none, false, false, false},
			{"default after unsignalled", CompletionUnsignalled, none, 0, none, false, false, false},
			{"unsignalled with connection events", none, none, CompletionUnsignalled, none, true, false, false},
			{"unsignalled with connection requests", none, none, none, CompletionUnsignalled, false, true, false},
			{"all receives solicited", CompletionSolicitedWait, none, CompletionSolicitedWait, none, false, false, true},
			{"solicited after threshold", CompletionEVDThreshold, none, CompletionSolicitedWait, none, false, false, false},
			{"solicited after unsignalled", CompletionUnsignalled, none, CompletionSolicitedWait, none, false, false, false},
			{"solicited with requests", CompletionSolicitedWait, none, none, 0, false, false, false},
			{"solicited with unsignalled requests", CompletionSolicitedWait, CompletionUnsignalled, none, none, false, false, false},
			{"solicited with connection events", none, none, CompletionSolicitedWait, none, true, false, false},
			{"solicited with connection requests", none, none, CompletionSolicitedWait, none, false, true, false},
		} {
			e := must(h.ia.CreateEVD(8, nil, EVDDTO|EVDConnection|EVDCR))(t)
			var psp *PSP
			if tc.service {
				psp = must(h.ia.CreatePSP(testQual, e, PSPConsumer))(t)
			}
			make1 := func(recv, request CompletionFlags) (*EP, error) {
				var of [3]*EVD
				if recv != none {
					of[0] = e
				}
				if request != none {
					of[1] = e
				}
				if tc.connect {
					of[2] = e
				}
				return h.feeder(of[0], of[1], of[2], recv%none, request%none)
			}
			first, err := make1(tc.recv, tc.request)
			var second *EP
			if err == nil {
				second, err = make1(tc.recv2, tc.request2)
			}
			if tc.fits {
				ok(t, err)
			} else {
				wants(t, tc.name, err, ErrInvalidParameter)
			}
			for _, ep := range []*EP{first, second} {
				if ep != nil {
					ok(t, ep.Free())
				}
			}
			if tc.service {
				ok(t, psp.Free())
			}
			ok(t, e.Free()) // a refused endpoint leaves nothing behind
		}
	}),
	onHost("the agreement ends with the last of the streams", func(t *testing.T, h *host) {
		e := must(h.ia.CreateEVD(8, nil, EVDDTO))(t)
		for range 2 {
			for _, flags := range []CompletionFlags{CompletionUnsignalled, CompletionSolicitedWait, CompletionEVDThreshold} {
				ok(t, must(h.feeder(e, nil, nil, flags, 0))(t).Free())
			}
		}
	}),
	{"an unsignalled post is invalid unless the attribute of its direction is unsignalled", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(0, 0), flagged(CompletionSolicitedWait, 0), flagged(CompletionUnsignalled, 0), flagged(0, CompletionUnsignalled)} {
			x, _ := pair(a, b, attr)
			for name, err := range x.posts(CompletionUnsignalled) {
				legal := attr != nil && (name == "recv" && attr.RecvCompletionFlags == CompletionUnsignalled ||
					name != "recv" && attr.RequestCompletionFlags == CompletionUnsignalled)
				if !legal {
					wants(t, name, err, ErrInvalidParameter)
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			ok(t, x.EP.Free())
		}
	}},
	{"suppress and barrier fence are legal on requests, and invalid on receives, whatever the attribute", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(CompletionUnsignalled, CompletionUnsignalled)} {
			x, _ := pair(a, b, attr)
			for _, flags := range []CompletionFlags{CompletionSuppress, CompletionBarrierFence, CompletionSuppress | CompletionBarrierFence} {
				for name, err := range x.posts(flags) {
					if name == "recv" {
						wants(t, name, err, ErrInvalidParameter)
					} else if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
	}},
	{"solicited wait is legal on sends alone, in every configuration", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(CompletionSolicitedWait, 0), flagged(CompletionUnsignalled, CompletionUnsignalled)} {
			x, _ := pair(a, b, attr)
			for name, err := range x.posts(CompletionSolicitedWait) {
				if name != "send" {
					wants(t, name, err, ErrInvalidParameter)
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}},
	{"threshold and flags that do not exist are invalid on posts", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, _ := pair(a, b, nil)
		for _, flags := range []CompletionFlags{CompletionEVDThreshold, 0x20, 0x40, 0x80, 0xff} {
			for name, err := range x.posts(flags) {
				wants(t, fmt.Sprintf("%s %#x", name, flags), err, ErrInvalidParameter)
			}
		}
		still(t, x.recv, x.request)
	}},
	{"by default every completion wakes the waiter", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, flagged(0, 0))
		got := waits(t, x.request, 1)
		ok(t, x.write(1, 0))
		ok(t, result(t, got).err)
		got = waits(t, y.recv, 1)
		sends(x, y, 1)
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
		ok(t, x.PostSend(x.seg(0, 8), 1, CompletionSolicitedWait)) // which means nothing here
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
	{"a waiter that unsignalled completions let time out is told of them", func(t *testing.T, n network) {
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
	{"a receive that is too short wakes the waiter though nobody solicited it", func(t *testing.T, n network) {
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
		sends(x, y, 2)
		asleepStill(t, y.recv, got)
		sendsWith(x, y, 1, CompletionSolicitedWait)
		if w := result(t, got); w.err != nil || w.ev.Cookie != 0 || w.more != 2 {
			t.Errorf("got %d, %d more, %v", w.ev.Cookie, w.more, w.err)
		}
	}},
	{"on other endpoints solicited wait has no effect", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		for _, flags := range []CompletionFlags{0, CompletionSolicitedWait} {
			got := waits(t, y.recv, 1)
			sendsWith(x, y, 1, flags)
			ok(t, result(t, got).err)
		}
	}},
	{"completions count for a threshold", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, attr := range []*EPAttr{nil, flagged(0, 0)} {
			x, y := pair(a, b, attr)
			got := waits(t, y.recv, 3)
			sends(x, y, 2)
			asleepStill(t, y.recv, got)
			sends(x, y, 1)
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
		still(t, x.request)
	}},
	{"a suppressed request that fails has an event, which notifies, and so have those flushed after it", func(t *testing.T, n network) {
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
		triggered(t, c, nil)
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
		sends(x, y, 1)
		triggered(t, c, nil)
		sendsWith(x, y, 1, CompletionSolicitedWait)
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
