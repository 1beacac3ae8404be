package xdp

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// newRings returns both ends of one ring in plain memory.
func newRings[T uint64 | desc](size uint32) (producer[T], consumer[T]) {
	words := make([]uint32, 3)
	slots := make([]T, size)
	r := ring{producer: &words[0], consumer: &words[1], flags: &words[2], size: size, mask: size - 1}
	return producer[T]{ring: r, slots: slots}, consumer[T]{ring: r, slots: slots}
}

func TestRingVerbs(t *testing.T) {
	p, c := newRings[uint64](8)
	if n := p.reserve(100); n != 8 {
		t.Fatalf("reserve on an empty ring: %d, want 8", n)
	}
	if n := c.peek(); n != 0 {
		t.Fatalf("peek on an empty ring: %d", n)
	}
	for i := range uint32(5) {
		p.put(i, uint64(100+i))
	}
	if n := c.peek(); n != 0 {
		t.Fatalf("%d slots seen before submit", n)
	}
	p.submit(5)
	if got := p.backlog(); got != 5 {
		t.Errorf("backlog %d, want 5", got)
	}
	if n := c.peek(); n != 5 {
		t.Fatalf("peek %d, want 5", n)
	}
	if v := c.slot(4); v != 104 {
		t.Errorf("slot 4 is %d", v)
	}
	c.release(2)
	if n := p.reserve(100); n != 5 {
		t.Errorf("room %d, want 5", n)
	}
	if n := p.backlog(); n != 3 {
		t.Errorf("backlog %d, want 3", n)
	}
	if n := c.peek(); n != 3 {
		t.Errorf("peek %d, want the 3 that were not released", n)
	}
}

// A ring works when its indices wrap at 2^32.
func TestRingWraps(t *testing.T) {
	p, c := newRings[uint64](4)
	start := ^uint32(0) - 1
	*p.producer, *p.consumer = start, start
	p.prod, p.cons, c.prod, c.cons = start, start, start, start
	for i := range uint64(100) {
		if p.reserve(1) != 1 {
			t.Fatalf("no room for %d", i)
		}
		p.put(0, i)
		p.submit(1)
		if n := c.peek(); n != 1 || c.slot(0) != i {
			t.Fatalf("%d slots, first %d, want %d", n, c.slot(0), i)
		}
		c.release(1)
	}
}

// A ring passes slots from one goroutine to another, without loss and in order. The slots are plain memory, so the race
// detector reports a missing acquire or release.
func TestRingStress(t *testing.T) {
	const total = 200_000
	p, c := newRings[desc](64)
	var wg sync.WaitGroup
	wg.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for sent := uint64(0); sent < total; {
			n := p.reserve(1 + r.Uint32N(40))
			n = min(n, uint32(total-sent))
			for i := range n {
				p.put(i, desc{addr: sent, len: uint32(sent), options: ^uint32(sent)})
				sent++
			}
			p.submit(n)
		}
	})
	for want := uint64(0); want < total; {
		n := c.peek()
		for i := range n {
			if d := c.slot(i); d != (desc{addr: want, len: uint32(want), options: ^uint32(want)}) {
				t.Fatalf("slot %d is %+v", want, d)
			}
			want++
		}
		c.release(n)
	}
	wg.Wait()
}

func TestUmemBounds(t *testing.T) {
	u := newUmem(make([]byte, 4*2048), nil, 2048)
	if u.frames() != 4 {
		t.Fatalf("%d frames", u.frames())
	}
	for _, tc := range []struct {
		frame, off, n uint32
		ok            bool
	}{
		{0, 0, 2048, true}, {3, 2047, 1, true}, {3, 2048, 0, true},
		{0, 1, 2048, false}, {4, 0, 1, false}, {0, 1 << 31, 1 << 31, false}, {0, ^uint32(0), 2, false},
	} {
		b := u.bytes(tc.frame, tc.off, tc.n)
		if (b != nil) != tc.ok {
			t.Errorf("bytes(%d, %d, %d) = %d bytes", tc.frame, tc.off, tc.n, len(b))
		}
		if tc.ok && cap(b) != int(2048-tc.off) {
			t.Errorf("bytes(%d, %d, %d) reaches past its frame: capacity %d", tc.frame, tc.off, tc.n, cap(b))
		}
	}
	b := u.bytes(2, 64, 100)
	if off, ok := u.locate(2, b[10:]); !ok || off != 74 {
		t.Errorf("locate: %d, %v", off, ok)
	}
	for name, other := range map[string][]byte{"another frame": u.bytes(1, 0, 4), "the heap": make([]byte, 4)} {
		if _, ok := u.locate(2, other); ok {
			t.Errorf("%s located in frame 2", name)
		}
	}
	if _, ok := u.locate(2, u.bytes(2, 0, 100)[:2048]); !ok {
		t.Error("a whole frame is not located")
	}
	if _, _, ok := u.frame(4 * 2048); ok {
		t.Error("an address outside has a frame")
	}
	if f, off, ok := u.frame(3*2048 + 300); f != 3 || off != 300 || !ok {
		t.Errorf("frame %d, offset %d, %v", f, off, ok)
	}
}

func TestPool(t *testing.T) {
	p := newPool(4)
	var got []uint32
	for range 4 {
		got = append(got, p.take(isAlloc))
	}
	if !slices.Equal(got, []uint32{0, 1, 2, 3}) || p.sending() != 4 || p.count[isFree] != 0 {
		t.Fatalf("took %v, %v", got, p.count)
	}
	p.move(2, isAlloc, isSent)
	p.give(2, isSent)
	if f := p.take(isFill); f != 2 {
		t.Errorf("took frame %d, want the one given last", f)
	}
	for name, misuse := range map[string]func(){
		"free what the kernel has": func() { p.owned(2) },
		"free twice":               func() { p.give(0, isAlloc); p.give(0, isAlloc) },
		"a frame outside":          func() { p.owned(4) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse()
		})
	}
}

func BenchmarkRing(b *testing.B) {
	p, c := newRings[desc](1024)
	b.ReportAllocs()
	for b.Loop() {
		n := p.reserve(32)
		for i := range n {
			p.put(i, desc{addr: uint64(i)})
		}
		p.submit(n)
		c.release(c.peek())
	}
}
