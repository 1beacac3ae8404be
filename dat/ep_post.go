package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// requestFlags are the completion flags that every request allows.
const requestFlags = CompletionSuppress | CompletionBarrierFence

// postRights has those parameters of an endpoint that decide whether a post is legal. The fields are atomic, so that a
// post takes no lock.
type postRights struct {
	recvFlags, requestFlags atomic.Uint32 // CompletionUnsignalled if the endpoint allows it, else 0
	bindAllowed             atomic.Bool   // the request EVD accepts completions of binds, or there is no request EVD
}

// setRights sets m from the parameters of the endpoint.
func (m *postRights) setRights(p *EPParam) {
	m.recvFlags.Store(uint32(p.Attr.RecvCompletionFlags & CompletionUnsignalled))
	m.requestFlags.Store(uint32(p.Attr.RequestCompletionFlags & CompletionUnsignalled))
	m.bindAllowed.Store(p.RequestEVD == nil || p.RequestEVD.flags&EVDRMRBind != 0)
}

// recvAllowed reports whether a receive may be posted with flags.
func (m *postRights) recvAllowed(flags CompletionFlags) bool {
	return flags&^CompletionFlags(m.recvFlags.Load()) == 0
}

// requestAllowed reports whether a request may be posted with the given flags. legalFlags has the flags that are legal
// for this kind of request on every endpoint. If the endpoint's attributes allow CompletionUnsignalled, that flag is
// legal too.
func (m *postRights) requestAllowed(flags, legalFlags CompletionFlags) bool {
	return flags&^(legalFlags|CompletionFlags(m.requestFlags.Load())) == 0
}

// PostRecv posts a receive (dat_ep_post_recv), in any state. One message fills the segments of iov in order. The
// completion carries the cookie. The flag CompletionUnsignalled is legal if EPAttr.RecvCompletionFlags is
// CompletionUnsignalled; no other flag is legal.
//
// Like all posts, PostRecv neither blocks nor allocates. The memory belongs to the provider until the completion.
//
// Errors: ErrInsufficientResources (MaxRecvDTOs receives are outstanding), ErrInvalidParameter (flags, segments,
// range), ErrPrivilegesViolation (a segment names no LMR, or an LMR without MemLocalWrite), ErrProtectionViolation
// (memory of another zone).
func (ep *EP) PostRecv(iov []LMRTriplet, cookie uint64, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.recvAllowed(flags) {
		return errFlags5
	}
	kick, err := ep.conn.PostRecv(wireSegments(iov), cookie, wire.WorkFlags(flags))
	if err != nil {
		return ep.postError(err)
	}
	if kick {
		ep.ringDoorbell()
	}
	return nil
}

// PostSend sends the segments of iov, in order, as one message (dat_ep_post_send). An empty iov makes an empty
// message. A successful completion means that the data is in the peer's receive buffer.
//
// PostSend is legal in the states EPConnected and EPDisconnected. In EPDisconnected the send completes with DTOFlushed.
// Errors: ErrInvalidState, ErrInsufficientResources (MaxRequestDTOs requests are outstanding), and the other errors of
// PostRecv. The LMRs of iov need MemLocalRead instead of MemLocalWrite.
func (ep *EP) PostSend(iov []LMRTriplet, cookie uint64, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags5
	}
	return ep.finishPost(ep.conn.PostSend(wireSegments(iov), cookie, wire.WorkFlags(flags)))
}

// PostRDMAWrite writes the segments of iov, in order, to the peer's memory (dat_ep_post_rdma_write). The argument
// remote is the range to write. A successful completion means that the data is in the peer's memory. The peer gets no
// event. The writes of a connection land in posting order; within one write, the last aligned word lands last.
//
// PostRDMAWrite returns ErrLengthError if the range is shorter than iov. Its other errors are those of PostSend.
func (ep *EP) PostRDMAWrite(iov []LMRTriplet, cookie uint64, remote RMRTriplet, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	if total(iov) > remote.Length {
		return errShort
	}
	return ep.finishPost(ep.conn.PostWrite(wireSegments(iov), cookie, remote.toWire(), wire.WorkFlags(flags)))
}

// PostRDMARead reads from the peer's memory into the segments of iov, in order (dat_ep_post_rdma_read). The argument
// remote is the range to read.
//
// PostRDMARead returns ErrLengthError if iov is shorter than the range. It returns ErrInvalidParameter if the attribute
// MaxRDMAReadOut of this endpoint is 0, or if the attribute MaxRDMAReadIn of the peer's endpoint is 0. Its other errors
// are those of PostSend.
func (ep *EP) PostRDMARead(iov []LMRTriplet, cookie uint64, remote RMRTriplet, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags6
	}
	if total(iov) < remote.Length {
		return errShort
	}
	if remote.Length > maxSize {
		return ErrInvalidParameter
	}
	return ep.finishPost(ep.conn.PostRead(wireSegments(iov), cookie, remote.toWire(), uint32(remote.Length), wire.WorkFlags(flags)))
}

// finishPost is the last step of posting a request. err is the result of the post in package wire. If err is nil,
// finishPost rings the engine's doorbell. Otherwise it returns the DAT error for err.
func (ep *EP) finishPost(err error) error {
	if err != nil {
		return ep.postError(err)
	}
	ep.ringDoorbell()
	return nil
}

// ringDoorbell makes the engine process the posted work.
func (ep *EP) ringDoorbell() {
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
