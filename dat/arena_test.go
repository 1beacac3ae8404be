package dat

import (
	"bytes"
	"errors"
	"testing"

	"github.com/datxdp/datxdp/internal/simlink"
)

func TestAlloc(t *testing.T) {
	const unit = arenaUnit
	h := newHost(t, newSim(t), 0, Options{Memory: 8 * unit})
	alloc := func(n int) []byte {
		t.Helper()
		mem, err := h.ia.Alloc(n)
		ok(t, err)
		if len(mem) != n || cap(mem) != n || addressOf(mem)%8 != 0 {
			t.Fatalf("%d bytes of %d at %#x, want %d", len(mem), cap(mem), addressOf(mem), n)
		}
		return mem
	}
	none := func(n int, want error) {
		t.Helper()
		if _, err := h.ia.Alloc(n); !errors.Is(err, want) {
			t.Errorf("Alloc(%d): %v, want %v", n, err, want)
		}
	}
	none(0, ErrInvalidParameter)
	none(-1, ErrInvalidParameter)
	none(8*unit+1, ErrInsufficientResources)
	a, b, c := alloc(1), alloc(2*unit+1), alloc(4*unit) // 1, 3 and 4 units
	none(1, ErrInsufficientResources)
	for i := range b {
		b[i] = 1
	}
	ok(t, h.ia.Dealloc(b))
	none(4*unit, ErrInsufficientResources)
	d, e := alloc(2*unit), alloc(unit) // in the gap that b left
	if !bytes.Equal(d, make([]byte, 2*unit)) || overlap(d, e) || overlap(d, a) || overlap(e, c) {
		t.Error("memory that is not zeroed, or another's")
	}
	refused := func(ia *IA, mem []byte, want error) {
		t.Helper()
		if err := ia.Dealloc(mem); !errors.Is(err, want) {
			t.Errorf("Dealloc: %v, want %v", err, want)
		}
	}
	refused(h.ia, nil, ErrInvalidParameter)
	refused(h.ia, d[1:], ErrInvalidParameter)
	refused(h.ia, d[:1], ErrInvalidParameter)
	refused(h.ia, make([]byte, unit), ErrInvalidParameter)
	lmr, err := h.ia.CreateLMR(d[100:200], h.pz, MemAll)
	ok(t, err)
	refused(h.ia, d, ErrInvalidState)
	ok(t, lmr.Free())
	ok(t, h.ia.Dealloc(d))
	refused(h.ia, d, ErrInvalidParameter)

	plain := newHost(t, newSim(t), 1, Options{})
	if _, err := plain.ia.Alloc(1); !errors.Is(err, ErrInsufficientResources) {
		t.Errorf("without Options.Memory: %v", err)
	}
	if _, err := newSim(t).open(0, Options{Memory: -1}); !errors.Is(err, ErrInvalidParameter) {
		t.Errorf("negative Options.Memory: %v", err)
	}
}

// All opens of an adapter share the memory of Alloc. When an open closes, its memory becomes free.
func TestAllocShared(t *testing.T) {
	n := newUDP(t)
	first, err := n.open(0, Options{Memory: arenaUnit})
	ok(t, err)
	defer first.Close()
	second, err := n.open(0, Options{})
	ok(t, err)
	mem, err := second.Alloc(arenaUnit)
	ok(t, err)
	if _, err := first.Alloc(1); !errors.Is(err, ErrInsufficientResources) {
		t.Errorf("a second use of memory: %v", err)
	}
	if err := first.Dealloc(mem); !errors.Is(err, ErrInvalidParameter) {
		t.Errorf("giving back what another has: %v", err)
	}
	ok(t, second.CloseWith(CloseGraceful))
	_, err = first.Alloc(1)
	ok(t, err)
	if _, err := second.Alloc(1); !errors.Is(err, ErrInvalidHandle) {
		t.Errorf("on a closed adapter: %v", err)
	}
	if err := second.Dealloc(mem); !errors.Is(err, ErrInvalidHandle) {
		t.Errorf("on a closed adapter: %v", err)
	}
}

// TestAllocTransfer posts sends, RDMA writes and RDMA reads with memory of Alloc. The operations transfer the right
// data. If the link supports transfers without a copy, the operations copy nothing.
func TestAllocTransfer(t *testing.T) {
	transferInPlace(t, newSimWith(t, simlink.Config{MTU: 60000, FrameSize: 4096, RxFrameSize: 3840, Segments: 18, Memory: 1 << 20}), true)
	eachLink(t, func(t *testing.T, n network) { transferInPlace(t, n, false) })
}

func transferInPlace(t *testing.T, n network, must bool) {
	const size = 300_000
	a, b := newHosts(t, n, Options{Memory: 1 << 20})
	x, y := pair(a, b, nil)
	memory := func(p *point) (*LMR, []byte) {
		mem, err := p.ia.Alloc(size)
		ok(t, err)
		for i := range mem {
			mem[i] = byte(i ^ i>>8)
		}
		lmr, err := p.ia.CreateLMR(mem, p.pz, MemAll)
		ok(t, err)
		return lmr, mem
	}
	from, mem := memory(x)
	to, got := memory(y)
	check := func(what string) {
		t.Helper()
		y.memoryBarrier()
		if !bytes.Equal(mem, got) {
			t.Fatalf("%s: other bytes arrived", what)
		}
		clear(got)
		y.memoryBarrier()
	}
	clear(got)
	ok(t, y.PostRecv([]LMRTriplet{to.Segment(0, size)}, 1, 0))
	ok(t, x.PostSend([]LMRTriplet{from.Segment(0, size)}, 2, 0))
	y.done(y.recv, 1, DTOReceive, DTOSuccess, size)
	x.done(x.request, 2, DTOSend, DTOSuccess, size)
	check("send")
	ok(t, x.PostRDMAWrite([]LMRTriplet{from.Segment(0, size)}, 3, to.Remote(0, size), 0))
	x.done(x.request, 3, DTORDMAWrite, DTOSuccess, size)
	check("write")
	ok(t, y.PostRDMARead([]LMRTriplet{to.Segment(0, size)}, 4, from.Remote(0, size), 0))
	y.done(y.request, 4, DTORDMARead, DTOSuccess, size)
	check("read")
	s, err := a.ia.Stats()
	ok(t, err)
	if must && s.InPlaceBytes < 2*size {
		t.Errorf("%d bytes were sent in place, want most of %d", s.InPlaceBytes, 3*size)
	}
}
