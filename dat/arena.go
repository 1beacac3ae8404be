package dat

import (
	"slices"
	"sync"
)

// arenaUnit is the alignment in bytes of memory from Alloc. It is at least a page, and at least a block of any link.
const arenaUnit = 4096

// arena is the memory of an adapter that IA.Alloc hands out.
type arena struct {
	mem []byte

	mu    sync.Mutex
	taken []span // ordered by offset
}

// span is a range of an arena, in bytes, that an IA has allocated.
type span struct {
	off, n int
	ia     *IA
}

// units rounds n bytes up to a multiple of arenaUnit.
func units(n int) int { return (n + arenaUnit - 1) &^ (arenaUnit - 1) }

// newArena makes an arena of the links' memory. If the links have none, it takes n bytes of ordinary memory.
func newArena(of []byte, n int) arena {
	if len(of) == 0 && n > 0 {
		of = make([]byte, n)
	}
	return arena{mem: of}
}

// alloc allocates n bytes in the first gap that is large enough (first fit).
func (a *arena) alloc(n int, ia *IA) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > len(a.mem) {
		return nil, false
	}
	off, at := 0, 0
	for ; at < len(a.taken) && a.taken[at].off-off < n; at++ {
		off = a.taken[at].off + units(a.taken[at].n)
	}
	if off > len(a.mem)-n {
		return nil, false
	}
	a.taken = slices.Insert(a.taken, at, span{off, n, ia})
	return a.mem[off : off+n : off+n], true
}

// free frees mem. It returns false if mem is not exactly the result of one alloc for this IA.
func (a *arena) free(mem []byte, ia *IA) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.taken, func(s span) bool {
		return s.ia == ia && s.n == len(mem) && &a.mem[s.off] == &mem[0]
	})
	if i < 0 {
		return false
	}
	a.taken = slices.Delete(a.taken, i, i+1)
	return true
}

// freeAll frees all memory of an IA.
func (a *arena) freeAll(ia *IA) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = slices.DeleteFunc(a.taken, func(s span) bool { return s.ia == ia })
}

// Alloc returns n bytes of zeroed memory from the Options.Memory bytes of the adapter. Where the link supports it,
// large operations are sent from this memory without a copy. AF_XDP supports it with packets of several frames (an
// MTU above 3700 or so). The memory must be registered like any other. It belongs to the caller until Dealloc, or
// until the IA is closed: another open of the adapter may get it then. Alloc is an extension; DAT has no such call.
//
// Errors: ErrInvalidParameter (n below 1), ErrInsufficientResources (not enough memory left).
func (ia *IA) Alloc(n int) ([]byte, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if n < 1 {
		return nil, fail(ErrInvalidParameter, "memory of %d bytes; it is at least 1", n)
	}
	mem, ok := ia.a.arena.alloc(n, ia)
	if !ok {
		return nil, fail(ErrInsufficientResources, "no room for %d bytes in the adapter's memory of %d; open it with more in Options.Memory",
			n, len(ia.a.arena.mem))
	}
	clear(mem)
	return mem, nil
}

// Dealloc frees memory that Alloc returned; mem must be the same slice. Errors: ErrInvalidParameter (mem is not the
// result of Alloc of this IA), ErrInvalidState (an LMR still registers part of it).
func (ia *IA) Dealloc(mem []byte) error {
	if err := ia.lock(); err != nil {
		return err
	}
	defer ia.mu.Unlock()
	if len(mem) == 0 {
		return fail(ErrInvalidParameter, "no bytes; give back what Alloc returned")
	}
	for l := range ia.lmrs {
		if overlap(l.mem, mem) {
			return fail(ErrInvalidState, "an LMR of the memory is left; free it first")
		}
	}
	if !ia.a.arena.free(mem, ia) {
		return fail(ErrInvalidParameter, "the memory is not from Alloc of this adapter")
	}
	return nil
}
