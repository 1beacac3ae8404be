package dat

import (
	"slices"
	"sync"
)

// arenaUnit in bytes is what memory from Alloc begins at a multiple of: at least a page, and a block of any link.
const arenaUnit = 4096

// arena is the memory of an adapter that IA.Alloc hands out.
type arena struct {
	mem []byte

	mu    sync.Mutex
	taken []span // in the order of their offsets
}

// span is a piece of an arena, in bytes, that an IA has.
type span struct {
	off, n int
	ia     *IA
}

// units is n bytes rounded up to units.
func units(n int) int { return (n + arenaUnit - 1) &^ (arenaUnit - 1) }

// newArena is memory of the links where they have some, and else n bytes of ordinary memory.
func newArena(of []byte, n int) arena {
	if len(of) == 0 && n > 0 {
		of = make([]byte, n)
	}
	return arena{mem: of}
}

// alloc takes the first gap that is large enough.
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

// give takes back memory of an IA, and reports whether all of it, and nothing else, was from one alloc.
func (a *arena) give(mem []byte, ia *IA) bool {
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

// giveAll takes back what an IA has.
func (a *arena) giveAll(ia *IA) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = slices.DeleteFunc(a.taken, func(s span) bool { return s.ia == ia })
}

// Alloc is zeroed memory from the Options.Memory bytes that the adapter was opened with: large operations leave from
// it without being copied where the link can do that, which is AF_XDP with packets of several frames (an MTU above
// 3700 or so). It is registered like any other memory. It is the caller's until Dealloc, or until the IA is closed:
// then it may become another's. An extension; DAT has no such call.
//
// Errors: ErrInvalidParameter (no bytes), ErrInsufficientResources (no room).
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

// Dealloc gives memory from Alloc back, as Alloc returned it. Errors: ErrInvalidParameter (it is not from Alloc of this
// IA), ErrInvalidState (an LMR of it is left).
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
	if !ia.a.arena.give(mem, ia) {
		return fail(ErrInvalidParameter, "the memory is not from Alloc of this adapter")
	}
	return nil
}
