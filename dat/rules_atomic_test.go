package dat

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
)

// atomicRules returns the rules that the two atomics have in common.
func (e extension) atomicRules() []rule {
	return []rule{
		e.postErrorRule("solicited is DAT_INVALID_PARAMETER", ErrInvalidParameter,
			func(_ *testing.T, x *point, w *word) error { return e.easy(x, 1, w, CompletionSolicitedWait) }),
		e.postErrorRule("a local range shorter than 8 bytes is DAT_LENGTH_ERROR", ErrLengthError,
			func(_ *testing.T, x *point, w *word) error { return e.post(x, x.lmr.Segment(0, 7), 1, w.at(), 0) }),
		e.postErrorRule("an empty local range is DAT_LENGTH_ERROR", ErrLengthError,
			func(_ *testing.T, x *point, w *word) error { return e.post(x, LMRTriplet{}, 1, w.at(), 0) }),
		e.postErrorRule("an LMR without local write is DAT_PRIVILEGES_VIOLATION", ErrPrivilegesViolation,
			func(t *testing.T, x *point, w *word) error {
				l := must(x.host.ia.CreateLMR(make([]byte, 8), x.host.pz, MemAll&^MemLocalWrite))(t)
				return e.post(x, l.Segment(0, 8), 1, w.at(), 0)
			}),
		e.refusedAccessRule("without remote atomic it is DAT_DTO_ERR_REMOTE_ACCESS", MemAll, func(_ *testing.T, w *word) RMRTriplet { return w.at() }),
		e.refusedAccessRule("without remote read it is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory&^MemRemoteRead,
			func(_ *testing.T, w *word) RMRTriplet { return w.at() }),
		e.refusedAccessRule("remote atomic alone is DAT_DTO_ERR_REMOTE_ACCESS", MemRemoteAtomic, func(_ *testing.T, w *word) RMRTriplet { return w.at() }),
		e.refusedAccessRule("a word that is not aligned to 8 bytes is DAT_DTO_ERR_REMOTE_ACCESS", allOfMemory,
			func(_ *testing.T, w *word) RMRTriplet { return w.lmr.Remote(4, 8) }),
		e.refusedAccessRule("nor is one byte off", allOfMemory, func(_ *testing.T, w *word) RMRTriplet { return w.lmr.Remote(9, 8) }),
		{"MaxRDMAReadOut 0 is DAT_INVALID_PARAMETER", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			attr := DefaultEPAttr()
			attr.MaxRDMAReadOut = 0
			x, y := a.point(&attr), b.point(nil)
			join(x, y)
			wants(t, "post", e.easy(x, 1, b.word(allOfMemory), 0), ErrInvalidParameter)
			ok(t, e.easy(y, 2, a.word(allOfMemory), 0)) // in the opposite direction
			y.awaitExtended(y.request, 2, e, DTOSuccess, 8)
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
				x.awaitExtended(x.request, 2*i, e, DTOSuccess, 8)
				x.done(x.request, 2*i+1, DTORDMARead, DTOSuccess, 8)
			}
		}},
		{"MaxRDMASize does not bound it", func(t *testing.T, n network) {
			withLimits(&EPAttr{MaxRequestDTOs: 4, MaxRDMAReadOut: 1, MaxRDMASize: 4}, func(t *testing.T, x, y *point) {
				ok(t, e.easy(x, 1, y.host.word(allOfMemory), 0))
				x.awaitExtended(x.request, 1, e, DTOSuccess, 8)
			})(t, n)
		}},
		{"it stores 8 bytes and no byte beside them, at any alignment", func(t *testing.T, n network) {
			a, b := newHosts(t, n, Options{})
			x, _ := pair(a, b, nil)
			w := b.word(allOfMemory)
			fill(w.mem, 0xaa)
			for off := 8; off < 17; off++ {
				fill(x.mem[:64], 0x55)
				was := w.value()
				ok(t, e.post(x, x.lmr.Segment(off, 24), 1, w.lmr.Remote(8, 16), 0))
				x.awaitExtended(x.request, 1, e, DTOSuccess, 8)
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
			x.awaitExtended(x.request, 1, e, DTOSuccess, 8)
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
				x.awaitExtended(x.request, 2, e, DTOSuccess, 8)
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
		{"if the local memory is freed before the response, the status is DAT_DTO_ERR_LOCAL_PROTECTION", func(t *testing.T, n network) {
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
			x.awaitExtended(x.request, 2, e, DTOLocalProtection, 0)
			broke(x, y)
			same(t, mem, make([]byte, 8))
		}},
	}
}

var postFetchAndAddRules = slices.Concat(fetchAdd.postRules(), fetchAdd.atomicRules(), []rule{
	{"it adds and returns the old value of the word", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		w := b.word(allOfMemory)
		w.set(0x10)
		for i, tc := range []struct{ add, sum uint64 }{
			{0x20, 0x30}, {0, 0x30}, {1 << 32, 1<<32 + 0x30}, {^uint64(0), 1<<32 + 0x2f}, {1<<63 - 1, 1<<63 + 1<<32 + 0x2e},
		} {
			was := w.value()
			ok(t, x.PostFetchAdd(tc.add, x.lmr.Segment(8, 8), uint64(i), w.at(), 0))
			x.awaitExtended(x.request, uint64(i), fetchAdd, DTOSuccess, 8)
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
		x.awaitExtended(x.request, 1, fetchAdd, DTOSuccess, 8)
		equal(t, "old value", number(x, 8), any(^uint64(0)))
		equal(t, "sum", w.value(), 2)
	}},
	{"additions on many connections are all counted, and each returns a different old value", func(t *testing.T, n network) {
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
				x.awaitExtended(x.request, uint64(i), fetchAdd, DTOSuccess, 8)
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
			x.awaitExtended(x.request, i, fetchAdd, DTOSuccess, 8)
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
		x.peer.memoryBarrier()
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
})

var postCmpAndSwapRules = slices.Concat(cmpSwap.postRules(), cmpSwap.atomicRules(), []rule{
	{"an equal word is replaced, another is not; both return the old value", func(t *testing.T, n network) {
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
			x.awaitExtended(x.request, uint64(i), cmpSwap, DTOSuccess, 8)
			equal(t, "old value", number(x, 8), any(tc.was))
			equal(t, "word", w.value(), tc.want)
		}
		proves(x, y)
	}},
	{"exactly one of many compare-and-swaps takes a lock", func(t *testing.T, n network) {
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
				x.awaitExtended(x.request, 1, cmpSwap, DTOSuccess, 8)
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
		x.awaitExtended(x.request, 1, cmpSwap, DTOSuccess, 8)
		x.awaitExtended(x.request, 2, fetchAdd, DTOSuccess, 8)
		x.awaitExtended(x.request, 3, cmpSwap, DTOSuccess, 8)
		x.awaitExtended(x.request, 4, fetchAdd, DTOSuccess, 8)
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
		x.awaitExtended(x.request, 1, cmpSwap, DTOSuccess, 8)
		equal(t, "word", w.value(), 5)
	}},
	{"remote atomic is a separate privilege, which DAT_MEM_PRIV_ALL does not include", func(t *testing.T, n network) {
		h := newHost(t, n, 0, Options{})
		equal(t, "value", MemRemoteAtomic, 0x40)
		equal(t, "part of MemAll", MemAll&MemRemoteAtomic, 0)
		if l := h.word(MemRemoteAtomic).lmr; l.RMRContext() == 0 {
			t.Error("an LMR with remote atomic has no RMR context")
		}
		_, err := h.ia.CreateLMR(make([]byte, 8), h.pz, 0x80)
		wants(t, "a privilege that is none", err, ErrInvalidParameter)
	}},
})
