package dat

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// EP is an endpoint (DAT_EP_HANDLE): one end of a reliable connection. All its methods may be called
// by any goroutine.
type EP struct {
	consumer
	ia   *IA
	pz   *PZ
	srq  *SRQ // nil without one
	attr EPAttr
	conn *wire.Conn

	recv, request, connect *EVD

	drv   atomic.Pointer[driver] // the engine of the current connection; nil before the first
	freed atomic.Bool
	port  uint64

	unsignalled
}

var portQuals atomic.Uint64

// CreateEP makes an unconnected endpoint (dat_ep_create). A nil EVD means that those events are not
// wanted; nil attributes are DefaultEPAttr.
func (ia *IA) CreateEP(pz *PZ, recv, request, connect *EVD, attr *EPAttr) (*EP, error) {
	return ia.createEP(pz, recv, request, connect, nil, attr)
}

func (ia *IA) createEP(pz *PZ, recv, request, connect *EVD, srq *SRQ, attr *EPAttr) (*EP, error) {
	a := DefaultEPAttr()
	if attr != nil {
		a = *attr
		a.setDefaults()
	}
	if err := a.validate(); err != nil {
		return nil, err
	}
	if err := ia.lock(); err != nil {
		return nil, err
	}
	defer ia.mu.Unlock()
	err := errors.Join(recv.feeds(ia, EVDDTO), request.feeds(ia, EVDDTO), connect.feeds(ia, EVDConnection))
	if err != nil || !pz.usable(ia) || srq != nil && (srq.ia != ia || srq.freed.Load()) {
		return nil, ErrInvalidHandle
	}
	if err := ia.a.admit(HandleEP); err != nil {
		return nil, err
	}
	if err := ia.a.refeed(nil, feeds(recv, request, connect, &a)); err != nil {
		ia.a.dismiss(HandleEP, 1)
		return nil, err
	}
	ep := &EP{ia: ia, pz: pz, srq: srq, attr: a, recv: recv, request: request, connect: connect, port: portQuals.Add(1)}
	cfg := wire.ConnConfig{User: ep, Zone: pz.id, MaxRecv: a.MaxRecvDTOs,
		MaxRequest: a.MaxRequestDTOs, MaxRecvIOV: a.MaxRecvIOV, MaxRequestIOV: a.MaxRequestIOV,
		MaxMessage: a.MaxMessageSize, MaxRDMA: a.MaxRDMASize, ReadIn: a.MaxRDMAReadIn, ReadOut: a.MaxRDMAReadOut}
	if srq != nil {
		cfg.SRQ, cfg.Notice = srq.q, ep.notice
		srq.refs.take()
	}
	ep.conn = ia.a.host.NewConn(cfg)
	if srq != nil && a.SRQSoftHW > 0 {
		ep.conn.SetMarks(mark(a.SRQSoftHW), wire.NoMark)
	}
	ep.allow(&a)
	pz.refs.take()
	ia.eps[ep] = struct{}{}
	return ep, nil
}

func (ep *EP) usable() error {
	if ep == nil || ep.freed.Load() {
		return errHandleEP
	}
	return nil
}

// State is where the endpoint stands (dat_ep_get_status).
func (ep *EP) State() EPState { return epStates[ep.conn.State()] }

// Status is the state, and whether no receive and no request is outstanding (dat_ep_get_status).
func (ep *EP) Status() (s EPState, recvIdle, requestIdle bool, err error) {
	if err := ep.usable(); err != nil {
		return 0, false, false, err
	}
	recvIdle, requestIdle = ep.conn.Idle()
	return ep.State(), recvIdle, requestIdle, nil
}

// sinks are the queues of an engine that the endpoint's completions go to.
func (ep *EP) sinks(d *driver) wire.Sinks {
	i := d.eng.Index()
	return wire.Sinks{Recv: ep.recv.queue(i), Request: ep.request.queue(i), Connect: ep.connect.queue(i),
		Solicited: ep.attr.RecvCompletionFlags == CompletionSolicitedWait}
}

// Connect begins the active side of a connection to a service at an address (dat_ep_connect). The
// endpoint must be unconnected and have a connect EVD, where exactly one event follows:
// EventEstablished with the private data of the accept, or EventPeerRejected, EventNonPeerRejected,
// EventTimedOut, EventUnreachable or EventDisconnected. A negative timeout waits for ever.
func (ep *EP) Connect(to netip.Addr, qual ConnQual, timeout time.Duration, private []byte) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if ep.connect == nil {
		return fail(ErrInvalidState, "the endpoint has no connect event dispatcher")
	}
	if timeout == 0 || !to.IsValid() {
		return fail(ErrInvalidParameter, "timeout %v, address %v", timeout, to)
	}
	if len(private) > maxPrivateData {
		return fail(ErrInvalidParameter, "%d bytes of private data; the limit is %d", len(private), maxPrivateData)
	}
	if err := ep.ia.lock(); err != nil {
		return err
	}
	defer ep.ia.mu.Unlock()
	if ep.State() != EPUnconnected {
		return ErrInvalidState
	}
	d, to := ep.ia.a.pick(), to.Unmap()
	path, err := d.link.Resolve(netip.AddrPortFrom(to, ep.ia.a.port), uint16(ep.port))
	if err != nil {
		return status(err)
	}
	dial := wire.Dial{Path: path, Host: to, Qual: uint64(qual), Port: ep.port, Timeout: timeout, Private: private, Sinks: ep.sinks(d)}
	return status(ep.bind(d, path, func(e *wire.Engine) error { return e.Connect(ep.conn, dial) }))
}

// bind makes d the driver of the endpoint and has f take up a connection over path there. A free at
// the same time either sees d or is seen here.
func (ep *EP) bind(d *driver, path link.Path, f func(*wire.Engine) error) error {
	return d.do(func(e *wire.Engine) error {
		if ep.State() != EPUnconnected {
			d.link.Release(path)
			return ErrInvalidState
		}
		if ep.drv.Store(d); ep.freed.Load() {
			d.link.Release(path)
			return ErrInvalidHandle
		}
		return f(e)
	})
}

// Disconnect ends a connection (dat_ep_disconnect). Gracefully, outstanding requests may finish
// first. One EventDisconnected follows on both sides; none if the endpoint is disconnected already.
func (ep *EP) Disconnect(flags CloseFlags) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if flags > CloseGraceful {
		return fail(ErrInvalidParameter, "disconnect flags %d", flags)
	}
	d := ep.drv.Load()
	if d == nil {
		return ErrInvalidState
	}
	return status(d.do(func(e *wire.Engine) error { return e.Disconnect(ep.conn, flags == CloseGraceful) }))
}

// Reset makes a disconnected endpoint unconnected (dat_ep_reset); completions that were not taken
// stay on their EVDs.
func (ep *EP) Reset() error {
	if err := ep.usable(); err != nil {
		return err
	}
	d := ep.drv.Load()
	if d == nil {
		return nil
	}
	return status(d.do(func(e *wire.Engine) error { return e.Reset(ep.conn) }))
}

// Free ends the endpoint in any state (dat_ep_free); its peer sees a disconnect. No completion of
// it appears afterwards.
func (ep *EP) Free() error {
	if err := ep.usable(); err != nil {
		return err
	}
	if err := ep.ia.lock(); err != nil {
		return err
	}
	defer ep.ia.mu.Unlock()
	if ep.freed.Load() {
		return ErrInvalidHandle
	}
	ep.end()
	delete(ep.ia.eps, ep)
	ep.ia.a.dismiss(HandleEP, 1)
	ep.pz.refs.drop()
	if ep.srq != nil {
		ep.srq.refs.drop()
	}
	return ep.ia.a.refeed(feeds(ep.recv, ep.request, ep.connect, &ep.attr), nil)
}

// end tears the connection down without an event.
func (ep *EP) end() {
	ep.freed.Store(true)
	if d := ep.drv.Load(); d != nil {
		_ = d.do(func(e *wire.Engine) error { // on a closed adapter there is nothing to drop
			e.Drop(ep.conn)
			return nil
		})
	}
}
