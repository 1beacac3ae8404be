package wire

import "sync/atomic"

// Kind is the kind of a Completion.
type Kind uint8

// Kinds of completions: the completion of a work request, or an event of a connection.
const (
	KindWork Kind = iota
	KindEstablished
	KindPeerRejected // the remote consumer rejected the request
	KindRefused      // the request was rejected, but not by the remote consumer: see BreakReason
	KindAcceptFailed // an accepted connection was not established
	KindDisconnected // one side disconnected
	KindBroken       // an operation failed, or the peer is silent or has ended
	KindTimedOut     // Dial.Timeout has passed
	KindUnreachable
)

// Completion is an entry of a Queue. Data depends on the kind and the operation:
//   - OpRecvImm: the immediate data,
//   - OpRecvInvalidate: the key of the invalidated window,
//   - connection event: the BreakReason.
type Completion struct {
	Conn   *Conn
	Window *Window // window of OpBind
	Cookie uint64
	Length uint32 // bytes moved, on success
	Data   uint32
	Kind   Kind
	Op     Op
	Status Status
	Flags  WorkFlags
}

// Queue is a bounded ring of completions. It has one producer, which is the engine's owner, and one consumer.
//
// The completions of a Poll become visible together at the end of the Poll. A completion counts as a notification,
// unless it reports the success of an operation that was posted with the flag Unsignalled. After publishing
// notifications, the producer calls the function notify, if the consumer has turned these calls on with Listen. A
// completion that finds the queue full is lost, but it still counts as a notification.
type Queue struct {
	ring []Completion
	mask uint32
	// baseSeq is the sequence number of the completion in ring[0]. When the producer finds the queue empty, it sets
	// baseSeq to nextSeq, and the following completion goes to ring[0] again. So a queue that often becomes empty uses few
	// cache lines, however long it is. The producer writes baseSeq before tail. The consumer reads baseSeq only after
	// tail has shown that the queue has a completion.
	baseSeq uint32

	head atomic.Uint32 // sequence number of the next completion to pop; written by the consumer
	_    [60]byte
	// Only the producer writes the field tail. The lower half is the sequence number after the last completion. The
	// upper half is the sequence number after the last notification.
	tail   atomic.Uint64
	listen atomic.Bool
	_      [48]byte

	limit        uint32
	nextSeq      uint32 // sequence number after the last pushed completion; may not be in tail yet
	noticeSeq    uint32 // sequence number after the last pushed notification; may not be in tail yet
	publishedSeq uint32 // notice at the last publish
	seenHead     uint32 // the producer's copy of head
	takenSeq     uint32 // head at the last call of consumed
	dirty        bool
	sharedRoom   *Room
	notify       func()
	overflow     func()
}

// NewQueue makes a queue for n completions. A notification is a completion that wakes a waiting consumer. While the
// consumer listens (see Listen), the producer calls notify after it has published notifications. For each completion
// that finds the queue full, the producer calls overflow. Neither function may block.
func NewQueue(n int, notify, overflow func()) *Queue {
	q := &Queue{limit: uint32(n), notify: notify, overflow: overflow}
	q.ring, q.mask = newRing(n)
	return q
}

// newRing returns a ring whose size is a power of two, at least n, and the mask for its index.
func newRing(n int) (ring []Completion, mask uint32) {
	size := 1
	for size < n {
		size *= 2
	}
	// The rings of several queues may be adjacent in memory. If each ring occupied a power of two of bytes, the same
	// index of each ring would map to the same cache set, and the conflict misses could take as much time as a message.
	// So each ring is followed by some unused space.
	return make([]Completion, size+min(size/4, 1024))[:size], uint32(size - 1)
}

// Share limits the queue by room r, which several queues share. It is called before the queue is used.
func (q *Queue) Share(r *Room) { q.sharedRoom = r }

// Resize sets the capacity to n. It keeps the completions in the queue, which must be at most n. The caller owns the
// engine and makes sure that the consumer does not use the queue meanwhile.
func (q *Queue) Resize(n int) {
	old, was := q.ring, q.mask
	q.limit = uint32(n)
	q.ring, q.mask = newRing(n)
	first := q.head.Load()
	for i := first; i != q.nextSeq; i++ {
		q.ring[i-first] = old[(i-q.baseSeq)&was]
	}
	q.baseSeq = first
}

// Pop takes the oldest completion. It reports false if the queue is empty.
func (q *Queue) Pop(c *Completion) bool {
	if !q.Move(c) {
		return false
	}
	c.Settled()
	if q.sharedRoom != nil {
		q.sharedRoom.Give()
	}
	return true
}

// Move pops a completion, but the completion still counts toward the capacity that queues share (see Room). The caller
// keeps the completion for the consumer and calls Settled when the consumer has it.
func (q *Queue) Move(c *Completion) bool {
	h := q.head.Load()
	if h == uint32(q.tail.Load()) {
		return false
	}
	slot := &q.ring[(h-q.baseSeq)&q.mask]
	*c = *slot
	slot.Conn, slot.Window = nil, nil // the ring must not keep them alive
	q.head.Store(h + 1)
	return true
}

// Len returns the number of completions that are ready to pop.
func (q *Queue) Len() int {
	h := q.head.Load() // before tail, so that the difference is not negative
	return int(uint32(q.tail.Load()) - h)
}

// Notice returns a value that changes with every published notification.
func (q *Queue) Notice() uint32 { return uint32(q.tail.Load() >> 32) }

// Listen turns the calls of the function notify on or off. After turning them on, the caller must check the queue: the
// producer does not call notify for completions that it published before.
func (q *Queue) Listen(on bool) { q.listen.Store(on) }

// isConsumed reports whether a completion was popped since the last call of consumedSinceCheck, and at least minLeft
// are left.
func (q *Queue) isConsumed() bool {
	if q == nil {
		return false
	}
	h := q.head.Load()
	return h != q.takenSeq && uint32(q.tail.Load())-h >= minLeft
}

// consumedSinceCheck reports whether a completion was popped since the last call of consumed.
func (q *Queue) consumedSinceCheck() (some bool) {
	if q == nil {
		return false
	}
	h := q.head.Load()
	some = h != q.takenSeq
	q.takenSeq = h
	return some
}

// push appends a completion. The engine publishes it at the end of its Poll. If earlier completions of the connection
// wait for other engines, the completion waits behind them (see windowWait).
func (q *Queue) push(e *Engine, c *Completion) {
	if q == nil {
		c.Settled()
		return
	}
	if len(e.waits) > 0 && e.hold(c.Conn, heldCompletion{queue: q, done: *c}) {
		return
	}
	if !q.takePlace() {
		e.stats.Overflows++
		q.noticeSeq = q.nextSeq
		q.markDirty(e)
		c.Settled()
		q.overflow()
		return
	}
	if !q.dirty && q.head.Load() == q.nextSeq {
		q.baseSeq = q.nextSeq
	}
	q.ring[(q.nextSeq-q.baseSeq)&q.mask] = *c
	q.nextSeq++
	if c.Flags&Unsignalled == 0 || c.Status != StatusSuccess {
		q.noticeSeq = q.nextSeq
	}
	q.markDirty(e)
}

// takePlace takes a place for a completion. It reports false if no place is free.
func (q *Queue) takePlace() bool {
	if q.nextSeq-q.seenHead >= q.limit {
		if q.seenHead = q.head.Load(); q.nextSeq-q.seenHead >= q.limit {
			return false
		}
	}
	return q.sharedRoom == nil || q.sharedRoom.Take()
}

// markDirty adds the queue to those that the engine publishes next.
func (q *Queue) markDirty(e *Engine) {
	if !q.dirty {
		q.dirty = true
		e.dirty = append(e.dirty, q)
	}
}

// publish makes the pushed completions visible. It calls notify if there are notifications among them and Listen is on.
func (q *Queue) publish() {
	q.dirty = false
	q.tail.Store(uint64(q.noticeSeq)<<32 | uint64(q.nextSeq))
	if q.noticeSeq == q.publishedSeq {
		return
	}
	q.publishedSeq = q.noticeSeq
	if q.listen.Load() {
		q.notify()
	}
}

// Room is a capacity that several queues share. Any goroutine may use it.
type Room struct {
	used atomic.Int64
	size atomic.Int64
}

// NewRoom makes a capacity of n places.
func NewRoom(n int) *Room {
	r := new(Room)
	r.Resize(n)
	return r
}

// Resize sets the capacity. Places in use stay in use.
func (r *Room) Resize(n int) { r.size.Store(int64(n)) }

// Take takes a place. It reports false if there is none.
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

// Give returns a place.
func (r *Room) Give() { r.used.Add(-1) }
