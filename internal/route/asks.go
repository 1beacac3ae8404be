package route

import (
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
)

// askCells is the number of senders that asks tells apart.
const askCells = 64

// asks holds the neighbours that should be resolved: one for each hash of the Ethernet address that the claim came
// from. Of the claims of one cell a random one is kept (reservoir sampling), and cells are served round robin. So an
// Ethernet address that claims any number of IP addresses delays that of another by one turn. Two that share a cell
// share it until the next turn of the epoch, which is part of the hash.
//
// Whoever forges Ethernet addresses too can fill every cell. So the claims are probed first, as many as come, and only those
// that are confirmed take turns for what the kernel resolves.
type asks struct {
	seed  maphash.Seed
	epoch atomic.Uint32
	cells [askCells]askCell
	next  int           // the cell to serve; the reader's
	wake  chan struct{} // has room for one: there may be something to take
}

// askCell is locked by a flag that nobody waits for: a claim that meets another at the same cell is dropped.
type askCell struct {
	busy   atomic.Bool
	claims uint32 // since the last take
	addr   netip.Addr
	from   [6]byte
	_      [16]byte // a cache line each
}

// claimant is what the cell of a claim depends on.
type claimant struct {
	from  [6]byte
	epoch uint32
}

func newAsks() *asks { return &asks{seed: maphash.MakeSeed(), wake: make(chan struct{}, 1)} }

// put asks for a neighbour that a packet from an Ethernet address claims to be. It does not block or allocate.
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

// take removes the claim of the next cell that has one. It belongs to one goroutine.
func (a *asks) take() (addr netip.Addr, from [6]byte, ok bool) {
	for range a.cells {
		c := &a.cells[a.next]
		a.next = (a.next + 1) % askCells
		if c.busy.Swap(true) {
			continue // its next claim wakes the reader again
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
