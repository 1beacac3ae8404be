package dat

import (
	"net/netip"
	"sync"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire"
)

// CR is a connection request (DAT_CR_HANDLE). It is over with a successful Accept or Reject.
type CR struct {
	consumer
	ia  *IA
	req *wire.Request

	mu   sync.Mutex
	over bool
}

// CRParam describes a connection request (DAT_CR_PARAM).
type CRParam struct {
	RemoteAddress netip.Addr
	RemotePort    uint64 // port qualifier of the requesting endpoint
	PrivateData   []byte // belongs to the consumer
}

// Query describes the request (dat_cr_query).
func (c *CR) Query() (CRParam, error) {
	if c == nil {
		return CRParam{}, errHandleCR
	}
	if err := c.ia.lock(); err != nil {
		return CRParam{}, err
	}
	defer c.ia.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return CRParam{}, errHandleCR
	}
	return CRParam{RemoteAddress: c.req.From.Addr(), RemotePort: c.req.Port, PrivateData: c.req.Private}, nil
}

// Accept takes the connection up with an unconnected endpoint that has a connect EVD
// (dat_cr_accept). EventEstablished or EventAcceptCompletionError follows there. The private data,
// which is copied, goes to the peer's EventEstablished. After an error the request may be answered
// again.
func (c *CR) Accept(ep *EP, private []byte) error {
	if err := ep.usable(); err != nil {
		return err
	}
	if c == nil || ep.connect == nil || ep.ia.a != c.ia.a {
		return ErrInvalidHandle
	}
	return c.answer(private, func(d *driver, path link.Path) error {
		return ep.bind(d, path, func(e *wire.Engine) error {
			return e.Accept(c.req, ep.conn, path, private, ep.sinks(d))
		})
	})
}

// Reject refuses the request (dat_cr_reject); the peer sees EventPeerRejected with the private data.
func (c *CR) Reject(private []byte) error {
	return c.answer(private, func(d *driver, path link.Path) error {
		return d.do(func(e *wire.Engine) error { return e.Reject(c.req, path, private) })
	})
}

// answer resolves the way back and has f answer.
func (c *CR) answer(private []byte, f func(*driver, link.Path) error) error {
	if c == nil {
		return errHandleCR
	}
	if len(private) > maxPrivateData {
		return fail(ErrInvalidParameter, "%d bytes of private data; the limit is %d", len(private), maxPrivateData)
	}
	if err := c.ia.lock(); err != nil {
		return err
	}
	defer c.ia.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errHandleCR
	}
	d := c.ia.a.drivers[c.req.Engine().Index()]
	path, err := d.link.Resolve(c.req.From, uint16(c.req.Port))
	if err != nil {
		return status(err)
	}
	if err := f(d, path); err != nil {
		return status(err)
	}
	c.over = true
	return nil
}
