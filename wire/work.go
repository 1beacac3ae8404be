package wire

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Op is the operation of a work request.
type Op uint8

// Operations; the numbers are those of DAT_DTOS and DAT_IB_DTOS.
const (
	OpSend  Op = 0
	OpWrite Op = 1
	OpRead  Op = 2
	OpRecv  Op = 3
	// OpRecvInvalidate is a receive, as it completes, whose message has made a window invalid.
	OpRecvInvalidate Op = 4
	OpBind           Op = 5
	OpWriteImm       Op = 8
	// OpRecvImm is a receive, as it completes, that a write with immediate data has consumed.
	OpRecvImm  Op = 9
	OpFetchAdd Op = 10
	OpCmpSwap  Op = 11
)

// WorkFlags qualify a work request; the values are those of DAT_COMPLETION_FLAGS.
type WorkFlags uint8

// Flags of a work request.
const (
	Suppress    WorkFlags = 0x01 // no completion if it succeeds
	Solicited   WorkFlags = 0x02 // send, write with immediate data: ask the peer's receive to notify
	Unsignalled WorkFlags = 0x04 // completion without notification
	Fence       WorkFlags = 0x08 // wait for all earlier reads and atomics

	shared WorkFlags = 0x80 // receive: from a shared queue
)

// Segment is a piece of registered memory, addressed by a local key. Its memory layout is that of DAT_LMR_TRIPLET.
type Segment struct {
	Address uint64
	Length  uint32 // bytes; a segment of length 0 is ignored
	Context uint32 // Region.LocalKey
}

// Remote is the peer's side of an RDMA operation.
type Remote struct {
	Key  uint32
	Addr uint64
}

// work is a work queue entry and fills one cache line. The segments of an entry with more than one segment are in
// workRing.segs.
type work struct {
	cookie uint64
	addr   uint64  // RDMA: remote address
	key    uint32  // RDMA: remote key; bind: composed key, 0 for none
	length uint32  // bytes to be moved
	msn    seq.Num // send, write with immediate data: message number, once it is being sent
	got    uint32  // read: bytes that have arrived; write with immediate data: what it is
	began  Time    // request: when its first packet left
	op     Op
	flags  WorkFlags
	nseg   uint8
	done   bool // read, atomic: the answer has arrived; bind: it is executed
	window bool // send: it makes key invalid at the peer; read: the segment names a window
	only   [1]Segment
}

// workRing holds work requests from posting to completion. Posters write slots under mu; the
// engine's owner reads them. posted and done count without end, modulo 2^32.
type workRing struct {
	mu     sync.Mutex
	slots  []work
	segs   []Segment  // stride of them for each slot; nil if that is one
	wins   []*Window  // of binds; nil before the first
	args   []operands // of atomics
	mask   uint32
	depth  uint32
	stride int // segments of a slot
	maxSeg atomic.Int32
	posted atomic.Uint32
	done   atomic.Uint32
}

// init makes an empty ring of requests with up to maxSeg segments; some kinds may have up to stride.
func (r *workRing) init(depth, maxSeg, stride int) {
	size := 1
	for size < depth {
		size *= 2
	}
	r.slots = make([]work, size)
	if r.segs = nil; stride > 1 {
		r.segs = make([]Segment, size*stride)
	}
	r.mask, r.depth, r.stride = uint32(size-1), uint32(depth), stride
	r.maxSeg.Store(int32(maxSeg))
}

func (r *workRing) at(n seq.Num) *work { return &r.slots[uint32(n)&r.mask] }

func (r *workRing) segments(n seq.Num, w *work) []Segment {
	if w.nseg <= 1 {
		return w.only[:w.nseg]
	}
	i := int(uint32(n)&r.mask) * r.stride
	return r.segs[i : i+int(w.nseg)]
}

// post adds a request. The caller holds mu.
func (r *workRing) post(w *work, segs []Segment) error {
	if r.full() {
		return ErrQueueFull
	}
	if len(segs) > r.stride { // the ring was changed since they were counted
		return ErrSegments
	}
	n := r.posted.Load()
	slot := n & r.mask
	switch len(segs) {
	case 0:
	case 1:
		w.only[0] = segs[0]
	default:
		copy(r.segs[int(slot)*r.stride:], segs)
	}
	w.nseg = uint8(len(segs))
	r.slots[slot] = *w
	r.posted.Store(n + 1)
	return nil
}

// full reports that there is no room. The caller holds mu.
func (r *workRing) full() bool { return r.posted.Load()-r.done.Load() >= r.depth }

// empty reports that nothing is outstanding.
func (r *workRing) empty() bool { return r.posted.Load() == r.done.Load() }

// checkSegments validates the local segments of a request and returns their sum.
func (c *Conn) checkSegments(maxSeg int32, segs []Segment, need Rights, limit uint32) (uint32, error) {
	return c.host.checkSegments(maxSeg, c.zone.Load(), segs, need, limit)
}

func (h *Host) checkSegments(maxSeg int32, zone uint32, segs []Segment, need Rights, limit uint32) (uint32, error) {
	if len(segs) > int(maxSeg) {
		return 0, ErrSegments
	}
	var sum uint64
	for i := range segs {
		s := &segs[i]
		if s.Length == 0 {
			continue
		}
		if err := h.regions.find(s.Context).check(zone, need, s.Address, s.Length); err != nil {
			return 0, err
		}
		sum += uint64(s.Length)
	}
	if sum > uint64(limit) {
		return 0, ErrTooLong
	}
	return uint32(sum), nil
}

// PostRecv queues a receive buffer. It is legal in every state; a closed connection flushes the receive immediately.
// Any goroutine may call it. kick reports whether the caller should kick the engine, so that the peer gets the credit
// or the receive is flushed. On a connection with a shared receive queue, PostRecv returns ErrState.
func (c *Conn) PostRecv(segs []Segment, cookie uint64, flags WorkFlags) (kick bool, err error) {
	if c.srq != nil {
		return false, ErrState
	}
	n, err := c.checkSegments(c.rq.maxSeg.Load(), segs, LocalWrite, maxOperation)
	if err != nil {
		return false, err
	}
	c.rq.mu.Lock()
	err = c.rq.post(&work{cookie: cookie, op: OpRecv, flags: flags, length: n}, segs)
	c.rq.mu.Unlock()
	return err == nil && (c.lowCredit.Load() || c.State() == Closed), err
}

// PostSend queues a message. Any goroutine may call it; the engine is to be kicked afterwards.
func (c *Conn) PostSend(segs []Segment, cookie uint64, flags WorkFlags) error {
	n, err := c.checkSegments(c.sq.maxSeg.Load(), segs, LocalRead|LocalWrite, c.maxMessage.Load())
	if err != nil {
		return err
	}
	return c.postRequest(&work{cookie: cookie, op: OpSend, flags: flags, length: n}, segs)
}

// PostWrite queues an RDMA write of all segments to a remote address.
func (c *Conn) PostWrite(segs []Segment, cookie uint64, to Remote, flags WorkFlags) error {
	n, err := c.checkSegments(c.writeIOV.Load(), segs, LocalRead|LocalWrite, c.maxRDMA.Load())
	if err != nil {
		return err
	}
	return c.postRequest(&work{cookie: cookie, op: OpWrite, flags: flags, length: n,
		key: to.Key, addr: to.Addr}, segs)
}

// PostRead queues an RDMA read of n bytes from a remote address into the segments, which hold at
// least as many.
func (c *Conn) PostRead(segs []Segment, cookie uint64, from Remote, n uint32, flags WorkFlags) error {
	room, err := c.checkSegments(c.readIOV.Load(), segs, LocalWrite, c.maxRDMA.Load())
	if err != nil {
		return err
	}
	if n > room {
		return ErrBounds
	}
	return c.postRequest(&work{cookie: cookie, op: OpRead, flags: flags, length: n,
		key: from.Key, addr: from.Addr}, segs)
}

// postRequest queues a request where the state allows it: on an established connection, and on a
// closed one, where it is flushed.
func (c *Conn) postRequest(w *work, segs []Segment) error {
	c.sq.mu.Lock()
	err := c.postLocked(w, segs)
	c.sq.mu.Unlock()
	return err
}

// postLocked is postRequest with the request lock held.
func (c *Conn) postLocked(w *work, segs []Segment) error {
	if err := c.mayRequest(w.op); err != nil {
		return err
	}
	return c.sq.post(w, segs)
}

// mayRequest says whether the state allows a request. The caller holds the request lock.
func (c *Conn) mayRequest(op Op) error {
	s := c.State()
	if s != Established && s != Closed {
		return ErrState
	}
	if op.hasResponse() && s == Established && c.readsAllowed == 0 { // it does not change while established
		return ErrNoReads // it would block the queue for ever
	}
	return nil
}
