package lease

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// table has the leases that exist: those with a connection, and the orphans, which an earlier daemon made and whose holders
// have not connected to this one.
type table struct {
	mu     sync.Mutex
	leases map[uint32]entry
}

type entry struct {
	Held
	orphan bool
}

// all returns the leases by number.
func (t *table) all() []Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	var held []Held
	for e := range maps.Values(t.leases) {
		held = append(held, e.Held)
	}
	slices.SortFunc(held, func(a, b Held) int { return cmp.Compare(a.ID, b.ID) })
	return held
}

func (t *table) put(h Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leases[h.ID] = entry{h, false}
}

func (t *table) remove(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.leases, id)
}

// adopt takes an orphan of a process and returns it, or returns false.
func (t *table) adopt(id uint32, h Holder) (Held, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.leases[id]
	if !ok || !e.orphan || e.Holder != h {
		return Held{}, false
	}
	t.leases[id] = entry{e.Held, false}
	return e.Held, true
}

// setOrphans replaces the orphans by those that Sweep has found. One that was adopted meanwhile is no orphan.
func (t *table) setOrphans(found []Held, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	alive := make(map[uint32]bool)
	for _, h := range found {
		alive[h.ID] = true
		if first {
			t.leases[h.ID] = entry{h, true}
		}
	}
	maps.DeleteFunc(t.leases, func(id uint32, e entry) bool { return e.orphan && !alive[id] })
}

// orphans is the number of leases without a connection.
func (t *table) orphans() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.leases {
		if e.orphan {
			n++
		}
	}
	return n
}
