package stream

// Peek returns received bytes in the ring into which the peer has written them, without a copy. It does not consume them.
// It blocks until there is at least one byte, and returns as many as are contiguous. The bytes are valid until the next
// call of Discard, Read, WriteTo or Close, and until then the caller may change them. A peer that violates the protocol
// may change them too: to check bytes of such a peer, copy them first. The errors are those of Read.
func (c *Conn) Peek() ([]byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.read)
	if err := c.arrival(1); err != nil {
		return nil, err
	}
	in, offset, n := c.in.span(c.in.consumed, c.in.received)
	return in.buf[offset : offset+n : offset+n], nil
}

// Discard consumes n bytes that Peek has returned, and frees their room for the peer. Bytes beyond those that have been
// received are not consumed. After Close, Discard does nothing.
func (c *Conn) Discard(n int) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return // free has run
	}
	for n > 0 && c.in.consumed < c.in.received {
		_, _, k := c.in.span(c.in.consumed, c.in.received)
		k = min(k, n)
		n -= k
		c.consume(k)
	}
	c.flush()
}
