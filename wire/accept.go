package wire

import (
	"slices"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Accept answers a request with a connection, which must be Idle. KindEstablished or
// KindAcceptFailed follows. On an error everything is as before and the request may be answered
// again; path is released.
func (e *Engine) Accept(r *Request, c *Conn, path link.Path, private []byte, s CompletionQueues) error {
	e.mustOwn()
	err := e.accept(r, c, path, private, s)
	if err != nil {
		e.link.Release(path)
	}
	return err
}

func (e *Engine) accept(r *Request, c *Conn, path link.Path, private []byte, s CompletionQueues) error {
	switch {
	case c.State() != Idle:
		return ErrState
	case r.gone || r.conn != nil:
		return ErrGone
	case len(private) > proto.MaxPrivateData:
		return ErrPrivateData
	}
	if err := c.attach(e, path, s, e.now); err != nil {
		return err
	}
	c.req, r.conn = r, c
	e.conns.take(r.From.Addr())
	c.peerAddr = addressOf(r.From.Addr())
	c.setPeer(&r.header, &r.hello)
	c.dial = dialState{qual: r.Qual, private: slices.Clone(private), retry: helloRetry,
		until: e.now.Add(e.host.limits.GiveUp)}
	c.setState(Accepting)
	e.unconfirmed.add(r)
	c.sendAccept()
	c.armRetry()
	return nil
}

// sendAccept sends Accept.
func (c *Conn) sendAccept() {
	c.dial.offered = c.eng.now
	hi := c.hello(c.dial.private)
	h := c.header(proto.Accept, c.sent.Nxt)
	c.sendHello(&h, &hi)
}

// Undecided are the requests to some services that nobody has answered.
func (e *Engine) Undecided(of func(Service) bool) []*Request {
	e.mustOwn()
	var all []*Request
	for _, r := range e.requests {
		if r.conn == nil && !r.gone && of(r.service) {
			all = append(all, r)
		}
	}
	return all
}

// Forget ends a request without an answer, for one that no path leads back to. The requester's next try is a new request.
func (e *Engine) Forget(r *Request) error {
	e.mustOwn()
	if r.gone || r.conn != nil {
		return ErrGone
	}
	e.forget(r)
	return nil
}

// Handoff gives a request that is not answered to the service of another qualifier, as a new Request.
// Where nobody listens, or the backlog is full, the requester sees KindRefused. It takes path over.
func (e *Engine) Handoff(r *Request, path link.Path, qual uint64) error {
	e.mustOwn()
	if r.gone || r.conn != nil {
		e.link.Release(path)
		return ErrGone
	}
	to := *r
	to.Qual, to.User, to.service = qual, nil, e.host.service(qual)
	r.gone = true
	e.requests[r.key] = &to
	if to.service == nil || !to.service.Arrive(&to) {
		return e.Refuse(&to, path)
	}
	e.link.Release(path)
	return nil
}

// Reject refuses a request for the consumer: the requester sees KindPeerRejected. It takes path over.
func (e *Engine) Reject(r *Request, path link.Path, private []byte) error {
	e.mustOwn()
	return e.reject(r, path, proto.ReasonPeer, private)
}

// Refuse answers a request that no consumer will: the requester sees KindRefused. It takes path over.
func (e *Engine) Refuse(r *Request, path link.Path) error {
	e.mustOwn()
	return e.reject(r, path, proto.ReasonBacklog, nil)
}

func (e *Engine) reject(r *Request, path link.Path, why proto.Reason, private []byte) error {
	var err error
	switch {
	case len(private) > proto.MaxPrivateData:
		err = ErrPrivateData
	case r.gone || r.conn != nil:
		err = ErrGone
	}
	if err != nil {
		e.link.Release(path)
		return err
	}
	e.stats.ConnRequestsRejected++
	r.path, r.rejection = path, proto.Hello{CID: r.hello.CID, Qual: r.hello.Qual, Reason: why, Private: slices.Clone(private)}
	e.sendReject(r)
	e.rememberRejected(r)
	e.flush()
	return nil
}

// sendReject tells the requester, at most once in helloRetry: its repeats are smaller than the answer.
func (e *Engine) sendReject(r *Request) {
	if r.rejectedAt != 0 && e.now.Sub(r.rejectedAt) < helloRetry {
		return
	}
	r.rejectedAt = e.now
	h := proto.Header{Type: proto.Reject, CID: r.hello.CID, Ack: r.header.PSN, TS: e.now.Stamp(), Tag: r.hello.Tag}
	e.sendHello(r.path, &h, &r.rejection)
}

// decline remembers a request that was rejected, in place of the oldest: a repeat that was on its way, or
// that comes because Reject was lost, is told the same and is no new request.
func (e *Engine) rememberRejected(r *Request) {
	e.leaveHalfOpen(r)
	r.gone = true
	i := int(e.nrejected % maxRejected)
	e.forgetRejected(i)
	e.rejected[i] = r
	e.nrejected++
}

// forgetAllRejected forgets every request that was rejected.
func (e *Engine) forgetAllRejected() {
	for i := range e.rejected {
		e.forgetRejected(i)
	}
}

// recall forgets a request that was rejected.
func (e *Engine) forgetRejected(i int) {
	if r := e.rejected[i]; r != nil {
		e.forget(r)
		e.link.Release(r.path)
		e.rejected[i] = nil
	}
}
