// Package slotkey allocates keys of a slot and a generation. A slot is the index of a table; each use of a slot has a new
// generation, so that an old key does not find what is new. Slots are used again as late as possible.
//
// An allocator may be used by any goroutine.
package slotkey

import "sync"

// MinFree is how many freed slots are kept back before the oldest is used again. With as many and 2^12 generations a key
// comes back after 2^28 allocations at the earliest, and the slots take 640 KiB.
const MinFree = 1 << 16

const (
	pageBits = 10
	pages    = 1 << (SlotBits - pageBits)
)

// SlotBits is the width of a slot in a key; the generation is above it. SlotMask has the bits of the slot.
const (
	SlotBits = 20
	SlotMask = 1<<SlotBits - 1
)

// Max is the number of slots that can be in use. Slot 0 is never used.
const Max = SlotMask

// Allocator hands out keys. The zero value has all slots free.
type Allocator struct {
	mu   sync.Mutex
	used uint32                        // slots handed out so far
	free fifo                          // slots given back
	gens [pages]*[1 << pageBits]uint16 // generation of each slot
}

// Take is a new key; false if all slots are in use.
func (a *Allocator) Take() (key uint32, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var i uint32
	switch {
	case a.used < Max && a.free.n < MinFree:
		a.used++
		i = a.used
	case a.free.n > 0:
		i = a.free.pop()
	default:
		return 0, false
	}
	page := &a.gens[i>>pageBits]
	if *page == nil {
		*page = new([1 << pageBits]uint16)
	}
	gen := &(*page)[i&(1<<pageBits-1)]
	*gen++
	return uint32(*gen)<<SlotBits | i, true
}

// Give takes the slot of a key back.
func (a *Allocator) Give(key uint32) {
	a.mu.Lock()
	a.free.push(key & SlotMask)
	a.mu.Unlock()
}

// Counts are the slots that were ever used, and those of them that are free now.
func (a *Allocator) Counts() (used, free int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.used), a.free.n
}

// fifo is a queue of numbers that stops allocating once it has grown to its size.
type fifo struct {
	ring    []uint32 // of a power of two
	head, n int
}

func (q *fifo) push(v uint32) {
	if q.n == len(q.ring) {
		ring := make([]uint32, max(2*q.n, 16))
		copy(ring[copy(ring, q.ring[q.head:]):], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

// pop takes the oldest number out; there is one.
func (q *fifo) pop() uint32 {
	v := q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}
