package dat

import (
	"bytes"
	"slices"
	"testing"
)

var postRDMAWriteImmRules = slices.Concat(writeImm.postRules(), []rule{
	{"it writes, consumes a receive and delivers the immediate data", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		fillRandom(x.mem[:1000], 1)
		fill(y.mem[:64], 0xaa)
		ok(t, y.PostRecv(y.seg(0, 64), 4, 0))
		ok(t, x.PostRDMAWriteImm(x.seg(0, 1000), 0x9999, y.lmr.Remote(4096, 1000), 0x7777, 0))
		x.awaitExtended(x.request, 0x9999, writeImm, DTOSuccess, 1000)
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
		x.awaitExtended(x.request, 3, writeImm, DTOSuccess, 0)
		x.awaitExtended(x.request, 4, writeImm, DTOSuccess, 0)
		y.received(1, 5, 0)
		y.received(2, 6, 0)
	}},
	{"the receive may be smaller than the write", func(t *testing.T, n network) {
		a, b := newHosts(t, n, Options{})
		x, y := pair(a, b, nil)
		fillRandom(x.mem, 2)
		ok(t, y.PostRecv(nil, 1, 0))
		ok(t, x.PostRDMAWriteImm(x.seg(0, pointMem), 2, y.lmr.Remote(0, pointMem), 5, 0))
		x.awaitExtended(x.request, 2, writeImm, DTOSuccess, pointMem)
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
			x.awaitExtended(x.request, 3, writeImm, DTOSuccess, 10000)
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
		x.awaitExtended(x.request, 1, writeImm, DTOSuccess, 8)
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
	{"MaxRDMASize bounds it, MaxMessageSize does not", withLimits(&EPAttr{MaxRequestDTOs: 4, MaxRDMASize: 100, MaxMessageSize: 10}, func(t *testing.T, x, y *point) {
		ok(t, y.PostRecv(nil, 1, 0))
		wants(t, "101 bytes", x.PostRDMAWriteImm(x.seg(0, 101), 2, y.lmr.Remote(0, 101), 5, 0), ErrInvalidParameter)
		ok(t, x.PostRDMAWriteImm(x.seg(0, 100), 3, y.lmr.Remote(0, 100), 5, 0))
		y.received(1, 5, 100)
		x.awaitExtended(x.request, 3, writeImm, DTOSuccess, 100)
		x.still()
	})},
	writeImm.postErrorRule("more segments than MaxRequestIOV are DAT_INVALID_PARAMETER", ErrInvalidParameter,
		func(_ *testing.T, x *point, w *word) error {
			return x.PostRDMAWriteImm(make([]LMRTriplet, 5), 1, w.at(), 5, 0)
		}),
	writeImm.postErrorRule("every segment is checked", ErrInvalidParameter,
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
		x.awaitExtended(x.request, 2, writeImm, DTOSuccess, 8)
	}},
})
