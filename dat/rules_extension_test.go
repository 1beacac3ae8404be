package dat

import (
	"bytes"
	"testing"
)

// postErrorRule returns a rule: a post returns an error, queues nothing, and leaves the connection usable.
func (e extension) postErrorRule(name string, want error, post func(t *testing.T, x *point, w *word) error) rule {
	return rule{name, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		w := b.word(allOfMemory)
		wants(t, "post", post(t, x, w), want)
		x.still()
		y.still()
		_, recv, request, err := x.Status()
		equal(t, "idle", recv && request && err == nil, true)
		equal(t, "word", w.value(), 0)
		proves(x, y)
	}}
}

// refusedAccessRule returns a rule: the peer refuses the operation on the range that remoteRange returns. Then the
// operation completes with DTORemoteAccess, the connection breaks at both sides, and no memory changes.
func (e extension) refusedAccessRule(name string, priv MemPriv, remoteRange func(t *testing.T, w *word) RMRTriplet) rule {
	return rule{name, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil) // a connection that must not be affected
		x, y := pair(a, b, nil)
		w := b.word(priv)
		fill(w.mem, 0xaa)
		ok(t, y.PostRecv(y.seg(0, 8), 7, 0))
		ok(t, e.post(x, x.lmr.Segment(0, 8), 1, remoteRange(t, w), CompletionSuppress))
		x.awaitExtended(x.request, 1, e, DTORemoteAccess, 0)
		broke(x, y)
		y.done(y.recv, 7, DTOReceive, DTOFlushed, 0)
		same(t, w.mem, bytes.Repeat([]byte{0xaa}, len(w.mem)))
		x.still()
		y.still()
		proves(u, v)
	}}
}

// postRules returns the rules that the three posts have in common.
func (e extension) postRules() []rule {
	local := func(l LMRTriplet) func(*testing.T, *point, *word) error {
		return func(_ *testing.T, x *point, w *word) error { return e.post(x, l, 1, w.at(), 0) }
	}
	region := func(priv MemPriv, zone func(*point) *PZ, free bool) func(*testing.T, *point, *word) error {
		return func(t *testing.T, x *point, w *word) error {
			l := must(x.host.ia.CreateLMR(make([]byte, 8), zone(x), priv))(t)
			if free {
				ok(t, l.Free())
			}
			return e.post(x, l.Segment(0, 8), 1, w.at(), 0)
		}
	}
	own := func(x *point) *PZ { return x.host.pz }
	other := func(x *point) *PZ { return must(x.host.ia.CreatePZ())(x.host.t) }
	flags := func(f CompletionFlags) func(*testing.T, *point, *word) error {
		return func(_ *testing.T, x *point, w *word) error { return e.easy(x, 1, w, f) }
	}
	remotely := func(change func(r *RMRTriplet)) func(*testing.T, *word) RMRTriplet {
		return func(_ *testing.T, w *word) RMRTriplet {
			to := w.at()
			change(&to)
			return to
		}
	}
	return []rule{
		e.postErrorRule("an LMR context that is none is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation,
			local(LMRTriplet{Context: 0x12345, Length: 8})),
		e.postErrorRule("an LMR that was freed is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation, region(MemAll, own, true)),
		e.postErrorRule("an LMR without local privilege is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation,
			region(MemRemoteRead|MemRemoteWrite, own, false)),
		e.postErrorRule("an LMR of another zone is DAT_PROTECTION_VIOLATION", ErrProtectionViolation, region(MemAll, other, false)),
		e.postErrorRule("the zone is looked at before the privileges", ErrProtectionViolation, region(MemNone, other, false)),
		e.postErrorRule("a local range one byte before the LMR is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				l := x.lmr.Segment(0, 8)
				l.Address--
				return e.post(x, l, 1, w.at(), 0)
			}),
		e.postErrorRule("a local range one byte beyond the LMR is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				return e.post(x, x.lmr.Segment(pointMem-7, 8), 1, w.at(), 0)
			}),
		e.postErrorRule("a local range that wraps is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				return e.post(x, LMRTriplet{Context: x.lmr.Context(), Address: 1<<64 - 4, Length: 8}, 1, w.at(), 0)
			}),
		e.postErrorRule("a remote range that is too short is DAT_LENGTH_ERROR", ErrLengthError,
			func(_ *testing.T, x *point, w *word) error {
				return e.post(x, x.lmr.Segment(0, 8), 1, w.lmr.Remote(8, 7), 0)
			}),
		e.postErrorRule("a flag that is none is DAT_INVALID_PARAMETER", ErrInvalidParameter, flags(0x40)),
		e.postErrorRule("the highest flag is DAT_INVALID_PARAMETER", ErrInvalidParameter, flags(0x80)),
		e.postErrorRule("unsignalled is DAT_INVALID_PARAMETER on an endpoint that is not", ErrInvalidParameter, flags(CompletionUnsignalled)),
		{"an endpoint that was freed is DAT_INVALID_HANDLE", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			ok(t, x.Free())
			wants(t, "good parameters", e.easy(x, 1, w, 0), ErrInvalidHandle)
			wants(t, "bad parameters", e.post(x, LMRTriplet{Length: 8}, 1, w.at(), 0xff), ErrInvalidHandle)
			wants(t, "nil", e.easy(&point{lmr: x.lmr}, 1, w, 0), ErrInvalidHandle)
		}},
		{"an unconnected endpoint is DAT_INVALID_STATE, after the parameters", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, w := a.point(nil), b.word(allOfMemory)
			wants(t, "good parameters", e.easy(x, 1, w, 0), ErrInvalidState)
			wants(t, "bad flags", e.easy(x, 1, w, 0x40), ErrInvalidParameter)
			wants(t, "bad context", e.post(x, LMRTriplet{Length: 8}, 1, w.at(), 0), ErrPrivilegesViolation)
			x.still()
		}},
		{"an endpoint that is connecting is DAT_INVALID_STATE", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, w := a.point(nil), b.word(allOfMemory)
			x.dial(b, nil)
			wants(t, "post", e.easy(x, 1, w, 0), ErrInvalidState)
			b.request(t)
			wants(t, "post, asked", e.easy(x, 1, w, 0), ErrInvalidState)
		}},
		{"an endpoint that disconnects gracefully is DAT_INVALID_STATE", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive
			ok(t, x.Disconnect(CloseGraceful))
			equal(t, "state", x.State(), EPDisconnectPending)
			wants(t, "post", e.easy(x, 2, b.word(allOfMemory), 0), ErrInvalidState)
			ok(t, y.PostRecv(y.seg(0, 8), 3, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
		}},
		{"on a disconnected endpoint it succeeds and completes immediately as flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			y.expect(EventDisconnected)
			w := b.word(allOfMemory)
			ok(t, e.easy(x, 1, w, 0))
			x.awaitExtended(x.request, 1, e, DTOFlushed, 0)
			ok(t, e.easy(x, 2, w, CompletionSuppress))
			x.awaitExtended(x.request, 2, e, DTOFlushed, 0)
			wants(t, "bad flags", e.easy(x, 3, w, 0x40), ErrInvalidParameter)
			x.still()
		}},
		{"after a reset it is DAT_INVALID_STATE again", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			ok(t, x.Reset())
			wants(t, "post", e.easy(x, 1, b.word(allOfMemory), 0), ErrInvalidState)
		}},
		{"one more than MaxRequestDTOs is DAT_INSUFFICIENT_RESOURCES", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRequestDTOs = 2
			x, y := pair(a, b, &attr)
			w := b.word(allOfMemory)
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive, and so do the following requests
			ok(t, e.easy(x, 2, w, 0))
			wants(t, "third", e.easy(x, 3, w, 0), ErrInsufficientResources)
			ok(t, y.PostRecv(y.seg(0, 8), 4, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 5, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.awaitExtended(x.request, 2, e, DTOSuccess, 8)
			x.still()
		}},
		{"the completion returns all bits of the cookie", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			for _, c := range []uint64{0, 1, 1 << 63, 0x0123456789abcdef, 1<<64 - 1} {
				ok(t, y.PostRecv(nil, 1, 0))
				ok(t, e.easy(x, c, w, 0))
				x.awaitExtended(x.request, c, e, DTOSuccess, 8)
			}
		}},
		{"suppressed, success makes no event", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, e.easy(x, 1, w, CompletionSuppress))
			ok(t, x.PostRDMARead(x.seg(64, 8), 2, y.lmr.Remote(0, 8), 0))
			x.done(x.request, 2, DTORDMARead, DTOSuccess, 8)
			x.still()
		}},
		{"completions arrive in posting order with completions of other requests", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			for range 6 {
				ok(t, y.PostRecv(y.seg(0, 8), 9, 0))
			}
			for i := uint64(0); i < 12; i += 4 {
				ok(t, x.PostRDMARead(x.seg(64, 2000), i, y.lmr.Remote(0, 2000), 0))
				ok(t, e.easy(x, i+1, w, 0))
				ok(t, x.PostSend(x.seg(0, 8), i+2, 0))
				ok(t, x.PostRDMAWrite(x.seg(0, 8), i+3, y.lmr.Remote(0, 8), 0))
			}
			for i := uint64(0); i < 12; i += 4 {
				x.done(x.request, i, DTORDMARead, DTOSuccess, 2000)
				x.awaitExtended(x.request, i+1, e, DTOSuccess, 8)
				x.done(x.request, i+2, DTOSend, DTOSuccess, 8)
				x.done(x.request, i+3, DTORDMAWrite, DTOSuccess, 8)
			}
		}},
		{"fenced, it is done after earlier reads", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			copy(x.mem, "\x01\x01\x01\x01\x01\x01\x01\x01")
			for i := range 8 {
				ok(t, y.PostRecv(nil, 1, 0))
				w.set(0)
				ok(t, x.PostRDMARead(x.seg(64, 8), uint64(2*i), w.at(), 0))
				ok(t, e.easy(x, uint64(2*i+1), w, CompletionBarrierFence))
				x.done(x.request, uint64(2*i), DTORDMARead, DTOSuccess, 8)
				x.awaitExtended(x.request, uint64(2*i+1), e, DTOSuccess, 8)
				equal(t, "what the read brought", number(x, 64), any(uint64(0)))
				equal(t, "the word is changed", w.value() != 0, true)
			}
		}},
		{"operations outstanding at the end of the connection are flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive
			ok(t, e.easy(x, 2, w, CompletionSuppress))
			ok(t, y.Disconnect(CloseAbrupt))
			x.done(x.request, 1, DTOSend, DTOFlushed, 0)
			x.awaitExtended(x.request, 2, e, DTOFlushed, 0)
			x.expect(EventDisconnected)
			equal(t, "word", w.value(), 0)
		}},
		{"operations after a failed operation are flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			bad := y.lmr.Remote(0, 8)
			bad.Context ^= 1 << 9
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive, so that all requests are posted before it completes
			ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, bad, 0))
			ok(t, e.easy(x, 3, w, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 4, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 5, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0)
			x.awaitExtended(x.request, 3, e, DTOFlushed, 0)
			broke(x, y)
			equal(t, "word", w.value(), 0)
		}},
		{"an endpoint without a request dispatcher can post it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			ok(t, x.EP.Free())
			x.EP = must(a.ia.CreateEP(a.pz, EPConfig{RecvEVD: x.recv, ConnectEVD: x.connect}))(t)
			join(x, y)
			w := b.word(allOfMemory)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, y.PostRecv(nil, 2, 0))
			ok(t, e.easy(x, 1, w, 0))
			ok(t, x.PostSend(nil, 2, 0))
			await(t, y.recv, map[bool]EventNumber{true: EventIBDTO, false: EventDTOCompletion}[e.dto == DTORDMAWriteImm])
			x.still()
		}},
		e.refusedAccessRule("a remote context that is none is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Context ^= 1 << 9 })),
		e.refusedAccessRule("remote context 0 is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Context = 0 })),
		e.refusedAccessRule("a remote context of a freed LMR is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, func(t *testing.T, w *word) RMRTriplet {
			to := w.at()
			ok(t, w.lmr.Free())
			return to
		}),
		e.refusedAccessRule("a remote range before the LMR is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Address -= 16 })),
		e.refusedAccessRule("a remote range over the end is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Address += 12 })),
		e.refusedAccessRule("a remote range that wraps is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Address = 1<<64 - 8 })),
		e.refusedAccessRule("an LMR without remote write is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory&^MemRemoteWrite, remotely(func(*RMRTriplet) {})),
		{"an LMR of a zone that is not the peer endpoint's is DAT_DTO_ERR_REMOTE_ACCESS", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			mem := make([]byte, 8)
			l := must(b.ia.CreateLMR(mem, must(b.ia.CreatePZ())(t), allOfMemory))(t)
			ok(t, y.PostRecv(nil, 7, 0))
			ok(t, e.post(x, x.lmr.Segment(0, 8), 1, l.Remote(0, 8), 0))
			x.awaitExtended(x.request, 1, e, DTORemoteAccess, 0)
			broke(x, y)
			same(t, mem, make([]byte, 8))
		}},
	}
}

var extensionRules = []topic{
	{"dat_ib_post_rdma_write_immed", postRDMAWriteImmRules},
	{"dat_ib_post_fetch_and_add", postFetchAndAddRules},
	{"dat_ib_post_cmp_and_swap", postCmpAndSwapRules},
}
