package message

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
)

// DefaultMaxSize is the size of the largest message in bytes, unless SetMaxSize changes it.
const DefaultMaxSize = 16 << 20

// Conn sends and receives messages. Any number of goroutines may send, and one may receive at the same time.
type Conn struct {
	conn net.Conn
	in   reader
	recv interrupter // ends a blocked read

	sending chan struct{} // holds a token while a goroutine sends; guards the fields below
	send    interrupter   // ends a blocked write
	out     []byte        // header, and the first bytes of the payload

	broken atomic.Pointer[brokenError] // set when a Send was cut off
}

// firstWrite is the number of bytes that Send copies to write them together with the header.
const firstWrite = 4 << 10

// New returns a Conn that sends and receives messages over c. It owns c from then on.
func New(c net.Conn) *Conn {
	return &Conn{
		conn: c, in: newReader(c), sending: make(chan struct{}, 1),
		recv: interrupter{setDeadline: c.SetReadDeadline}, send: interrupter{setDeadline: c.SetWriteDeadline},
	}
}

// SetMaxSize sets the size of the largest message in bytes, for both directions. A peer that announces a larger message
// makes Recv fail; the next Recv returns the message after it. Larger values than 2 GiB - 1 count as that. SetMaxSize
// must be called before the first message.
func (c *Conn) SetMaxSize(n int) { c.in.max = min(n, math.MaxInt32) }

// NetConn returns the connection below. It is for addresses and options; reading or writing damages the messages.
func (c *Conn) NetConn() net.Conn { return c.conn }

// Close closes the connection below. Calls that block return an error that wraps net.ErrClosed.
func (c *Conn) Close() error {
	err := c.conn.Close()
	c.recv.release()
	c.send.release()
	return err
}

// Send sends p as one message. It blocks while the peer has no room for it, and p is free when Send returns. If the
// context ends before the first byte has left, Send returns its error and the connection stays good. If it ends later,
// the message is cut off: this call returns its error, and all further calls of Send fail with ErrBroken.
func (c *Conn) Send(ctx context.Context, p []byte) error {
	return c.write(ctx, header{kind: kindMessage}, p)
}

// Recv returns the next message. The bytes are valid until the next call of Recv, and the caller may change them. At
// the end of the stream, Recv returns io.EOF. If the context ends, Recv returns its error and loses nothing.
func (c *Conn) Recv(ctx context.Context) ([]byte, error) {
	h, p, err := c.read(ctx)
	if err == nil && h.kind != kindMessage {
		err = errors.New("message: the peer has sent a request to a Conn: answer requests with Serve")
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// read returns the next frame.
func (c *Conn) read(ctx context.Context) (h header, p []byte, err error) {
	if err = c.recv.begin(ctx); err != nil {
		return h, nil, err
	}
	if h, p, err = c.in.next(); err != nil {
		err = cause(ctx, err)
	}
	return h, p, err
}

// ErrBroken is the error of a Conn or Client that was cut off in the middle of a message: the peer cannot tell where the
// next one begins. Close it and connect again.
var ErrBroken = errors.New("message: the connection was cut off in the middle of a message: connect again")

// brokenError says why. It does not wrap the reason, such as the end of a context, because that is not the reason of
// later calls.
type brokenError struct{ why error }

func (e *brokenError) Error() string { return ErrBroken.Error() + " (" + e.why.Error() + ")" }
func (e *brokenError) Unwrap() error { return ErrBroken }

// write sends a frame.
func (c *Conn) write(ctx context.Context, h header, p []byte) error {
	if limit := c.in.limit(h.kind); len(p) > limit {
		return fmt.Errorf("message: %d bytes are more than the limit of %d (Conn.SetMaxSize)", len(p), limit)
	}
	select {
	case c.sending <- struct{}{}:
	default:
		select {
		case c.sending <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-c.sending }()
	if err := c.brokenBy(); err != nil {
		return err
	}
	if err := c.send.begin(ctx); err != nil {
		return err
	}
	h.length = uint32(len(p))
	k := min(len(p), firstWrite)
	c.out = append(h.append(c.out[:0]), p[:k]...)
	n, err := c.conn.Write(c.out)
	if err == nil && k < len(p) {
		_, err = c.conn.Write(p[k:])
	}
	if err != nil {
		err = cause(ctx, err)
		if n > 0 {
			c.broken.Store(&brokenError{err})
		}
	}
	return err
}

// brokenBy returns why no further message can be sent, or nil.
func (c *Conn) brokenBy() error {
	if err := c.broken.Load(); err != nil {
		return err
	}
	return nil
}
