package wire

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/slotkey"
)

// Rights are the accesses that a region or window allows.
type Rights uint8

// Rights of a region; the values are those of DAT_MEM_PRIV_FLAGS.
const (
	LocalRead   Rights = 0x01
	RemoteRead  Rights = 0x02
	LocalWrite  Rights = 0x10
	RemoteWrite Rights = 0x20
	// RemoteAtomic allows atomics, which also need RemoteRead and RemoteWrite.
	RemoteAtomic Rights = 0x40
)

// Region is registered memory. It keeps its memory alive.
type Region struct {
	mem    []byte
	base   uint64
	zone   uint32
	rights Rights
	local  uint32 // local key, for segments
	remote uint32 // remote key, for peers; 0 if they have no rights
	dead   atomic.Bool
	pins   atomic.Int32 // windows bound to the region; negative after Retire
}

// LocalKey returns the key that names the region in segments of this host's operations.
func (r *Region) LocalKey() uint32 { return r.local }

// RemoteKey returns the key that names the region to peers, or 0 if they have no right to it.
func (r *Region) RemoteKey() uint32 { return r.remote }

// slice returns the range [addr, addr+n) of the region, or false if any byte is outside. No sum in it can overflow.
func (r *Region) slice(addr uint64, n uint32) ([]byte, bool) {
	off, size := addr-r.base, uint64(len(r.mem))
	if addr < r.base || off > size || uint64(n) > size-off {
		return nil, false
	}
	return r.mem[off : off+uint64(n) : off+uint64(n)], true
}

// check returns an error if a segment of a work request may not use the region. r may be nil.
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
	regionMask = slotkey.SlotMask
)

type regionPage [1 << pageBits]atomic.Pointer[Region]

// regionTable finds regions and window bindings by slot, without a lock. A plain key consists of a slot and the
// generation of the slot. The plain key of a region is its local key. Encrypting the plain key gives the remote key.
type regionTable struct {
	slotkey.Allocator
	pages    [1 << (regionBits - pageBits)]atomic.Pointer[regionPage]
	bindings [1 << (regionBits - pageBits)]atomic.Pointer[bindingPage] // of slots that belong to windows
}

func (t *regionTable) slot(i uint32) *atomic.Pointer[Region] {
	p := t.pages[i>>pageBits].Load()
	if p == nil {
		return nil
	}
	return &p[i&(1<<pageBits-1)]
}

// find returns the registered region with a plain key, or nil.
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

// take allocates a plain key and, if missing, the page of its slot.
func (t *regionTable) take() (uint32, error) {
	key, ok := t.Take()
	if !ok {
		return 0, ErrTooMany
	}
	if page := &t.pages[key&regionMask>>pageBits]; page.Load() == nil {
		page.CompareAndSwap(nil, new(regionPage))
	}
	return key, nil
}

// Register registers mem for the connections of one protection zone. The memory has the addresses from base on.
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

// Unregister invalidates both keys of a region, so from then on nobody finds the region. But a goroutine that owns an
// engine during the call may have found the region before, and may access its memory until it gives the engine up. So
// the caller may reuse the memory only when, after Unregister has returned, TryOwn has succeeded once on each engine.
func (h *Host) Unregister(r *Region) {
	if r.dead.Swap(true) {
		return
	}
	i := r.local & regionMask
	h.regions.slot(i).Store(nil)
	h.regions.Give(r.local)
}

// Registered reports whether a segment is inside a registered region. An empty segment always is.
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
