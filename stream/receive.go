package stream

import (
	"io"

	"github.com/datxdp/datxdp/dat"
)

// inbox is the receiving half of a stream. Conn.mu guards it.
type inbox struct {
	rings
	announced ring // another ring that the peer knows of but does not use yet; buf is nil for none

	received uint64 // position after the last byte that has arrived
	consumed uint64 // position after the last byte that the application has read
	reported uint64 // consumed at the last credit
	messages uint32 // data messages since the last credit
	ended    bool   // the peer sends no further bytes
	closed   bool   // CloseRead was called: bytes are consumed as they arrive
}

// data takes a data message of n bytes, or a credit without data if n is 0. No bytes may follow the end.
func (b *inbox) data(n uint64) error {
	if n == 0 {
		return nil
	}
	if b.ended || b.received+n > b.limit(b.consumed) {
		return errProtocol
	}
	b.received += n
	b.messages++
	return nil
}

// switched starts the use of the announced ring.
func (b *inbox) switched() error {
	if b.announced.buf == nil || b.growing() {
		return errProtocol
	}
	b.announced.base = b.received
	b.add(b.announced)
	b.announced = ring{}
	return nil
}

// full reports whether the rings are so full that a larger one is worth its memory.
func (b *inbox) full() bool {
	return b.announced.buf == nil && !b.growing() && b.size() < maxRing && b.received-b.consumed >= uint64(b.size()/2)
}

// creditDue reports whether the peer should be told what has been taken without a data message: more than half of the
// messages or more than half of the rings. So of two credits that the peer has not handled, each is for other messages
// or bytes, and few of them are under way (see maxControls).
func (b *inbox) creditDue() bool {
	return b.messages > maxMessages/2 || b.consumed-b.reported > uint64(len(b.first.buf)+len(b.second.buf))/2
}

// credit returns the credit for the peer.
func (b *inbox) credit() credit {
	c := credit{messages: b.messages, consumed: b.consumed - b.reported}
	b.messages, b.reported = 0, b.consumed
	return c
}

// Read implements net.Conn. It returns io.EOF after the last byte of a peer that has called Close or CloseWrite.
func (c *Conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.read)
	if err := c.arrival(len(p)); err != nil {
		return 0, err
	}
	return c.take(p), nil
}

// arrival waits until bytes have arrived. It does not wait if the call wants none, and then it ignores the deadline, as
// package net does.
func (c *Conn) arrival(want int) error {
	if want == 0 && !c.closed() {
		return nil
	}
	for {
		if err := c.usable(&c.read); err != nil {
			return c.opError("read", err)
		}
		switch {
		case c.in.closed:
			return io.EOF
		case c.in.received > c.in.consumed:
			c.race.in.acquire()
			return nil
		case c.in.ended:
			c.race.in.acquire()
			return io.EOF
		case c.phase == ended:
			return c.opError("read", c.cause)
		}
		c.await(&c.read)
	}
}

// take copies received bytes to p.
func (c *Conn) take(p []byte) (n int) {
	b := &c.in
	c.race.in.acquire()
	for n < len(p) && b.consumed < b.received {
		in, offset, k := b.span(b.consumed, b.received)
		k = copy(p[n:], in.buf[offset:offset+k])
		n += k
		c.consume(k)
	}
	c.flush()
	return n
}

// consume frees the room of n bytes that the application has read.
func (c *Conn) consume(n int) {
	c.in.consumed += uint64(n)
	c.retireIn()
}

// discard consumes what has arrived, after CloseRead.
func (c *Conn) discard() { c.consume(int(c.in.received - c.in.consumed)) }

// retireIn frees the first receive ring if it has no bytes left and there is a second one.
func (c *Conn) retireIn() {
	if old, ok := c.in.retire(c.in.consumed); ok {
		c.freeRing(old)
	}
}

// enlarge replaces the receive ring by a larger one if it is full.
func (c *Conn) enlarge() {
	if c.in.full() {
		c.announce(min(c.in.size()*ringGrowth, maxRing))
	}
}

// announce allocates a receive ring of another size, and announces it to the peer. Without memory, the stream goes on
// with the ring that it has.
func (c *Conn) announce(size int) {
	r, err := c.newRing(size, dat.MemLocalWrite|dat.MemRemoteWrite)
	if err != nil {
		return
	}
	c.in.announced = r
	c.out.announce = true
	c.stack.keepTidy(c)
}
