package route

import (
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
)

// askCells is the number of cells. Senders in different cells do not affect each other.
const askCells = 64

// asks is a queue of claims: IP addresses that packet sources claim to have, and that are to be resolved. It has a
// fixed number of cells. The hash of the sender's MAC address selects the cell of a claim. Each cell keeps one claim,
// chosen at random from all its claims (reservoir sampling), and the cells are served round robin. A sender that claims
// many IP addresses therefore fills only one cell. Senders that share a cell are separated in the next epoch, because
// the epoch is part of the hash.
//
// A sender that also forges MAC addresses can fill every cell. Therefore all claims are probed first, and only
// confirmed claims compete for the kernel's resolution.
type asks struct {
	seed  maphash.Seed
	epoch atomic.Uint32
	cells [askCells]askCell
	next  int           // next cell to serve; only the reader uses it
	wake  chan struct{} // has a token if there may be a claim
}

// askCell keeps one claim. busy is a lock without waiting: a claim for a busy cell is dropped.
type askCell struct {
	busy   atomic.Bool
	claims uint32 // number of claims since the last take
	addr   netip.Addr
	from   [6]byte
	_      [16]byte // pads to one cache line
}

// claimant is the hash key of a claim.
type claimant struct {
	from  [6]byte
	epoch uint32
}

func newAsks() *asks { return &asks{seed: maphash.MakeSeed(), wake: make(chan struct{}, 1)} }

// put adds a claim: the source of a packet claims to have this address. It does not block or allocate.
func (a *asks) put(addr netip.Addr, from [6]byte) {
	key := claimant{from, a.epoch.Load()}
	c := &a.cells[maphash.Comparable(a.seed, key)%askCells]
	if c.busy.Swap(true) {
		return
	}
	if c.claims < 1<<31 {
		c.claims++
	}
	if rand.Uint32N(c.claims) == 0 {
		c.addr, c.from = addr, from
	}
	c.busy.Store(false)
	a.wakeUp()
}

func (a *asks) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// take removes the claim of the next cell that has one. Only one goroutine calls it.
func (a *asks) take() (addr netip.Addr, from [6]byte, ok bool) {
	for range a.cells {
		c := &a.cells[a.next]
		a.next = (a.next + 1) % askCells
		if c.busy.Swap(true) {
			continue // the next claim wakes the reader again
		}
		addr, from, ok = c.addr, c.from, c.claims > 0
		c.claims = 0
		c.busy.Store(false)
		if ok {
			return addr, from, true
		}
	}
	return netip.Addr{}, from, false
}
