package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// WatermarkInfinite is the value of a high watermark that is never exceeded (DAT_WATERMARK_INFINITE).
const WatermarkInfinite = -1

// maxSRQDTOs is the maximum number of outstanding receives of a shared receive queue.
const maxSRQDTOs = 1 << 18

// SRQState is the state of a shared receive queue (DAT_SRQ_STATE).
type SRQState uint8

// States of a shared receive queue; the values are those of uDAPL 2.0. A queue of this provider is always operational.
const (
	SRQError       SRQState = 0
	SRQOperational SRQState = 1
	SRQShutdown    SRQState = 2
)

// SRQAttr are the attributes of a shared receive queue (DAT_SRQ_ATTR).
type SRQAttr struct {
	MaxRecvDTOs  int // maximum number of outstanding receives
	MaxRecvIOV   int // maximum number of segments of one receive; 0 means 4
	LowWatermark int // must be 0 in CreateSRQ; SetLW sets it
}

// SRQParam has the parameters of a shared receive queue (DAT_SRQ_PARAM). A posted receive is available until an
// endpoint takes it. A posted receive is outstanding until the consumer takes its completion from an EVD.
type SRQParam struct {
	IA          *IA
	State       SRQState
	PZ          *PZ
	SRQAttr     // LowWatermark is the value of the last SetLW
	Available   int
	Outstanding int
}

// SRQ is a shared receive queue (DAT_SRQ_HANDLE), from which several endpoints take their receives. An endpoint takes
// the oldest receive when the first packet of a message arrives. If no receive is available, the endpoint waits. New
// receives go to waiting endpoints first, round-robin over the addresses of their peers.
//
// Three rules keep a slow or hostile peer from blocking the queue:
//
//   - The multi-packet messages from one address together hold at most half of the receives.
//   - A message that is incomplete has a budget of 900 ms. The budget decreases while no receive is available and other
//     endpoints wait. It increases by 1 ms for each KiB of the message that arrives, up to 900 ms again. When
//     the budget is used up, the connection of the message ends with BreakUnfinished, and the receive completes with
//     DTOFlushed. The sender gets EventBroken and a completion with DTOTransport. The sender may connect again.
//   - If that budget falls to 800 ms, messages of the same peer wait behind messages of other peers for 10 s.
//
// Any goroutine may call the methods.
type SRQ struct {
	consumer
	ia    *IA
	pz    *PZ
	q     *wire.SharedQueue
	iov   int
	refs  refs // counts endpoints
	freed atomic.Bool
}

// errSRQInUse is ErrInvalidState with the subtype DAT_INVALID_STATE_SRQ_IN_USE.
var errSRQInUse = with(ErrInvalidState, SubInvalidStateSRQInUse)

// CreateSRQ creates a shared receive queue without receives (dat_srq_create). Its receives use memory of the zone pz.
// Errors: ErrInvalidHandle (pz), ErrInvalidParameter (attributes), ErrInsufficientResources (MaxRecvDTOs is above
// 262144, or the adapter has IAAttr.MaxSRQs shared receive queues already).
func (ia *IA) CreateSRQ(pz *PZ, attr SRQAttr) (*SRQ, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if !pz.usable(ia) {
		return nil, ErrInvalidHandle
	}
	if err := attr.validate(); err != nil {
		return nil, err
	}
	if attr.MaxRecvIOV == 0 {
		attr.MaxRecvIOV = DefaultEPAttr().MaxRecvIOV
	}
	if err := ia.a.addObject(HandleSRQ); err != nil {
		return nil, err
	}
	s := &SRQ{ia: ia, pz: pz, iov: attr.MaxRecvIOV}
	s.q = ia.a.host.NewSharedQueue(wire.SharedConfig{Zone: pz.id, MaxRecv: attr.MaxRecvDTOs,
		MaxRecvIOV: attr.MaxRecvIOV, Low: s.low})
	pz.refs.take()
	ia.srqs[s] = struct{}{}
	return s, nil
}

func (a *SRQAttr) validate() error {
	switch {
	case a.LowWatermark != 0:
		return fail(ErrInvalidParameter, "LowWatermark is %d; create with 0 and arm it with SetLW", a.LowWatermark)
	case a.MaxRecvIOV < 0 || a.MaxRecvIOV > maxIOV:
		return fail(ErrInvalidParameter, "MaxRecvIOV is %d; it may be 0 to %d", a.MaxRecvIOV, maxIOV)
	default:
		return validDepth(a.MaxRecvDTOs)
	}
}

func validDepth(n int) error {
	switch {
	case n < 1:
		return fail(ErrInvalidParameter, "MaxRecvDTOs is %d; the minimum is 1", n)
	case n > maxSRQDTOs:
		return fail(ErrInsufficientResources, "MaxRecvDTOs is %d; the maximum is %d", n, maxSRQDTOs)
	default:
		return nil
	}
}

func (s *SRQ) usable() error {
	if s == nil || s.freed.Load() {
		return errHandleSRQ
	}
	return nil
}

// lock locks the IA. It returns an error and does not lock if the queue is nil or freed, or if the IA is closed. The
// caller unlocks ia.mu.
func (s *SRQ) lock() error {
	if s == nil {
		return errHandleSRQ
	}
	if err := s.ia.lock(); err != nil {
		return err
	}
	if s.freed.Load() {
		s.ia.mu.Unlock()
		return errHandleSRQ
	}
	return nil
}

// Query returns the parameters of the queue (dat_srq_query). Available and Outstanding are a snapshot.
func (s *SRQ) Query() (SRQParam, error) {
	if err := s.lock(); err != nil {
		return SRQParam{}, err
	}
	defer s.ia.mu.Unlock()
	p := SRQParam{IA: s.ia, State: SRQOperational, PZ: s.pz}
	p.MaxRecvIOV = s.iov
	p.MaxRecvDTOs, p.LowWatermark = s.q.Config()
	p.Available, p.Outstanding = s.q.Counts()
	return p, nil
}

// Resize changes the maximum number of outstanding receives (dat_srq_resize). Resize returns ErrInvalidState and
// changes nothing if the number of outstanding receives or the low watermark exceeds maxRecvDTOs. Its other errors are
// those of CreateSRQ.
func (s *SRQ) Resize(maxRecvDTOs int) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.ia.mu.Unlock()
	if err := validDepth(maxRecvDTOs); err != nil {
		return err
	}
	if s.q.Resize(maxRecvDTOs) != nil {
		return fail(ErrInvalidState, "more than %d receives are outstanding, or the low watermark is higher", maxRecvDTOs)
	}
	return nil
}

// SetLW arms the low watermark (dat_srq_set_lw). When fewer than lw receives are available, the asynchronous EVD gets
// one EventAsyncProviderInternalError with the queue as Source and ReasonSRQLowWatermark. If fewer than lw receives are
// available already, the event is queued immediately. The event disarms the low watermark until the next SetLW. With lw
// 0, the low watermark stays disarmed. SetLW returns ErrInvalidParameter if lw is negative or above MaxRecvDTOs.
func (s *SRQ) SetLW(lw int) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.ia.mu.Unlock()
	if s.q.SetLow(lw) != nil {
		return fail(ErrInvalidParameter, "a low watermark of %d; it may be 0 to MaxRecvDTOs", lw)
	}
	return nil
}

// low raises the event of the low watermark. The owner of an engine may call it.
func (s *SRQ) low() { s.ia.postAsync(EventAsyncProviderInternalError, s, ReasonSRQLowWatermark) }

// PostRecv posts a receive (dat_srq_post_recv). One message fills the segments of iov in order. When a message arrives,
// an endpoint takes the receive. The completion goes to the receive EVD of that endpoint, and is always a notification.
//
// PostRecv neither blocks nor allocates. The memory belongs to the provider until the completion. Errors:
// ErrInsufficientResources (MaxRecvDTOs receives are outstanding), ErrInvalidParameter (segments, range),
// ErrPrivilegesViolation (a segment names no LMR, or an LMR without MemLocalWrite), ErrProtectionViolation (memory of a
// zone other than that of the queue).
func (s *SRQ) PostRecv(iov []LMRTriplet, cookie uint64) error {
	if err := s.usable(); err != nil {
		return err
	}
	waiting, err := s.q.Post(wireSegments(iov), cookie)
	if err != nil {
		return datError(err)
	}
	if waiting != nil {
		waiting.User.(*EP).ringDoorbell()
	}
	return nil
}

// Free frees the queue (dat_srq_free). Its available receives are dropped without a completion. While an endpoint uses
// the queue, Free returns ErrInvalidState with the subtype SubInvalidStateSRQInUse.
func (s *SRQ) Free() error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.ia.mu.Unlock()
	if !s.refs.free() {
		return fail(errSRQInUse, "an endpoint uses the shared receive queue; free it first")
	}
	s.freed.Store(true)
	delete(s.ia.srqs, s)
	s.ia.a.removeObjects(HandleSRQ, 1)
	s.pz.refs.drop()
	return nil
}

// RecvQuery returns two numbers about the endpoint's incomplete receives (dat_ep_recv_query). The result allocated is
// the number of these receives. The result span is the number of messages that they can take; it equals allocated,
// because each message takes one receive. Without a shared receive queue, all posted receives belong to the endpoint.
// With a shared receive queue, both numbers are 0 or 1, because an endpoint has taken at most one receive that is
// incomplete. The call is legal in every state.
func (ep *EP) RecvQuery() (allocated, span int, err error) {
	if err := ep.usable(); err != nil {
		return 0, 0, err
	}
	allocated, span = ep.conn.Receiving()
	return allocated, span, nil
}

// SetWatermark sets two limits of an endpoint with a shared receive queue, its high watermarks (dat_ep_set_watermark).
// A receive counts from the time when the endpoint takes it until the consumer has dequeued its completion. The limits
// apply to the number of these receives:
//
//   - When the number exceeds soft, the asynchronous EVD gets one EventAsyncEPBroken, with the endpoint as Source and
//     ReasonSRQSoftHighWatermark. The next such event needs another SetWatermark.
//   - When the number exceeds hard, the connection breaks.
//
// If the number exceeds a limit when SetWatermark is called, the same happens immediately. WatermarkInfinite means no
// limit. The call is legal in every state.
//
// Errors: ErrInvalidParameter (a value below WatermarkInfinite), ErrModelNotSupported (no shared receive queue).
func (ep *EP) SetWatermark(soft, hard int) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if soft < WatermarkInfinite || hard < WatermarkInfinite {
		return fail(ErrInvalidParameter, "high watermarks %d and %d; use 0 or more, or WatermarkInfinite", soft, hard)
	}
	if ep.srq == nil {
		return fail(ErrModelNotSupported, "the endpoint has no shared receive queue")
	}
	if err := ep.lock(); err != nil {
		return err
	}
	ep.attr.SRQSoftHW = soft
	ep.mu.Unlock()
	ep.conn.SetMarks(mark(soft), mark(hard))
	d := ep.drv.Load()
	if d == nil {
		return nil
	}
	return d.runPolled(func(*wire.Engine) error {
		ep.conn.CheckMarks()
		return nil
	})
}

// mark converts a high watermark to the type of package wire.
func mark(n int) int64 {
	if n == WatermarkInfinite {
		return wire.NoMark
	}
	return int64(n)
}
