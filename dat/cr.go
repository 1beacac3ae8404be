package dat

import (
	"log/slog"
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// CR is a connection request (DAT_CR_HANDLE). A successful Accept, Reject or Handoff ends it: later calls return
// ErrInvalidHandle. Any goroutine may call its methods. If the requester gives up, the handle stays valid: Accept
// then leads to EventAcceptCompletionError, and Reject has no effect on the peer.
type CR struct {
	consumer
	ia   *IA
	req  *wire.Request
	ep   *EP  // the endpoint that came with the request; nil if the consumer supplies one
	made bool // the provider created ep for this request

	mu   sync.Mutex // guards over; locked after the mutex of an IA
	over bool       // the request was answered
}

// CRParam has the parameters of a connection request (DAT_CR_PARAM).
type CRParam struct {
	RemoteAddress netip.Addr
	RemotePort    uint64 // port qualifier of the requesting endpoint
	PrivateData   []byte // owned by the consumer
	LocalEP       *EP    // the endpoint of a reserved service point, or the one that the provider created; else nil
}

// newCR makes the CR for a request that arrived at a service point of ia.
func newCR(ia *IA, r *wire.Request) *CR {
	c := &CR{ia: ia, req: r}
	r.User = c
	return c
}

// makeEP creates an endpoint for the request. It allows as many RDMA reads as the requester asks for.
func (c *CR) makeEP() {
	a := DefaultEPAttr()
	a.MaxRDMAReadIn = min(max(a.MaxRDMAReadIn, c.req.ReadOut), maxReads)
	a.MaxRDMAReadOut = min(max(a.MaxRDMAReadOut, c.req.ReadIn), maxReads)
	c.ep, c.made = c.ia.newEP(&EPParam{Attr: a}), true
	c.ep.hold.Store(&hold{EPTentativeConnectionPending, c})
}

// Query returns the parameters of the request (dat_cr_query).
func (c *CR) Query() (CRParam, error) {
	if err := c.lock(); err != nil {
		return CRParam{}, err
	}
	defer c.unlock()
	return CRParam{RemoteAddress: c.req.From.Addr(), RemotePort: c.req.Port, PrivateData: c.req.Private, LocalEP: c.ep}, nil
}

// lock locks the IA and mu of a request that is not over. It fails, without the locks, on another. The caller calls
// unlock.
func (c *CR) lock() error {
	if c == nil {
		return errHandleCR
	}
	if err := c.ia.lock(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.over {
		c.unlock()
		return errHandleCR
	}
	return nil
}

func (c *CR) unlock() {
	c.mu.Unlock()
	c.ia.mu.Unlock()
}

// Accept accepts the connection (dat_cr_accept). ep is an unconnected endpoint. If the request came with an endpoint,
// ep must be nil, and the request's endpoint is used. The endpoint needs a zone and a connect EVD. That EVD gets
// EventEstablished or EventAcceptCompletionError. The peer's EventEstablished carries the private data, which is
// copied.
//
// After an error the request may be answered again, with one exception: if no route leads to the requester, Accept
// returns ErrInvalidAddress and the request is over. The next attempt of the requester is a new request.
//
// Errors: ErrInvalidHandle (the request is over; the endpoint is freed, of another adapter, or lacks a zone or
// connect EVD), ErrInvalidParameter (ep is nil and the request has no endpoint, or neither is nil; more than 256
// bytes of private data), ErrInvalidState, ErrInsufficientResources, ErrInvalidAddress.
func (c *CR) Accept(ep *EP, private []byte) error {
	var n note
	defer n.write()
	if err := c.lock(); err != nil {
		return err
	}
	defer c.unlock()
	call := callAccept
	switch {
	case ep != nil && ep.usable() != nil:
		return errHandleEP
	case (ep == nil) == (c.ep == nil):
		return fail(ErrInvalidParameter, "accept with an endpoint if the request comes without, and with nil otherwise")
	case ep == nil:
		ep, call = c.ep, callAcceptHeld
	}
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	if ep.pz == nil || ep.connect == nil || ep.ia.a != c.ia.a {
		return fail(ErrInvalidHandle, "the endpoint has no protection zone, no connect event dispatcher, or is of another adapter")
	}
	if err := checkPrivate(private); err != nil {
		return err
	}
	if err := ep.may(call); err != nil {
		return err
	}
	if c.made {
		if err := c.ia.a.addObject(HandleEP); err != nil {
			return err
		}
	}
	d, path, err := c.resolve() // last: if the accept fails the engine frees the path, and nothing else does
	if err != nil {
		n = c.drop(d, err)
		c.releaseEP()
	} else {
		err = ep.take(d, remote{addr: c.req.From.Addr(), port: c.req.Port, qual: c.req.Qual}, func(e *wire.Engine) error {
			return e.Accept(c.req, ep.conn, path, private, ep.completions(d))
		})
	}
	if err != nil {
		if c.made {
			c.ia.a.removeObjects(HandleEP, 1)
		}
		return err
	}
	c.over = true
	n = c.note("dat: accepting", d)
	if c.made {
		c.ia.eps[ep] = struct{}{} // from now on the consumer frees it
	}
	return nil
}

// Reject refuses the request (dat_cr_reject). The peer gets EventPeerRejected with the private data. The endpoint of
// a reserved service point becomes unconnected; an endpoint that the provider created is freed. If no route leads to
// the peer, it gets no answer.
func (c *CR) Reject(private []byte) error {
	return c.decline(private, func(e *wire.Engine, path link.Path) error { return e.Reject(c.req, path, private) })
}

// Handoff passes the request to the service point of another qualifier of the adapter (dat_cr_handoff), where it is a
// new request. The peer does not notice. If no service point listens there, or its backlog is full, the peer gets
// EventNonPeerRejected. The request's endpoint is released as by Reject. If no route leads to the requester, the
// request is dropped instead.
func (c *CR) Handoff(qual ConnQual) error {
	return c.decline(nil, func(e *wire.Engine, path link.Path) error { return e.Handoff(c.req, path, uint64(qual)) })
}

// decline runs f, which rejects the request or hands it off, in the request's engine. Then it ends the request.
func (c *CR) decline(private []byte, f func(*wire.Engine, link.Path) error) error {
	var n note
	defer n.write()
	if err := c.lock(); err != nil {
		return err
	}
	defer c.unlock()
	if err := checkPrivate(private); err != nil {
		return err
	}
	d, path, err := c.resolve()
	if err != nil { // no answer is sent: the peer sees the same as if the network lost the answer
		n = c.drop(d, err)
		c.end()
		return nil
	}
	if err := d.do(func(e *wire.Engine) error { return f(e, path) }); err != nil {
		return status(err)
	}
	n = c.note("dat: declined", d)
	c.end()
	return nil
}

// note returns a log message about the request. d is the driver of its engine. mu is held.
func (c *CR) note(message string, d *driver) note {
	return note{c.ia.log, slog.LevelDebug, message, []any{"peer", c.req.From.Addr(), "qualifier", c.req.Qual, "queue", d.eng.Index()}}
}

// resolve resolves the path to the requester, for the engine that has the request.
func (c *CR) resolve() (*driver, link.Path, error) {
	d := c.ia.a.drivers[c.req.Engine().Index()]
	path, err := d.link.Resolve(c.req.From, uint16(c.req.Port))
	return d, path, status(err)
}

// drop drops the request in d's engine and returns a log message with the reason err. The caller releases the
// request's endpoint. mu is held.
func (c *CR) drop(d *driver, err error) note {
	_ = d.do(func(e *wire.Engine) error { return e.Forget(c.req) }) // fails if the engine has dropped the request already
	n := c.note("dat: request dropped, no way back", d)
	n.attrs = append(n.attrs, "reason", err)
	return n
}

// end ends the request and releases its endpoint. mu is held, or the IA is closed.
func (c *CR) end() {
	c.over = true
	if c.ep == nil {
		return
	}
	c.ep.mu.Lock()
	defer c.ep.mu.Unlock()
	c.releaseEP()
}

// releaseEP is end for a caller that has locked the request's endpoint, if there is one.
func (c *CR) releaseEP() {
	c.over = true
	if c.ep == nil {
		return
	}
	if c.made {
		c.ep.end()
	} else {
		c.ep.release()
	}
}

func checkPrivate(private []byte) error {
	if len(private) > maxPrivateData {
		return fail(ErrInvalidParameter, "%d bytes of private data; the limit is %d", len(private), maxPrivateData)
	}
	return nil
}
