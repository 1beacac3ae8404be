package message

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
)

// kind says what a frame is.
type kind uint32

const (
	kindMessage  kind = iota // a message of Send
	kindRequest              // a request of Call
	kindResponse             // the response of a handler
	kindError                // the text of a handler's error
)

const (
	headerSize = 8
	idBits     = 30
	idMask     = 1<<idBits - 1
)

// header precedes each payload.
type header struct {
	length uint32 // bytes of the payload
	kind   kind
	id     uint32 // number of the request; 0 for a message
}

func (h header) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.length)
	return binary.LittleEndian.AppendUint32(b, uint32(h.kind)<<idBits|h.id)
}

// parseHeader parses the first headerSize bytes of b.
func parseHeader(b []byte) header {
	tag := binary.LittleEndian.Uint32(b[4:])
	return header{length: binary.LittleEndian.Uint32(b), kind: kind(tag >> idBits), id: tag & idMask}
}

// source gives access to received bytes in place. A stream.Conn is a source.
type source interface {
	// Peek returns received bytes without consuming them. It blocks until there is at least one byte. The bytes are
	// valid until the next call of Discard.
	Peek() ([]byte, error)
	// Discard consumes n bytes that Peek has returned.
	Discard(n int)
}

// newReader returns a reader whose source is the connection itself, if it is a source, or a buffer for it.
func newReader(c net.Conn) reader {
	if s, ok := c.(source); ok {
		return reader{src: s, copies: true, max: DefaultMaxSize}
	}
	return reader{src: &buffer{conn: c}, max: DefaultMaxSize}
}

// buffer is the source of a connection that cannot show received bytes in place.
type buffer struct {
	conn net.Conn
	buf  []byte
	r, w int // buf[r:w] is received and not consumed
}

const bufferSize = 64 << 10

func (b *buffer) Peek() ([]byte, error) {
	if b.r < b.w {
		return b.buf[b.r:b.w], nil
	}
	if b.buf == nil {
		b.buf = make([]byte, bufferSize)
	}
	n, err := b.conn.Read(b.buf)
	b.r, b.w = 0, n
	if n > 0 {
		err = nil // Read returns the error again
	}
	return b.buf[:n], err
}

func (b *buffer) Discard(n int) { b.r += n }

// ahead reads until the buffer is full, and leaves the bytes in it as they are.
func (b *buffer) ahead() error {
	for b.w < len(b.buf) {
		n, err := b.conn.Read(b.buf[b.w:])
		if b.w += n; err != nil {
			return err
		}
	}
	return nil
}

// reader cuts received bytes into frames.
type reader struct {
	src    source
	copies bool   // copy each frame before it is checked, because the peer can change the memory of src
	max    int    // largest payload in bytes
	held   int    // bytes of the last frame that are still to be consumed
	part   []byte // start of an incomplete frame
	full   bool   // part is the last frame that was returned
	skip   int64  // bytes of the payload of large, which are still to come
	large  *sizeError
	late   bool // return a sizeError after the payload has come, in place of before
}

// sizeError is the error for a frame that is larger than the limit. The reader skips its payload.
type sizeError struct {
	header
	limit int
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("message: the peer announces %d bytes, more than the limit of %d (Conn.SetMaxSize)", e.length, e.limit)
}

// next returns the next frame. The payload is valid until the next call. After a timeout or a sizeError, next may be called
// again.
func (r *reader) next() (h header, payload []byte, err error) {
	r.release()
	for {
		b, err := r.src.Peek()
		if err != nil {
			if err == io.EOF && r.within() {
				err = io.ErrUnexpectedEOF
			}
			return header{}, nil, err
		}
		if r.skip > 0 {
			if r.drop(len(b)); r.skip == 0 && r.late {
				return r.large.header, nil, r.large
			}
			continue
		}
		h, payload, err := r.cut(b)
		if payload != nil || err != nil && !r.late {
			return h, payload, err
		}
	}
}

// cut takes a frame from received bytes. The payload is nil if the frame is incomplete.
func (r *reader) cut(b []byte) (h header, payload []byte, err error) {
	if !r.copies && len(r.part) == 0 && len(b) >= headerSize {
		if h, err = r.check(b); err != nil {
			r.src.Discard(headerSize)
			return h, nil, err
		}
		if n := headerSize + int(h.length); len(b) >= n {
			r.held = n
			return h, b[headerSize:n:n], nil
		}
	}
	if h, err = r.collect(b); err == nil && r.full {
		payload = r.part[headerSize:]
	}
	return h, payload, err
}

// ahead waits for the end of the connection. It returns nil if it cannot, because further bytes wait. The frame that next
// has returned stays valid.
func (r *reader) ahead() error {
	if b, ok := r.src.(*buffer); ok {
		return b.ahead()
	}
	_, err := r.src.Peek()
	return err
}

// release consumes the frame that next returned last.
func (r *reader) release() {
	if r.held > 0 {
		r.src.Discard(r.held)
		r.held = 0
	}
	if r.full {
		r.full = false
		r.part = r.part[:0]
		if cap(r.part) > bufferSize {
			r.part = nil // do not keep the memory of a rare large message
		}
	}
}

// collect consumes received bytes of an incomplete frame and appends them to part. It sets full when the frame is whole.
func (r *reader) collect(b []byte) (h header, err error) {
	n := min(len(b), headerSize-min(len(r.part), headerSize))
	r.part = append(r.part, b[:n]...)
	if len(r.part) >= headerSize {
		if h, err = r.check(r.part); err != nil {
			r.part = r.part[:0]
			r.src.Discard(n)
			return h, err
		}
		whole := headerSize + int(h.length)
		k := min(len(b)-n, whole-len(r.part))
		if k > cap(r.part)-len(r.part) { // at most twice the memory of what has arrived
			r.part = slices.Grow(r.part, min(whole-len(r.part), len(r.part)+k))
		}
		r.part = append(r.part, b[n:n+k]...)
		n += k
		r.full = len(r.part) == whole
	}
	r.src.Discard(n)
	return h, nil
}

// within reports whether a part of a frame has arrived.
func (r *reader) within() bool { return len(r.part) > 0 || r.skip > 0 }

// drop consumes bytes of the payload to skip, at most n.
func (r *reader) drop(n int) {
	n = int(min(int64(n), r.skip))
	r.src.Discard(n)
	r.skip -= int64(n)
}

// check parses a header and checks it. After an error, the payload is to be skipped.
func (r *reader) check(b []byte) (header, error) {
	h := parseHeader(b)
	if limit := r.limit(h.kind); int64(h.length) > int64(limit) {
		r.skip, r.large = int64(h.length), &sizeError{h, limit}
		return h, r.large
	}
	return h, nil
}

// limit returns the size of the largest payload. The text of an error is short, so it is within every limit.
func (r *reader) limit(k kind) int {
	if k == kindError {
		return max(r.max, maxErrorText)
	}
	return r.max
}
