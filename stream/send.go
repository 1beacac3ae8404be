package stream

import (
	"io"
	"math/bits"
	"net"

	"github.com/datxdp/datxdp/dat"
)

const (
	// maxMessages is the number of data messages that may be without credit. The receiver has a receive for each. With
	// 8 of them, the work queues and the event dispatcher of a stream take 6 KiB; with 16 they took 11 KiB.
	maxMessages = 8
	// maxControls is the number of control messages that may be outstanding. The receiver has a receive for each. At
	// most 7 are needed: a credit for messages, three credits for bytes (two for those of an old ring, one for those of
	// the next), and one each of controlRing, controlSwitch and controlEnd.
	maxControls = 7
	// maxUnusedRings is the number of rings that the peer may announce in succession without a data message between them.
	// The peer announces a larger ring when bytes have half filled the last one, and the first size again when it is idle.
	maxUnusedRings = 2
	// maxMessage is the size of the largest data message in bytes.
	maxMessage = 128 << 10

	// pieceSize is the number of bytes that Write copies before it posts what it has copied: the engine sends them while
	// Write copies the next bytes.
	pieceSize = 64 << 10

	isControl = 1 << 63 // flag in the cookie of a request: a control message; the rest is its slot
)

// outbox is the sending half of a stream. Conn.mu guards it.
type outbox struct {
	rings
	wrote  uint64 // position after the last byte that Write has stored
	posted uint64 // position after the last byte that is posted
	done   uint64 // position after the last byte that the peer has acknowledged

	peer     window
	next     remoteRing // the ring that the peer has announced; size is 0 for none
	unused   int        // rings that the peer has announced since the last data message
	messages uint32     // data messages without credit
	posts    int        // data messages without completion

	announce   bool // the announcement of a ring is due
	end, ended bool // the end is asked for; it is posted
	slots      uint // bit set of the free slots for control messages
}

// window is the receive ring of the peer, and what is free of it.
type window struct {
	remoteRing
	base     uint64 // position of the ring's first byte
	consumed uint64 // position up to which the peer's application has read
}

// limit returns the position up to which the peer has room.
func (w *window) limit() uint64 { return max(w.consumed, w.base) + uint64(w.size) }

// span returns the remote range for the bytes from position p on, as far as it is contiguous and ends at q or before.
func (w *window) span(p, q uint64) (to dat.RMRTriplet, n int) {
	offset := (p - w.base) % uint64(w.size)
	n = int(min(q-p, uint64(w.size)-offset))
	return dat.RMRTriplet{Context: w.context, Address: w.address + offset, Length: uint64(n)}, n
}

// credit takes a credit of the peer.
func (b *outbox) credit(c credit) error {
	if c.messages > b.messages || c.consumed > b.posted-b.peer.consumed {
		return errProtocol
	}
	b.messages -= c.messages
	b.peer.consumed += c.consumed
	return nil
}

// announced takes a ring that the peer has announced.
func (b *outbox) announced(r remoteRing) error {
	if b.next.size > 0 || b.unused == maxUnusedRings {
		return errProtocol
	}
	b.next = r
	b.unused++
	return nil
}

// room returns the number of bytes that the send ring has room for.
func (b *outbox) room() int { return int(b.limit(b.done) - b.wrote) }

// idle reports whether everything that was written has left, and the end if it was asked for.
func (b *outbox) idle() bool {
	return b.posted == b.wrote && !b.announce && b.next.size == 0 && b.end == b.ended
}

// acknowledged reports whether the peer has everything.
func (b *outbox) acknowledged() bool {
	return b.idle() && b.done == b.wrote && b.slots == allSlots
}

const allSlots = 1<<maxControls - 1

// Write implements net.Conn. It copies p, so that p is free when Write returns. It blocks while the send ring is full.
func (c *Conn) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOver(&c.write)
	for {
		if err := c.vacancy(len(p) - n); err != nil {
			return n, err
		}
		c.race.out.release()
		n += c.store(p[n:min(len(p), n+pieceSize)])
		c.flush()
		if n == len(p) {
			return n, nil
		}
	}
}

// vacancy waits until the send ring has room. It enlarges a ring that has no room for n bytes, and does not wait if n
// is 0.
func (c *Conn) vacancy(n int) error {
	for {
		if err := c.writable(); err != nil {
			return c.opError("write", err)
		}
		c.drain()
		if err := c.makeRoom(n); err != nil {
			return c.opError("write", c.stack.ended(err))
		}
		if c.out.room() > 0 || n == 0 {
			return nil
		}
		c.await(&c.write)
	}
}

// writable returns the error of a Write that cannot store anything.
func (c *Conn) writable() error {
	switch {
	case c.closed():
		return net.ErrClosed
	case c.out.end:
		return errClosedWrite
	case c.phase == ended && c.cause == io.EOF:
		return errPipe
	case c.phase == ended:
		return c.cause
	}
	return c.usable(&c.write)
}

// makeRoom enlarges the send ring if it has no room for n bytes, also again while the peer reads nothing. It returns an
// error if there is no send ring.
func (c *Conn) makeRoom(n int) error {
	b := &c.out
	c.used = true
	if b.done == b.wrote && !b.growing() {
		b.first.base = b.wrote // begin at the start of the ring, which is in the cache
	}
	if n <= b.room() || b.size() == maxRing || b.growing() && b.posted > b.second.base {
		return nil
	}
	size := max(minRing, b.size()*ringGrowth)
	for size < n {
		size *= 2
	}
	r, err := c.newRing(min(size, maxRing), dat.MemLocalRead)
	if err != nil && b.size() == 0 {
		r, err = c.newRing(minRing, dat.MemLocalRead)
	}
	if err != nil {
		if b.size() > 0 {
			return nil
		}
		return err
	}
	if b.growing() {
		c.freeRing(b.replace(r, b.wrote))
		return nil
	}
	r.base = b.wrote
	b.add(r)
	c.stack.keepTidy(c)
	return nil
}

// store copies bytes of p into the send ring, as many as it has room for.
func (c *Conn) store(p []byte) (n int) {
	b := &c.out
	end := min(b.limit(b.done), b.wrote+uint64(len(p)))
	for b.wrote < end {
		in, offset, k := b.span(b.wrote, end)
		n += copy(in.buf[offset:offset+k], p[n:])
		b.wrote += uint64(k)
	}
	return n
}

// flush posts what may leave: control messages about rings, bytes, a credit that left with no bytes, and the end.
func (c *Conn) flush() {
	if c.phase != open {
		return
	}
	c.postRings()
	b := &c.out
	for b.posted < b.wrote && b.messages < maxMessages && b.posts < maxMessages && b.posted < b.peer.limit() {
		in, offset, n := b.span(b.posted, min(b.wrote, b.posted+maxMessage, b.peer.limit()))
		to, n := b.peer.span(b.posted, b.posted+uint64(n))
		cookie := b.posted + uint64(n)
		c.segment[0] = in.mem.Segment(offset, n)
		if c.fail(c.ep.PostRDMAWriteImm(c.segment[:], cookie, to, c.in.credit().immediate(), dat.CompletionDefault)) {
			return
		}
		b.posted = cookie
		b.unused = 0
		b.messages++
		b.posts++
	}
	if c.in.creditDue() {
		c.postCredit()
	}
	if b.posted == b.wrote && b.end && !b.ended {
		b.ended = c.post(control{kind: controlEnd})
	}
}

// postRings posts the control messages about rings that are due.
func (c *Conn) postRings() {
	if b := &c.out; b.next.size > 0 && c.post(control{kind: controlSwitch}) {
		b.peer.remoteRing, b.peer.base, b.next = b.next, b.posted, remoteRing{}
	}
	if r := &c.in.announced; c.out.announce && c.post(control{kind: controlRing, ring: r.remote()}) {
		c.out.announce = false
	}
}

// postCredit posts a credit without data, unless all slots are in use.
func (c *Conn) postCredit() {
	if c.out.slots == 0 {
		return
	}
	slot := bits.TrailingZeros(c.out.slots)
	to := dat.RMRTriplet{Context: c.out.peer.context, Address: c.out.peer.address}
	if !c.fail(c.ep.PostRDMAWriteImm(nil, isControl|uint64(slot), to, c.in.credit().immediate(), dat.CompletionDefault)) {
		c.out.slots &^= 1 << slot
	}
}

// completed takes the completion of a request.
func (c *Conn) completed(cookie uint64) {
	b := &c.out
	if cookie&isControl != 0 {
		b.slots |= 1 << (cookie &^ isControl)
		return
	}
	b.done = cookie
	b.posts--
	if old, ok := b.retire(b.done); ok {
		c.freeRing(old)
	}
}
