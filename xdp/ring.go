package xdp

import "sync/atomic"

// desc is the kernel's struct xdp_desc: one frame, or one piece of a packet, in the rx and tx rings.
type desc struct {
	addr    uint64
	len     uint32
	options uint32
}

// ring is what the four rings have in common: two words shared with the kernel, and our copies of
// them, so that the shared line is read only when the copy says that there is nothing left.
//
// All shared words are loaded and stored with sync/atomic: a load is the acquire and a store the
// release that the kernel's side pairs with. Each word has one writer.
type ring struct {
	producer, consumer, flags *uint32
	prod, cons                uint32 // our own word is exact; the kernel's is as last seen
	size, mask                uint32
}

// needWakeup says that the kernel asks for a system call before it looks at the ring.
func (r *ring) needWakeup() bool { return atomic.LoadUint32(r.flags)&ringNeedWakeup != 0 }

// producer is a ring that we write: fill and tx.
type producer[T uint64 | desc] struct {
	ring
	slots []T
}

// reserve returns how many slots, at most n, may be written with put. It moves nothing.
func (p *producer[T]) reserve(n uint32) uint32 {
	if p.size-(p.prod-p.cons) < n {
		p.cons = atomic.LoadUint32(p.consumer)
	}
	return min(n, p.size-(p.prod-p.cons))
}

// put writes the i-th reserved slot.
func (p *producer[T]) put(i uint32, v T) { p.slots[(p.prod+i)&p.mask] = v }

// submit hands exactly the first n reserved slots, all written, to the kernel.
func (p *producer[T]) submit(n uint32) {
	p.prod += n
	atomic.StoreUint32(p.producer, p.prod)
}

// backlog returns how many submitted slots the kernel has not taken, as the shared word says now.
func (p *producer[T]) backlog() uint32 {
	p.cons = atomic.LoadUint32(p.consumer)
	return p.prod - p.cons
}

// consumer is a ring that the kernel writes: rx and completion.
type consumer[T uint64 | desc] struct {
	ring
	slots []T
}

// peek returns how many slots can be read with at. It moves nothing.
func (c *consumer[T]) peek() uint32 {
	if c.prod == c.cons {
		c.prod = atomic.LoadUint32(c.producer)
	}
	return c.prod - c.cons
}

// refresh is peek with the kernel's word read anew.
func (c *consumer[T]) refresh() uint32 {
	c.prod = atomic.LoadUint32(c.producer)
	return c.prod - c.cons
}

// at reads the i-th slot that peek promised.
func (c *consumer[T]) at(i uint32) T { return c.slots[(c.cons+i)&c.mask] }

// release gives exactly the first n slots back to the kernel.
func (c *consumer[T]) release(n uint32) {
	c.cons += n
	atomic.StoreUint32(c.consumer, c.cons)
}

// idle words stand in for a closed ring's: every verb then finds nothing.
var idleWord uint32

func idleRing() ring { return ring{producer: &idleWord, consumer: &idleWord, flags: &idleWord} }
