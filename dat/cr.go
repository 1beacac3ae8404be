package dat

import (
	"log/slog"
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// CR is a connection request (DAT_CR_HANDLE). It is over with a successful Accept, Reject or Handoff. All
// its methods may be called by any goroutine. A requester that gives up leaves it as it is: an Accept ends
// in EventAcceptCompletionError, a Reject in nothing.
type CR struct {
	consumer
	ia   *IA
	req  *wire.Request
	ep   *EP // that it comes with, nil if the consumer supplies one
	made bool

	mu   sync.Mutex // taken after the IA's
	over bool
}

// CRParam describes a connection request (DAT_CR_PARAM).
type CRParam struct {
	RemoteAddress netip.Addr
	RemotePort    uint64 // port qualifier of the requesting endpoint
	PrivateData   []byte // belongs to the consumer
	LocalEP       *EP    // of a reserved service point, or made by the provider; nil otherwise
}

// newCR is the request that came to a service point of ia.
func newCR(ia *IA, r *wire.Request) *CR {
	c := &CR{ia: ia, req: r}
	r.User = c
	return c
}

// makeEP gives the request an endpoint, whose attributes match those of the requester.
func (c *CR) makeEP() {
	a := DefaultEPAttr()
	a.MaxRDMAReadIn = min(max(a.MaxRDMAReadIn, c.req.ReadOut), maxReads)
	a.MaxRDMAReadOut = min(max(a.MaxRDMAReadOut, c.req.ReadIn), maxReads)
	c.ep, c.made = c.ia.newEP(&EPParam{Attr: a}), true
	c.ep.hold.Store(&hold{EPTentativeConnectionPending, c})
}

// Query describes the request (dat_cr_query).
func (c *CR) Query() (CRParam, error) {
	if err := c.lock(); err != nil {
		return CRParam{}, err
	}
	defer c.unlock()
	return CRParam{RemoteAddress: c.req.From.Addr(), RemotePort: c.req.Port, PrivateData: c.req.Private, LocalEP: c.ep}, nil
}

// lock locks a request that is not over, and its adapter. The caller unlocks it after success.
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

// Accept takes the connection up (dat_cr_accept): with an unconnected endpoint that has a zone and a
// connect EVD, or with nil if the request came with an endpoint, which must have them by then.
// EventEstablished or EventAcceptCompletionError follows there. The private data, which is copied, goes
// to the peer's EventEstablished. After an error the request may be answered again, except where no route
// leads back to the requester (ErrInvalidAddress): then it is over, and the requester's next try is a new request.
//
// Errors: ErrInvalidHandle (request over, endpoint freed, of another adapter, or without zone or connect
// EVD), ErrInvalidParameter (an endpoint too many or too few, too much private data), ErrInvalidState,
// ErrInsufficientResources.
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
		if err := c.ia.a.admit(HandleEP); err != nil {
			return err
		}
	}
	d, path, err := c.way() // last: the engine lets go of the path if it does not accept
	if err != nil {
		n = c.drop(d, err)
		c.letGo()
	} else {
		err = ep.take(d, remote{addr: c.req.From.Addr(), port: c.req.Port, qual: c.req.Qual}, func(e *wire.Engine) error {
			return e.Accept(c.req, ep.conn, path, private, ep.completions(d))
		})
	}
	if err != nil {
		if c.made {
			c.ia.a.dismiss(HandleEP, 1)
		}
		return err
	}
	c.over = true
	n = c.note("dat: accepting", d)
	if c.made {
		c.ia.eps[ep] = struct{}{} // it is the consumer's now
	}
	return nil
}

// Reject refuses the request (dat_cr_reject); the peer sees EventPeerRejected with the private data. The
// endpoint of a reserved service point is unconnected again, one that the provider made is gone. A peer that no
// route leads to sees nothing.
func (c *CR) Reject(private []byte) error {
	return c.decline(private, func(e *wire.Engine, path link.Path) error { return e.Reject(c.req, path, private) })
}

// Handoff gives the request to the service point of another qualifier of the adapter
// (dat_cr_handoff), where it is a new request; the peer does not notice. If nobody listens there, or the
// backlog is full, the peer sees EventNonPeerRejected. The request's endpoint is let go as by Reject. A request that
// no route leads back to is not handed on: it is over.
func (c *CR) Handoff(qual ConnQual) error {
	return c.decline(nil, func(e *wire.Engine, path link.Path) error { return e.Handoff(c.req, path, uint64(qual)) })
}

// decline has f part with the request.
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
	d, path, err := c.way()
	if err != nil { // the answer is lost, as it can be on its way
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

// note tells of the request, which d has. mu is held.
func (c *CR) note(message string, d *driver) note {
	return note{c.ia.log, slog.LevelDebug, message, []any{"peer", c.req.From.Addr(), "qualifier", c.req.Qual, "queue", d.eng.Index()}}
}

// way resolves the way back to the requester, from the engine on which it is to be answered.
func (c *CR) way() (*driver, link.Path, error) {
	d := c.ia.a.drivers[c.req.Engine().Index()]
	path, err := d.link.Resolve(c.req.From, uint16(c.req.Port))
	return d, path, status(err)
}

// drop frees the request in d, its engine, because of err; mu is held. The caller lets go of the request's endpoint.
func (c *CR) drop(d *driver, err error) note {
	_ = d.do(func(e *wire.Engine) error { return e.Forget(c.req) }) // one that is gone already needs nothing
	n := c.note("dat: request dropped, no way back", d)
	n.attrs = append(n.attrs, "reason", err)
	return n
}

// end lets go of the request's endpoint. mu is held, or the adapter is closed.
func (c *CR) end() {
	c.over = true
	if c.ep == nil {
		return
	}
	c.ep.mu.Lock()
	defer c.ep.mu.Unlock()
	c.letGo()
}

// letGo is end with the lock of the request's endpoint held, if there is one.
func (c *CR) letGo() {
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
