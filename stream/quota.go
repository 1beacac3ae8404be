package stream

import (
	"net/netip"
	"sync"
)

// quota divides a number of units, such as bytes, among addresses and networks by dynamic thresholds: an address may have
// 1/address of the free units, and a network (IPv4 /24, IPv6 /64) 1/network of them. So less is left for an address the
// more others use.
type quota struct {
	limit            int
	address, network int

	mu   sync.Mutex // guards the fields below
	used int
	of   map[netip.Prefix]int // by addresses and networks
}

// owners returns the prefixes to which the units of a peer belong.
func owners(peer netip.Addr) (address, network netip.Prefix) {
	peer = peer.Unmap()
	bits := 64
	if peer.Is4() {
		bits = 24
	}
	network, _ = peer.Prefix(bits) // the bits are valid
	return netip.PrefixFrom(peer.WithZone(""), peer.BitLen()), network
}

// fits reports whether a peer may have n more units. mu is held.
func (q *quota) fits(peer netip.Addr, n int) bool {
	address, network := owners(peer)
	free := q.limit - q.used - n
	return q.of[address]+n <= free/q.address && q.of[network]+n <= free/q.network
}

// take counts n units, if a peer may have so many.
func (q *quota) take(peer netip.Addr, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > 0 && !q.fits(peer, n) {
		return false
	}
	q.add(peer, n)
	return true
}

// give returns what take has counted.
func (q *quota) give(peer netip.Addr, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(peer, -n)
}

func (q *quota) add(peer netip.Addr, n int) {
	if n == 0 {
		return
	}
	if q.of == nil {
		q.of = map[netip.Prefix]int{}
	}
	q.used += n
	address, network := owners(peer)
	for _, owner := range []netip.Prefix{address, network} {
		if q.of[owner] += n; q.of[owner] == 0 {
			delete(q.of, owner)
		}
	}
}

// short reports whether a peer may not have n more units.
func (q *quota) short(peer netip.Addr, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.fits(peer, n)
}
