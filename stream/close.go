package stream

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// life is the part of its life in which a stream is.
type life uint8

const (
	inUse   life = iota // the program uses it
	pending             // a listener has accepted the connection, which is not established
	closing             // Close runs
	orphan              // Close has returned, and the agent delivers what was written (see orphans)
	freed               // it has no objects any more
)

// closed reports whether Close was called.
func (c *Conn) closed() bool { return c.life >= closing }

// Close ends the stream in both directions. Blocked calls return net.ErrClosed. Close returns at once, as that of a TCP
// connection does: the stream delivers what was written in the background, as long as the peer takes it, and then the
// peer reads io.EOF. A program that ends must wait for that with Drain, because the protocol runs in its process.
//
// Close waits for the peer's acknowledgement, for at most 10 ms, if nothing else is outstanding. So a short program that
// ends after Close has delivered what it wrote, unless the peer does not read. With SetLinger, Close waits longer.
//
// Close returns an error if the stream was closed before, if the linger time has passed (os.ErrDeadlineExceeded), or if
// too many closed streams have bytes to deliver (syscall.ENOBUFS): then it resets the stream.
func (c *Conn) Close() error {
	if err := c.shut(); err != nil {
		return c.opError("close", err)
	}
	left, err := c.finish()
	if !left {
		c.free()
	}
	return err
}

// shut makes all other calls fail, now and later.
func (c *Conn) shut() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return net.ErrClosed
	}
	c.life = closing
	c.interrupt(&c.read)
	c.interrupt(&c.write)
	return nil
}

// finish sends what is left and the end, and waits as long as Close may. Then it waits until no other call is in the event
// dispatcher. It reports whether something is left for the agent; if not, the caller frees the stream. A ReadFrom or
// WriteTo that waits for its reader or writer does not delay Close: when it goes on, it finds the stream closed.
func (c *Conn) finish() (left bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.deliver()
	c.closing.deadline = time.Time{}
	for c.closing.blocked = true; c.leader != nil; {
		c.follow(&c.closing)
	}
	c.closing.blocked = false
	if c.linger == 0 || c.delivered() {
		c.life = freed
		return false, nil
	}
	if !c.abandon() {
		c.life = freed
		return false, c.opError("close", errOrphans)
	}
	return c.life == orphan, err
}

var errOrphans = failed(syscall.ENOBUFS, "too many closed streams have bytes to deliver to this peer")

// deliver sends what was written and the end, and waits for their acknowledgement: for the linger time, or for closeWait
// if nothing else is outstanding.
func (c *Conn) deliver() error {
	if c.linger == 0 {
		return nil
	}
	c.race.out.release()
	c.out.end = true
	wait := c.linger
	if c.linger < 0 {
		wait = c.stack.orphans.closeWait()
	}
	c.closing.deadline = time.Now().Add(wait)
	for {
		c.drain()
		c.flush()
		switch {
		case c.delivered(), c.linger < 0 && !c.out.idle():
			return nil
		case c.closing.expired() && c.linger < 0:
			c.stack.orphans.hasten()
			return nil
		case c.closing.expired():
			return c.opError("close", os.ErrDeadlineExceeded)
		}
		c.await(&c.closing)
	}
}

// delivered reports whether nothing is left to do for a closed stream.
func (c *Conn) delivered() bool { return c.phase == ended || c.out.acknowledged() }

// free frees everything of the connection. Nothing blocks in it any more.
func (c *Conn) free() {
	s := c.stack
	s.forget(c)
	c.withdraw()
	c.unwatch()
	c.race.close()
	if c.ep != nil {
		_ = c.ep.Free()
	}
	if c.evd != nil {
		_ = c.evd.Free()
	}
	if c.cno != nil {
		_ = c.cno.Free()
	}
	if c.slotMem != nil {
		_ = c.slotMem.Free()
	}
	for _, r := range []ring{c.in.first, c.in.second, c.in.announced, c.out.first, c.out.second} {
		c.freeRing(r)
	}
	if c.pz != nil {
		_ = c.pz.Free()
	}
	s.release()
}

// CloseWrite ends the sending direction: the peer reads io.EOF after the last byte. Reading goes on. A blocked Write
// returns an error.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.halfClosable(); err != nil {
		return err
	}
	c.race.out.release()
	c.out.end = true
	c.interrupt(&c.write)
	c.flush()
	c.watchIfDue()
	return nil
}

// CloseRead ends the receiving direction: Reads return io.EOF, also one that is blocked. The stream discards what has
// arrived and what arrives later, so that the peer can go on writing. Writing goes on.
func (c *Conn) CloseRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.halfClosable(); err != nil {
		return err
	}
	c.in.closed = true
	c.drain()
	c.discard()
	c.interrupt(&c.read)
	c.flush()
	c.watchIfDue()
	return nil
}

// halfClosable returns the error of CloseWrite and CloseRead, or nil. A stream that the peer has closed can still be closed
// in each direction, as in package net. mu is held.
func (c *Conn) halfClosable() error {
	switch {
	case c.closed():
		return c.opError("close", net.ErrClosed)
	case c.phase == ended && c.cause != io.EOF:
		return c.opError("close", c.cause)
	}
	return nil
}

// SetLinger says what Close does with bytes that the peer has not acknowledged. The signature is that of
// net.TCPConn.SetLinger.
//
//   - sec < 0, the default: Close returns at once, and the stream delivers them in the background.
//   - sec = 0: Close drops them, and the peer's Read fails.
//   - sec > 0: Close waits until they are delivered, for at most sec seconds. After that it returns
//     os.ErrDeadlineExceeded, and the stream goes on in the background.
func (c *Conn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed() {
		return c.opError("set", net.ErrClosed)
	}
	c.linger = linger(sec)
	return nil
}

// linger returns the time of SetLinger(sec).
func linger(sec int) time.Duration {
	const most = int(maxLinger / time.Second)
	return time.Duration(max(-1, min(sec, most))) * time.Second
}

// lingerOf returns the time of SetLinger for the option Linger, whose zero value means the default.
func lingerOf(option time.Duration) time.Duration {
	switch {
	case option == 0:
		return -1
	case option < 0:
		return 0
	}
	return min(option, maxLinger)
}

// maxLinger is the longest linger time. It keeps the arithmetic of times from an overflow.
const maxLinger = 365 * 24 * time.Hour
