package stream

import (
	"io"
	"sync"
)

// pieces has buffers for the bytes between a stream and a reader or writer.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// WriteTo implements io.WriterTo: it passes what arrives to w until the end of the stream. It returns nil at the end.
// io.Copy calls it. While w takes its bytes, other calls of the stream go on: a Close meanwhile does not wait for w, and
// a Read gets the bytes that follow. Bytes that w has not taken are lost.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	for {
		if err := c.awaitBytes(); err != nil {
			if err == io.EOF {
				err = nil
			}
			return n, err
		}
		took, err := c.passTo(w)
		n += int64(took)
		if err != nil {
			return n, err
		}
	}
}

// awaitBytes waits until bytes have arrived. While it waits, a WriteTo holds no buffer.
func (c *Conn) awaitBytes() error {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.read)
	return c.arrival(1)
}

// passTo passes bytes that have arrived to w. It passes none if another call has read them.
func (c *Conn) passTo(w io.Writer) (took int, err error) {
	b := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(b)
	k := c.arrived(b[:])
	if k == 0 {
		return 0, nil
	}
	took, err = w.Write(b[:k])
	took = max(0, min(took, k))
	if err == nil && took < k {
		err = io.ErrShortWrite
	}
	return took, err
}

// arrived reads bytes that have arrived, and does not wait.
func (c *Conn) arrived(p []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.read)
	if c.closed() {
		return 0
	}
	return c.take(p)
}

// ReadFrom implements io.ReaderFrom: it sends what r returns until io.EOF. io.Copy and bufio.Writer call it. While r
// returns its bytes, other calls of the stream go on: a Close meanwhile does not wait for r, and a Write sends its bytes.
func (c *Conn) ReadFrom(r io.Reader) (n int64, err error) {
	var b readBuffer
	defer b.free()
	for {
		p, err := b.from(r)
		if len(p) > 0 {
			sent, werr := c.Write(p)
			n += int64(sent)
			if werr != nil {
				return n, werr
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// readBuffer is the buffer of a ReadFrom. It begins with minCopy bytes. A reader that fills it gets the next larger one,
// so that a slow reader, for which a ReadFrom may wait all day, holds little memory.
type readBuffer struct {
	buf    []byte
	pooled *[pieceSize]byte // buf is its memory, which belongs to pieces; nil for a smaller buffer
	full   bool             // the last read has filled buf
}

const (
	minCopy    = 2 << 10 // bytes
	copyGrowth = 4
)

// from reads from r once, and returns what it has read.
func (b *readBuffer) from(r io.Reader) ([]byte, error) {
	if b.buf == nil || b.full && b.pooled == nil {
		b.grow()
	}
	n, err := r.Read(b.buf)
	n = max(0, min(n, len(b.buf)))
	b.full = n == len(b.buf)
	return b.buf[:n], err
}

func (b *readBuffer) grow() {
	size := max(minCopy, copyGrowth*len(b.buf))
	if size < pieceSize {
		b.buf = make([]byte, size)
		return
	}
	b.pooled = pieces.Get().(*[pieceSize]byte)
	b.buf = b.pooled[:]
}

func (b *readBuffer) free() {
	if b.pooled != nil {
		pieces.Put(b.pooled)
	}
}

var (
	_ io.WriterTo   = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
)
