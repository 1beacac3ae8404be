// Package slotkey allocates keys that consist of a slot and a generation. A slot is an index of a table. Each use of a
// slot has a new generation, so an old key does not find the new user of its slot. The slot that was freed first is
// reused first.
//
// Any goroutine may use an Allocator.
package slotkey

import "sync"

// MinFree is the number of freed slots that are kept before the oldest one is reused. With 2^12 generations, a key
// comes back after 2^16 × 2^12 = 2^28 allocations at the earliest. The kept slots take 640 KiB.
const MinFree = 1 << 16

const (
	pageBits = 10
	pages    = 1 << (SlotBits - pageBits)
)

// SlotBits is the width of the slot in a key; the generation is in the bits above. SlotMask selects the slot.
const (
	SlotBits = 20
	SlotMask = 1<<SlotBits - 1
)

// Max is the largest number of slots in use. Slot 0 is never used.
const Max = SlotMask

// Allocator hands out keys. The zero value has all slots free.
type Allocator struct {
	mu   sync.Mutex
	used uint32                        // number of different slots handed out so far
	free fifo                          // freed slots, oldest first
	gens [pages]*[1 << pageBits]uint16 // generation of each slot
}

// Take allocates a key. It reports false if all slots are in use.
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

// Give frees the slot of a key.
func (a *Allocator) Give(key uint32) {
	a.mu.Lock()
	a.free.push(key & SlotMask)
	a.mu.Unlock()
}

// Counts returns the number of slots that were ever used, and how many of them are free now.
func (a *Allocator) Counts() (used, free int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.used), a.free.n
}

// fifo is a queue of numbers. It allocates only to grow.
type fifo struct {
	ring    []uint32 // its length is a power of two
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

// pop removes and returns the oldest number. The queue must not be empty.
func (q *fifo) pop() uint32 {
	v := q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v
}
