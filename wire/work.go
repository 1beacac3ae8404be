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
	// OpRecvInvalidate is in the completion of a receive if its message has invalidated a window.
	OpRecvInvalidate Op = 4
	OpBind           Op = 5
	OpWriteImm       Op = 8
	// OpRecvImm is in the completion of a receive that a write with immediate data has consumed.
	OpRecvImm  Op = 9
	OpFetchAdd Op = 10
	OpCmpSwap  Op = 11
)

// WorkFlags qualify a work request; the values are those of DAT_COMPLETION_FLAGS.
type WorkFlags uint8

// Flags of a work request.
const (
	Suppress    WorkFlags = 0x01 // no completion on success
	Solicited   WorkFlags = 0x02 // send, write with immediate data: the peer's receive notifies its consumer
	Unsignalled WorkFlags = 0x04 // completion without notification
	Fence       WorkFlags = 0x08 // begin only after all earlier reads and atomics have completed

	shared WorkFlags = 0x80 // receive: from a shared queue
)

// Segment is a range of registered memory, named by a local key. Its memory layout is that of DAT_LMR_TRIPLET.
type Segment struct {
	Address uint64
	Length  uint32 // bytes; a segment of length 0 is ignored
	Context uint32 // Region.LocalKey
}

// Remote is the peer's memory in an RDMA operation.
type Remote struct {
	Key  uint32
	Addr uint64
}

// work is a work queue entry and fills one cache line. If it has several segments, they are in workRing.segs.
type work struct {
	cookie       uint64
	addr         uint64  // RDMA: remote address
	key          uint32  // RDMA: remote key; bind: plain key, 0 to unbind
	length       uint32  // bytes to be moved
	msn          seq.Num // send, write with immediate data: message number, set when the first piece leaves
	arrivedBytes uint32  // read: bytes that have arrived; write with immediate data: the immediate data
	begunAt      Time    // request: when its first packet left
	op           Op
	flags        WorkFlags
	nseg         uint8
	executed     bool // read, atomic: the response has arrived; bind: it has been executed
	window       bool // send: the peer invalidates key; read: the segment names a window
	onlySegment  [1]Segment
}

// workRing holds work queue entries from posting to completion. A poster holds mu while it writes an entry. The
// engine's owner reads the entries. postedCount is the number of entries ever posted, and doneCount the number of
// entries ever completed, both modulo 2^32.
type workRing struct {
	mu          sync.Mutex
	slots       []work
	segs        []Segment  // stride segments for each slot; nil if stride is 1
	wins        []*Window  // window of each bind; nil before the first bind
	args        []operands // operands of each atomic
	mask        uint32
	depth       uint32
	stride      int // space for segments in a slot
	maxSeg      atomic.Int32
	postedCount atomic.Uint32
	doneCount   atomic.Uint32
}

// init makes an empty ring. An entry may have up to maxSeg segments. In a ring of requests, RDMA reads and writes have
// limits of their own, which may exceed maxSeg. So each slot has space for stride segments, the largest of these
// limits.
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
		return w.onlySegment[:w.nseg]
	}
	i := int(uint32(n)&r.mask) * r.stride
	return r.segs[i : i+int(w.nseg)]
}

// post appends a request. The caller holds mu.
func (r *workRing) post(w *work, segs []Segment) error {
	if r.full() {
		return ErrQueueFull
	}
	if len(segs) > r.stride { // the ring was resized after checkSegments
		return ErrSegments
	}
	n := r.postedCount.Load()
	slot := n & r.mask
	switch len(segs) {
	case 0:
	case 1:
		w.onlySegment[0] = segs[0]
	default:
		copy(r.segs[int(slot)*r.stride:], segs)
	}
	w.nseg = uint8(len(segs))
	r.slots[slot] = *w
	r.postedCount.Store(n + 1)
	return nil
}

// full reports whether there is no room for another entry. The caller holds mu.
func (r *workRing) full() bool { return r.postedCount.Load()-r.doneCount.Load() >= r.depth }

// empty reports whether no entry is outstanding.
func (r *workRing) empty() bool { return r.postedCount.Load() == r.doneCount.Load() }

// checkSegments checks the local segments of a request and returns the sum of their lengths.
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

// PostRecv queues a receive. It is legal in every state; a closed connection flushes the receive immediately. The
// result kick reports whether the caller should kick the engine, to grant the peer credit or to flush the receive. On a
// connection with a shared receive queue, PostRecv returns ErrState. Any goroutine may call it.
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

// PostSend queues a message. Any goroutine may call it. The caller then kicks the engine.
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

// PostRead queues an RDMA read of n bytes from a remote address into the segments, which must have room for n bytes.
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

// postRequest queues a request. It returns ErrState unless the connection is Established or Closed. On a Closed
// connection the request is flushed.
func (c *Conn) postRequest(w *work, segs []Segment) error {
	c.sq.mu.Lock()
	err := c.postLocked(w, segs)
	c.sq.mu.Unlock()
	return err
}

// postLocked is postRequest without the lock. The caller holds sq.mu.
func (c *Conn) postLocked(w *work, segs []Segment) error {
	if err := c.mayRequest(w.op); err != nil {
		return err
	}
	return c.sq.post(w, segs)
}

// mayRequest returns an error if the state of the connection allows no request of kind op. The caller holds sq.mu.
func (c *Conn) mayRequest(op Op) error {
	s := c.State()
	if s != Established && s != Closed {
		return ErrState
	}
	if op.hasResponse() && s == Established && c.readsAllowed == 0 { // readsAllowed does not change while established
		return ErrNoReads // the request would block the queue for ever
	}
	return nil
}
