package dat

import (
	"fmt"
	"testing"
)

var epPostSendWithInvalidateRules = []rule{
	{"without the flag it is a plain send", together(func(t *testing.T, x, y *point) {
		r, _ := y.window(0, 8)
		copy(x.mem, "plain")
		ok(t, y.PostRecv(y.seg(64, 64), 1, 0))
		ok(t, x.PostSend(x.seg(0, 5), 2, 0))
		x.done(x.request, 2, DTOSend, DTOSuccess, 5)
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 5)
		same(t, y.mem[64:69], []byte("plain"))
		if q := must(r.Query())(t); !q.Bound {
			t.Error("the region is not bound any more")
		}
	})},
	{"the receive returns the context, and the data is in memory", together(func(t *testing.T, x, y *point) {
		for _, n := range []int{0, 1, 200, 60000} {
			_, to := y.window(0, 8)
			fillRandom(x.mem[:n], uint64(n))
			ok(t, y.PostRecv(y.seg(64, 61000), 1, 0))
			ok(t, x.PostSendWithInvalidate(x.seg(0, n), 2, 0, to.Context))
			ev := await(t, y.recv, EventDTOCompletion)
			if ev.Op != DTOReceiveWithInvalidate || ev.RMRContext != to.Context || ev.Cookie != 1 || ev.Length != uint64(n) || ev.Status != DTOSuccess {
				t.Errorf("%d bytes: receive completes as %+v", n, ev)
			}
			x.done(x.request, 2, DTOSend, DTOSuccess, n)
			same(t, y.mem[64:64+n], x.mem[:n])
		}
	})},
	{"an ordinary receive after it returns no context", together(func(t *testing.T, x, y *point) {
		_, to := y.window(0, 8)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, y.PostRecv(nil, 2, 0))
		ok(t, x.PostSendWithInvalidate(nil, 3, 0, to.Context))
		ok(t, x.PostSend(nil, 4, 0))
		y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
		if ev := await(t, y.recv, EventDTOCompletion); ev.Op != DTOReceive || ev.RMRContext != 0 || ev.Cookie != 2 {
			t.Errorf("got %+v", ev)
		}
	})},
	{"the context is invalid when the receive completes", together(func(t *testing.T, x, y *point) {
		_, l := y.private(64, localRights)
		r := must(y.host.pz.CreateRMR())(t)
		to := y.bind(r, l, 0, 64, remoteRights)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, x.PostSendWithInvalidate(nil, 2, 0, to.Context))
		y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
		unbound(t, r)
		ok(t, l.Free())
		x.done(x.request, 2, DTOSend, DTOSuccess, 0)
		x.cannotWrite("the context", to)
	})},
	{"operations posted before it may use the context", together(func(t *testing.T, x, y *point) {
		_, to := y.window(100, 64)
		fillRandom(x.mem[:64], 6)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, x.PostRDMAWrite(x.seg(0, 64), 2, to, 0))
		ok(t, x.PostSendWithInvalidate(nil, 3, 0, to.Context))
		y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
		same(t, y.mem[100:164], x.mem[:64])
		x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 64)
		x.done(x.request, 3, DTOSend, DTOSuccess, 0)
	})},
	{"a region that was invalidated can be bound again", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		for range 5 {
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostSendWithInvalidate(nil, 2, 0, to.Context))
			y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
			x.done(x.request, 2, DTOSend, DTOSuccess, 0)
			to = y.bind(r, y.lmr, 0, 8, remoteRights)
			x.writes(to)
		}
	})},
	{"a region for the endpoint can be invalidated through it", together(func(t *testing.T, x, y *point) {
		r := must(y.host.pz.CreateRMRForEP())(t)
		to := y.bind(r, y.lmr, 0, 8, remoteRights)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, x.PostSendWithInvalidate(nil, 2, 0, to.Context))
		y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
		unbound(t, r)
	})},
	{"a context that is not one of a bound region here breaks the connection", broken(map[string]func(x, y *point) uint32{
		"none":               func(_, _ *point) uint32 { return 0 },
		"nobody's":           func(_, y *point) uint32 { return y.lmr.RMRContext() ^ 1 },
		"an LMR's":           func(_, y *point) uint32 { return y.lmr.RMRContext() },
		"the sender's own":   func(x, _ *point) uint32 { _, to := x.window(0, 8); return to.Context },
		"of the bind before": func(_, y *point) uint32 { r, to := y.window(0, 8); y.bind(r, y.lmr, 0, 8, 0); return to.Context },
		"of a freed region":  func(_, y *point) uint32 { r, to := y.window(0, 8); _ = r.Free(); return to.Context },
		"another endpoint's": func(x, y *point) uint32 {
			_, y2 := pair(x.host, y.host, nil)
			r, _ := y.host.pz.CreateRMRForEP()
			return y2.bind(r, y.lmr, 0, 8, remoteRights).Context
		},
		"another zone's": func(x, y *point) uint32 {
			pz := y.host.pz
			y.host.pz, _ = y.host.ia.CreatePZ()
			_, y2 := pair(x.host, y.host, nil)
			_, to := y2.window(0, 8)
			y.host.pz = pz
			return to.Context
		},
	}, func(t *testing.T, x, y *point, what string, context func(x, y *point) uint32) {
		c := context(x, y)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		x.cannot(what, DTOSend, x.PostSendWithInvalidate(x.seg(0, 8), 2, 0, c))
		y.done(y.recv, 1, DTOReceive, DTOFlushed, 0)
	})},
	{"the legal flags are those of a send", together(func(t *testing.T, x, y *point) {
		for _, f := range []CompletionFlags{0x10, 0x20, 0x40, 0x80} {
			wants(t, fmt.Sprintf("flags %#x", f), x.PostSendWithInvalidate(nil, 1, f, 0), ErrInvalidParameter)
		}
		_, to := y.window(0, 8)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, x.PostSendWithInvalidate(nil, 2, CompletionSuppress|CompletionSolicitedWait|CompletionBarrierFence, to.Context))
		y.done(y.recv, 1, DTOReceiveWithInvalidate, DTOSuccess, 0)
		x.still()
	})},
	{"the endpoint must be valid", together(func(t *testing.T, x, _ *point) {
		ok(t, x.Free())
		wants(t, "freed", x.PostSendWithInvalidate(nil, 1, 0, 1), ErrInvalidHandle)
		var none *EP
		wants(t, "nil", none.PostSendWithInvalidate(nil, 1, 0, 1), ErrInvalidHandle)
	})},
	{"segments are checked like those of a send", together(func(t *testing.T, x, _ *point) {
		other := must(x.host.ia.CreatePZ())(t)
		zoned := must(x.host.ia.CreateLMR(make([]byte, 64), other, MemAll))(t)
		_, bare := x.private(64, MemNone)
		for what, c := range map[string]struct {
			iov  []LMRTriplet
			want error
		}{
			"outside":      {x.seg(pointMem-7, 8), ErrInvalidParameter},
			"too many":     {make([]LMRTriplet, maxIOV+1), ErrInvalidParameter},
			"another zone": {[]LMRTriplet{zoned.Segment(0, 8)}, ErrProtectionViolation},
			"no right":     {[]LMRTriplet{bare.Segment(0, 8)}, ErrPrivilegesViolation},
			"no context":   {[]LMRTriplet{{Length: 8}}, ErrPrivilegesViolation},
		} {
			wants(t, what, x.PostSendWithInvalidate(c.iov, 1, 0, 1), c.want)
		}
		x.still()
	})},
	{"a message longer than the endpoint allows is refused", withLimits(&EPAttr{MaxRequestDTOs: 1, MaxMessageSize: 100}, func(t *testing.T, x, y *point) {
		wants(t, "101 bytes", x.PostSendWithInvalidate(x.seg(0, 101), 1, 0, 1), ErrInvalidParameter)
	})},
	{"it is refused before the connection and flushed after", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		wants(t, "unconnected", x.PostSendWithInvalidate(nil, 1, 0, 1), ErrInvalidState)
		join(x, y)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.PostSendWithInvalidate(nil, 1, CompletionSuppress, 1))
		x.done(x.request, 1, DTOSend, DTOFlushed, 0)
	}},
	{"it waits for a receive as a send does", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		ok(t, x.PostSendWithInvalidate(x.seg(0, 8), 1, 0, to.Context))
		x.still()
		if q := must(r.Query())(t); !q.Bound {
			t.Error("the region was invalidated without a receive")
		}
		ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
		y.done(y.recv, 2, DTOReceiveWithInvalidate, DTOSuccess, 8)
		x.done(x.request, 1, DTOSend, DTOSuccess, 8)
	})},
	{"a message longer than its receive does not invalidate the context", together(func(t *testing.T, x, y *point) {
		r, to := y.window(0, 8)
		ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
		ok(t, x.PostSendWithInvalidate(x.seg(0, 9), 2, 0, to.Context))
		x.done(x.request, 2, DTOSend, DTORemoteResponder, 0)
		y.done(y.recv, 1, DTOReceive, DTOLocalLength, 0)
		if q := must(r.Query())(t); !q.Bound {
			t.Error("the region was invalidated")
		}
	})},
	{"the request queue is as long as for sends", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		attr := DefaultEPAttr()
		attr.MaxRequestDTOs = 2
		x, _ := pair(a, b, &attr)
		x.holdUp()
		ok(t, x.PostSendWithInvalidate(nil, 1, 0, 1))
		wants(t, "a third", x.PostSendWithInvalidate(nil, 2, 0, 1), ErrInsufficientResources)
	}},
}

var epPostRDMAReadToRMRRules = []rule{
	{"it brings the peer's bytes to the range of the region", together(func(t *testing.T, x, y *point) {
		for i, n := range []int{1, 64, 5000, 60000} {
			mem, l := x.private(61000, localRights)
			r := must(x.host.pz.CreateRMR())(t)
			to := x.bind(r, l, 100, n+200, MemRemoteWrite)
			fillRandom(y.mem[:n], uint64(i))
			y.memoryBarrier()
			ok(t, x.PostRDMAReadToRMR(part(to, 50, n), 1, y.lmr.Remote(0, n), 0))
			x.done(x.request, 1, DTORDMARead, DTOSuccess, n)
			same(t, mem[150:150+n], y.mem[:n])
			same(t, mem[:150], make([]byte, 150))
			same(t, mem[150+n:250+n], make([]byte, 100))
		}
	})},
	{"a region for one endpoint can be the target of reads of that endpoint", together(func(t *testing.T, x, y *point) {
		r := must(x.host.pz.CreateRMRForEP())(t)
		to := x.bind(r, x.lmr, 0, 64, MemRemoteWrite)
		fillRandom(y.mem[:64], 7)
		y.memoryBarrier()
		ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0))
		x.done(x.request, 1, DTORDMARead, DTOSuccess, 64)
		same(t, x.mem[:64], y.mem[:64])
	})},
	{"the source may be a region too", together(func(t *testing.T, x, y *point) {
		_, to := x.window(0, 64)
		_, from := y.window(100, 64)
		fillRandom(y.mem[100:164], 8)
		y.memoryBarrier()
		ok(t, x.PostRDMAReadToRMR(to, 1, from, 0))
		x.done(x.request, 1, DTORDMARead, DTOSuccess, 64)
		same(t, x.mem[:64], y.mem[100:164])
	})},
	{"the context must be one of a bound region", together(func(t *testing.T, x, y *point) {
		r, to := x.window(0, 64)
		gone, ended := x.window(0, 64)
		ok(t, gone.Free())
		_, theirs := y.window(0, 64)
		old := to
		to = x.bind(r, x.lmr, 0, 64, remoteRights)
		for what, c := range map[string]uint32{"none": 0, "nobody's": to.Context ^ 1, "an LMR's": x.lmr.RMRContext(),
			"local": x.lmr.Context(), "of the bind before": old.Context, "freed": ended.Context, "the peer's": theirs.Context} {
			to.Context = c
			wants(t, what, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrPrivilegesViolation)
		}
		x.still()
	})},
	{"the region must give the right to write", together(func(t *testing.T, x, y *point) {
		for _, priv := range []MemPriv{MemNone, MemRemoteRead} {
			r := must(x.host.pz.CreateRMR())(t)
			to := x.bind(r, x.lmr, 0, 64, priv)
			wants(t, fmt.Sprintf("privileges %#x", priv), x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrPrivilegesViolation)
		}
	})},
	{"the region must be of the endpoint's zone", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		a.pz = must(a.ia.CreatePZ())(t)
		x2, _ := pair(a, b, nil)
		_, to := x2.window(0, 64)
		wants(t, "another zone", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrProtectionViolation)
	}},
	{"the region must not be bound for another endpoint", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		x2, _ := pair(a, b, nil)
		r := must(a.pz.CreateRMRForEP())(t)
		to := x2.bind(r, x.lmr, 0, 64, remoteRights)
		wants(t, "another endpoint", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrProtectionViolation)
	}},
	{"the local range must be inside the region", together(func(t *testing.T, x, y *point) {
		_, to := x.window(100, 64)
		for what, at := range map[string][2]int{"below": {-1, 8}, "beyond": {64, 1}, "over the end": {57, 8}, "longer": {0, 65}} {
			wants(t, what, x.PostRDMAReadToRMR(part(to, at[0], at[1]), 1, y.lmr.Remote(0, 1), 0), ErrInvalidParameter)
		}
		to.Length = 1 << 63
		wants(t, "huge", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 1), 0), ErrInvalidParameter)
		to.Address, to.Length = 1<<64-8, 16
		wants(t, "wrap", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 1), 0), ErrInvalidParameter)
	})},
	{"the local range must be as long as the remote one", together(func(t *testing.T, x, y *point) {
		_, to := x.window(0, 64)
		wants(t, "shorter", x.PostRDMAReadToRMR(part(to, 0, 63), 1, y.lmr.Remote(0, 64), 0), ErrLengthError)
		wants(t, "empty", x.PostRDMAReadToRMR(RMRTriplet{}, 1, y.lmr.Remote(0, 1), 0), ErrLengthError)
	})},
	{"a read of no bytes is legal and ignores the region", together(func(t *testing.T, x, _ *point) {
		ok(t, x.PostRDMAReadToRMR(RMRTriplet{Context: 1, Address: 2}, 1, RMRTriplet{}, 0))
		x.done(x.request, 1, DTORDMARead, DTOSuccess, 0)
	})},
	{"the legal flags are those of a read", together(func(t *testing.T, x, y *point) {
		_, to := x.window(0, 64)
		for _, f := range []CompletionFlags{CompletionSolicitedWait, 0x10, 0x20, 0x40, 0x80} {
			wants(t, fmt.Sprintf("flags %#x", f), x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), f), ErrInvalidParameter)
		}
		ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), CompletionSuppress))
		ok(t, x.PostRDMAReadToRMR(to, 2, y.lmr.Remote(0, 64), CompletionBarrierFence))
		x.done(x.request, 2, DTORDMARead, DTOSuccess, 64)
	})},
	{"the endpoint must be valid", together(func(t *testing.T, x, _ *point) {
		ok(t, x.Free())
		wants(t, "freed", x.PostRDMAReadToRMR(RMRTriplet{}, 1, RMRTriplet{}, 0), ErrInvalidHandle)
		var none *EP
		wants(t, "nil", none.PostRDMAReadToRMR(RMRTriplet{}, 1, RMRTriplet{}, 0), ErrInvalidHandle)
	})},
	{"it is refused before the connection and flushed after", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := a.point(nil), b.point(nil)
		wants(t, "unconnected", x.PostRDMAReadToRMR(RMRTriplet{}, 1, RMRTriplet{}, 0), ErrInvalidState)
		join(x, y)
		_, to := x.window(0, 64)
		ok(t, x.Disconnect(CloseAbrupt))
		x.expect(EventDisconnected)
		ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), CompletionSuppress))
		x.peer = nil
		x.done(x.request, 1, DTORDMARead, DTOFlushed, 0)
	}},
	{"an endpoint that allows no reads refuses it", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		attr := DefaultEPAttr()
		attr.MaxRDMAReadOut = 0
		x, y := pair(a, b, &attr)
		_, to := x.window(0, 64)
		wants(t, "no reads", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrInvalidParameter)
	}},
	{"a read longer than the endpoint allows is refused", withLimits(&EPAttr{MaxRequestDTOs: 4, MaxRDMAReadOut: 1, MaxRDMASize: 63}, func(t *testing.T, x, y *point) {
		_, to := x.window(0, 64)
		wants(t, "64 bytes", x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0), ErrInvalidParameter)
		to.Length = 1 << 31
		wants(t, "2 GiB", x.PostRDMAReadToRMR(to, 1, RMRTriplet{Length: 1 << 31}, 0), ErrInvalidParameter)
	})},
	{"a remote range that may not be read is REMOTE_ACCESS", together(func(t *testing.T, x, y *point) {
		_, to := x.window(0, 64)
		from := y.lmr.Remote(0, 64)
		from.Context ^= 1
		x.cannot("wrong context", DTORDMARead, x.PostRDMAReadToRMR(to, 1, from, 0))
	})},
	{"a region that ends before the data is there breaks the connection", together(func(t *testing.T, x, y *point) {
		r, to := x.window(0, 64)
		x.holdUp()
		ok(t, x.PostRDMAReadToRMR(to, 1, y.lmr.Remote(0, 64), 0))
		ok(t, r.Free())
		ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
		x.expect(EventBroken)
		y.expect(EventBroken)
		x.done(x.request, 73, DTOSend, DTOSuccess, 8)
		x.peer = nil
		x.done(x.request, 1, DTORDMARead, DTOLocalProtection, 0)
	})},
}
