package dat

import (
	"log/slog"
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// CR is a connection request (DAT_CR_HANDLE). A successful Accept, Reject or Handoff ends the request: later calls
// return ErrInvalidHandle. If the requester gives up, the handle stays valid. If Accept is called then, the connect EVD
// gets EventAcceptCompletionError. If Reject is called then, the peer gets nothing. Any goroutine may call the methods.
type CR struct {
	consumer
	ia           *IA
	req          *wire.Request
	ep           *EP  // the endpoint of the request; nil if the consumer passes an endpoint to Accept
	epByProvider bool // the provider created ep for this request

	mu       sync.Mutex // guards answered; locked after the mutex of an IA
	answered bool       // the request was answered
}

// CRParam has the parameters of a connection request (DAT_CR_PARAM).
type CRParam struct {
	RemoteAddress netip.Addr
	RemotePort    uint64     // port qualifier of the requesting endpoint
	LocalAddress  netip.Addr // address of this host to which the requester connects
	PrivateData   []byte     // owned by the consumer
	// PeerKey is the public key of the requester in secure mode. It is zero if the requester has a shared secret. PeerName is
	// its name in the file of peers, or a part of its key if it has no name there. In plaintext mode both are zero.
	PeerKey  PublicKey
	PeerName string
	// OwnKey is the key of this host that the requester expects, of several in the key file. It is zero if PeerKey is.
	OwnKey  PublicKey
	LocalEP *EP // endpoint of the reserved service point, or created by the provider; nil: pass one to Accept
}

// newCR makes the CR for a request that arrived at a service point of ia.
func newCR(ia *IA, r *wire.Request) *CR {
	c := &CR{ia: ia, req: r}
	r.User = c
	return c
}

// makeEP creates the endpoint of the request. The endpoint allows as many concurrent RDMA reads as the requester asks
// for, but at least the default and at most maxReads.
func (c *CR) makeEP() {
	a := DefaultEPAttr()
	a.MaxRDMAReadIn = min(max(a.MaxRDMAReadIn, c.req.ReadOut), maxReads)
	a.MaxRDMAReadOut = min(max(a.MaxRDMAReadOut, c.req.ReadIn), maxReads)
	c.ep, c.epByProvider = c.ia.newEP(&EPParam{Attr: a}), true
	c.ep.holder.Store(&epHolder{EPTentativeConnectionPending, c})
}

// Query returns the parameters of the request (dat_cr_query).
func (c *CR) Query() (CRParam, error) {
	if err := c.lock(); err != nil {
		return CRParam{}, err
	}
	defer c.unlock()
	return CRParam{RemoteAddress: c.ia.a.zoned(c.req.From.Addr()), RemotePort: c.req.Port, LocalAddress: c.ia.a.zoned(c.req.To), PrivateData: truncatePrivate(c.req.Private),
		PeerKey: c.req.PeerKey, PeerName: c.req.PeerName, OwnKey: c.req.OwnKey, LocalEP: c.ep}, nil
}

// lock locks the IA and mu. It returns an error and locks nothing if the request is nil or answered, or if the IA is
// closed. Otherwise the caller must call unlock.
func (c *CR) lock() error {
	if c == nil {
		return errHandleCR
	}
	if err := c.ia.lock(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.answered {
		c.unlock()
		return errHandleCR
	}
	return nil
}

func (c *CR) unlock() {
	c.mu.Unlock()
	c.ia.mu.Unlock()
}

// Accept accepts the request and connects an endpoint to the requester (dat_cr_accept). If the request has an endpoint
// (CRParam.LocalEP), Accept uses that endpoint, and ep must be nil. Otherwise Accept uses ep, which must be
// unconnected. The endpoint needs a zone and a connect EVD. The connect EVD gets EventEstablished or
// EventAcceptCompletionError. The private data is copied; the requester gets the copy with EventEstablished.
//
// If no route leads to the requester, Accept succeeds, and EventAcceptCompletionError follows. The next attempt of the
// requester is then a new request. After an error the consumer may answer the request again.
//
// Errors:
//
//   - ErrInvalidHandle: the request is over; or the endpoint is freed, belongs to another adapter, or lacks a zone or
//     connect EVD.
//   - ErrInvalidParameter: ep and LocalEP are both nil or both not nil, or the private data has more than 256 bytes.
//   - ErrInvalidState, ErrInsufficientResources.
func (c *CR) Accept(ep *EP, private []byte) error {
	var n logLine
	defer n.emit()
	if err := c.lock(); err != nil {
		return err
	}
	defer c.unlock()
	ep, call, err := c.endpoint(ep)
	if err != nil {
		return err
	}
	if err := ep.lock(); err != nil {
		return err
	}
	defer ep.mu.Unlock()
	if err := c.mayAccept(ep, call, private); err != nil {
		return err
	}
	if c.epByProvider {
		if err := c.ia.a.addObject(HandleEP); err != nil {
			return err
		}
	}
	if n, err = c.connectEP(ep, private); err != nil {
		if c.epByProvider {
			c.ia.a.removeObjects(HandleEP, 1)
		}
		return err
	}
	c.answered = true
	if c.epByProvider {
		c.ia.eps[ep] = struct{}{} // from now on the consumer has to free the endpoint
	}
	return nil
}

// endpoint returns the endpoint to accept with, if the consumer passed ep, and how Accept uses it. mu is held.
func (c *CR) endpoint(ep *EP) (*EP, epCall, error) {
	switch {
	case ep != nil && ep.usable() != nil:
		return nil, 0, errHandleEP
	case (ep == nil) == (c.ep == nil):
		return nil, 0, fail(ErrInvalidParameter, "pass an endpoint if the request has none, and nil if the request has one")
	case ep == nil:
		return c.ep, callAcceptHeld, nil
	}
	return ep, callAccept, nil
}

// mayAccept returns the error of an endpoint or of private data that Accept cannot take. mu and ep.mu are held.
func (c *CR) mayAccept(ep *EP, call epCall, private []byte) error {
	if ep.pz == nil || ep.connect == nil || ep.ia.a != c.ia.a {
		return fail(ErrInvalidHandle, "the endpoint has no protection zone or no connect event dispatcher, or belongs to another adapter")
	}
	if err := checkPrivate(private); err != nil {
		return err
	}
	return ep.may(call)
}

// connectEP connects the endpoint to the requester, and returns a message for the caller to log. If no route leads to
// the requester, the connection ends at once. mu and ep.mu are held.
func (c *CR) connectEP(ep *EP, private []byte) (logLine, error) {
	d, path, unreachable := c.resolve() // the last check, because a later one would have to free the path
	peer := remote{addr: c.req.From.Addr(), local: c.req.To, port: c.req.Port, qual: c.req.Qual, key: c.req.PeerKey, own: c.req.OwnKey, name: c.req.PeerName}
	err := ep.startConnection(d, peer, func(e *wire.Engine) error {
		if unreachable != nil {
			return e.AcceptUnreachable(c.req, ep.conn, ep.completions(d))
		}
		return e.Accept(c.req, ep.conn, path, private, ep.completions(d))
	})
	switch {
	case err != nil:
		return logLine{}, err
	case unreachable != nil:
		return c.droppedLine(d, unreachable), nil
	}
	return c.logLine("dat: accepting", d), nil
}

// Reject refuses the request (dat_cr_reject). The requester gets EventPeerRejected with the private data. If no route
// leads to the requester, no answer is sent.
//
// If the request has an endpoint (CRParam.LocalEP), Reject releases the endpoint: an endpoint that the consumer
// reserved with CreateRSP becomes unconnected, and an endpoint that the provider created is freed.
func (c *CR) Reject(private []byte) error {
	return c.decline(private, func(e *wire.Engine, path link.Path) error { return e.Reject(c.req, path, private) })
}

// Handoff passes the request on (dat_cr_handoff). The request arrives as a new request at the service point that
// listens on qual, on the same adapter. The requester does not notice. If no service point listens on qual, or the
// backlog of that service point is full, the requester gets EventNonPeerRejected. If no route leads to the requester,
// the request is dropped.
//
// If the request has an endpoint, Handoff releases the endpoint as Reject does.
func (c *CR) Handoff(qual ConnQual) error {
	return c.decline(nil, func(e *wire.Engine, path link.Path) error { return e.Handoff(c.req, path, uint64(qual)) })
}

// decline runs f in the request's engine, then ends the request. f rejects the request or hands it off.
func (c *CR) decline(private []byte, f func(*wire.Engine, link.Path) error) error {
	var n logLine
	defer n.emit()
	if err := c.lock(); err != nil {
		return err
	}
	defer c.unlock()
	if err := checkPrivate(private); err != nil {
		return err
	}
	d, path, err := c.resolve()
	if err != nil { // no answer is sent; to the requester this looks like a lost answer
		n = c.forgetRequest(d, err)
		c.end()
		return nil
	}
	if err := d.runPolled(func(e *wire.Engine) error { return f(e, path) }); err != nil {
		return datError(err)
	}
	n = c.logLine("dat: declined", d)
	c.end()
	return nil
}

// logLine returns a log message about the request. d is the driver of the request's engine. mu is held.
func (c *CR) logLine(message string, d *driver) logLine {
	return logLine{c.ia.log, slog.LevelDebug, message, []any{"peer", c.req.From.Addr(), "qualifier", c.req.Qual, "queue", d.eng.Index()}}
}

// resolve returns the driver of the engine that has the request, and the path from that engine to the requester.
func (c *CR) resolve() (*driver, link.Path, error) {
	d := c.ia.a.drivers[c.req.Engine().Index()]
	path, err := d.link.ResolveFrom(c.req.To, c.req.From, uint16(c.req.Port))
	return d, path, datError(err)
}

// forgetRequest makes d's engine forget the request, without an answer. It returns a message for the caller to log,
// with err as the reason. The caller also releases the request's endpoint. mu is held.
func (c *CR) forgetRequest(d *driver, err error) logLine {
	_ = d.runPolled(func(e *wire.Engine) error { return e.Forget(c.req) }) // fails if the engine has dropped the request already
	return c.droppedLine(d, err)
}

// droppedLine returns a log message about a request that is dropped with err as the reason. mu is held.
func (c *CR) droppedLine(d *driver, err error) logLine {
	n := c.logLine("dat: request dropped, no way back", d)
	n.attrs = append(n.attrs, "reason", err)
	return n
}

// refuse answers a request that no consumer can answer any more, because its dispatcher is freed. The requester gets
// EventNonPeerRejected. If no route leads to the requester, the request is dropped.
func (c *CR) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		return
	}
	d, path, err := c.resolve()
	_ = d.runPolled(func(e *wire.Engine) error {
		if err != nil {
			return e.Forget(c.req)
		}
		return e.Refuse(c.req, path)
	})
	c.end()
}

// finish ends the request, unless it was answered, and releases its endpoint.
func (c *CR) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.answered {
		c.end()
	}
}

// end ends the request and releases its endpoint. mu is held.
func (c *CR) end() {
	if c.ep != nil {
		c.ep.mu.Lock()
		defer c.ep.mu.Unlock()
	}
	c.releaseEP()
}

// releaseEP does the same as end. The caller has locked the request's endpoint, if there is one.
func (c *CR) releaseEP() {
	c.answered = true
	switch {
	case c.ep == nil:
	case c.epByProvider:
		c.ep.freeConn()
	default:
		c.ep.clearHolder()
	}
	c.ep = nil // package wire keeps rejected requests for some time; they must not keep the endpoint
}

// truncatePrivate returns the first maxPrivateData bytes of a peer's private data, or all of the data if it is shorter.
// A packet can carry more private data, but the buffer of a consumer may have only maxPrivateData bytes.
func truncatePrivate(private []byte) []byte { return private[:min(len(private), maxPrivateData)] }

func checkPrivate(private []byte) error {
	if len(private) > maxPrivateData {
		return fail(ErrInvalidParameter, "%d bytes of private data; the limit is %d", len(private), maxPrivateData)
	}
	return nil
}
