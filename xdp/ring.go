package xdp

import "sync/atomic"

// desc is the kernel's struct xdp_desc: one packet, or one fragment of it, in the rx and tx rings.
type desc struct {
	addr    uint64
	len     uint32
	options uint32
}

// ring is the common part of the four rings: index words that are shared with the kernel, and local copies of them. The
// shared cache line is read only when the local copy says that the ring is empty or full.
//
// All shared words are accessed with sync/atomic. A load has acquire semantics and a store has release semantics, which
// pair with those of the kernel. Each word has one writer.
type ring struct {
	producer, consumer, flags *uint32
	prod, cons                uint32 // local copies; the copy of the word that the kernel writes may be old
	size, mask                uint32
}

// needWakeup reports whether the kernel looks at the ring only after a system call (XDP_USE_NEED_WAKEUP).
func (r *ring) needWakeup() bool { return atomic.LoadUint32(r.flags)&ringNeedWakeup != 0 }

// producer is a ring that we write: fill and tx.
type producer[T uint64 | desc] struct {
	ring
	slots []T
}

// reserve returns how many slots, at most n, put may write. It publishes nothing.
func (p *producer[T]) reserve(n uint32) uint32 {
	if p.size-(p.prod-p.cons) < n {
		p.cons = atomic.LoadUint32(p.consumer)
	}
	return min(n, p.size-(p.prod-p.cons))
}

// put writes the i-th reserved slot.
func (p *producer[T]) put(i uint32, v T) { p.slots[(p.prod+i)&p.mask] = v }

// submit publishes the first n reserved slots to the kernel. All of them must have been written.
func (p *producer[T]) submit(n uint32) {
	p.prod += n
	atomic.StoreUint32(p.producer, p.prod)
}

// backlog reads the shared word and returns how many submitted slots the kernel has not taken.
func (p *producer[T]) backlog() uint32 {
	p.cons = atomic.LoadUint32(p.consumer)
	return p.prod - p.cons
}

// consumer is a ring that the kernel writes: rx and completion.
type consumer[T uint64 | desc] struct {
	ring
	slots []T
}

// peek returns how many slots the method slot can read. It releases nothing.
func (c *consumer[T]) peek() uint32 {
	if c.prod == c.cons {
		c.prod = atomic.LoadUint32(c.producer)
	}
	return c.prod - c.cons
}

// refresh is peek, but always reads the shared word.
func (c *consumer[T]) refresh() uint32 {
	c.prod = atomic.LoadUint32(c.producer)
	return c.prod - c.cons
}

// slot returns the i-th of the slots that peek counted.
func (c *consumer[T]) slot(i uint32) T { return c.slots[(c.cons+i)&c.mask] }

// release returns the first n slots to the kernel.
func (c *consumer[T]) release(n uint32) {
	c.cons += n
	atomic.StoreUint32(c.consumer, c.cons)
}

// idleWord replaces the shared words of a closed ring, which then always looks empty.
var idleWord uint32

func idleRing() ring { return ring{producer: &idleWord, consumer: &idleWord, flags: &idleWord} }
