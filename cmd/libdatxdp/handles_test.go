package main

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"weak"

	"github.com/datxdp/datxdp/dat"
)

func TestTable(t *testing.T) {
	pz, other := new(dat.PZ), new(dat.PZ)
	const slot, use = 123456, uint64(1) << 32
	if got := get[*dat.PZ](use | slot); got != nil {
		t.Errorf("before put: got %p, want nil", got)
	}
	objects.put(use|slot, pz)
	if got := get[*dat.PZ](use | slot); got != pz {
		t.Errorf("got %p, want %p", got, pz)
	}
	if got := get[*dat.LMR](use | slot); got != nil {
		t.Errorf("as an LMR: got %p, want nil", got)
	}
	if got := get[*dat.PZ](2*use | slot); got != nil {
		t.Errorf("another use of the slot: got %p, want nil", got)
	}
	objects.put(2*use|slot, other)
	if objects.forget(use | slot) {
		t.Error("forget with an old generation: got true, want false")
	}
	if got := get[*dat.PZ](2*use | slot); got != other {
		t.Errorf("after a late forget: got %p, want %p", got, other)
	}
	if !objects.forget(2*use | slot) {
		t.Error("forget: got false, want true")
	}
	if got := get[*dat.PZ](2*use | slot); got != nil {
		t.Errorf("after forget: got %p, want nil", got)
	}
	if got := get[*dat.PZ](0); got != nil {
		t.Errorf("a null handle: got %p, want nil", got)
	}
}

// Goroutines use the same slot, one after the other and at the same time.
func TestTableConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for n := range uint64(4) {
		wg.Go(func() {
			pz := new(dat.PZ)
			for i := range uint64(1000) {
				id := (4*i+n+1)<<32 | 7
				objects.put(id, pz)
				if got := get[*dat.PZ](id); got != nil && got != pz {
					t.Errorf("got %p, want %p or nil", got, pz)
				}
				objects.forget(id)
			}
		})
	}
	wg.Wait()
}

// openIA opens an adapter that is closed at the end of the test.
func openIA(t *testing.T) *dat.IA {
	t.Helper()
	ia, err := dat.Open("udp:127.0.0.73", dat.DefaultOptions())
	if err != nil {
		t.Skipf("no UDP on loopback: %v", err)
	}
	t.Cleanup(func() { _ = ia.Close() })
	return ia
}

func keep(uint64) {}

// handleOf returns the handle of an object until the object is garbage-collected, even if the object is freed. The
// handle is given back then, and not before.
func TestHandleOutlivesObject(t *testing.T) {
	evd, err := openIA(t).CreateEVD(1, nil, dat.EVDSoftware)
	if err != nil {
		t.Fatal(err)
	}
	const handle = 0x1234
	if got := handleOf(evd); got != 0 {
		t.Errorf("before bind: got %#x, want 0", got)
	}
	given := make(chan uint64, 1)
	if err := bind(evd, handle, func(h uint64) { given <- h }); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		runtime.GC()
		if got := handleOf(evd); got != handle || len(given) != 0 {
			t.Errorf("%s: got %#x, %d handles given back; want %#x and none", when, got, len(given), handle)
		}
	}
	check("after bind")
	if err := evd.Free(); err != nil {
		t.Fatal(err)
	}
	check("after free")
	key := weak.Make(evd)
	if evd = nil; handleOf(evd) != 0 {
		t.Error("nil has a handle")
	}
	for len(given) == 0 {
		runtime.GC()
	}
	if h := <-given; h != handle {
		t.Errorf("handle %#x was given back, want %#x", h, handle)
	}
	if _, kept := outlived.Load(key); kept {
		t.Error("the handle was given back before its object was forgotten")
	}
}

// If an object is freed while its handle is created, introduce fails. The handle is given back by the collector, not by
// the caller.
func TestIntroduceWhatIsGone(t *testing.T) {
	pz, err := openIA(t).CreatePZ()
	if err != nil {
		t.Fatal(err)
	}
	const id, handle = 1<<32 | 77, 0x1234
	if err := introduce(id, handle, pz, keep); err != nil || get[*dat.PZ](id) != pz || handleOf(pz) != handle {
		t.Errorf("got %p with handle %#x, %v, want %p with %#x", get[*dat.PZ](id), handleOf(pz), err, pz, handle)
	}
	if !retire(id) || retire(id) {
		t.Error("retire: want true, then false")
	}
	if err := pz.Free(); err != nil {
		t.Fatal(err)
	}
	if err := introduce(id, handle, pz, keep); err == nil {
		t.Error("freed: got no error")
	}
	if !retire(id) || get[*dat.PZ](id) != nil {
		t.Error("freed: the handle has no object")
	}
}

// Handles of freed objects are given back, although the garbage collector does not start on its own.
func TestHandlesAreCollected(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	given := make(chan uint64, 1)
	const id, handle = 1<<32 | 78, 0x5678
	_ = introduce(id, handle, new(dat.PZ), func(h uint64) { given <- h })
	pz := new(dat.PZ)
	for range collectEvery {
		objects.put(id+1, pz)
		retire(id + 1)
		retire(id)
	}
	if h := <-given; h != handle {
		t.Errorf("handle %#x was given back, want %#x", h, handle)
	}
}

func TestLookUpDoesNotAllocate(t *testing.T) {
	const id = 1<<32 | 99
	objects.put(id, new(dat.EP))
	defer objects.forget(id)
	if n := testing.AllocsPerRun(100, func() { _ = get[*dat.EP](id) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
