package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// WatermarkInfinite is a high watermark that is never crossed (DAT_WATERMARK_INFINITE).
const WatermarkInfinite = -1

// maxSRQDTOs is how many receives may be outstanding on a shared receive queue.
const maxSRQDTOs = 1 << 18

// SRQState is how a shared receive queue is (DAT_SRQ_STATE).
type SRQState uint8

// States of a shared receive queue; the values are those of uDAPL 2.0. One of this provider is
// operational from its creation to its end.
const (
	SRQError       SRQState = 0
	SRQOperational SRQState = 1
	SRQShutdown    SRQState = 2
)

// SRQAttr are the attributes of a shared receive queue (DAT_SRQ_ATTR).
type SRQAttr struct {
	MaxRecvDTOs  int // receives outstanding
	MaxRecvIOV   int // segments of one; 0: 4
	LowWatermark int // has to be 0: SetLW arms it
}

// SRQParam describes a shared receive queue (DAT_SRQ_PARAM). A receive is outstanding until the
// consumer has taken its completion from an EVD, and available until an endpoint takes it.
type SRQParam struct {
	IA          *IA
	State       SRQState
	PZ          *PZ
	SRQAttr     // LowWatermark is that of the last SetLW
	Available   int
	Outstanding int
}

// SRQ is a shared receive queue (DAT_SRQ_HANDLE): receives that several endpoints take from. An
// endpoint takes the oldest when a message begins to arrive. There is no order between endpoints;
// those that found no receive are served first, by turns of their peers' addresses.
//
// Messages of several packets from one address hold half of the receives at most. While there are none left and other
// endpoints wait, such a message has to move: one that stands still for 900 ms, or is slower than 1 MiB/s for long, ends its
// connection with BreakUnfinished, and the receive completes as DTOFlushed. The sender sees EventBroken, and DTOTransport
// of the send; it may connect again. A peer whose message stood still for 100 ms waits behind others for 10 s.
//
// All methods may be called by any goroutine.
type SRQ struct {
	consumer
	ia    *IA
	pz    *PZ
	q     *wire.SharedQueue
	iov   int
	refs  refs // endpoints
	freed atomic.Bool
}

// errSRQInUse is ErrInvalidState with DAT_INVALID_STATE_SRQ_IN_USE.
var errSRQInUse = with(ErrInvalidState, SubInvalidStateSRQInUse)

// CreateSRQ makes a shared receive queue without receives (dat_srq_create). Its receives are in
// memory of the zone. Errors: ErrInvalidHandle (zone), ErrInvalidParameter (attributes),
// ErrInsufficientResources (more than 262144 receives).
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
	if err := ia.a.admit(HandleSRQ); err != nil {
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
		return fail(ErrInvalidParameter, "MaxRecvDTOs is %d; it has to be 1 at least", n)
	case n > maxSRQDTOs:
		return fail(ErrInsufficientResources, "MaxRecvDTOs is %d; the largest is %d", n, maxSRQDTOs)
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

// lock locks the IA of a queue that is not freed. The caller unlocks it after success.
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

// Query describes the queue; the counts are a snapshot (dat_srq_query).
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

// Resize changes how many receives may be outstanding (dat_srq_resize). ErrInvalidState, and nothing
// has changed, if that is less than are outstanding or less than the low watermark; other errors as
// for CreateSRQ.
func (s *SRQ) Resize(maxRecvDTOs int) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.ia.mu.Unlock()
	if err := validDepth(maxRecvDTOs); err != nil {
		return err
	}
	if s.q.Resize(maxRecvDTOs) != nil {
		return fail(ErrInvalidState, "%d receives are fewer than are outstanding, or than the low watermark", maxRecvDTOs)
	}
	return nil
}

// SetLW arms the low watermark (dat_srq_set_lw): the asynchronous EVD gets one event with the queue
// as Source and ReasonSRQLowWatermark when fewer than lw receives are available, at once if that is
// so. ErrInvalidParameter if lw is negative or more than may be outstanding; 0 disarms.
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

// low tells of the low watermark.
func (s *SRQ) low() { s.ia.raise(EventAsyncProviderInternalError, s, ReasonSRQLowWatermark) }

// PostRecv queues a receive (dat_srq_post_recv). Its completion, which notifies, goes to the receive
// EVD of the endpoint that takes it. The pieces of iov are filled in order by one message.
//
// It neither blocks nor allocates, and the memory belongs to the provider until the completion.
// Errors: ErrInsufficientResources (MaxRecvDTOs are outstanding), ErrInvalidParameter (segments,
// range), ErrPrivilegesViolation, ErrProtectionViolation (memory of another zone than the queue's).
func (s *SRQ) PostRecv(iov []LMRTriplet, cookie uint64) error {
	if err := s.usable(); err != nil {
		return err
	}
	waits, err := s.q.Post(segments(iov), cookie)
	if err != nil {
		return status(err)
	}
	if waits != nil {
		waits.User.(*EP).kick()
	}
	return nil
}

// Free ends the queue (dat_srq_free); receives that nobody took vanish. ErrInvalidState, with the
// subtype SRQ_IN_USE, while an endpoint uses it.
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
	s.ia.a.dismiss(HandleSRQ, 1)
	s.pz.refs.drop()
	return nil
}

// RecvQuery tells how many receives are the endpoint's and not complete, and how many messages there
// are from the first to the last of them (dat_ep_recv_query). Messages of this provider arrive one
// after the other, so that with a shared receive queue both are 0 or 1. Without one, all that was
// posted is the endpoint's. Legal in every state.
func (ep *EP) RecvQuery() (allocated, span int, err error) {
	if err := ep.usable(); err != nil {
		return 0, 0, err
	}
	allocated, span = ep.conn.Receiving()
	return allocated, span, nil
}

// SetWatermark sets the high watermarks of an endpoint with a shared receive queue
// (dat_ep_set_watermark): limits on the receives that it has consumed, which are those it took and
// whose completion nobody has dequeued. When it takes more than soft, the asynchronous EVD gets
// one EventAsyncEPBroken with the endpoint as Source and ReasonSRQSoftHighWatermark, until set
// again; when more than hard, the connection breaks. Either happens at once if it is so already.
// WatermarkInfinite disables; legal in every state.
//
// Errors: ErrInvalidParameter (below WatermarkInfinite), ErrModelNotSupported (no shared queue).
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
	return d.do(func(*wire.Engine) error {
		ep.conn.CheckMarks()
		return nil
	})
}

// mark is a high watermark as the protocol has it.
func mark(n int) int64 {
	if n == WatermarkInfinite {
		return wire.NoMark
	}
	return int64(n)
}

// notice tells of an endpoint and its shared receive queue. Who freed the endpoint is not told.
func (ep *EP) notice(n wire.Notice) {
	switch {
	case ep.freed.Load():
	case n == wire.NoticeHigh:
		ep.ia.raise(EventAsyncEPBroken, ep, ReasonSRQSoftHighWatermark)
	case n == wire.NoticeEnd:
		ep.ia.raise(EventAsyncEPBroken, ep, ReasonEPTransferToError)
	}
}
