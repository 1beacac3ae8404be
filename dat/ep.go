package dat

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/wire"
)

// EP is an endpoint (DAT_EP_HANDLE): one end of a reliable connection. All its methods may be called
// by any goroutine.
type EP struct {
	consumer
	permits
	ia   *IA
	conn *wire.Conn
	port uint64
	srq  *SRQ // nil without one

	drv   atomic.Pointer[driver] // the engine of the current connection; nil before the first
	hold  atomic.Pointer[hold]   // who has the endpoint while the connection is idle
	freed atomic.Bool

	// mu serialises the calls of the endpoint's life and guards what follows. It is taken after the
	// locks of an IA and a CR, and before an engine.
	mu                     sync.Mutex
	pz                     *PZ // nil until Modify sets one
	attr                   EPAttr
	recv, request, connect *EVD
	remote                 remote
}

// remote is whom a connection is with, and how it was asked for.
type remote struct {
	addr  netip.Addr
	port  uint64 // connection qualifier that was dialled, port qualifier of who asked
	qual  uint64 // connection qualifier that was asked for
	flags ConnectFlags
}

var portQuals atomic.Uint64

// EPConfig is what an endpoint is made of beside its zone.
type EPConfig struct {
	// Where its events go; one dispatcher may take them all. Nil means that those events are not wanted. A dispatcher may
	// come from any open of the same adapter.
	RecvEVD, RequestEVD, ConnectEVD *EVD

	// SRQ is the shared receive queue that its receives are taken from; nil means receives of its own. They are in memory
	// of the queue's zone, all else is in that of the endpoint's, which may be another.
	SRQ *SRQ

	// Attr are its attributes; nil means DefaultEPAttr. With an SRQ they have to be there, and MaxRecvIOV is ignored.
	Attr *EPAttr
}

// CreateEP makes an unconnected endpoint (dat_ep_create; with an SRQ dat_ep_create_with_srq). A nil zone is set with Modify
// later: without one, nothing can be connected and no memory posted.
//
// With a shared receive queue, PostRecv is refused in every state; Reset keeps the queue, Free alone lets go of it. When a
// connection of it has ended, and its receives that were not complete are flushed, the asynchronous EVD gets
// EventAsyncEPBroken with the endpoint as Source and ReasonEPTransferToError: no more receives are taken.
//
// Errors: ErrInvalidHandle (zone, dispatcher or queue freed, of another adapter, or without the stream),
// ErrInvalidParameter (attributes beyond the limits of IA.Query, or none with an SRQ), ErrModelNotSupported (service type
// or quality of service), ErrInsufficientResources.
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
	if err := ia.a.admit(HandleEP); err != nil {
		return nil, err
	}
	if err := ia.a.refer(nil, p); err != nil {
		ia.a.dismiss(HandleEP, 1)
		return nil, err
	}
	ep := ia.newEP(p)
	ia.eps[ep] = struct{}{}
	return ep, nil
}

// newEP makes an endpoint that is not in the adapter's list yet, and whose parameters are referred to.
func (ia *IA) newEP(p *EPParam) *EP {
	ep := &EP{ia: ia, pz: p.PZ, attr: p.Attr, recv: p.RecvEVD, request: p.RequestEVD, connect: p.ConnectEVD,
		srq: p.SRQ, port: portQuals.Add(1)}
	ep.conn = ia.a.host.NewConn(ep.config(p))
	ep.adopt(p)
	return ep
}

// config is what package wire is told of an endpoint.
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

// adopt has what is not in config follow the parameters.
func (ep *EP) adopt(p *EPParam) {
	ep.permit(p)
	if ep.srq != nil && p.Attr.SRQSoftHW > 0 {
		ep.conn.SetMarks(mark(p.Attr.SRQSoftHW), wire.NoMark)
	}
}

// handles checks the zone and the dispatchers that mask names, for an endpoint of ia, which is locked.
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

// refer exchanges what an endpoint refers to: nothing before it is made, and after it is freed. It fails, and
// changes nothing, if the streams do not go with others of their dispatchers.
func (a *adapter) refer(was, now *EPParam) error {
	if err := a.refeed(was.feeds(), now.feeds()); err != nil {
		return err
	}
	for _, r := range now.uses() {
		r.take()
	}
	for _, r := range was.uses() {
		r.drop()
	}
	return nil
}

// feeds are the streams of an endpoint of these parameters.
func (p *EPParam) feeds() []feed {
	if p == nil {
		return nil
	}
	return feeds(p.RecvEVD, p.RequestEVD, p.ConnectEVD, &p.Attr)
}

// uses are the reference counts of what else an endpoint of these parameters refers to.
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

// lock locks the life of the endpoint; it fails on one that was freed. The caller unlocks mu after
// success.
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

// Status is the state, and whether no receive and no request is outstanding (dat_ep_get_status).
func (ep *EP) Status() (s EPState, recvIdle, requestIdle bool, err error) {
	if err := ep.usable(); err != nil {
		return 0, false, false, err
	}
	recvIdle, requestIdle = ep.conn.Idle()
	return ep.State(), recvIdle, requestIdle, nil
}

// Free ends the endpoint (dat_ep_free); its peer sees a disconnect, or a refusal while the connection is
// set up. No completion of it is made afterwards; one that is in an event dispatcher already stays there, with
// this EP, and takes room of it. A program that frees endpoints for others to come calls Disconnect and frees each with
// its last event, EventDisconnected: so the dispatcher never holds more than the endpoints that exist can have there.
// ErrInvalidState in EPReserved, EPPassiveConnectionPending and EPTentativeConnectionPending: free the service point or
// answer the request first.
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
	ep.ia.a.dismiss(HandleEP, 1)
	return nil
}

// end tears the connection down without an event and lets go of what the endpoint uses. mu is held.
func (ep *EP) end() {
	if ep.freed.Swap(true) {
		return
	}
	if d := ep.drv.Load(); d != nil {
		_ = d.do(func(e *wire.Engine) error { // on a closed adapter there is nothing to drop
			e.Drop(ep.conn)
			return nil
		})
	}
	p := ep.param()
	_ = ep.ia.a.refer(&p, nil) // letting go does not fail
}
