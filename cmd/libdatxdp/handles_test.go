package main

import (
	"runtime"
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
	objects.forget(use | slot) // forget with an old generation
	if got := get[*dat.PZ](2*use | slot); got != other {
		t.Errorf("after a late forget: got %p, want %p", got, other)
	}
	objects.forget(2*use | slot)
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

// handleOf returns the handle of an object until the object is garbage-collected, even if the object is freed.
func TestHandleOutlivesObject(t *testing.T) {
	ia, err := dat.Open("udp:127.0.0.73", dat.DefaultOptions())
	if err != nil {
		t.Skipf("no UDP on loopback: %v", err)
	}
	defer func() { _ = ia.Close() }()
	evd, err := ia.CreateEVD(1, nil, dat.EVDSoftware)
	if err != nil {
		t.Fatal(err)
	}
	const handle = 0x1234
	if got := handleOf(evd); got != 0 {
		t.Errorf("before bind: got %#x, want 0", got)
	}
	if err := bind(evd, handle); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		if got := handleOf(evd); got != handle {
			t.Errorf("%s: got %#x, want %#x", when, got, handle)
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
	for _, kept := outlived.Load(key); kept; _, kept = outlived.Load(key) {
		runtime.GC()
	}
}

// If an object is freed while its handle is created, no entry is left.
func TestIntroduceWhatIsGone(t *testing.T) {
	ia, err := dat.Open("udp:127.0.0.73", dat.DefaultOptions())
	if err != nil {
		t.Skipf("no UDP on loopback: %v", err)
	}
	defer func() { _ = ia.Close() }()
	pz, err := ia.CreatePZ()
	if err != nil {
		t.Fatal(err)
	}
	const id, handle = 1<<32 | 77, 0x1234
	if err := introduce(id, handle, pz); err != nil || get[*dat.PZ](id) != pz || handleOf(pz) != handle {
		t.Errorf("got %p with handle %#x, %v, want %p with %#x", get[*dat.PZ](id), handleOf(pz), err, pz, handle)
	}
	objects.forget(id)
	if err := pz.Free(); err != nil {
		t.Fatal(err)
	}
	if err := introduce(id, handle, pz); err == nil || get[*dat.PZ](id) != nil {
		t.Errorf("freed: got %p, %v, want nil and an error", get[*dat.PZ](id), err)
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
