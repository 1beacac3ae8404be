package wire

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/fairqueue"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// sharedRecv is the state of a connection that receives from a shared queue.
type sharedRecv struct {
	q      *SharedQueue
	notice func(Notice)

	// The fields work and segs are a copy of the receive that was given to the connection or that it holds. The queue's
	// mutex guards them until the connection takes the receive.
	holdsReceive atomic.Bool // the connection has taken a receive for an arriving message
	work         work
	segs         []Segment

	takenCount    uint32        // receives ever taken; only the engine's owner uses it
	countedTaken  uint32        // taken at the last fairqueue Hold of this flow; only the engine's owner uses it
	returnedCount atomic.Uint32 // taken receives whose completion the consumer has
	soft, hard    atomic.Int64  // high watermarks; soft is NoMark after it was crossed

	flow fairqueue.Flow[waiter] // the engine's owner writes it and holds the queue's mutex
}

// newConn creates the state for a new connection.
func (q *SharedQueue) newConn(notice func(Notice)) *sharedRecv {
	s := &sharedRecv{q: q, notice: notice, segs: make([]Segment, q.ring.stride)}
	s.soft.Store(NoMark)
	s.hard.Store(NoMark)
	return s
}

// nextReceive returns the receive for the message that is arriving. It takes the receive from the queue when the
// message begins. It returns nil if the connection gets no receive, or if taking the receive has exceeded the hard
// watermark, which ends the connection (see SetMarks).
func (s *sharedRecv) nextReceive(c *Conn) *work {
	if !s.holdsReceive.Load() {
		if !s.q.take(c) {
			return nil
		}
		if c.CheckMarks(); !s.holdsReceive.Load() {
			return nil
		}
	}
	return &s.work
}

// packetDone tells the queue, after each packet, whether the connection holds a receive for an unfinished message.
func (s *sharedRecv) packetDone(c *Conn) {
	f, held := &s.flow, s.holdsReceive.Load()
	if held == f.Holds() && (!held || s.takenCount == s.countedTaken) || !f.Added() {
		return
	}
	q, now := s.q, c.eng.now
	q.ring.mu.Lock()
	if f.Holds() {
		q.fair.Release(f, c.recv.off, now)
	}
	if held {
		s.countedTaken = s.takenCount
		q.fair.Hold(f, c.recv.off, now)
	}
	next := q.give()
	q.ring.mu.Unlock()
	if held {
		c.setDeadline(now.Add(q.fair.Timeout()))
	}
	c.eng.wake(next)
}

// checkProgress breaks the connection if its message makes no progress for too long. It returns when to check again.
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
	c.breakOnFault(proto.ReasonUnfinished, proto.OpSend, 0)
	return never
}

// SetMarks sets the high watermarks of a connection with a shared queue. They bound the number of receives that the
// connection has taken and whose completions the consumer has not dequeued yet:
//   - above soft, the engine gives one NoticeHigh,
//   - above hard, the connection breaks.
//
// CheckMarks checks them, and so does the engine when the connection takes a receive. Any goroutine may call SetMarks.
func (c *Conn) SetMarks(soft, hard int64) {
	c.srq.soft.Store(soft)
	c.srq.hard.Store(hard)
}

// CheckMarks gives the notice or breaks the connection if a high watermark is exceeded (see SetMarks).
func (c *Conn) CheckMarks() {
	s := c.srq
	n := int64(s.takenCount - s.returnedCount.Load())
	if m := s.soft.Load(); n > m && s.soft.CompareAndSwap(m, NoMark) {
		s.notice(NoticeHigh)
	}
	if n > s.hard.Load() && c.alive() {
		c.breakOnFault(proto.ReasonLocal, 0, 0)
	}
}

// flush completes the held receive of a message whose rest will not arrive. If the consumer has freed the connection, no
// completion tells it that the memory of the receive is free, so the receive returns to the queue.
func (s *sharedRecv) flush(c *Conn) {
	if !s.holdsReceive.Swap(false) {
		return
	}
	if c.completions.Recv == nil {
		s.q.untake(c)
		return
	}
	w := &s.work
	c.completions.Recv.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Op: OpRecv, Status: StatusFlushed, Flags: w.flags})
}

// Settled notes that the consumer has dequeued the completion, or that the completion was lost.
func (c *Completion) Settled() {
	if c.Flags&shared != 0 {
		s := c.Conn.srq
		s.returnedCount.Add(1)
		s.q.ring.doneCount.Add(1)
	}
}

// Receiving returns n, the number of receives of the connection whose messages are incomplete. Without a shared queue,
// these are all posted receives. With a shared queue, n is 1 if the connection holds a receive, and otherwise 0.
// Messages take the receives in order, so numReceives, which is the number of messages from the first of these receives
// to the last, equals n. Any goroutine may call Receiving.
func (c *Conn) Receiving() (n, numReceives int) {
	if c.srq == nil {
		n = int(c.rq.postedCount.Load() - c.rq.doneCount.Load())
	} else if c.srq.holdsReceive.Load() {
		n = 1
	}
	return n, n
}
