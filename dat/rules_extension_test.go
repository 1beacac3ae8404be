package dat

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
)

// extension is one of the posts of the InfiniBand extensions.
type extension struct {
	dto  DTO
	ext  ExtType
	post func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error
}

var (
	writeImm = extension{DTORDMAWriteImm, ExtRDMAWriteImm,
		func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error {
			return x.PostRDMAWriteImm([]LMRTriplet{local}, cookie, to, 0xcafe, f)
		}}
	fetchAdd = extension{DTOFetchAdd, ExtFetchAdd,
		func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error {
			return x.PostFetchAdd(1, local, cookie, to, f)
		}}
	cmpSwap = extension{DTOCmpSwap, ExtCmpSwap,
		func(x *point, local LMRTriplet, cookie uint64, to RMRTriplet, f CompletionFlags) error {
			return x.PostCmpSwap(0, 1, local, cookie, to, f)
		}}
)

// easy posts an operation of 8 bytes on memory of the peer that fits it.
func (e extension) easy(x *point, cookie uint64, to *word, f CompletionFlags) error {
	return e.post(x, x.lmr.Segment(0, 8), cookie, to.at(), f)
}

// word is an aligned 64-bit word, and as much beside it, for peers' atomics.
type word struct {
	host *host
	mem  []byte
	lmr  *LMR
}

func (h *host) word(priv MemPriv) *word {
	h.t.Helper()
	mem := make([]byte, 24)
	return &word{h, mem, must(h.ia.CreateLMR(mem, h.pz, priv))(h.t)}
}

const allOfMemory = MemAll | MemRemoteAtomic

func (w *word) at() RMRTriplet     { return w.lmr.Remote(8, 8) }
func number(p *point, off int) any { return binary.NativeEndian.Uint64(p.mem[off:]) }

// value is the word, ordered before what peers do with it next.
func (w *word) value() uint64 {
	defer w.host.ia.a.barrier()
	return binary.NativeEndian.Uint64(w.mem[8:])
}

// set stores a value, ordered as value is.
func (w *word) set(v uint64) {
	binary.NativeEndian.PutUint64(w.mem[8:], v)
	w.host.ia.a.barrier()
}

// extended awaits the completion of an extended operation and compares what it says.
func (p *point) extended(e *EVD, cookie uint64, x extension, want DTOStatus, length int) Event {
	t := p.host.t
	t.Helper()
	ev := await(t, e, EventIBDTO)
	if ev.Cookie != cookie || ev.Op != x.dto || ev.Ext != x.ext || ev.Status != want || ev.EP != p.EP || ev.EVD != e {
		t.Errorf("completion: got %d, operation %d, kind %d, %v, want %d, operation %d, kind %d, %v",
			ev.Cookie, ev.Op, ev.Ext, ev.Status, cookie, x.dto, x.ext, want)
	}
	if want == DTOSuccess && ev.Length != uint64(length) {
		t.Errorf("completion %d: %d bytes, want %d", cookie, ev.Length, length)
	}
	p.letGo()
	if p.peer != nil {
		p.peer.letGo()
	}
	return ev
}

// received awaits the completion of a receive that a write with immediate data has consumed.
func (p *point) received(cookie uint64, imm uint32, length int) {
	p.host.t.Helper()
	ev := p.extended(p.recv, cookie, extension{dto: DTOReceiveImm, ext: ExtRDMAWriteImmData}, DTOSuccess, length)
	if ev.Imm != imm {
		p.host.t.Errorf("immediate data: got %#x, want %#x", ev.Imm, imm)
	}
}

// equal fails if two values differ.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// broke awaits the end of a connection that a fault breaks, at both sides.
func broke(x, y *point) {
	x.host.t.Helper()
	x.expect(EventBroken)
	y.expect(EventBroken)
	equal(x.host.t, "state here", x.State(), EPDisconnected)
	equal(x.host.t, "state at the peer", y.State(), EPDisconnected)
}

// refused is a rule that a post is refused at once, and nothing is queued: the connection works on.
func (e extension) refused(name string, want error, post func(t *testing.T, x *point, w *word) error) rule {
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

// denied is a rule that an operation on the peer's memory fails there: REMOTE_ACCESS, the connection
// is broken at both ends, nothing is touched.
func (e extension) denied(name string, priv MemPriv, aim func(t *testing.T, w *word) RMRTriplet) rule {
	return rule{name, func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		u, v := pair(a, b, nil) // bystanders
		x, y := pair(a, b, nil)
		w := b.word(priv)
		fill(w.mem, 0xaa)
		ok(t, y.PostRecv(y.seg(0, 8), 7, 0))
		ok(t, e.post(x, x.lmr.Segment(0, 8), 1, aim(t, w), CompletionSuppress))
		x.extended(x.request, 1, e, DTORemoteAccess, 0)
		broke(x, y)
		y.done(y.recv, 7, DTOReceive, DTOFlushed, 0)
		same(t, w.mem, bytes.Repeat([]byte{0xaa}, len(w.mem)))
		x.still()
		y.still()
		proves(u, v)
	}}
}

// postRules are the rules that the three posts have in common.
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
		e.refused("an LMR context that is none is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation,
			local(LMRTriplet{Context: 0x12345, Length: 8})),
		e.refused("an LMR that was freed is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation, region(MemAll, own, true)),
		e.refused("an LMR without local privilege is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation,
			region(MemRemoteRead|MemRemoteWrite, own, false)),
		e.refused("an LMR of another zone is DAT_PROTECTION_VIOLATION", ErrProtectionViolation, region(MemAll, other, false)),
		e.refused("the zone is looked at before the privileges", ErrProtectionViolation, region(MemNone, other, false)),
		e.refused("a local range one byte before the LMR is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				l := x.lmr.Segment(0, 8)
				l.Address--
				return e.post(x, l, 1, w.at(), 0)
			}),
		e.refused("a local range one byte beyond the LMR is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				return e.post(x, x.lmr.Segment(pointMem-7, 8), 1, w.at(), 0)
			}),
		e.refused("a local range that wraps is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				return e.post(x, LMRTriplet{Context: x.lmr.Context(), Address: 1<<64 - 4, Length: 8}, 1, w.at(), 0)
			}),
		e.refused("a remote range that is too short is DAT_LENGTH_ERROR", ErrLengthError,
			func(_ *testing.T, x *point, w *word) error {
				return e.post(x, x.lmr.Segment(0, 8), 1, w.lmr.Remote(8, 7), 0)
			}),
		e.refused("a flag that is none is DAT_INVALID_PARAMETER", ErrInvalidParameter, flags(0x40)),
		e.refused("the highest flag is DAT_INVALID_PARAMETER", ErrInvalidParameter, flags(0x80)),
		e.refused("unsignalled is DAT_INVALID_PARAMETER on an endpoint that is not", ErrInvalidParameter, flags(CompletionUnsignalled)),
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
		{"on a disconnected endpoint it succeeds and is flushed at once", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, x.Disconnect(CloseAbrupt))
			x.expect(EventDisconnected)
			y.expect(EventDisconnected)
			w := b.word(allOfMemory)
			ok(t, e.easy(x, 1, w, 0))
			x.extended(x.request, 1, e, DTOFlushed, 0)
			ok(t, e.easy(x, 2, w, CompletionSuppress))
			x.extended(x.request, 2, e, DTOFlushed, 0)
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
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive, and what follows with it
			ok(t, e.easy(x, 2, w, 0))
			wants(t, "third", e.easy(x, 3, w, 0), ErrInsufficientResources)
			ok(t, y.PostRecv(y.seg(0, 8), 4, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 5, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.extended(x.request, 2, e, DTOSuccess, 8)
			x.still()
		}},
		{"the cookie comes back bit by bit", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			for _, c := range []uint64{0, 1, 1 << 63, 0x0123456789abcdef, 1<<64 - 1} {
				ok(t, y.PostRecv(nil, 1, 0))
				ok(t, e.easy(x, c, w, 0))
				x.extended(x.request, c, e, DTOSuccess, 8)
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
		{"completions come in posting order with those of other requests", func(t *testing.T, n network) {
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
				x.extended(x.request, i+1, e, DTOSuccess, 8)
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
				x.extended(x.request, uint64(2*i+1), e, DTOSuccess, 8)
				equal(t, "what the read brought", number(x, 64), any(uint64(0)))
				equal(t, "the word is changed", w.value() != 0, true)
			}
		}},
		{"what is outstanding when the connection ends is flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive
			ok(t, e.easy(x, 2, w, CompletionSuppress))
			ok(t, y.Disconnect(CloseAbrupt))
			x.done(x.request, 1, DTOSend, DTOFlushed, 0)
			x.extended(x.request, 2, e, DTOFlushed, 0)
			x.expect(EventDisconnected)
			equal(t, "word", w.value(), 0)
		}},
		{"what comes after one that failed is flushed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			bad := y.lmr.Remote(0, 8)
			bad.Context ^= 1 << 9
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive, so that all are posted in time
			ok(t, x.PostRDMAWrite(x.seg(0, 8), 2, bad, 0))
			ok(t, e.easy(x, 3, w, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 4, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 5, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.done(x.request, 2, DTORDMAWrite, DTORemoteAccess, 0)
			x.extended(x.request, 3, e, DTOFlushed, 0)
			broke(x, y)
			equal(t, "word", w.value(), 0)
		}},
		{"an endpoint without a request dispatcher can post it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := a.point(nil), b.point(nil)
			ok(t, x.EP.Free())
			x.EP = must(a.ia.CreateEP(a.pz, x.recv, nil, x.connect, nil))(t)
			join(x, y)
			w := b.word(allOfMemory)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, y.PostRecv(nil, 2, 0))
			ok(t, e.easy(x, 1, w, 0))
			ok(t, x.PostSend(nil, 2, 0))
			await(t, y.recv, map[bool]EventNumber{true: EventIBDTO, false: EventDTOCompletion}[e.dto == DTORDMAWriteImm])
			x.still()
		}},
		e.denied("a remote context that is none is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Context ^= 1 << 9 })),
		e.denied("remote context 0 is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Context = 0 })),
		e.denied("a remote context of a freed LMR is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, func(t *testing.T, w *word) RMRTriplet {
			to := w.at()
			ok(t, w.lmr.Free())
			return to
		}),
		e.denied("a remote range before the LMR is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Address -= 16 })),
		e.denied("a remote range over the end is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Address += 12 })),
		e.denied("a remote range that wraps is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory, remotely(func(r *RMRTriplet) { r.Address = 1<<64 - 8 })),
		e.denied("an LMR without remote write is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory&^MemRemoteWrite, remotely(func(*RMRTriplet) {})),
		{"an LMR of a zone that is not the peer endpoint's is DAT_DTO_ERR_REMOTE_ACCESS", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			mem := make([]byte, 8)
			l := must(b.ia.CreateLMR(mem, must(b.ia.CreatePZ())(t), allOfMemory))(t)
			ok(t, y.PostRecv(nil, 7, 0))
			ok(t, e.post(x, x.lmr.Segment(0, 8), 1, l.Remote(0, 8), 0))
			x.extended(x.request, 1, e, DTORemoteAccess, 0)
			broke(x, y)
			same(t, mem, make([]byte, 8))
		}},
	}
}

// atomicRules are the rules that the two atomics have in common.
func (e extension) atomicRules() []rule {
	return []rule{
		e.refused("solicited is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error { return e.easy(x, 1, w, CompletionSolicitedWait) }),
		e.refused("a local range shorter than 8 bytes is DAT_LENGTH_ERROR", ErrLengthError,
			func(_ *testing.T, x *point, w *word) error { return e.post(x, x.lmr.Segment(0, 7), 1, w.at(), 0) }),
		e.refused("an empty local range is DAT_LENGTH_ERROR", ErrLengthError,
			func(_ *testing.T, x *point, w *word) error { return e.post(x, LMRTriplet{}, 1, w.at(), 0) }),
		e.refused("an LMR without local write is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation,
			func(t *testing.T, x *point, w *word) error {
				l := must(x.host.ia.CreateLMR(make([]byte, 8), x.host.pz, MemAll&^MemLocalWrite))(t)
				return e.post(x, l.Segment(0, 8), 1, w.at(), 0)
			}),
		e.denied("without remote atomic it is DAT_DTO_ERR_REMOTE_ACCESS", MemAll, func(_ *testing.T, w *word) RMRTriplet { return w.at() }),
		e.denied("without remote read it is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory&^MemRemoteRead,
			func(_ *testing.T, w *word) RMRTriplet { return w.at() }),
		e.denied("remote atomic alone is DAT_DTO_ERR_REMOTE_ACCESS", MemRemoteAtomic, func(_ *testing.T, w *word) RMRTriplet { return w.at() }),
		e.denied("a word that is not aligned to 8 bytes is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory,
			func(_ *testing.T, w *word) RMRTriplet { return w.lmr.Remote(4, 8) }),
		e.denied("nor is one byte off", allOfMemory, func(_ *testing.T, w *word) RMRTriplet { return w.lmr.Remote(9, 8) }),
		{"MaxRDMAReadOut 0 is DAT_INVALID_PARAMETER", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMAReadOut = 0
			x, y := a.point(&attr), b.point(nil)
			join(x, y)
			wants(t, "post", e.easy(x, 1, b.word(allOfMemory), 0), ErrInvalidParameter)
			ok(t, e.easy(y, 2, a.word(allOfMemory), 0)) // the other way round
			y.extended(y.request, 2, e, DTOSuccess, 8)
			x.still()
		}},
		{"MaxRDMAReadIn 0 at the peer is DAT_INVALID_PARAMETER", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMAReadIn = 0
			x, y := a.point(nil), b.point(&attr)
			join(x, y)
			wants(t, "post", e.easy(x, 1, b.word(allOfMemory), 0), ErrInvalidParameter)
			x.still()
		}},
		{"more than the peer serves at a time wait their turn", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = 1, 1
			x, y := pair(a, b, &attr)
			w := b.word(allOfMemory)
			for i := range uint64(20) {
				ok(t, e.easy(x, 2*i, w, 0))
				ok(t, x.PostRDMARead(x.seg(64, 8), 2*i+1, y.lmr.Remote(0, 8), 0))
			}
			for i := range uint64(20) {
				x.extended(x.request, 2*i, e, DTOSuccess, 8)
				x.done(x.request, 2*i+1, DTORDMARead, DTOSuccess, 8)
			}
		}},
		{"MaxRDMASize does not bound it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMASize = 4
			x, _ := pair(a, b, &attr)
			ok(t, e.easy(x, 1, b.word(allOfMemory), 0))
			x.extended(x.request, 1, e, DTOSuccess, 8)
		}},
		{"it stores 8 bytes and touches nothing beside them, wherever they are", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			fill(w.mem, 0xaa)
			for off := 8; off < 17; off++ {
				fill(x.mem[:64], 0x55)
				was := w.value()
				ok(t, e.post(x, x.lmr.Segment(off, 24), 1, w.lmr.Remote(8, 16), 0))
				x.extended(x.request, 1, e, DTOSuccess, 8)
				equal(t, "old value", number(x, off), any(was))
				same(t, x.mem[:off], bytes.Repeat([]byte{0x55}, off))
				same(t, x.mem[off+8:64], bytes.Repeat([]byte{0x55}, 56-off))
			}
			same(t, slices.Concat(w.mem[:8], w.mem[16:]), bytes.Repeat([]byte{0xaa}, 16))
		}},
		{"the peer gets no event and no receive is consumed", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.PostRecv(y.seg(0, 8), 5, 0))
			ok(t, e.easy(x, 1, b.word(allOfMemory), 0))
			x.extended(x.request, 1, e, DTOSuccess, 8)
			y.still()
			ok(t, x.PostSend(x.seg(0, 8), 2, 0))
			y.done(y.recv, 5, DTOReceive, DTOSuccess, 8)
		}},
		{"it sees the writes that were posted before it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			for v := range uint64(10) {
				binary.NativeEndian.PutUint64(x.mem, v<<56|v)
				ok(t, x.PostRDMAWrite(x.seg(0, 8), 1, w.at(), CompletionSuppress))
				ok(t, e.post(x, x.lmr.Segment(64, 8), 2, w.at(), 0))
				x.extended(x.request, 2, e, DTOSuccess, 8)
				equal(t, "old value", number(x, 64), any(v<<56|v))
			}
		}},
		{"a message after it arrives after it was done", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, e.easy(x, 2, w, CompletionSuppress))
			ok(t, x.PostSend(nil, 3, 0))
			y.done(y.recv, 1, DTOReceive, DTOSuccess, 0)
			equal(t, "word", w.value(), 1)
			x.done(x.request, 3, DTOSend, DTOSuccess, 0)
		}},
		{"memory that is freed before the answer comes is DAT_DTO_ERR_LOCAL_PROTECTION", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			mem := make([]byte, 8)
			l := must(a.ia.CreateLMR(mem, a.pz, MemAll))(t)
			ok(t, x.PostSend(x.seg(0, 8), 1, 0)) // waits for a receive
			ok(t, e.post(x, l.Segment(0, 8), 2, w.at(), 0))
			ok(t, l.Free())
			ok(t, y.PostRecv(y.seg(0, 8), 3, 0))
			x.done(x.request, 1, DTOSend, DTOSuccess, 8)
			x.extended(x.request, 2, e, DTOLocalProtection, 0)
			broke(x, y)
			same(t, mem, make([]byte, 8))
		}},
	}
}

var extensionRules = []topic{
	{"dat_ib_post_rdma_write_immed", slices.Concat(writeImm.postRules(), []rule{
		{"it writes, consumes a receive and delivers the immediate data", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			fillRandom(x.mem[:1000], 1)
			fill(y.mem[:64], 0xaa)
			ok(t, y.PostRecv(y.seg(0, 64), 4, 0))
			ok(t, x.PostRDMAWriteImm(x.seg(0, 1000), 0x9999, y.lmr.Remote(4096, 1000), 0x7777, 0))
			x.extended(x.request, 0x9999, writeImm, DTOSuccess, 1000)
			y.received(4, 0x7777, 1000)
			same(t, y.mem[4096:5096], x.mem[:1000])
			same(t, y.mem[:64], bytes.Repeat([]byte{0xaa}, 64))
			x.still()
			y.still()
		}},
		{"the immediate data is delivered bit by bit", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			for i, imm := range []uint32{0, 1, 0x01020304, 1 << 31, 1<<32 - 1} {
				ok(t, y.PostRecv(nil, uint64(i), 0))
				ok(t, x.PostRDMAWriteImm(x.seg(0, 8), 9, y.lmr.Remote(0, 8), imm, CompletionSuppress))
				y.received(uint64(i), imm, 8)
			}
		}},
		{"no bytes are legal, and need no memory at the peer", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.PostRecv(y.seg(0, 8), 1, 0))
			ok(t, y.PostRecv(y.seg(0, 8), 2, 0))
			ok(t, x.PostRDMAWriteImm(nil, 3, RMRTriplet{}, 5, 0))
			ok(t, x.PostRDMAWriteImm([]LMRTriplet{{Context: 0x12345}}, 4, RMRTriplet{Context: 0x12345}, 6, 0))
			x.extended(x.request, 3, writeImm, DTOSuccess, 0)
			x.extended(x.request, 4, writeImm, DTOSuccess, 0)
			y.received(1, 5, 0)
			y.received(2, 6, 0)
		}},
		{"the receive may be smaller than the write", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			fillRandom(x.mem, 2)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostRDMAWriteImm(x.seg(0, pointMem), 2, y.lmr.Remote(0, pointMem), 5, 0))
			x.extended(x.request, 2, writeImm, DTOSuccess, pointMem)
			y.received(1, 5, pointMem)
			same(t, y.mem, x.mem)
		}},
		{"segments are written in order, and empty ones ignored", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			fillRandom(x.mem[:100], 3)
			ok(t, y.PostRecv(nil, 1, 0))
			iov := []LMRTriplet{x.lmr.Segment(50, 10), {Context: 0x12345}, x.lmr.Segment(0, 1), x.lmr.Segment(90, 10)}
			ok(t, x.PostRDMAWriteImm(iov, 2, y.lmr.Remote(0, 21), 5, 0))
			y.received(1, 5, 21)
			same(t, y.mem[:21], slices.Concat(x.mem[50:60], x.mem[:1], x.mem[90:100]))
		}},
		{"a write shorter than the remote range writes that many bytes", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			fill(x.mem[:8], 1)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostRDMAWriteImm(x.seg(0, 8), 2, y.lmr.Remote(0, 100), 5, 0))
			y.received(1, 5, 8)
			same(t, y.mem[:100], append(bytes.Repeat([]byte{1}, 8), make([]byte, 92)...))
		}},
		{"it takes its turn among messages: each takes the next receive", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			for i := range 20 {
				x.mem[i] = byte(i)
				ok(t, y.PostRecv(y.seg(100+i, 1), uint64(i), 0))
			}
			for i := range 20 {
				if i%3 == 0 {
					ok(t, x.PostSend(x.seg(i, 1), 1, CompletionSuppress))
				} else {
					ok(t, x.PostRDMAWriteImm(x.seg(i, 1), 1, y.lmr.Remote(200+i, 1), uint32(i), CompletionSuppress))
				}
			}
			for i := range 20 {
				if i%3 == 0 {
					y.done(y.recv, uint64(i), DTOReceive, DTOSuccess, 1)
				} else {
					y.received(uint64(i), uint32(i), 1)
				}
			}
		}},
		{"the data of earlier writes is there when its receive completes", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			for round := range 10 {
				fillRandom(x.mem[:30000], uint64(round))
				ok(t, y.PostRecv(nil, 1, 0))
				ok(t, x.PostRDMAWrite(x.seg(0, 20000), 2, y.lmr.Remote(0, 20000), CompletionSuppress))
				ok(t, x.PostRDMAWriteImm(x.seg(20000, 10000), 3, y.lmr.Remote(20000, 10000), 5, 0))
				y.received(1, 5, 10000)
				same(t, y.mem[:30000], x.mem[:30000])
				x.extended(x.request, 3, writeImm, DTOSuccess, 10000)
			}
		}},
		{"it waits for a receive that is posted late", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, x.PostRDMAWriteImm(x.seg(0, 8), 1, y.lmr.Remote(0, 8), 5, 0))
			x.still()
			y.still()
			ok(t, y.PostRecv(nil, 2, 0))
			y.received(2, 5, 8)
			x.extended(x.request, 1, writeImm, DTOSuccess, 8)
		}},
		{"solicited is legal", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, writeImm.easy(x, 2, b.word(MemAll), CompletionSolicitedWait|CompletionBarrierFence|CompletionSuppress))
			y.received(1, 0xcafe, 8)
		}},
		{"it needs no place of a read", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMAReadIn, attr.MaxRDMAReadOut = 0, 0
			x, y := pair(a, b, &attr)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, writeImm.easy(x, 2, b.word(MemAll), 0))
			y.received(1, 0xcafe, 8)
		}},
		{"MaxRDMASize bounds it, MaxMessageSize does not", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMASize, attr.MaxMessageSize = 100, 10
			x, y := pair(a, b, &attr)
			ok(t, y.PostRecv(nil, 1, 0))
			wants(t, "101 bytes", x.PostRDMAWriteImm(x.seg(0, 101), 2, y.lmr.Remote(0, 101), 5, 0), ErrInvalidParameter)
			ok(t, x.PostRDMAWriteImm(x.seg(0, 100), 3, y.lmr.Remote(0, 100), 5, 0))
			y.received(1, 5, 100)
			x.extended(x.request, 3, writeImm, DTOSuccess, 100)
			x.still()
		}},
		writeImm.refused("more segments than MaxRequestIOV are DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				return x.PostRDMAWriteImm(make([]LMRTriplet, 5), 1, w.at(), 5, 0)
			}),
		writeImm.refused("every segment is checked", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error {
				return x.PostRDMAWriteImm([]LMRTriplet{x.lmr.Segment(0, 1), x.lmr.Segment(pointMem, 1)}, 1, w.at(), 5, 0)
			}),
		{"a receive consumed by a message is no extended one", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, y.PostRecv(nil, 2, 0))
			ok(t, x.PostRDMAWriteImm(nil, 3, RMRTriplet{}, 5, 0))
			ok(t, x.PostSend(nil, 4, 0))
			y.received(1, 5, 0)
			if ev := await(t, y.recv, EventDTOCompletion); ev.Imm != 0 || ev.Ext != 0 || ev.Op != DTOReceive {
				t.Errorf("the message came as %+v", ev)
			}
		}},
		{"a connection of an adapter with itself carries it", func(t *testing.T, n network) {
			_, b := newHosts(t, n, Options{})
			x, y := pair(b, b, nil)
			ok(t, y.PostRecv(nil, 1, 0))
			ok(t, x.PostRDMAWriteImm(x.seg(0, 8), 2, y.lmr.Remote(0, 8), 5, 0))
			y.received(1, 5, 8)
			x.extended(x.request, 2, writeImm, DTOSuccess, 8)
		}},
	})},
	{"dat_ib_post_fetch_and_add", slices.Concat(fetchAdd.postRules(), fetchAdd.atomicRules(), []rule{
		{"it adds, and brings what the word was before", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			w.set(0x10)
			for i, tc := range []struct{ add, sum uint64 }{
				{0x20, 0x30}, {0, 0x30}, {1 << 32, 1<<32 + 0x30}, {^uint64(0), 1<<32 + 0x2f}, {1<<63 - 1, 1<<63 + 1<<32 + 0x2e},
			} {
				was := w.value()
				ok(t, x.PostFetchAdd(tc.add, x.lmr.Segment(8, 8), uint64(i), w.at(), 0))
				x.extended(x.request, uint64(i), fetchAdd, DTOSuccess, 8)
				equal(t, "old value", number(x, 8), any(was))
				equal(t, "sum", w.value(), tc.sum)
			}
			proves(x, y)
		}},
		{"it wraps at 2^64", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			w.set(^uint64(0))
			ok(t, x.PostFetchAdd(3, x.lmr.Segment(8, 8), 1, w.at(), 0))
			x.extended(x.request, 1, fetchAdd, DTOSuccess, 8)
			equal(t, "old value", number(x, 8), any(^uint64(0)))
			equal(t, "sum", w.value(), 2)
		}},
		{"additions of many connections lose nothing, and none brings what another brought", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			const each = 50
			w := b.word(allOfMemory)
			points := []*point{}
			for range 3 {
				x, _ := pair(a, b, nil)
				points = append(points, x)
			}
			for i := range each {
				for _, x := range points {
					ok(t, x.PostFetchAdd(1, x.lmr.Segment(8*i, 8), uint64(i), w.at(), 0))
				}
			}
			seen := map[any]bool{}
			for _, x := range points {
				for i := range each {
					x.extended(x.request, uint64(i), fetchAdd, DTOSuccess, 8)
					seen[number(x, 8*i)] = true
				}
			}
			equal(t, "sum", w.value(), 3*each)
			equal(t, "different old values", len(seen), 3*each)
		}},
		{"it is atomic against sync/atomic in the target's program", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			var target atomic.Uint64
			w := b.wordOf(&target)
			stop, added := make(chan struct{}), make(chan uint64)
			go func() {
				for n := uint64(0); ; n++ {
					select {
					case <-stop:
						added <- n
						return
					default:
						target.Add(1)
					}
				}
			}()
			for i := range uint64(200) {
				ok(t, x.PostFetchAdd(1, x.lmr.Segment(8, 8), i, w, 0))
				x.extended(x.request, i, fetchAdd, DTOSuccess, 8)
			}
			close(stop)
			here := <-added
			equal(t, "sum", target.Load(), 200+here)
			y.still()
		}},
		{"depth is bounded by MaxRequestDTOs alone", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			for i := range uint64(255) {
				ok(t, x.PostFetchAdd(1, x.lmr.Segment(8, 8), i, w.at(), CompletionSuppress))
			}
			ok(t, x.PostFetchAdd(1, x.lmr.Segment(8, 8), 255, w.at(), 0))
			await(t, x.request, EventIBDTO)
			x.peer.letGo()
			equal(t, "sum", w.value(), 256)
		}},
		{"a read fenced behind it sees it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			for i := range uint64(10) {
				ok(t, x.PostFetchAdd(1, x.lmr.Segment(8, 8), i, w.at(), CompletionSuppress))
				ok(t, x.PostRDMARead(x.seg(16, 8), 99, w.at(), CompletionBarrierFence))
				x.done(x.request, 99, DTORDMARead, DTOSuccess, 8)
				equal(t, "what the read brought", number(x, 16), any(i+1))
			}
		}},
	})},
	{"dat_ib_post_cmp_and_swap", slices.Concat(cmpSwap.postRules(), cmpSwap.atomicRules(), []rule{
		{"a word that equals is replaced, another is not; both bring what it was", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, y := pair(a, b, nil)
			w := b.word(allOfMemory)
			for i, tc := range []struct{ was, compare, swap, want uint64 }{
				{0x12345, 0x12345, 0x54321, 0x54321},
				{0x12345, 0x12346, 0x54321, 0x12345},
				{0, 0, 0, 0},
				{0, 0, 1<<64 - 1, 1<<64 - 1},
				{1 << 63, 0, 5, 1 << 63},
				{1 << 63, 1 << 31, 5, 1 << 63},
				{1 << 63, 1 << 63, 5, 5},
				{0x0102030405060708, 0x0807060504030201, 5, 0x0102030405060708},
				{1 << 32, 0, 5, 1 << 32}, // all 64 bits are compared
			} {
				w.set(tc.was)
				ok(t, x.PostCmpSwap(tc.compare, tc.swap, x.lmr.Segment(8, 8), uint64(i), w.at(), 0))
				x.extended(x.request, uint64(i), cmpSwap, DTOSuccess, 8)
				equal(t, "old value", number(x, 8), any(tc.was))
				equal(t, "word", w.value(), tc.want)
			}
			proves(x, y)
		}},
		{"of many who want a lock one gets it", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			w := b.word(allOfMemory)
			points := []*point{}
			for range 4 {
				x, _ := pair(a, b, nil)
				points = append(points, x)
			}
			for range 10 {
				w.set(0)
				for i, x := range points {
					ok(t, x.PostCmpSwap(0, uint64(i+1), x.lmr.Segment(8, 8), 1, w.at(), 0))
				}
				for _, x := range points {
					x.extended(x.request, 1, cmpSwap, DTOSuccess, 8)
				}
				won := 0
				for i, x := range points {
					if number(x, 8) == any(uint64(0)) {
						won++
						equal(t, "owner", w.value(), uint64(i+1))
					}
				}
				equal(t, "winners", won, 1)
			}
		}},
		{"two swaps and two additions in a row are done in posting order", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			ok(t, x.PostCmpSwap(0, 5, x.lmr.Segment(8, 8), 1, w.at(), 0))
			ok(t, x.PostFetchAdd(2, x.lmr.Segment(16, 8), 2, w.at(), 0))
			ok(t, x.PostCmpSwap(7, 9, x.lmr.Segment(24, 8), 3, w.at(), 0))
			ok(t, x.PostFetchAdd(1, x.lmr.Segment(32, 8), 4, w.at(), 0))
			x.extended(x.request, 1, cmpSwap, DTOSuccess, 8)
			x.extended(x.request, 2, fetchAdd, DTOSuccess, 8)
			x.extended(x.request, 3, cmpSwap, DTOSuccess, 8)
			x.extended(x.request, 4, fetchAdd, DTOSuccess, 8)
			for i, want := range []uint64{0, 5, 7, 9} {
				equal(t, "old value", number(x, 8+8*i), any(want))
			}
			equal(t, "word", w.value(), 10)
		}},
		{"its memory may be that of an endpoint of the same adapter", func(t *testing.T, n network) {
			_, b := newHosts(t, n, Options{})
			x, _ := pair(b, b, nil)
			w := b.word(allOfMemory)
			ok(t, x.PostCmpSwap(0, 5, x.lmr.Segment(8, 8), 1, w.at(), 0))
			x.extended(x.request, 1, cmpSwap, DTOSuccess, 8)
			equal(t, "word", w.value(), 5)
		}},
		{"remote atomic is a privilege of its own: DAT_MEM_PRIV_ALL does not have it", func(t *testing.T, n network) {
			h := newHost(t, n, 0, Options{})
			equal(t, "value", MemRemoteAtomic, 0x40)
			equal(t, "part of MemAll", MemAll&MemRemoteAtomic, 0)
			if l := h.word(MemRemoteAtomic).lmr; l.RMRContext() == 0 {
				t.Error("an LMR with remote atomic has no RMR context")
			}
			_, err := h.ia.CreateLMR(make([]byte, 8), h.pz, 0x80)
			wants(t, "a privilege that is none", err, ErrInvalidParameter)
		}},
	})},
}
