package stream

import (
	"errors"
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/dat"
)

// Limits of the bytes by which rings may grow beyond minRing. Less is left for an address the more others use: one address
// gets a fifth of maxMemory at most, and the addresses of one network get a third. 16 networks that take all they can,
// such as those of an IPv6 /60, leave a newcomer more than the first growth of its rings.
const (
	maxMemory     = 256 << 20 // of all streams of an adapter together
	memoryShare   = 4         // an address may have 1/memoryShare of the free bytes
	memoryNetwork = 2         // a network (IPv4 /24, IPv6 /64) may have 1/memoryNetwork of the free bytes
)

var errMemory = errors.New("the rings of this adapter's streams may not grow any further")

// memory counts the bytes by which rings have grown.
type memory struct {
	mu   sync.Mutex // guards the fields below
	used int
	of   map[netip.Prefix]int // by addresses and networks
}

// owners returns the prefixes to which the rings of a peer belong.
func owners(peer netip.Addr) (address, network netip.Prefix) {
	peer = peer.Unmap()
	bits := 64
	if peer.Is4() {
		bits = 24
	}
	network, _ = peer.Prefix(bits) // the bits are valid
	return netip.PrefixFrom(peer.WithZone(""), peer.BitLen()), network
}

// fits reports whether the rings of a peer may grow by n bytes. mu is held.
func (m *memory) fits(peer netip.Addr, n int) bool {
	address, network := owners(peer)
	free := maxMemory - m.used - n
	return m.of[address]+n <= free/memoryShare && m.of[network]+n <= free/memoryNetwork
}

// take counts n bytes, if the rings of a peer may grow by so many.
func (m *memory) take(peer netip.Addr, n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 && !m.fits(peer, n) {
		return false
	}
	m.add(peer, n)
	return true
}

// give returns what take has counted.
func (m *memory) give(peer netip.Addr, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(peer, -n)
}

func (m *memory) add(peer netip.Addr, n int) {
	if n == 0 {
		return
	}
	if m.of == nil {
		m.of = map[netip.Prefix]int{}
	}
	m.used += n
	address, network := owners(peer)
	for _, owner := range []netip.Prefix{address, network} {
		if m.of[owner] += n; m.of[owner] == 0 {
			delete(m.of, owner)
		}
	}
}

// short reports whether the rings of a peer have so little to grow that it should give back what it does not need.
func (m *memory) short(peer netip.Addr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.fits(peer, maxRing)
}

// peer returns the address whose share the rings of the stream use.
func (c *Conn) peer() netip.Addr { return c.remote.AddrPort().Addr() }

// newRing allocates a ring and registers it. Bytes beyond minRing count toward maxMemory, so that a new stream always
// has its rings, however large those of others are.
func (c *Conn) newRing(size int, priv dat.MemPriv) (r ring, err error) {
	s := c.stack
	if !s.memory.take(c.peer(), size-minRing) {
		s.hurry()
		return r, errMemory
	}
	r.buf = make([]byte, size)
	if r.mem, err = s.ia.CreateLMR(r.buf, c.pz, priv); err != nil {
		s.memory.give(c.peer(), size-minRing)
		return ring{}, err
	}
	return r, nil
}

// freeRing frees a ring, which may be the zero ring.
func (c *Conn) freeRing(r ring) {
	if r.mem == nil {
		return
	}
	_ = r.mem.Free() // fails only if the adapter is closed
	c.stack.memory.give(c.peer(), len(r.buf)-minRing)
}

// remote returns the ring as the peer addresses it.
func (r *ring) remote() remoteRing {
	return remoteRing{context: r.mem.RMRContext(), address: r.mem.Address(), size: uint32(len(r.buf))}
}
