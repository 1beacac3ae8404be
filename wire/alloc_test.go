//go:build !race

package wire

import (
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/slotkey"
)

// Sends, writes, reads and atomics must not allocate, on either side.
func TestNoAllocation(t *testing.T) {
	w := newWorld(t, simlink.Config{Immediate: true, Unchecked: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	ma, mb := a.memory(8192), b.memory(8192)
	seg, big, in := ma.seg(0, 64), ma.seg(0, 8192), mb.seg(0, 64)
	at := mb.at(0)
	round := func() {
		b.postRecv(cb, in, 1)
		a.post(ca, ca.PostSend(seg, 1, 0))
		a.post(ca, ca.PostWrite(big, 2, at, 0))
		a.post(ca, ca.PostRead(big, 3, at, 8192, 0))
		b.postRecv(cb, in, 4)
		a.post(ca, ca.PostWriteImm(big, 4, at, 7, 0))
		a.post(ca, ca.PostFetchAdd(1, big[0], 5, at, 0))
		a.post(ca, ca.PostCmpSwap(1, 2, big[0], 6, at, 0))
		for n := 0; n < 6; n += w.drain(a.request) {
			w.pollAll()
		}
		w.drain(b.recv)
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations in a round of all operations", n)
	}
}

// Packets that are damaged or belong to no connection must be dropped without an allocation.
func TestDropsWithoutAllocation(t *testing.T) {
	w := newWorld(t, simlink.Config{Immediate: true, Unchecked: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	p, err := a.link.Resolve(b.addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := func() {
		if !a.eng.refill(8) {
			t.Fatal("no frames")
		}
		for range 8 {
			data := a.eng.queueFrame(p)
			a.eng.tx[len(a.eng.tx)-1].Data = data[:100]
		}
		a.eng.flush()
		w.pollAll()
	}
	junk()
	if n := testing.AllocsPerRun(100, junk); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if b.eng.Stats().BadChecksum == 0 {
		t.Error("nothing was dropped")
	}
}

// Binding, writing through and invalidating a window must not allocate, on either side.
func TestWindowsWithoutAllocation(t *testing.T) {
	w := newWorld(t, simlink.Config{Immediate: true, Unchecked: true}, 2)
	a, b := w.nodes[0], w.nodes[1]
	ca, cb := w.pair(plain)
	ma, mb := a.memory(8192), b.memory(8192)
	seg, dst, at := ma.seg(0, 8192), WindowRange{Addr: mb.base, Length: 8192}, ma.at(0)
	win := b.host.NewWindow(1, true, nil)
	to := mb.at(0)
	round := func() {
		key, err := cb.PostBind(win, mb.Region, mb.base, 8192, RemoteWrite, 0, 0)
		b.post(cb, err)
		for n := 0; n < 1; n += w.drain(b.request) {
			w.pollAll()
		}
		to.Key, dst.Key = key, key
		b.post(cb, cb.PostReadToWindow(dst, 0, at, 8192, 0))
		b.postRecv(cb, nil, 1)
		a.post(ca, ca.PostWrite(seg, 2, to, 0))
		for n := 0; n < 2; n += w.drain(a.request) + w.drain(b.request) {
			w.pollAll()
		}
		a.post(ca, ca.PostSendInvalidate(nil, 3, key, 0))
		for n := 0; n < 2; n += w.drain(a.request) + w.drain(b.recv) {
			w.pollAll()
		}
	}
	for range slotkey.MinFree/2 + slotkey.MinFree/8 { // a round takes two keys, so every slot is used
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations in a round of bind, read, write and invalidation", n)
	}
}

// Posting and taking receives of a shared queue must not allocate, and neither must waiting and waking.
func TestSharedQueueNoAllocation(t *testing.T) {
	w := newWorld(t, simlink.Config{Immediate: true, Unchecked: true}, 2)
	p, from, _ := w.sharing(plain, 4, 64, 64, nil)
	a, b := w.nodes[0], w.nodes[1]
	seg, in := a.memory(64).seg(0, 64), p.mem.seg(0, 64)
	round := func() {
		for _, c := range from {
			a.post(c, c.PostSend(seg, 0, Suppress))
		}
		for range 8 {
			w.pollAll()
		}
		for range from {
			if waits, _ := p.Post(in, 0); waits != nil {
				b.eng.Kick(waits)
			}
		}
		for n := 0; n < len(from); n += w.drain(b.recv) {
			w.pollAll()
		}
	}
	for range 2 * reassembly.InitialSlots { // so that each slot of the tables of held packets has its memory
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations in a round of %d messages", n, len(from))
	}
}
