package dat

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// EP is an endpoint (DAT_EP_HANDLE): one side of a reliable connection. Any goroutine may call its methods.
type EP struct {
	consumer
	permits
	ia   *IA
	conn *wire.Conn
	port uint64 // port qualifier of the endpoint; the peer's CR shows it
	srq  *SRQ   // nil without one

	drv   atomic.Pointer[driver] // the driver of the connection's engine; nil before the first connection
	hold  atomic.Pointer[hold]   // the service point or request that holds the endpoint; nil if none
	freed atomic.Bool

	// mu serialises the calls that change the endpoint's state or parameters, and guards the fields below. Lock
	// order: the mutexes of an IA and a CR, then mu, then the ownership of an engine.
	mu                     sync.Mutex
	pz                     *PZ // nil until Modify sets one
	attr                   EPAttr
	recv, request, connect *EVD
	remote                 remote
}

// remote is the peer of a connection, and the flags of the connection request.
type remote struct {
	addr  netip.Addr
	port  uint64 // active side: the connection qualifier asked for; passive side: the peer's port qualifier
	qual  uint64 // the connection qualifier asked for, on both sides
	flags ConnectFlags
}

// portQuals is the last port qualifier that was given to an endpoint.
var portQuals atomic.Uint64

// EPConfig are the parameters of CreateEP, except the zone.
type EPConfig struct {
	// The dispatchers of receive completions, request completions and connection events. One dispatcher may serve for
	// all three. Nil discards those events. A dispatcher may come from any open of the same adapter.
	RecvEVD, RequestEVD, ConnectEVD *EVD

	// SRQ is the shared receive queue that the endpoint takes its receives from. Nil means a receive queue of its
	// own. Shared receives use memory of the queue's zone, all other operations memory of the endpoint's zone. The
	// two zones may differ.
	SRQ *SRQ

	// Attr are the attributes; nil means DefaultEPAttr. With an SRQ, Attr is required and its MaxRecvIOV is ignored.
	Attr *EPAttr
}

// CreateEP creates an unconnected endpoint (dat_ep_create; with an SRQ dat_ep_create_with_srq). The zone may be nil
// and set later with Modify. Without a zone the endpoint cannot connect or post memory.
//
// An endpoint with a shared receive queue refuses PostRecv in every state. It uses the queue until Free; Reset does
// not change that. After its connection has ended, its incomplete receives are flushed. Then the asynchronous EVD
// gets EventAsyncEPBroken with the endpoint as Source and ReasonEPTransferToError: the endpoint takes no more
// receives.
//
// Errors: ErrInvalidHandle (a zone, dispatcher or queue that is freed or of another adapter, or a dispatcher without
// the stream), ErrInvalidParameter (attributes beyond the limits of IA.Query, or no attributes with an SRQ),
// ErrModelNotSupported (service type or quality of service), ErrInsufficientResources.
func (ia *IA) CreateEP(pz *PZ, c EPConfig) (*EP, error) {
	p := &EPParam{PZ: pz, RecvEVD: c.RecvEVD, RequestEVD: c.RequestEVD, ConnectEVD: c.ConnectEVD, SRQ: c.SRQ, Attr: DefaultEPAttr()}
	if c.Attr != nil {
		p.Attr = *c.Attr
	}
	if c.SRQ != nil {
		if c.Attr == nil {
			return nil, fail(ErrInvalidParameter, "an endpoint with a shared receive queue needs attributes")
		}
		p.Attr.MaxRecvIOV = 0
	}
	return ia.createEP(p)
}

func (ia *IA) createEP(p *EPParam) (*EP, error) {
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	if err := p.handles(ia, epHandles); err != nil {
		return nil, err
	}
	p.Attr.setDefaults()
	if err := p.Attr.validate(); err != nil {
		return nil, err
	}
	p.grant()
	if err := ia.a.addObject(HandleEP); err != nil {
		return nil, err
	}
	if err := ia.a.refer(nil, p); err != nil {
		ia.a.removeObjects(HandleEP, 1)
		return nil, err
	}
	ep := ia.newEP(p)
	ia.eps[ep] = struct{}{}
	return ep, nil
}

// newEP makes an endpoint, which the caller adds to ia.eps. The caller has counted the references of the parameters.
func (ia *IA) newEP(p *EPParam) *EP {
	ep := &EP{ia: ia, pz: p.PZ, attr: p.Attr, recv: p.RecvEVD, request: p.RequestEVD, connect: p.ConnectEVD,
		srq: p.SRQ, port: portQuals.Add(1)}
	ep.conn = ia.a.host.NewConn(ep.config(p))
	ep.adopt(p)
	return ep
}

// config returns the configuration of the connection in package wire.
func (ep *EP) config(p *EPParam) wire.ConnConfig {
	a := &p.Attr
	c := wire.ConnConfig{User: ep, MaxRecv: a.MaxRecvDTOs, MaxRequest: a.MaxRequestDTOs,
		MaxRecvIOV: a.MaxRecvIOV, MaxRequestIOV: a.MaxRequestIOV, MaxReadIOV: a.MaxRDMAReadIOV,
		MaxWriteIOV: a.MaxRDMAWriteIOV, MaxMessage: a.MaxMessageSize, MaxRDMA: a.MaxRDMASize,
		ReadIn: a.MaxRDMAReadIn, ReadOut: a.MaxRDMAReadOut}
	if p.PZ != nil {
		c.Zone = p.PZ.id
	}
	if p.SRQ != nil {
		c.SRQ, c.Notice = p.SRQ.q, ep.notice
	}
	return c
}

// adopt applies the parameters that are not in config.
func (ep *EP) adopt(p *EPParam) {
	ep.permit(p)
	if ep.srq != nil && p.Attr.SRQSoftHW > 0 {
		ep.conn.SetMarks(mark(p.Attr.SRQSoftHW), wire.NoMark)
	}
}

// handles checks that the handles which mask names are valid for an endpoint of ia. The caller has locked ia.
func (p *EPParam) handles(ia *IA, mask EPMask) error {
	if mask&EPFieldPZ != 0 && p.PZ != nil && !p.PZ.usable(ia) {
		return errHandlePZ
	}
	if p.SRQ != nil && (p.SRQ.ia != ia || p.SRQ.freed.Load()) {
		return ErrInvalidHandle
	}
	for _, f := range []struct {
		field  EPMask
		evd    *EVD
		stream EVDFlags
	}{
		{EPFieldRecvEVD, p.RecvEVD, EVDDTO}, {EPFieldRequestEVD, p.RequestEVD, EVDDTO},
		{EPFieldConnectEVD, p.ConnectEVD, EVDConnection},
	} {
		if mask&f.field != 0 && f.evd.feeds(ia, f.stream) != nil {
			return ErrInvalidHandle
		}
	}
	return nil
}

// refer replaces the references of an endpoint: it adds those in after and drops those in before. before is nil for a
// new endpoint, and after is nil for one that is freed. If a dispatcher cannot take its new streams together, refer
// fails and changes nothing.
func (a *adapter) refer(before, after *EPParam) error {
	if err := a.refeed(before.feeds(), after.feeds()); err != nil {
		return err
	}
	for _, r := range after.uses() {
		r.take()
	}
	for _, r := range before.uses() {
		r.drop()
	}
	return nil
}

// feeds returns the streams of an endpoint with these parameters.
func (p *EPParam) feeds() []feed {
	if p == nil {
		return nil
	}
	return feeds(p.RecvEVD, p.RequestEVD, p.ConnectEVD, &p.Attr)
}

// uses returns the reference counts of the zone and the shared receive queue.
func (p *EPParam) uses() (all []*refs) {
	if p == nil {
		return nil
	}
	if p.PZ != nil {
		all = append(all, &p.PZ.refs)
	}
	if p.SRQ != nil {
		all = append(all, &p.SRQ.refs)
	}
	return all
}

func (ep *EP) usable() error {
	if ep == nil || ep.freed.Load() {
		return errHandleEP
	}
	return nil
}

// lock locks mu of an endpoint that is not freed. It fails, without the lock, on a freed one. The caller unlocks mu.
func (ep *EP) lock() error {
	if err := ep.usable(); err != nil {
		return err
	}
	ep.mu.Lock()
	if err := ep.usable(); err != nil {
		ep.mu.Unlock()
		return err
	}
	return nil
}

// Status returns the state, whether no receive is outstanding, and whether no request is (dat_ep_get_status).
func (ep *EP) Status() (s EPState, recvIdle, requestIdle bool, err error) {
	if err := ep.usable(); err != nil {
		return 0, false, false, err
	}
	recvIdle, requestIdle = ep.conn.Idle()
	return ep.State(), recvIdle, requestIdle, nil
}

// Free frees the endpoint (dat_ep_free). The peer sees a disconnect, or a refusal while the connection is being set
// up. Free makes no completions for outstanding operations. It returns ErrInvalidState in the states EPReserved,
// EPPassiveConnectionPending and EPTentativeConnectionPending: free the service point or answer the request first.
//
// Completions that are queued in an event dispatcher stay there, with this EP, and use its slots. A program that frees
// endpoints and creates others in their place should therefore call Disconnect, and free each endpoint when it takes
// the endpoint's last event, EventDisconnected. The dispatcher then holds only events of endpoints that exist.
func (ep *EP) Free() error {
	if err := ep.usable(); err != nil {
		return err
	}
	if err := ep.ia.lock(); err != nil {
		return err
	}
	defer ep.ia.mu.Unlock()
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	if err := ep.may(callFree); err != nil {
		return err
	}
	ep.end()
	delete(ep.ia.eps, ep)
	ep.ia.a.removeObjects(HandleEP, 1)
	return nil
}

// end closes the connection without an event and drops the endpoint's references. mu is held.
func (ep *EP) end() {
	if ep.freed.Swap(true) {
		return
	}
	if d := ep.drv.Load(); d != nil {
		d.drop(ep.conn, !ep.ia.closed) // the call that closes polls once for all
	}
	p := ep.param()
	_ = ep.ia.a.refer(&p, nil) // cannot fail without new streams
}
