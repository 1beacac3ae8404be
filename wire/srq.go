package wire

import (
	"math"

	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// NoMark is a high watermark that is never crossed.
const NoMark = math.MaxInt64

// Notice is an event of a shared queue that is not a completion.
type Notice uint8

// Notices.
const (
	NoticeHigh Notice = iota // a connection holds more receives of the queue than its soft watermark
	NoticeEnd                // an established connection has ended and takes no more receives
)

// SharedConfig holds the attributes of a shared queue.
type SharedConfig struct {
	Zone                uint32
	MaxRecv, MaxRecvIOV int
	// An engine's owner or SetLow calls Low when fewer receives are left than the low mark. Low must not block.
	Low func()
}

// SharedQueue is a queue of receives that the connections of one host share, on all engines. A connection takes a
// receive when a message begins to arrive, and holds it until the message is complete. Package fairqueue decides which
// connection gets the next receive and which ones wait.
//
// Any goroutine may call the methods. A mutex guards the queue while a work queue entry is copied into it or out of it.
type SharedQueue struct {
	host *Host
	zone uint32
	low  func()

	// The field ring holds the posted receives that no connection has taken. ring.doneCount is the number of receives
	// whose completions the consumer has dequeued since the queue was created. A connection takes each receive before
	// the receive completes. So ring.doneCount never exceeds the number of receives that connections have taken since
	// the queue was created. The mutex ring.mu guards ring and all fields below.
	ring     workRing
	fair     fairqueue.Queue[waiter] // its free buffers are the receives that no connection has taken
	lowMark  uint32
	lowArmed bool
}

// waiter is a connection that waits for a receive, and the connection's engine.
type waiter struct {
	conn *Conn
	eng  *Engine
}

// NewSharedQueue makes a queue without receives.
func (h *Host) NewSharedQueue(cfg SharedConfig) *SharedQueue {
	q := &SharedQueue{host: h, zone: cfg.Zone, low: cfg.Low, fair: fairqueue.New[waiter](h.limits.NotReady / 2)}
	iov := max(cfg.MaxRecvIOV, 1)
	q.ring.init(cfg.MaxRecv, iov, iov)
	return q
}

// Post queues a receive. If a waiting connection may have it, Post gives it to that connection and returns the connection.
// The caller must kick the engine of the connection.
func (q *SharedQueue) Post(segs []Segment, cookie uint64) (waits *Conn, err error) {
	n, err := q.host.checkSegments(q.ring.maxSeg.Load(), q.zone, segs, LocalWrite, maxOperation)
	if err != nil {
		return nil, err
	}
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	if err = q.ring.post(&work{cookie: cookie, op: OpRecv, flags: shared, length: n}, segs); err != nil {
		return nil, err
	}
	q.fair.Put()
	return q.give().conn, nil
}

// nextRecv returns the number of the oldest receive that is not taken. The caller holds the mutex.
func (q *SharedQueue) nextRecv() seq.Num { return seq.Num(q.ring.postedCount.Load() - q.fair.Free()) }

// Counts returns the number of receives that are not taken (available). It also returns the number of posted receives
// whose completion the consumer has not dequeued (outstanding).
func (q *SharedQueue) Counts() (available, outstanding int) {
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	return int(q.fair.Free()), int(q.ring.postedCount.Load() - q.ring.doneCount.Load())
}

// Config returns the maximum number of outstanding receives, and the low mark.
func (q *SharedQueue) Config() (maxRecv, low int) {
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	return int(q.ring.depth), int(q.lowMark)
}

// Resize changes the maximum number of outstanding receives. It returns ErrState if maxRecv is less than the number of
// outstanding receives or less than the low mark.
func (q *SharedQueue) Resize(maxRecv int) error {
	var to workRing
	to.init(maxRecv, q.ring.stride, q.ring.stride)
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	r := &q.ring
	posted := seq.Num(r.postedCount.Load())
	if to.depth < uint32(posted)-r.doneCount.Load() || to.depth < q.lowMark {
		return ErrState
	}
	for n := q.nextRecv(); n != posted; n++ {
		w := to.at(n)
		*w = *r.at(n)
		copy(to.segments(n, w), r.segments(n, w))
	}
	r.slots, r.segs, r.mask, r.depth = to.slots, to.segs, to.mask, to.depth
	return nil
}

// SetLow arms the low mark: SharedConfig.Low is called once, as soon as fewer than n receives are available. If fewer
// than n are available already, SetLow itself calls Low. SetLow returns ErrBounds if n exceeds the maximum number of
// outstanding receives.
func (q *SharedQueue) SetLow(n int) error {
	q.ring.mu.Lock()
	if n < 0 || uint32(n) > q.ring.depth {
		q.ring.mu.Unlock()
		return ErrBounds
	}
	q.lowMark, q.lowArmed = uint32(n), true
	below := q.isLow()
	q.ring.mu.Unlock()
	if below {
		q.low()
	}
	return nil
}

// isLow disarms the low mark and returns true, if the mark is armed and the number of available receives is below the
// mark. Otherwise it returns false. The caller holds the mutex.
func (q *SharedQueue) isLow() bool {
	if !q.lowArmed || q.fair.Free() >= q.lowMark {
		return false
	}
	q.lowArmed = false
	return true
}

// take moves a receive to connection c: the one that was given to c, or the oldest. It reports false if c has to wait.
func (q *SharedQueue) take(c *Conn) bool {
	s, now := c.srq, c.eng.now
	q.ring.mu.Lock()
	if !s.flow.Added() {
		q.addFlow(c)
	}
	given, n := s.flow.Given(), q.nextRecv()
	ok := q.fair.Take(&s.flow, waiter{c, c.eng}, now)
	switch {
	case given: // it stays counted as held, because its packet may come later
		q.fair.Hold(&s.flow, c.recv.off, now)
	case ok:
		q.load(s, n)
	}
	below := ok && q.isLow()
	next := q.give()
	q.ring.mu.Unlock()
	if ok {
		s.holdsReceive.Store(true)
		s.takenCount++
	}
	if below {
		q.low()
	}
	c.eng.wake(next)
	return ok
}

// untake returns to the queue a receive that connection c has taken and will not complete.
func (q *SharedQueue) untake(c *Conn) {
	q.ring.mu.Lock()
	q.fair.Put()
	q.unload(c.srq)
	next := q.give()
	q.ring.mu.Unlock()
	c.eng.wake(next)
}

// give gives the oldest receive to the connection that is served next, if one waits and may take a receive. It returns
// that connection, which takes the receive when its doorbell rings. The caller holds the mutex.
func (q *SharedQueue) give() waiter {
	n := q.nextRecv()
	w := q.fair.Give()
	if w.conn != nil {
		q.load(w.conn.srq, n)
	}
	return w
}

// load copies receive n to a connection. The caller holds the mutex.
func (q *SharedQueue) load(s *sharedRecv, n seq.Num) {
	w := q.ring.at(n)
	s.work = *w
	if w.nseg > 1 {
		copy(s.segs, q.ring.segments(n, w))
	}
}

// unload copies the receive of a connection that does not complete it to the place of the oldest receive. That place is
// free, because the receive has not completed. The caller holds the mutex.
func (q *SharedQueue) unload(s *sharedRecv) {
	n := q.nextRecv()
	w := q.ring.at(n)
	*w = s.work
	if w.nseg > 1 {
		copy(q.ring.segments(n, w), s.segs)
	}
}

// addFlow adds c to the flows of its peer. The caller holds the mutex.
func (q *SharedQueue) addFlow(c *Conn) {
	addr, network := holders(c.peerAddr)
	q.fair.Add(&c.srq.flow, addr, network, c.eng.now)
}

// remove removes c, which has ended, from the flows of the queue.
func (q *SharedQueue) remove(c *Conn) {
	q.ring.mu.Lock()
	given := c.srq.flow.Given()
	q.fair.Remove(&c.srq.flow, c.recv.off, c.eng.now)
	if given {
		q.unload(c.srq)
	}
	next := q.give()
	q.ring.mu.Unlock()
	c.eng.wake(next)
}

// wake rings the doorbell of a connection that waited, so that its engine takes the receive that was given to it.
func (e *Engine) wake(w waiter) {
	if w.conn == nil {
		return
	}
	w.eng.Ring(w.conn)
	if w.eng != e {
		w.eng.link.Wake()
	}
}
