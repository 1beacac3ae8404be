package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// requestFlags are the completion flags that every request allows.
const requestFlags = CompletionSuppress | CompletionBarrierFence

// permits has the parameters that decide whether a post is legal. They are atomic, so that a post takes no lock.
type permits struct {
	recvFlags, requestFlags atomic.Uint32 // CompletionUnsignalled if the endpoint allows it, else 0
	binds                   atomic.Bool   // the request EVD accepts completions of binds, or there is no request EVD
}

// permit sets the permits from the parameters.
func (m *permits) permit(p *EPParam) {
	m.recvFlags.Store(uint32(p.Attr.RecvCompletionFlags & CompletionUnsignalled))
	m.requestFlags.Store(uint32(p.Attr.RequestCompletionFlags & CompletionUnsignalled))
	m.binds.Store(p.RequestEVD == nil || p.RequestEVD.flags&EVDRMRBind != 0)
}

// recvAllowed reports whether a receive may be posted with flags.
func (m *permits) recvAllowed(flags CompletionFlags) bool {
	return flags&^CompletionFlags(m.recvFlags.Load()) == 0
}

// requestAllowed reports whether a request may be posted with flags. legal has the flags that the request's kind
// allows; CompletionUnsignalled is allowed if the endpoint's attributes allow it.
func (m *permits) requestAllowed(flags, legal CompletionFlags) bool {
	return flags&^(legal|CompletionFlags(m.requestFlags.Load())) == 0
}

// PostRecv posts a receive (dat_ep_post_recv), in any state. One message fills the segments of iov in order. The only
// legal flag is CompletionUnsignalled, if EPAttr.RecvCompletionFlags has it.
//
// Like all posts, PostRecv neither blocks nor allocates. The memory belongs to the provider until the completion.
// Errors: ErrInsufficientResources (MaxRecvDTOs receives are outstanding), ErrInvalidParameter (flags, segments,
// range), ErrPrivilegesViolation (no such LMR, or it lacks MemLocalWrite), ErrProtectionViolation (memory of another
// zone).
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

// PostSend sends the segments of iov, in order, as one message (dat_ep_post_send). No segments make an empty message.
// A successful completion means that the data is in the peer's receive buffer.
//
// PostSend is legal while connected. On a disconnected endpoint the post succeeds and completes as flushed. Errors:
// ErrInvalidState, and those of PostRecv.
func (ep *EP) PostSend(iov []LMRTriplet, cookie uint64, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags5
	}
	return ep.posted(ep.conn.PostSend(segments(iov), cookie, wire.WorkFlags(flags)))
}

// PostRDMAWrite writes the segments of iov to the start of a range of the peer's memory (dat_ep_post_rdma_write). A
// successful completion means that the data is there. The peer gets no event. The writes of a connection land in
// posting order, and within each write its last aligned word lands last. It returns ErrLengthError if the range is
// shorter than iov. Other errors are those of PostSend.
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

// PostRDMARead reads a range of the peer's memory into the segments of iov (dat_ep_post_rdma_read). It returns
// ErrLengthError if iov is shorter than the range, and ErrInvalidParameter if MaxRDMAReadOut of this endpoint or
// MaxRDMAReadIn of the peer is 0. Other errors are those of PostSend.
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

// posted rings the engine's doorbell after the post of a request, or returns the DAT error if the post failed.
func (ep *EP) posted(err error) error {
	if err != nil {
		return ep.refused(err)
	}
	ep.kick()
	return nil
}

// kick is the doorbell: it makes the engine process the posted work.
func (ep *EP) kick() {
	if d := ep.drv.Load(); d != nil {
		d.Post(ep.conn)
	}
}

// total returns the sum of the lengths of the segments, in bytes.
func total(iov []LMRTriplet) uint64 {
	var n uint64
	for i := range iov {
		n += uint64(iov[i].Length)
	}
	return n
}
