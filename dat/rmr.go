package dat

import (
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// RMR is a remote memory region (DAT_RMR_HANDLE): a memory window on a range of an LMR. When a Bind completes, peers
// may use the new range, and they may no longer use the old range. Any goroutine may call the methods.
type RMR struct {
	consumer
	ia    *IA
	pz    *PZ
	win   *wire.Window
	scope RMRScope
	freed atomic.Bool
}

// RMRParam has the parameters of a remote memory region (DAT_RMR_PARAM). If the region is not bound, Bound is false
// and the fields after Bound are zero.
type RMRParam struct {
	IA      *IA
	PZ      *PZ
	Scope   RMRScope
	Bound   bool
	Context uint32     // the key that peers use
	Triplet LMRTriplet // the range to which the region is bound
	Priv    MemPriv
}

// CreateRMR creates an unbound region (dat_rmr_create). After a bind, the peers of all endpoints of the zone may use
// the region.
func (p *PZ) CreateRMR() (*RMR, error) { return p.createRMR(RMRScopePZ) }

// CreateRMRForEP creates an unbound region (dat_rmr_create_for_ep). After a bind, only the peer of the endpoint on
// which the bind was posted may use the region.
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
	if err := p.ia.a.addObject(HandleRMR); err != nil {
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

// Query returns the parameters of the region, as the last completed bind has set them (dat_rmr_query).
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

// Binding is the range of an LMR to which an RMR is bound, with the privileges of peers. The zero value unbinds the
// RMR.
type Binding struct {
	LMR     *LMR
	Segment LMRTriplet // a range of LMR; a segment of length 0 unbinds the RMR, and LMR is ignored
	Priv    MemPriv    // MemRemoteRead, MemRemoteWrite; local privileges are ignored
}

// Bind posts a request that binds the RMR to a range of an LMR (dat_rmr_bind). It returns the new context, the key by
// which peers name the range. When the request completes, the new context becomes valid and the old context becomes
// invalid. An access with the old context that another queue of the adapter is executing ends before the completion.
// Each Bind returns a different context. A Bind that unbinds the RMR returns 0.
//
// The request counts toward MaxRequestDTOs of the endpoint and completes in posting order, with EventRMRBindCompletion.
// A request that is posted after the bind starts after the bind has completed, so a send can carry the new context to
// the peer. The legal flags are those of PostRDMAWrite. The bind waits for earlier RDMA reads only if it has the flag
// CompletionBarrierFence. Like all posts, Bind neither blocks nor allocates.
//
// Bind is legal in the states EPConnected and EPDisconnected. In EPDisconnected the request completes with DTOFlushed
// and changes nothing. If the region is freed before the request executes, the request completes with DTORMRFailed and
// the connection breaks.
//
// Errors:
//
//   - ErrInvalidHandle: a handle is invalid, or the request EVD was created without EVDRMRBind.
//   - ErrInvalidParameter: flags, privileges, or a segment that is outside the LMR or has another context.
//   - ErrProtectionViolation: region, LMR and endpoint are not of the same zone.
//   - ErrPrivilegesViolation: MemRemoteRead needs an LMR with MemLocalRead; MemRemoteWrite needs an LMR with
//     MemLocalWrite. The LMR needs no remote privilege.
//   - ErrInvalidState, ErrInsufficientResources.
func (r *RMR) Bind(ep *EP, b Binding, cookie uint64, flags CompletionFlags) (context uint32, err error) {
	if r.usable() != nil || ep.usable() != nil || b.Segment.Length > 0 && (b.LMR == nil || !b.LMR.region.Live()) {
		return 0, ErrInvalidHandle
	}
	if !ep.bindAllowed.Load() {
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
	return context, ep.finishPost(err)
}

// Free frees the region, bound or not (dat_rmr_free). After Free, peers cannot access memory through the region. If a
// peer tries to access it, the connection of that peer breaks.
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
	r.ia.a.removeObjects(HandleRMR, 1)
	r.pz.refs.drop()
	r.win.Free()
	r.ia.a.barrier()
	return nil
}

// PostSendWithInvalidate sends a message like PostSend, and invalidates an RMR of the peer before the peer's receive
// completes (dat_ep_post_send_with_invalidate with invalidate_flag set; without that flag, the C call is PostSend). In
// the peer's completion, Event.Op is DTOReceiveWithInvalidate. When the peer has that completion, nobody accesses
// memory with the context any more. The argument rmrContext must be the context of a bound RMR that this connection may
// use. Otherwise the send completes with DTORemoteAccess and the connection breaks.
func (ep *EP) PostSendWithInvalidate(iov []LMRTriplet, cookie uint64, flags CompletionFlags, rmrContext uint32) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags|CompletionSolicitedWait) {
		return errFlags5
	}
	return ep.finishPost(ep.conn.PostSendInvalidate(wireSegments(iov), cookie, rmrContext, wire.WorkFlags(flags)))
}

// PostRDMAReadToRMR reads a range of the peer's memory into a range of an RMR of this side
// (dat_ep_post_rdma_read_to_rmr). The arguments remote and local name these ranges. The RMR must be bound with
// MemRemoteWrite. If the RMR is rebound, unbound or freed before the data has arrived, the read completes with
// DTOLocalProtection and the connection breaks.
//
// Errors are those of PostRDMARead, and these:
//
//   - ErrPrivilegesViolation: local.Context is not the context of a bound RMR, or the RMR lacks MemRemoteWrite.
//   - ErrProtectionViolation: the RMR is of another zone, or may be used only by another endpoint.
func (ep *EP) PostRDMAReadToRMR(local RMRTriplet, cookie uint64, remote RMRTriplet, flags CompletionFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if !ep.requestAllowed(flags, requestFlags) {
		return errFlags5
	}
	if local.Length < remote.Length {
		return errShort
	}
	if remote.Length > maxSize {
		return ErrInvalidParameter
	}
	window := wire.WindowRange{Key: local.Context, Addr: local.Address, Length: local.Length}
	return ep.finishPost(ep.conn.PostReadToWindow(window, cookie, remote.toWire(), uint32(remote.Length), wire.WorkFlags(flags)))
}
