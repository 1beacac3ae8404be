package main

import (
	"sync"
	"testing"

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
	objects.forget(use | slot) // late
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

// Threads meet in one slot, one after the other and at one time.
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

func TestLookUpDoesNotAllocate(t *testing.T) {
	const id = 1<<32 | 99
	objects.put(id, new(dat.EP))
	defer objects.forget(id)
	if n := testing.AllocsPerRun(100, func() { _ = get[*dat.EP](id) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
