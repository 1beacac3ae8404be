package route

import (
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"
)

// macSets and macWays are the size of a macTable: macSets sets of macWays entries, 8192 in all. For comparison, Linux
// keeps 1024 neighbours per family by default (net.ipv4.neigh.default.gc_thresh3).
const (
	macSets = 1 << 10
	macWays = 8
)

// macTable maps neighbours to their MAC addresses. Any goroutine may look up entries without a lock. A change needs the
// lock of the Table. In a full set, a new entry replaces a random one.
type macTable struct {
	seed maphash.Seed
	sets [macSets][macWays]atomic.Pointer[macEntry]
}

// macEntry is one neighbour. Only asked changes.
type macEntry struct {
	addr  netip.Addr
	mac   [6]byte
	stale bool        // the kernel has not heard from the neighbour for a while
	asked atomic.Bool // the kernel was asked to confirm a stale entry
	// at is the time of an answer to a probe, if the kernel does not know the neighbour; otherwise 0. For Reach.Ask it is
	// the time of an attempt to resolve the neighbour.
	at time.Time
}

// expired reports whether the entry is an old answer to a probe.
func (e *macEntry) expired() bool { return !e.at.IsZero() && time.Since(e.at) > confirmedTime }

func newMACTable() *macTable { return &macTable{seed: maphash.MakeSeed()} }

func (t *macTable) set(addr netip.Addr) *[macWays]atomic.Pointer[macEntry] {
	return &t.sets[maphash.Comparable(t.seed, addr)%macSets]
}

// find returns the entry of an address, or nil.
func (t *macTable) find(addr netip.Addr) *macEntry {
	set := t.set(addr)
	for i := range set {
		if e := set[i].Load(); e != nil && e.addr == addr {
			return e
		}
	}
	return nil
}

// put adds an entry or replaces the one with the same address.
func (t *macTable) put(e *macEntry) {
	set := t.set(e.addr)
	at := rand.IntN(macWays)
	for i := range set {
		was := set[i].Load()
		if was == nil {
			at = i
		} else if was.addr == e.addr {
			at = i
			break
		}
	}
	set[at].Store(e)
}

func (t *macTable) remove(addr netip.Addr) {
	set := t.set(addr)
	for i := range set {
		if e := set[i].Load(); e != nil && e.addr == addr {
			set[i].Store(nil)
		}
	}
}

// retain removes the entries for which keep returns false.
func (t *macTable) retain(keep func(netip.Addr) bool) {
	for i := range t.sets {
		for j := range t.sets[i] {
			if e := t.sets[i][j].Load(); e != nil && !keep(e.addr) {
				t.sets[i][j].Store(nil)
			}
		}
	}
}
