package wire

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// sharedRecv is how a connection receives from a shared queue.
type sharedRecv struct {
	q      *SharedQueue
	notice func(Notice)

	held atomic.Bool // a message is arriving; its receive is copied to work and segs
	work work
	segs []Segment

	taken      uint32        // receives; the engine owner's
	counted    uint32        // taken when the flow's Hold began; the engine owner's
	back       atomic.Uint32 // those of which the consumer has the completion
	soft, hard atomic.Int64  // marks; the soft one is NoMark once it was crossed

	flow fairqueue.Flow[waiter] // written by the engine's owner, with the queue's mutex held
}

// newConn makes the part of a new connection.
func (q *SharedQueue) newConn(notice func(Notice)) *sharedRecv {
	s := &sharedRecv{q: q, notice: notice, segs: make([]Segment, q.ring.stride)}
	s.soft.Store(NoMark)
	s.hard.Store(NoMark)
	return s
}

// receive is the receive of the message that arrives, taken from the queue when it begins to; nil if
// there is none, or taking it ended the connection.
func (s *sharedRecv) receive(c *Conn) *work {
	if !s.held.Load() {
		if !s.q.take(c) {
			return nil
		}
		if c.CheckMarks(); !s.held.Load() {
			return nil
		}
	}
	return &s.work
}

// packetDone tells the queue whether the connection holds a receive for a message that goes on in another packet. It is
// called after each packet.
func (s *sharedRecv) packetDone(c *Conn) {
	f, held := &s.flow, s.held.Load()
	if held == f.Holds() && (!held || s.taken == s.counted) || !f.Added() {
		return
	}
	q, now := s.q, c.eng.now
	q.ring.mu.Lock()
	if f.Holds() {
		q.fair.Release(f, c.recv.off, now)
	}
	if held {
		s.counted = s.taken
		q.fair.Hold(f, c.recv.off, now)
	}
	next := q.fair.Next()
	q.ring.mu.Unlock()
	if held {
		c.setDeadline(now.Add(q.fair.Timeout()))
	}
	c.eng.wake(next)
}

// checkProgress ends a connection whose message has made no progress for too long. It returns when to look again.
func (c *Conn) checkProgress() Time {
	s := c.srq
	if s == nil || !s.flow.Holds() {
		return never
	}
	q, now := s.q, c.eng.now
	q.ring.mu.Lock()
	left := q.fair.TimeLeft(&s.flow, c.recv.off, now)
	q.ring.mu.Unlock()
	if left > 0 {
		return now.Add(left)
	}
	c.fault(proto.ReasonUnfinished, proto.OpSend, 0)
	return never
}

// SetMarks sets the high watermarks of a connection with a shared queue, counted in receives taken
// whose completion the consumer does not have. More than soft: one NoticeHigh. More than hard: the
// connection breaks. Both happen when a receive is taken, or within CheckMarks. Any goroutine may
// call it.
func (c *Conn) SetMarks(soft, hard int64) {
	c.srq.soft.Store(soft)
	c.srq.hard.Store(hard)
}

// CheckMarks does what crossing a high watermark entails.
func (c *Conn) CheckMarks() {
	s := c.srq
	n := int64(s.taken - s.back.Load())
	if m := s.soft.Load(); n > m && s.soft.CompareAndSwap(m, NoMark) {
		s.notice(NoticeHigh)
	}
	if n > s.hard.Load() && c.alive() {
		c.fault(proto.ReasonLocal, 0, 0)
	}
}

// flush completes the receive of a message that will not be complete.
func (s *sharedRecv) flush(c *Conn) {
	if s.held.Load() {
		w := &s.work
		c.completions.Recv.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Op: OpRecv, Status: StatusFlushed, Flags: w.flags})
		s.held.Store(false)
	}
}

// Settled notes that the consumer has dequeued the completion or will never get it.
func (c *Completion) Settled() {
	if c.Flags&shared != 0 {
		s := c.Conn.srq
		s.back.Add(1)
		s.q.ring.done.Add(1)
	}
}

// Receiving returns two numbers: n counts the receives of the connection that are not complete, and span counts the
// messages from the first to the last of these receives. Any goroutine may call it.
func (c *Conn) Receiving() (n, span int) {
	if c.srq == nil {
		n = int(c.rq.posted.Load() - c.rq.done.Load())
	} else if c.srq.held.Load() {
		n = 1
	}
	return n, n
}
