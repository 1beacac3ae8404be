package dat

import (
	"testing"
	"time"
)

// TestPostErrors: an invalid post returns the error that the specification names, queues nothing, and leaves the
// connection usable.
func TestPostErrors(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		region := func(pz *PZ, priv MemPriv) *LMR { return must(a.ia.CreateLMR(make([]byte, 256), pz, priv))(t) }
		other := region(must(a.ia.CreatePZ())(t), MemAll)
		freed := region(a.pz, MemAll)
		ok(t, freed.Free())
		none, remote, read, write := region(a.pz, MemNone), region(a.pz, MemRemoteRead|MemRemoteWrite), region(a.pz, MemLocalRead), region(a.pz, MemLocalWrite)
		at := func(l *LMR, off, size int) []LMRTriplet { return []LMRTriplet{l.Segment(off, size)} }
		low := at(x.lmr, 0, 8)
		low[0].Address--
		wrap := []LMRTriplet{{Context: x.lmr.Context(), Address: 1<<64 - 4, Length: 8}}
		wild := []LMRTriplet{{Context: 0x12345, Address: x.lmr.Address(), Length: 8}}
		five := make([]LMRTriplet, 5)

		type call = func(iov []LMRTriplet, f CompletionFlags) error
		calls := map[string]call{
			"send": func(iov []LMRTriplet, f CompletionFlags) error { return x.PostSend(iov, 1, f) },
			"recv": func(iov []LMRTriplet, f CompletionFlags) error { return x.PostRecv(iov, 1, f) },
			"write": func(iov []LMRTriplet, f CompletionFlags) error {
				return x.PostRDMAWrite(iov, 1, y.lmr.Remote(0, 2*pointMem), f)
			},
			"read": func(iov []LMRTriplet, f CompletionFlags) error {
				return x.PostRDMARead(iov, 1, y.lmr.Remote(0, int(total(iov))), f)
			},
		}
		sink := []string{"recv", "read"}
		all := []string{"send", "recv", "write", "read"}
		for _, tc := range []struct {
			name  string
			calls []string
			iov   []LMRTriplet
			flags CompletionFlags
			want  error
		}{
			{"five segments", all, five, 0, ErrInvalidParameter},
			{"one byte before the region", all, low, 0, ErrInvalidParameter},
			{"one byte beyond the region", all, at(x.lmr, pointMem-7, 8), 0, ErrInvalidParameter},
			{"one byte too long", all, at(x.lmr, 0, pointMem+1), 0, ErrInvalidParameter},
			{"wraps 64 bits", all, wrap, 0, ErrInvalidParameter},
			{"second segment bad", all, []LMRTriplet{x.lmr.Segment(0, 8), x.lmr.Segment(pointMem, 1)}, 0, ErrInvalidParameter},
			{"no such region", all, wild, 0, ErrPrivilegesViolation},
			{"freed region", all, at(freed, 0, 8), 0, ErrPrivilegesViolation},
			{"other zone", all, at(other, 0, 8), 0, ErrProtectionViolation},
			{"no right at all", all, at(none, 0, 8), 0, ErrPrivilegesViolation},
			{"remote rights only", all, at(remote, 0, 8), 0, ErrPrivilegesViolation},
			{"read only", sink, at(read, 0, 8), 0, ErrPrivilegesViolation},
			{"unknown flag", all, at(x.lmr, 0, 8), 0x40, ErrInvalidParameter},
			{"unsignalled", all, at(x.lmr, 0, 8), CompletionUnsignalled, ErrInvalidParameter},
			{"suppressed receive", sink[:1], at(x.lmr, 0, 8), CompletionSuppress, ErrInvalidParameter},
			{"fenced receive", sink[:1], at(x.lmr, 0, 8), CompletionBarrierFence, ErrInvalidParameter},
			{"solicited RDMA", []string{"write", "read"}, at(x.lmr, 0, 8), CompletionSolicitedWait, ErrInvalidParameter},
			{"solicited receive", sink[:1], at(x.lmr, 0, 8), CompletionSolicitedWait, ErrInvalidParameter},
		} {
			for _, name := range tc.calls {
				wants(t, name+": "+tc.name, calls[name](tc.iov, tc.flags), tc.want)
			}
		}
		wants(t, "write into a shorter range", x.PostRDMAWrite(x.seg(0, 65), 1, y.lmr.Remote(0, 64), 0), ErrLengthError)
		wants(t, "read of a longer range", x.PostRDMARead(x.seg(0, 64), 1, y.lmr.Remote(0, 65), 0), ErrLengthError)
		wants(t, "read of 2 GiB", x.PostRDMARead(x.seg(0, 64), 1, RMRTriplet{1, 1, 1 << 31}, 0), ErrLengthError)

		idle := a.point(nil)
		wants(t, "send, unconnected", idle.PostSend(idle.seg(0, 8), 1, 0), ErrInvalidState)
		wants(t, "write, unconnected", idle.PostRDMAWrite(idle.seg(0, 8), 1, y.lmr.Remote(0, 8), 0), ErrInvalidState)
		wants(t, "read, unconnected", idle.PostRDMARead(idle.seg(0, 8), 1, y.lmr.Remote(0, 8), 0), ErrInvalidState)

		if s, recv, request, err := x.Status(); s != EPConnected || !recv || !request || err != nil {
			t.Errorf("after the errors: %v, receives idle %v, requests idle %v, %v", s, recv, request, err)
		}
		x.still()
		y.still()
		ok(t, y.PostRecv(y.seg(0, 64), 1, 0))
		ok(t, x.PostSend(at(write, 0, 64), 1, 0)) // a send is allowed from a region with any local privilege
		x.done(x.request, 1, DTOSend, DTOSuccess, 64)
		y.done(y.recv, 1, DTOReceive, DTOSuccess, 64)
		proves(x, y)
	})
}

func TestFullQueues(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		attr := DefaultEPAttr()
		attr.MaxRequestDTOs, attr.MaxRecvDTOs = 5, 3
		x, y := pair(a, b, &attr)
		for i := range uint64(5) { // there are no receives, so the sends stay outstanding
			ok(t, x.PostSend(x.seg(0, 100), i, 0))
		}
		wants(t, "sixth send", x.PostSend(x.seg(0, 100), 5, 0), ErrInsufficientResources)
		wants(t, "sixth request", x.PostRDMARead(x.seg(0, 8), 5, y.lmr.Remote(0, 8), 0), ErrInsufficientResources)
		for i := range uint64(3) {
			ok(t, y.PostRecv(y.seg(int(i)*100, 100), i, 0))
		}
		for i := range uint64(5) {
			x.done(x.request, i, DTOSend, DTOSuccess, 100)
			y.done(y.recv, i, DTOReceive, DTOSuccess, 100)
			if i < 2 {
				ok(t, y.PostRecv(y.seg(0, 100), i+3, 0))
			}
		}
		for i := range uint64(3) {
			ok(t, x.PostRecv(x.seg(0, 8), i, 0))
		}
		wants(t, "fourth receive", x.PostRecv(x.seg(0, 8), 3, 0), ErrInsufficientResources)
		x.still()
		y.still()
		for i := range uint64(3) {
			ok(t, y.PostSend(y.seg(0, 8), i, 0))
			x.done(x.recv, i, DTOReceive, DTOSuccess, 8)
			y.done(y.request, i, DTOSend, DTOSuccess, 8)
		}
		proves(x, y)
	})
}

// Reads beyond the maximum number of outstanding reads wait until earlier reads complete.
func TestManyReads(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		attr := DefaultEPAttr()
		attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = 1, 16
		x, y := pair(a, b, &attr)
		fillRandom(y.mem, 4)
		for i := range 100 {
			ok(t, x.PostRDMARead(x.seg(i*600, 600), uint64(i), y.lmr.Remote(i*600, 600), 0))
		}
		for i := range 100 {
			x.done(x.request, uint64(i), DTORDMARead, DTOSuccess, 600)
		}
		same(t, x.mem[:60000], y.mem[:60000])
	})
}

// A read returns an error if the endpoints allow no reads, and other operations continue.
func TestReadsNotAllowed(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		for _, tc := range []struct{ in, out int }{{0, 4}, {4, 0}} {
			attr := DefaultEPAttr()
			attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = tc.in, tc.out
			x, y := pair(a, b, &attr)
			wants(t, "read", x.PostRDMARead(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 0), ErrInvalidParameter)
			ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, y.lmr.Remote(0, 8), 0))
			x.done(x.request, 2, DTORDMAWrite, DTOSuccess, 8)
		}
	})
}

// TestReceiverNotReady: if the peer has no receive, a send waits. When the peer posts a receive, the send completes. If
// the send waits longer than the limit NotReady, the connection breaks.
func TestReceiverNotReady(t *testing.T) {
	eachLink(t, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{Limits: Limits{NotReady: 300 * time.Millisecond}})
		u, v := pair(a, b, nil)
		x, y := pair(a, b, nil)
		ok(t, x.PostSend(x.seg(0, 8), 1, 0))
		time.Sleep(100 * time.Millisecond) // the receive is posted late
		ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
		y.done(y.recv, 2, DTOReceive, DTOSuccess, 8)
		x.done(x.request, 1, DTOSend, DTOSuccess, 8)

		asleep(t, a)
		start := time.Now()
		ok(t, x.PostSend(x.seg(0, 8), 3, 0))
		x.done(x.request, 3, DTOSend, DTOReceiverNotReady, 0)
		x.expect(EventBroken)
		if d := time.Since(start); d < 300*time.Millisecond || d > 2*time.Second {
			t.Errorf("broke after %v, want 300 ms", d)
		}
		var ev Event // the specification allows both events on the idle side
		if _, err := y.connect.Wait(patience, 1, &ev); err != nil || ev.Number != EventBroken && ev.Number != EventDisconnected {
			t.Errorf("peer: %v, %v", ev.Number, err)
		}
		proves(u, v)
	})
}
