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
	Cookie uint64
	Length uint32 // bytes moved, on success
	Imm    uint32 // OpRecvImm: the immediate data
	Kind   Kind
	Op     Op
	Status Status
	Flags  WorkFlags
}

// Queue is a bounded ring of completions: an engine's owner puts them in, one consumer at a time
// takes them out.
//
// What an engine puts in becomes visible together at the end of its Poll.
type Queue struct {
	ring []Completion
	mask uint32

	head atomic.Uint32 // written by the consumer
	_    [60]byte
	tail atomic.Uint32 // written by the producer
	wait atomic.Bool
	_    [56]byte

	next     uint32 // producer's own tail, not yet visible
	seenHead uint32 // producer's copy of head
	dirty    bool
	notify   func()
	overflow func()
}

// NewQueue makes a queue for at least n completions. notify is called by the producer, after new
// completions are visible, if the consumer called Arm since the last time; overflow, for every
// completion that found the queue full. Neither may block.
func NewQueue(n int, notify, overflow func()) *Queue {
	size := 1
	for size < n {
		size *= 2
	}
	// Rings of a power of two bytes, one after the other, put the same entry of each into the same places
	// of the cache, which costs up to as much as a message does: each is made somewhat longer.
	ring := make([]Completion, size+min(size/4, 1024))[:size]
	return &Queue{ring: ring, mask: uint32(size - 1), notify: notify, overflow: overflow}
}

// Pop takes the oldest completion out; false when there is none.
func (q *Queue) Pop(c *Completion) bool {
	h := q.head.Load()
	if h == q.tail.Load() {
		return false
	}
	*c = q.ring[h&q.mask]
	q.head.Store(h + 1)
	return true
}

// Len is the number of completions to be taken.
func (q *Queue) Len() int { return int(q.tail.Load() - q.head.Load()) }

// Cap is the number of completions that fit.
func (q *Queue) Cap() int { return len(q.ring) }

// Arm asks for one call of notify when completions arrive. The caller looks at the queue again
// after it, since they may have arrived just before.
func (q *Queue) Arm() { q.wait.Store(true) }

// push adds c for the engine e, which makes it visible at the end of its Poll.
func (q *Queue) push(e *Engine, c Completion) {
	if q == nil {
		return
	}
	if q.next-q.seenHead >= uint32(len(q.ring)) {
		if q.seenHead = q.head.Load(); q.next-q.seenHead >= uint32(len(q.ring)) {
			e.stats.Overflows++
			q.overflow()
			return
		}
	}
	q.ring[q.next&q.mask] = c
	q.next++
	if !q.dirty {
		q.dirty = true
		e.dirty = append(e.dirty, q)
	}
}

// publish makes everything pushed visible and wakes who waits for it.
func (q *Queue) publish() {
	q.dirty = false
	q.tail.Store(q.next)
	if q.wait.Load() && q.wait.Swap(false) {
		q.notify()
	}
}
