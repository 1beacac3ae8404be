package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// RMR is a remote memory region (DAT_RMR_HANDLE): a window on a part of an LMR that peers may use
// from the completion of one Bind to that of the next. All its methods may be called by any goroutine.
type RMR struct {
	consumer
	ia    *IA
	pz    *PZ
	win   *wire.Window
	scope RMRScope
	freed atomic.Bool
}

// RMRParam describes a remote memory region (DAT_RMR_PARAM). Where it is not bound, Bound is false
// and what follows is zero.
type RMRParam struct {
	IA      *IA
	PZ      *PZ
	Scope   RMRScope
	Bound   bool
	Context uint32     // for peers
	Triplet LMRTriplet // the range that it stands for
	Priv    MemPriv
}

// CreateRMR makes a region that is not bound (dat_rmr_create). Once bound, it serves every endpoint
// of the zone.
func (p *PZ) CreateRMR() (*RMR, error) { return p.createRMR(RMRScopePZ) }

// CreateRMRForEP makes a region that is not bound and serves only the endpoint that it is bound on
// (dat_rmr_create_for_ep).
func (p *PZ) CreateRMRForEP() (*RMR, error) { return p.createRMR(RMRScopeEP) }

func (p *PZ) createRMR(scope RMRScope) (*RMR, error) {
	if p == nil {
		return nil, errHandlePZ
	}
	if err := p.ia.lock(); err != nil {
		return nil, err
	}
	defer p.ia.mu.Unlock()
	if p.freed {
		return nil, errHandlePZ
	}
	if err := p.ia.a.admit(HandleRMR); err != nil {
		return nil, err
	}
	r := &RMR{ia: p.ia, pz: p, scope: scope}
	r.win = p.ia.a.host.NewWindow(p.id, scope == RMRScopeEP, r)
	p.refs.take()
	p.ia.rmrs[r] = struct{}{}
	return r, nil
}

func (r *RMR) usable() error {
	if r == nil || r.freed.Load() {
		return errHandleRMR
	}
	return nil
}

// Query describes the region as the last bind that is done has left it (dat_rmr_query).
func (r *RMR) Query() (RMRParam, error) {
	if r == nil {
		return RMRParam{}, errHandleRMR
	}
	if err := r.ia.lock(); err != nil {
		return RMRParam{}, err
	}
	defer r.ia.mu.Unlock()
	if r.freed.Load() {
		return RMRParam{}, errHandleRMR
	}
	p := RMRParam{IA: r.ia, PZ: r.pz, Scope: r.scope}
	if b, ok := r.win.Binding(); ok {
		p.Bound, p.Context, p.Priv = true, b.Key, MemPriv(b.Rights)
		p.Triplet = LMRTriplet{Context: b.Context, Address: b.Address, Length: b.Length}
	}
	return p, nil
}

// Binding is what a region is to stand for: bytes of an LMR, with rights for peers. The zero value unbinds.
type Binding struct {
	LMR     *LMR
	Segment LMRTriplet // of LMR; one of length 0 unbinds, and LMR is ignored
	Priv    MemPriv    // MemRemoteRead, MemRemoteWrite; local ones are ignored
}

// Bind makes the region stand for a range of an LMR with remote rights (dat_rmr_bind), and returns
// the context that peers name it by. That is good from the completion of the bind on; the one before
// is invalid then. Each bind has another context, an unbinding 0.
//
// Bind is a request of the endpoint: it counts in MaxRequestDTOs, completes in posting order as
// EventRMRBindCompletion, and every request posted after it waits for it, so that a send can carry
// the context. Flags are those of PostRDMAWrite; only CompletionBarrierFence has it wait for earlier
// RDMA reads. It is legal while connected; while disconnected it completes as flushed and changes nothing.
// Like all posts it does not block or allocate.
//
// Errors: ErrInvalidHandle (a handle, or a request EVD without EVDRMRBind), ErrInvalidParameter
// (flags, privileges, a segment that is not inside the LMR or not of it), ErrProtectionViolation (region,
// LMR and endpoint are not of one zone), ErrPrivilegesViolation (reading remotely needs an LMR that
// can be read locally, writing remotely one with MemLocalWrite; the LMR needs no remote right),
// ErrInvalidState, ErrInsufficientResources.
//
// A bind that fails later, as its region was freed, completes with DTORMRFailed and breaks the connection.
func (r *RMR) Bind(ep *EP, b Binding, cookie uint64, flags CompletionFlags) (context uint32, err error) {
	if r.usable() != nil || ep.usable() != nil || b.Segment.Length > 0 && (b.LMR == nil || !b.LMR.region.Live()) {
		return 0, ErrInvalidHandle
	}
	if !ep.binds.Load() {
		return 0, ErrInvalidHandle
	}
	if b.Priv&^MemAll != 0 {
		return 0, errArg4
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return 0, errArg8
	}
	if r.ia.a != ep.ia.a {
		return 0, ErrProtectionViolation
	}
	var region *wire.Region
	if b.Segment.Length > 0 {
		switch {
		case b.LMR.ia.a != ep.ia.a:
			return 0, ErrProtectionViolation
		case b.Segment.Context != b.LMR.region.LocalKey():
			return 0, ErrInvalidParameter
		}
		region = b.LMR.region
	}
	context, err = ep.conn.PostBind(r.win, region, b.Segment.Address, b.Segment.Length,
		wire.Rights(b.Priv)&(wire.RemoteRead|wire.RemoteWrite), cookie, wire.WorkFlags(flags))
	return context, ep.posted(err)
}

// Free ends the region, bound or not (dat_rmr_free). When it returns, peers reach no memory through
// it any more: one that tries breaks its connection.
func (r *RMR) Free() error {
	if r == nil {
		return errHandleRMR
	}
	if err := r.ia.lock(); err != nil {
		return err
	}
	defer r.ia.mu.Unlock()
	if r.freed.Swap(true) {
		return errHandleRMR
	}
	delete(r.ia.rmrs, r)
	r.ia.a.dismiss(HandleRMR, 1)
	r.pz.refs.drop()
	r.win.Free()
	r.ia.a.barrier()
	return nil
}

// PostSendWithInvalidate is PostSend of a message that also makes the peer's RMR of a context invalid before its receive
// completes, which it does as DTOReceiveWithInvalidate (dat_ep_post_send_with_invalidate with its invalidate flag set;
// without the flag the call is PostSend). If that is not a context of a bound RMR that this connection may use, the send
// completes with DTORemoteAccess and the connection breaks.
func (ep *EP) PostSendWithInvalidate(iov []LMRTriplet, cookie uint64, flags CompletionFlags, rmrContext uint32) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags5
	}
	return ep.posted(ep.conn.PostSendInvalidate(segments(iov), cookie, rmrContext, wire.WorkFlags(flags)))
}

// PostRDMAReadToRMR is PostRDMARead into a range of a bound RMR of this side that gives
// MemRemoteWrite (dat_ep_post_rdma_read_to_rmr). ErrPrivilegesViolation if the context is not one of
// a bound RMR or lacks the right, ErrProtectionViolation if the RMR is of another zone or bound for
// another endpoint. If it is rebound, unbound or freed before the data is there, the read completes
// with DTOLocalProtection and the connection breaks.
func (ep *EP) PostRDMAReadToRMR(local RMRTriplet, cookie uint64, from RMRTriplet, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags5
	}
	if local.Length < from.Length {
		return errShort
	}
	if from.Length > maxSize {
		return ErrInvalidParameter
	}
	to := wire.WindowRange{Key: local.Context, Addr: local.Address, Length: local.Length}
	return ep.posted(ep.conn.PostReadToWindow(to, cookie, from.remote(), uint32(from.Length), wire.WorkFlags(flags)))
}
