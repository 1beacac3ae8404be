package wire

import (
	"sync"
	"sync/atomic"
)

// Rights say what a region may be used for.
type Rights uint8

// Rights of a region; the values are those of DAT_MEM_PRIV_FLAGS.
const (
	LocalRead   Rights = 0x01
	RemoteRead  Rights = 0x02
	LocalWrite  Rights = 0x10
	RemoteWrite Rights = 0x20
	// RemoteAtomic allows atomics, beside RemoteRead and RemoteWrite.
	RemoteAtomic Rights = 0x40
)

// Region is registered memory. It keeps its memory alive.
type Region struct {
	mem    []byte
	base   uint64
	zone   uint32
	rights Rights
	local  uint32 // key for local segments
	remote uint32 // key for peers; 0 when they have no right
	dead   atomic.Bool
	pins   atomic.Int32 // windows bound to it; negative once none may be
}

// LocalKey names the region in segments of this host's operations.
func (r *Region) LocalKey() uint32 { return r.local }

// RemoteKey names the region to peers; it is 0 when they have no right to it.
func (r *Region) RemoteKey() uint32 { return r.remote }

// slice is the range [addr, addr+n) of the region, and false if any byte of it is outside. No sum
// is formed that could overflow.
func (r *Region) slice(addr uint64, n uint32) ([]byte, bool) {
	off, size := addr-r.base, uint64(len(r.mem))
	if addr < r.base || off > size || uint64(n) > size-off {
		return nil, false
	}
	return r.mem[off : off+uint64(n) : off+uint64(n)], true
}

// check says whether a segment of a work request may use the region.
func (r *Region) check(zone uint32, need Rights, addr uint64, n uint32) error {
	switch {
	case r == nil || r.dead.Load():
		return ErrBadKey
	case r.zone != zone:
		return ErrZone
	case r.rights&need == 0:
		return ErrRights
	}
	if _, ok := r.slice(addr, n); !ok {
		return ErrBounds
	}
	return nil
}

const (
	pageBits   = 10
	regionMask = 1<<regionBits - 1
)

type regionPage struct {
	regions [1 << pageBits]atomic.Pointer[Region]
	gens    [1 << pageBits]uint16 // of each slot; guarded by the table's mutex
}

// regionTable finds regions, and bindings of windows, by slot without a lock. Slots are reused as late as
// possible, and each use has a new generation, so that an old key does not find new memory.
type regionTable struct {
	pages    [1 << (regionBits - pageBits)]atomic.Pointer[regionPage]
	bindings [1 << (regionBits - pageBits)]atomic.Pointer[bindingPage] // of slots that belong to windows

	mu   sync.Mutex
	used uint32 // slots handed out so far; slot 0 is never used
	free fifo   // slots given back
}

func (t *regionTable) slot(i uint32) *atomic.Pointer[Region] {
	p := t.pages[i>>pageBits].Load()
	if p == nil {
		return nil
	}
	return &p.regions[i&(1<<pageBits-1)]
}

// find is the live region with a composed key (generation and slot), or nil.
func (t *regionTable) find(key uint32) *Region {
	s := t.slot(key & regionMask)
	if s == nil {
		return nil
	}
	if r := s.Load(); r != nil && r.local == key && !r.dead.Load() {
		return r
	}
	return nil
}

// minFree is how many freed slots are kept back before the oldest is used again. With as many and 2^12
// generations a key comes back after 2^28 registrations at the earliest, and the slots take 640 KiB.
const minFree = 1 << 16

func (t *regionTable) take() (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	switch {
	case t.used < maxRegions && t.free.n < minFree:
		t.used++
		i = t.used
	case t.free.n > 0:
		i = t.free.pop()
	default:
		return 0, ErrTooMany
	}
	at := &t.pages[i>>pageBits]
	if at.Load() == nil {
		at.Store(new(regionPage))
	}
	gen := &at.Load().gens[i&(1<<pageBits-1)]
	*gen++
	return uint32(*gen)<<regionBits | i, nil
}

// give takes a slot back.
func (t *regionTable) give(i uint32) {
	t.mu.Lock()
	t.free.push(i)
	t.mu.Unlock()
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

// Register makes mem known as the addresses from base on, to connections of one protection zone.
func (h *Host) Register(mem []byte, base uint64, zone uint32, rights Rights) (*Region, error) {
	key, err := h.regions.take()
	if err != nil {
		return nil, err
	}
	r := &Region{mem: mem, base: base, zone: zone, rights: rights, local: key}
	if rights&(RemoteRead|RemoteWrite|RemoteAtomic) != 0 {
		r.remote = h.keys.Encrypt(key)
	}
	h.regions.slot(key & regionMask).Store(r)
	return r, nil
}

// Unregister makes both keys of a region invalid. An engine may be inside it still: the memory may
// be used for something else once every engine has been owned by somebody since.
func (h *Host) Unregister(r *Region) {
	if r.dead.Swap(true) {
		return
	}
	i := r.local & regionMask
	h.regions.slot(i).Store(nil)
	h.regions.give(i)
}

// Registered reports whether a segment is inside a region; an empty one always is.
func (h *Host) Registered(s Segment) bool {
	if s.Length == 0 {
		return true
	}
	r := h.regions.find(s.Context)
	if r == nil {
		return false
	}
	_, ok := r.slice(s.Address, s.Length)
	return ok
}
