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
	postRights
	ia   *IA
	conn *wire.Conn
	port uint64 // port qualifier of the endpoint: CRParam.RemotePort at the peer
	srq  *SRQ   // nil: the endpoint has a receive queue of its own

	drv    atomic.Pointer[driver]   // the driver of the connection's engine; nil before the first connection
	holder atomic.Pointer[epHolder] // the service point or connection request that holds the endpoint; nil: none
	freed  atomic.Bool
	told   atomic.Bool // the log has that the connection broke

	// mu serialises the calls that change the endpoint's state or parameters, and guards the fields below. Lock
	// order: the mutexes of an IA and a CR, then mu, then the ownership of an engine.
	mu                     sync.Mutex
	pz                     *PZ // nil until Modify sets one
	attr                   EPAttr
	recv, request, connect *EVD
	remote                 remote
}

// remote is the peer of a connection, and the flags of the connection request. In secure mode it has the key and the name
// of the peer; a peer with a shared secret has no key.
type remote struct {
	addr  netip.Addr
	local netip.Addr // address of this host that the peer sees; not valid if the link has one address
	port  uint64     // active side: the requested connection qualifier; passive side: the peer's port qualifier
	qual  uint64     // both sides: the requested connection qualifier
	udp   uint16     // UDP port of the peer if the consumer has named it, otherwise 0
	flags ConnectFlags
	key   PublicKey // of the peer
	own   PublicKey // of this host
	name  string
	// learner is set if the key of the peer was unknown, and so key is zero.
	learner *learner
}

// portQuals is the port qualifier of the newest endpoint.
var portQuals atomic.Uint64

// EPConfig are the parameters of CreateEP, except the zone.
type EPConfig struct {
	// RecvEVD gets the completions of receives. RequestEVD gets the completions of requests. ConnectEVD gets the
	// connection events. All three may be the same dispatcher. If one of them is nil, the events that it would get are
	// discarded. Each dispatcher may belong to any open of the same adapter.
	RecvEVD, RequestEVD, ConnectEVD *EVD

	// SRQ is the shared receive queue from which the endpoint takes its receives. If SRQ is nil, the endpoint has a
	// receive queue of its own. Receives of the SRQ use memory of the SRQ's zone; all other operations use memory of
	// the endpoint's zone. The two zones may differ.
	SRQ *SRQ

	// Attr has the attributes; nil means DefaultEPAttr. If SRQ is not nil, Attr must not be nil, and Attr.MaxRecvIOV is
	// ignored.
	Attr *EPAttr
}

// CreateEP creates an unconnected endpoint (dat_ep_create, or dat_ep_create_with_srq if c.SRQ is not nil). The zone pz
// may be nil; Modify can set the zone later. Until the endpoint has a zone, it can neither connect nor post operations
// that use memory.
//
// An endpoint with a shared receive queue refuses PostRecv in every state. It uses the shared receive queue until Free,
// even after Reset. When an established connection of the endpoint ends, a receive that the endpoint has taken but not
// completed is flushed. After that, whether or not there was such a receive, the asynchronous EVD gets
// EventAsyncEPBroken with the endpoint as Source and ReasonEPTransferToError. This event means that the endpoint takes
// no more receives.
//
// Errors:
//
//   - ErrInvalidHandle: the zone, a dispatcher or the shared receive queue is freed or belongs to another adapter; or
//     a dispatcher was created without the EVDFlags for its events.
//   - ErrInvalidParameter: an attribute exceeds a limit of IA.Query, or Attr is nil and SRQ is not nil.
//   - ErrModelNotSupported: service type or quality of service.
//   - ErrInsufficientResources.
func (ia *IA) CreateEP(pz *PZ, c EPConfig) (*EP, error) {
	p := &EPParam{PZ: pz, RecvEVD: c.RecvEVD, RequestEVD: c.RequestEVD, ConnectEVD: c.ConnectEVD, SRQ: c.SRQ, Attr: DefaultEPAttr()}
	if c.Attr != nil {
		p.Attr = *c.Attr
	}
	if c.SRQ != nil {
		if c.Attr == nil {
			return nil, fail(ErrInvalidParameter, "an endpoint with a shared receive queue needs EPConfig.Attr")
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
	if err := p.checkHandles(ia, epHandles); err != nil {
		return nil, err
	}
	p.Attr.setDefaults()
	if err := p.Attr.validate(); err != nil {
		return nil, err
	}
	p.grantSizes()
	if err := ia.a.addObject(HandleEP); err != nil {
		return nil, err
	}
	if err := ia.a.updateRefs(nil, p); err != nil {
		ia.a.removeObjects(HandleEP, 1)
		return nil, err
	}
	ep := ia.newEP(p)
	ia.eps[ep] = struct{}{}
	return ep, nil
}

// newEP makes an endpoint. The caller has counted the references to the objects in p, and adds the endpoint to ia.eps.
func (ia *IA) newEP(p *EPParam) *EP {
	ep := &EP{ia: ia, pz: p.PZ, attr: p.Attr, recv: p.RecvEVD, request: p.RequestEVD, connect: p.ConnectEVD,
		srq: p.SRQ, port: portQuals.Add(1)}
	ep.conn = ia.a.host.NewConn(ep.config(p))
	ep.applyRest(p)
	return ep
}

// config converts the parameters p to the configuration of the endpoint's wire.Conn.
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
		c.SRQ, c.Notice = p.SRQ.q, ep.onNotice
	}
	return c
}

// applyRest applies the parameters that config does not convert: the completion flags of posts, and the soft high
// watermark.
func (ep *EP) applyRest(p *EPParam) {
	ep.setRights(p)
	if ep.srq != nil && p.Attr.SRQSoftHW > 0 {
		ep.conn.SetMarks(mark(p.Attr.SRQSoftHW), wire.NoMark)
	}
}

// checkHandles returns ErrInvalidHandle if a handle in p is not valid for an endpoint of ia. It checks the SRQ and
// those handles whose bits are set in mask. The caller has locked ia.
func (p *EPParam) checkHandles(ia *IA, mask EPMask) error {
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
		if mask&f.field != 0 && f.evd.checkFeed(ia, f.stream) != nil {
			return ErrInvalidHandle
		}
	}
	return nil
}

// updateRefs updates the reference counts of the objects that an endpoint uses. It is called when an endpoint is
// created, changed or freed. oldParam has the old parameters, and is nil for a new endpoint. newParam has the new
// parameters, and is nil for a freed endpoint. If the event streams of one dispatcher must not share that dispatcher
// after the change (see feedCounts.mayShareEVD), updateRefs returns an error and changes nothing.
func (a *adapter) updateRefs(oldParam, newParam *EPParam) error {
	if err := a.replaceFeeds(oldParam.feeds(), newParam.feeds()); err != nil {
		return err
	}
	for _, r := range newParam.uses() {
		r.take()
	}
	for _, r := range oldParam.uses() {
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

// lock locks mu. It returns an error and does not lock if the endpoint is nil or freed. The caller unlocks mu.
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

// Status returns the state of the endpoint (dat_ep_get_status). The result recvIdle is true if no receive is
// outstanding; the result requestIdle is true if no request is outstanding.
func (ep *EP) Status() (s EPState, recvIdle, requestIdle bool, err error) {
	if err := ep.usable(); err != nil {
		return 0, false, false, err
	}
	recvIdle, requestIdle = ep.conn.Idle()
	return ep.State(), recvIdle, requestIdle, nil
}

// Free frees the endpoint (dat_ep_free). The peer sees a disconnect or, if the connection is not established yet, a
// refusal. Outstanding operations get no completions. A receive of a shared receive queue that an unfinished message
// holds returns to the queue. Free returns ErrInvalidState in the state EPReserved (free the service point first), and
// in EPPassiveConnectionPending and EPTentativeConnectionPending (answer the request first).
//
// Queued asynchronous events of the endpoint are removed. Its queued completions stay in their dispatchers and take up
// room. A program that replaces endpoints all the time should therefore call Disconnect first. It should free the
// endpoint when it takes EventDisconnected, the endpoint's last event. Then the dispatcher has no events of freed
// endpoints.
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
	ep.freeConn()
	delete(ep.ia.eps, ep)
	ep.ia.a.removeObjects(HandleEP, 1)
	return nil
}

// freeConn closes the connection without an event, and drops the endpoint's references. mu is held.
func (ep *EP) freeConn() {
	if ep.freed.Swap(true) {
		return
	}
	if d := ep.drv.Load(); d != nil {
		d.dropConn(ep.conn, !ep.ia.closed) // when the IA closes, endObjects polls once for all endpoints
	}
	ep.dropNotices()
	p := ep.param()
	_ = ep.ia.a.updateRefs(&p, nil) // cannot fail, because it adds no stream
}
