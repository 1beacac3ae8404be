package dat

import (
	"slices"
	"sync"
)

// arenaUnit is the alignment, in bytes, of the memory that Alloc returns. It is at least the page size, and at least
// the size of a block of link memory (link.Caps.Block) for every link.
const arenaUnit = 4096

// arena is the memory of an adapter from which IA.Alloc allocates.
type arena struct {
	mem []byte

	mu        sync.Mutex
	allocated []span // ordered by offset
}

// span is a range of an arena, in bytes, that an IA has allocated.
type span struct {
	off, n int
	ia     *IA
}

// units rounds n bytes up to a multiple of arenaUnit.
func units(n int) int { return (n + arenaUnit - 1) &^ (arenaUnit - 1) }

// newArena makes an arena of mem, the memory of the links. If mem is empty, the arena has n bytes of ordinary memory.
func newArena(mem []byte, n int) arena {
	if len(mem) == 0 && n > 0 {
		mem = make([]byte, n)
	}
	return arena{mem: mem}
}

// alloc allocates n bytes in the first gap that is large enough (first fit). It returns false if no gap is.
func (a *arena) alloc(n int, ia *IA) ([]byte, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > len(a.mem) {
		return nil, false
	}
	off, at := 0, 0
	for ; at < len(a.allocated) && a.allocated[at].off-off < n; at++ {
		off = a.allocated[at].off + units(a.allocated[at].n)
	}
	if off > len(a.mem)-n {
		return nil, false
	}
	a.allocated = slices.Insert(a.allocated, at, span{off, n, ia})
	return a.mem[off : off+n : off+n], true
}

// free frees mem. It returns false if mem is not a whole allocation of this IA.
func (a *arena) free(mem []byte, ia *IA) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.allocated, func(s span) bool {
		return s.ia == ia && s.n == len(mem) && &a.mem[s.off] == &mem[0]
	})
	if i < 0 {
		return false
	}
	a.allocated = slices.Delete(a.allocated, i, i+1)
	return true
}

// freeAll frees all memory of an IA.
func (a *arena) freeAll(ia *IA) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allocated = slices.DeleteFunc(a.allocated, func(s span) bool { return s.ia == ia })
}

// Alloc allocates n bytes of zeroed memory. The adapter has Options.Memory bytes for all calls of Alloc. Large
// operations are sent from this memory without a copy, if the link supports that. AF_XDP supports it if a packet can
// have several frames, that is, with an MTU above about 3700 bytes. The memory must be registered before use, like any
// other memory.
//
// A packet that waits in a queue of the link leaves with the bytes that the memory has at that moment. So a repeated
// packet, or the response to an RDMA read, may carry bytes that the caller writes after the operation has completed or
// the registration has ended. The peer drops such a packet, because its checksum is wrong.
//
// The memory belongs to the caller until Dealloc is called or the IA is closed. After that, another open of the adapter
// may get the memory. Alloc is an extension; DAT has no such call.
//
// Errors: ErrInvalidParameter (n below 1), ErrInsufficientResources (not enough memory left).
func (ia *IA) Alloc(n int) ([]byte, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if n < 1 {
		return nil, fail(ErrInvalidParameter, "an allocation of %d bytes; use 1 or more", n)
	}
	mem, ok := ia.a.arena.alloc(n, ia)
	if !ok {
		return nil, fail(ErrInsufficientResources, "no room for %d bytes in the adapter's %d bytes of memory; open the adapter with a larger Options.Memory",
			n, len(ia.a.arena.mem))
	}
	clear(mem)
	return mem, nil
}

// Dealloc frees mem, a slice that Alloc of this IA returned. Errors: ErrInvalidParameter (mem is not such a slice),
// ErrInvalidState (an LMR still registers part of mem).
func (ia *IA) Dealloc(mem []byte) error {
	if err := ia.lock(); err != nil {
		return err
	}
	defer ia.mu.Unlock()
	if len(mem) == 0 {
		return fail(ErrInvalidParameter, "the slice is empty; pass the slice that Alloc returned")
	}
	for l := range ia.lmrs {
		if overlap(l.mem, mem) {
			return fail(ErrInvalidState, "an LMR still registers part of the memory; free the LMR first")
		}
	}
	if !ia.a.arena.free(mem, ia) {
		return fail(ErrInvalidParameter, "the memory is not from Alloc of this adapter")
	}
	return nil
}
