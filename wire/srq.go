package wire

import (
	"math"
	"net/netip"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// NoMark is a high watermark that is never crossed.
const NoMark = math.MaxInt64

// Notice is news of a shared queue that is no completion.
type Notice uint8

// Notices.
const (
	NoticeHigh Notice = iota // a connection has more receives of the queue than its soft mark
	NoticeEnd                // a connection that was established is over, and takes no more
)

// SharedConfig is what a shared queue is made of.
type SharedConfig struct {
	Zone                uint32
	MaxRecv, MaxRecvIOV int
	// Low is called by an engine's owner, or within SetLow, once fewer receives are there than the
	// low mark. It must not block.
	Low func()
}

// SharedQueue is a queue of receives that connections of one host take from, on whichever engines
// they are. A connection takes one when a message begins to arrive and has it until the message is
// complete. Connections that find none, or whose peer has its share, wait in a line; those in it go before
// others.
//
// All methods may be called by any goroutine. Posting and taking lock the queue for as long as it
// takes to copy a work request.
type SharedQueue struct {
	host *Host
	zone uint32
	low  func()

	// ring holds what was posted and not taken. Its done counts the receives that the consumer has
	// back, which are ahead of those taken by what it has not: its mutex guards all that follows.
	ring     workRing
	taken    seq.Num
	lowMark  uint32
	lowArmed bool
	accounts map[netip.Addr]*account
	lines    [ranks]line // of peers that wait
	waiting  uint32      // connections
	waits    stopwatch   // time in which connections wait and there are no receives
	slow     slowPeers
}

// share is a connection's part in a shared queue.
type share struct {
	q      *SharedQueue
	notice func(Notice)

	held atomic.Bool // a message is arriving; its receive is copied to work and segs
	work work
	segs []Segment

	taken      uint32        // receives; the engine owner's
	begun      uint32        // taken when the message was counted; the engine owner's
	bytes      uint64        // of messages that are complete; the engine owner's
	back       atomic.Uint32 // those of which the consumer has the completion
	soft, hard atomic.Int64  // marks; the soft one is NoMark once it was crossed

	// What follows is guarded by the queue's mutex.
	account  *account // of the peer; nil before the first message
	counted  bool     // a message goes on in another packet; also read by the engine's owner, who writes it
	patience patience // with that message

	waits      bool
	eng        *Engine // while it waits
	prev, next *Conn   // in the line
}

// NewSharedQueue makes a queue without receives.
func (h *Host) NewSharedQueue(cfg SharedConfig) *SharedQueue {
	q := &SharedQueue{host: h, zone: cfg.Zone, low: cfg.Low, accounts: make(map[netip.Addr]*account), slow: make(slowPeers)}
	iov := max(cfg.MaxRecvIOV, 1)
	q.ring.init(cfg.MaxRecv, iov, iov)
	return q
}

// newShare makes the part of a new connection.
func (q *SharedQueue) newShare(notice func(Notice)) *share {
	s := &share{q: q, notice: notice, segs: make([]Segment, q.ring.stride)}
	s.soft.Store(NoMark)
	s.hard.Store(NoMark)
	return s
}

// Post queues a receive. A connection that waits for one is returned, and its engine to be kicked.
func (q *SharedQueue) Post(segs []Segment, cookie uint64) (waits *Conn, err error) {
	n, err := q.host.checkSegments(q.ring.maxSeg.Load(), q.zone, segs, LocalWrite, maxOperation)
	if err != nil {
		return nil, err
	}
	q.ring.mu.Lock()
	err = q.ring.post(&work{cookie: cookie, op: OpRecv, flags: shared, length: n}, segs)
	waits, _ = q.whoIsNext()
	q.ring.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return waits, nil
}

// available is the number of receives to be taken. The caller holds the mutex.
func (q *SharedQueue) available() uint32 { return q.ring.posted.Load() - uint32(q.taken) }

// Counts are the receives to be taken, and those posted whose completion the consumer does not have.
func (q *SharedQueue) Counts() (available, outstanding int) {
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	return int(q.available()), int(q.ring.posted.Load() - q.ring.done.Load())
}

// Config is the number of receives that may be outstanding, and the low mark.
func (q *SharedQueue) Config() (maxRecv, low int) {
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	return int(q.ring.depth), int(q.lowMark)
}

// Resize changes how many receives may be outstanding: ErrState if that is less than there are, or
// less than the low mark.
func (q *SharedQueue) Resize(maxRecv int) error {
	var to workRing
	to.init(maxRecv, q.ring.stride, q.ring.stride)
	q.ring.mu.Lock()
	defer q.ring.mu.Unlock()
	r := &q.ring
	posted := seq.Num(r.posted.Load())
	if to.depth < uint32(posted)-r.done.Load() || to.depth < q.lowMark {
		return ErrState
	}
	for n := q.taken; n != posted; n++ {
		w := to.at(n)
		*w = *r.at(n)
		copy(to.segments(n, w), r.segments(n, w))
	}
	r.slots, r.segs, r.mask, r.depth = to.slots, to.segs, to.mask, to.depth
	return nil
}

// SetLow arms the low mark: Low is called once when fewer than n receives are there, now if that is
// so already. ErrBounds if n is more than may be outstanding.
func (q *SharedQueue) SetLow(n int) error {
	q.ring.mu.Lock()
	if n < 0 || uint32(n) > q.ring.depth {
		q.ring.mu.Unlock()
		return ErrBounds
	}
	q.lowMark, q.lowArmed = uint32(n), true
	below := q.below()
	q.ring.mu.Unlock()
	if below {
		q.low()
	}
	return nil
}

// below reports that the low mark is crossed, once. The caller holds the mutex.
func (q *SharedQueue) below() bool {
	if !q.lowArmed || q.available() >= q.lowMark {
		return false
	}
	q.lowArmed = false
	return true
}

// take moves the oldest receive to c, or puts c into the line. Where there is a line, its first goes first.
func (q *SharedQueue) take(c *Conn) bool {
	s, r := c.share, &q.ring
	r.mu.Lock()
	if s.account == nil {
		q.enter(c)
	}
	if s.waits || q.waiting > 0 || q.available() <= s.account.held {
		q.join(c)
		if first, at := q.whoIsNext(); first != c {
			r.mu.Unlock()
			c.eng.tell(first, at)
			return false
		}
	}
	w := r.at(q.taken)
	s.work = *w
	if w.nseg > 1 {
		copy(s.segs, r.segments(q.taken, w))
	}
	q.taken++
	below := q.below()
	var next *Conn
	var at *Engine
	if s.waits {
		q.quit(c)
		next, at = q.whoIsNext()
	}
	r.mu.Unlock()
	s.held.Store(true)
	s.taken++
	if below {
		q.low()
	}
	c.eng.tell(next, at)
	return true
}

// leave takes c, whose connection is over, out of the line.
func (q *SharedQueue) leave(c *Conn) {
	q.ring.mu.Lock()
	q.exit(c)
	next, at := q.whoIsNext()
	q.ring.mu.Unlock()
	c.eng.tell(next, at)
}

// tell has the engine of another connection look at what there is for it.
func (e *Engine) tell(c *Conn, at *Engine) {
	if c == nil {
		return
	}
	at.Ring(c)
	if at != e {
		at.link.Wake()
	}
}

// receive is the receive of the message that arrives, taken from the queue when it begins to; nil if
// there is none, or taking it ended the connection.
func (s *share) receive(c *Conn) *work {
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

// SetMarks sets the high watermarks of a connection with a shared queue, counted in receives taken
// whose completion the consumer does not have. More than soft: one NoticeHigh. More than hard: the
// connection breaks. Both happen when a receive is taken, or within CheckMarks. Any goroutine may
// call it.
func (c *Conn) SetMarks(soft, hard int64) {
	c.share.soft.Store(soft)
	c.share.hard.Store(hard)
}

// CheckMarks does what crossing a high watermark entails.
func (c *Conn) CheckMarks() {
	s := c.share
	n := int64(s.taken - s.back.Load())
	if m := s.soft.Load(); n > m && s.soft.CompareAndSwap(m, NoMark) {
		s.notice(NoticeHigh)
	}
	if n > s.hard.Load() && c.alive() {
		c.fault(proto.ReasonLocal, 0, 0)
	}
}

// flush completes the receive of a message that will not be complete.
func (s *share) flush(c *Conn) {
	if s.held.Load() {
		w := &s.work
		c.completions.Recv.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Op: OpRecv, Status: StatusFlushed, Flags: w.flags})
		s.held.Store(false)
	}
}

// Settled notes that the consumer has a completion, or never will.
func (c *Completion) Settled() {
	if c.Flags&shared != 0 {
		s := c.Conn.share
		s.back.Add(1)
		s.q.ring.done.Add(1)
	}
}

// Receiving is how many receives are the connection's and not complete, and how many messages there
// are from the first to the last of them. Any goroutine may call it.
func (c *Conn) Receiving() (n, span int) {
	if c.share == nil {
		n = int(c.rq.posted.Load() - c.rq.done.Load())
	} else if c.share.held.Load() {
		n = 1
	}
	return n, n
}
