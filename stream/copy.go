package stream

import "io"

// WriteTo implements io.WriterTo: it passes what arrives to w until the end of the stream, straight from the receive
// ring. It returns nil at the end. io.Copy calls it. A Close meanwhile does not wait for w.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for took := 0; ; {
		p, err := c.peek(took)
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		took, err = w.Write(p)
		took = max(0, min(took, len(p)))
		n += int64(took)
		if err == nil && took < len(p) {
			err = io.ErrShortWrite
		}
		if err != nil {
			c.taken(took)
			return n, err
		}
	}
}

// peek frees the room of the last n bytes, waits for more, and returns some of them. They stay in the ring.
func (c *Conn) peek(n int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.read)
	c.skip(n)
	if err := c.arrival(1); err != nil {
		return nil, err
	}
	b := &c.in
	in, offset, k := b.span(b.consumed, min(b.received, b.consumed+pieceSize))
	return in.buf[offset : offset+k], nil
}

// taken frees the room of n bytes.
func (c *Conn) taken(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skip(n)
	c.handOver(&c.read)
}

// skip frees the room of n bytes, unless the stream was closed meanwhile. mu is held.
func (c *Conn) skip(n int) {
	if !c.closed {
		c.consume(n)
		c.flush()
	}
}

// ReadFrom implements io.ReaderFrom: it sends what r returns until io.EOF. The reader stores its bytes in the send ring.
// io.Copy and bufio.Writer call it. A Close meanwhile does not wait for r.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for k, full := 0, false; ; {
		p, err := c.lend(k, full)
		if err != nil {
			return n, err
		}
		k, err = r.Read(p)
		k = max(0, min(k, len(p)))
		full = k == len(p)
		n += int64(k)
		if err != nil {
			c.settle(k)
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
	}
}

// lend sends n bytes of the memory that it lent before, waits for room in the send ring, and lends some of it. If full
// is true, it lends more than the last time, as far as memory allows.
func (c *Conn) lend(n int, full bool) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.write)
	c.commit(n)
	b := &c.out
	want := 1
	if full {
		want = b.room() + 1
	}
	if err := c.vacancy(want); err != nil {
		return nil, err
	}
	b.lent = true
	in, offset, k := b.span(b.wrote, min(b.limit(b.done), b.wrote+pieceSize))
	return in.buf[offset : offset+k], nil
}

// settle sends n bytes of the memory that was lent.
func (c *Conn) settle(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commit(n)
	c.handOver(&c.write)
}

// commit ends the loan of memory and sends n bytes of it, unless the sending direction was closed meanwhile. mu is held.
func (c *Conn) commit(n int) {
	c.out.lent = false
	if !c.closed && !c.out.end {
		c.out.wrote += uint64(n)
		c.flush()
	}
}

var (
	_ io.WriterTo   = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
)
