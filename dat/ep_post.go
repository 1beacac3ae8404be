package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

const requestFlags = CompletionSuppress | CompletionBarrierFence

// permits is what an EP's parameters let be posted, kept apart so that a post takes no lock.
type permits struct {
	recvFlags, requestFlags atomic.Uint32 // CompletionUnsignalled or none
	binds                   atomic.Bool   // their completions have somewhere to go, or are not wanted
}

// permit follows the parameters.
func (m *permits) permit(p *EPParam) {
	m.recvFlags.Store(uint32(p.Attr.RecvCompletionFlags & CompletionUnsignalled))
	m.requestFlags.Store(uint32(p.Attr.RequestCompletionFlags & CompletionUnsignalled))
	m.binds.Store(p.RequestEVD == nil || p.RequestEVD.flags&EVDRMRBind != 0)
}

// recvAllowed reports whether a receive may be posted with flags.
func (m *permits) recvAllowed(flags CompletionFlags) bool {
	return flags&^CompletionFlags(m.recvFlags.Load()) == 0
}

// requestAllowed reports whether a request that has some legal flags may be posted with flags.
func (m *permits) requestAllowed(flags, legal CompletionFlags) bool {
	return flags&^(legal|CompletionFlags(m.requestFlags.Load())) == 0
}

// PostRecv queues a receive buffer (dat_ep_post_recv), in any state. The pieces of iov are filled in
// order by one message. The only legal flag is CompletionUnsignalled, if EPAttr.RecvCompletionFlags has it.
//
// Like all posts it does not block or allocate, and the memory belongs to the provider until the
// completion. Errors: ErrInsufficientResources (MaxRecvDTOs are outstanding), ErrInvalidParameter
// (flags, segments, range), ErrPrivilegesViolation, ErrProtectionViolation.
func (ep *EP) PostRecv(iov []LMRTriplet, cookie uint64, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.recvAllowed(flags) {
		return errFlags5
	}
	kick, err := ep.conn.PostRecv(segments(iov), cookie, wire.WorkFlags(flags))
	if err != nil {
		return ep.refused(err)
	}
	if kick {
		ep.kick()
	}
	return nil
}

// PostSend sends one message, the pieces of iov in order; none sends an empty one
// (dat_ep_post_send). Its completion means that the peer's receive has the data.
//
// Legal while connected; while disconnected the post succeeds and completes as flushed. Further
// errors: ErrInvalidState, and those of PostRecv.
func (ep *EP) PostSend(iov []LMRTriplet, cookie uint64, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags5
	}
	return ep.posted(ep.conn.PostSend(segments(iov), cookie, wire.WorkFlags(flags)))
}

// PostRDMAWrite stores iov's bytes at the start of a range of the peer's memory
// (dat_ep_post_rdma_write). Its completion means that they are there; the peer gets no event.
// Writes of one connection land in posting order, the last aligned word of each last.
// ErrLengthError if the range is shorter than iov.
func (ep *EP) PostRDMAWrite(iov []LMRTriplet, cookie uint64, to RMRTriplet, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	if total(iov) > to.Length {
		return errShort
	}
	return ep.posted(ep.conn.PostWrite(segments(iov), cookie, to.remote(), wire.WorkFlags(flags)))
}

// PostRDMARead fetches a range of the peer's memory into iov (dat_ep_post_rdma_read). ErrLengthError
// if iov is shorter than the range; ErrInvalidParameter if MaxRDMAReadOut here or MaxRDMAReadIn at the
// peer is 0.
func (ep *EP) PostRDMARead(iov []LMRTriplet, cookie uint64, from RMRTriplet, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	if total(iov) < from.Length {
		return errShort
	}
	if from.Length > maxSize {
		return ErrInvalidParameter
	}
	return ep.posted(ep.conn.PostRead(segments(iov), cookie, from.remote(), uint32(from.Length), wire.WorkFlags(flags)))
}

// posted ends the post of a request: the engine looks at it, unless the protocol refused it.
func (ep *EP) posted(err error) error {
	if err != nil {
		return ep.refused(err)
	}
	ep.kick()
	return nil
}

// kick has the engine look at what was posted.
func (ep *EP) kick() {
	if d := ep.drv.Load(); d != nil {
		d.Post(ep.conn)
	}
}

// total is the sum of the lengths of segments.
func total(iov []LMRTriplet) uint64 {
	var n uint64
	for i := range iov {
		n += uint64(iov[i].Length)
	}
	return n
}
