package wire

import "sync/atomic"

// Kind says what a Completion tells.
type Kind uint8

// Kinds of completions: a work request, or what became of a connection.
const (
	KindWork Kind = iota
	KindEstablished
	KindPeerRejected // the remote consumer said no
	KindRefused      // no listener, backlog full, out of resources
	KindAcceptFailed // an accepted connection was not taken up
	KindDisconnected // either side disconnected
	KindBroken       // an operation failed or the peer is gone
	KindTimedOut     // the consumer's time to connect ran out
	KindUnreachable
)

// Completion is one entry of a Queue.
type Completion struct {
	Conn   *Conn
	Window *Window // OpBind
	Cookie uint64
	Length uint32 // bytes moved, on success
	Data   uint32 // OpRecvImm: the immediate data; OpRecvInvalidate: the key of the window that is invalid now; KindBroken: BreakReason
	Kind   Kind
	Op     Op
	Status Status
	Flags  WorkFlags
}

// Queue is a bounded ring of completions: an engine's owner puts them in, one consumer at a time
// takes them out.
//
// What an engine puts in becomes visible together at the end of its Poll. A completion is a notification
// unless it is a success that was posted Unsignalled: only notifications call notify. One that finds the
// queue full is lost, and notifies all the same.
type Queue struct {
	ring []Completion
	mask uint32
	// base is the count whose completion is in the first place of the ring. It moves up whenever the producer finds the
	// queue empty, so that a queue that is emptied often goes round in a few lines of the cache, however long it is.
	// The consumer reads it only where there is a completion that was made visible after it was written.
	base uint32

	head atomic.Uint32 // written by the consumer
	_    [60]byte
	// tail is written by the producer: below, one past the last completion; above, one past the last
	// notification.
	tail   atomic.Uint64
	listen atomic.Bool
	_      [48]byte

	limit     uint32
	next      uint32 // producer's own tail, not yet visible
	notice    uint32 // one past the last notification, not yet visible
	published uint32 // the notice of the last publish
	seenHead  uint32 // producer's copy of head
	takenTo   uint32 // head at the last call of consumed
	dirty     bool
	room      *Room
	notify    func()
	overflow  func()
}

// NewQueue makes a queue for n completions. notify is called by the producer, after new notifications
// are visible, while Listen is on; overflow, for every completion that found the queue full. Neither may
// block.
func NewQueue(n int, notify, overflow func()) *Queue {
	q := &Queue{limit: uint32(n), notify: notify, overflow: overflow}
	q.ring, q.mask = newRing(n)
	return q
}

// newRing is a power of two of entries, at least n.
func newRing(n int) (ring []Completion, mask uint32) {
	size := 1
	for size < n {
		size *= 2
	}
	// Rings of a power of two bytes, one after the other, put the same entry of each into the same places
	// of the cache, which costs up to as much as a message does: each is made somewhat longer.
	return make([]Completion, size+min(size/4, 1024))[:size], uint32(size - 1)
}

// Share makes the queue take part in a capacity that it has in common with others. It is called before
// the queue is used.
func (q *Queue) Share(r *Room) { q.room = r }

// Resize makes it a queue for n completions, with what is in it. The caller owns the engine that puts
// in, keeps the consumer away, and has seen that no more than n are in it.
func (q *Queue) Resize(n int) {
	old, was := q.ring, q.mask
	q.limit = uint32(n)
	q.ring, q.mask = newRing(n)
	first := q.head.Load()
	for i := first; i != q.next; i++ {
		q.ring[i-first] = old[(i-q.base)&was]
	}
	q.base = first
}

// Pop takes the oldest completion out; false when there is none.
func (q *Queue) Pop(c *Completion) bool {
	if !q.Move(c) {
		return false
	}
	c.Settled()
	if q.room != nil {
		q.room.Give()
	}
	return true
}

// Move pops without giving back the place in the shared capacity. The caller keeps the completion for the consumer, and calls
// Settled when the consumer has it.
func (q *Queue) Move(c *Completion) bool {
	h := q.head.Load()
	if h == uint32(q.tail.Load()) {
		return false
	}
	*c = q.ring[(h-q.base)&q.mask]
	q.head.Store(h + 1)
	return true
}

// Len is the number of completions to be taken.
func (q *Queue) Len() int {
	h := q.head.Load() // first: it never passes the tail
	return int(uint32(q.tail.Load()) - h)
}

// Notice changes with every notification that becomes visible.
func (q *Queue) Notice() uint32 { return uint32(q.tail.Load() >> 32) }

// Listen turns the calls of notify on or off. After turning them on the caller looks at the queue, since
// a notification may have come just before.
func (q *Queue) Listen(on bool) { q.listen.Store(on) }

// consuming reports whether the consumer has taken something since the last call of consumed, and will find more at once.
func (q *Queue) consuming() bool {
	if q == nil {
		return false
	}
	h := q.head.Load()
	return h != q.takenTo && uint32(q.tail.Load())-h >= minLeft
}

// consumed reports whether something was taken since the last call.
func (q *Queue) consumed() (some bool) {
	if q == nil {
		return false
	}
	h := q.head.Load()
	some = h != q.takenTo
	q.takenTo = h
	return some
}

// push adds c for the engine e, which makes it visible at the end of its Poll.
func (q *Queue) push(e *Engine, c *Completion) {
	if q == nil {
		c.Settled()
		return
	}
	if !q.reserve() {
		e.stats.Overflows++
		q.notice = q.next
		q.touch(e)
		c.Settled()
		q.overflow()
		return
	}
	if !q.dirty && q.head.Load() == q.next {
		q.base = q.next
	}
	q.ring[(q.next-q.base)&q.mask] = *c
	q.next++
	if c.Flags&Unsignalled == 0 || c.Status != StatusSuccess {
		q.notice = q.next
	}
	q.touch(e)
}

// reserve takes a place for one completion; false when there is none.
func (q *Queue) reserve() bool {
	if q.next-q.seenHead >= q.limit {
		if q.seenHead = q.head.Load(); q.next-q.seenHead >= q.limit {
			return false
		}
	}
	return q.room == nil || q.room.Take()
}

// touch has the engine publish the queue.
func (q *Queue) touch(e *Engine) {
	if !q.dirty {
		q.dirty = true
		e.dirty = append(e.dirty, q)
	}
}

// publish makes everything pushed visible, and calls notify if there are notifications and Listen is on.
func (q *Queue) publish() {
	q.dirty = false
	q.tail.Store(uint64(q.notice)<<32 | uint64(q.next))
	if q.notice == q.published {
		return
	}
	q.published = q.notice
	if q.listen.Load() {
		q.notify()
	}
}

// Room is a capacity that several queues have in common. Any goroutine may use it.
type Room struct {
	used atomic.Int64
	size atomic.Int64
}

// NewRoom is a capacity of n.
func NewRoom(n int) *Room {
	r := new(Room)
	r.Resize(n)
	return r
}

// Resize changes the capacity. What was taken stays taken.
func (r *Room) Resize(n int) { r.size.Store(int64(n)) }

// Take takes one place; false when there is none.
func (r *Room) Take() bool {
	for {
		n := r.used.Load()
		if n >= r.size.Load() {
			return false
		}
		if r.used.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Give gives one place back.
func (r *Room) Give() { r.used.Add(-1) }
