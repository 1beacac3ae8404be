package stream

import (
	"errors"
	"net/netip"

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

// memoryQuota returns the quota of the bytes by which the rings of an adapter grow.
func memoryQuota() quota {
	return quota{limit: maxMemory, address: memoryShare, network: memoryNetwork}
}

// peer returns the address whose shares the stream uses.
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
