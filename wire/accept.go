package wire

import (
	"slices"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Accept accepts a connection request with connection c, which must be Idle. A completion of KindEstablished or
// KindAcceptFailed follows. Accept takes ownership of path. If Accept returns an error, it releases path, and the
// caller may still answer the request, unless the error is ErrGone.
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
	c.permit, r.permit = r.permit, nil
	c.peerRights, _ = c.permit.rights() // CheckGrants has dropped the request if there is an error
	e.conns.addPlace(r.From.Addr())
	c.peerAddr = addressOf(r.From.Addr())
	e.sched.join(c)
	c.setPeer(&r.connect.header, &r.connect.hello)
	if !e.secure { // in secure mode a repeated Connect has the time stamp of the first one
		c.recv.echo.stamp, c.recv.echo.arrivedAt = r.connect.header.TS, r.connect.arrivedAt
	}
	r.connect = nil
	c.dial = dialState{qual: r.Qual, private: slices.Clone(private), retry: helloRetry,
		deadline: e.now.Add(e.host.limits.GiveUp)}
	c.setState(Accepting)
	e.unconfirmed.add(r)
	if e.secure {
		c.sealAccept(r.sealed)
	} else {
		c.sendAccept()
	}
	c.armRetry()
	return nil
}

// AcceptUnreachable accepts a connection request with connection c, which must be Idle, although the link has no path to
// the requester. It sends nothing: the connection ends, with a completion of KindAcceptFailed. The next Connect of the
// requester becomes a new request. If AcceptUnreachable returns an error, the caller may still answer the request, unless
// the error is ErrGone.
func (e *Engine) AcceptUnreachable(r *Request, c *Conn, s CompletionQueues) error {
	e.mustOwn()
	switch {
	case c.State() != Idle:
		return ErrState
	case r.gone || r.conn != nil:
		return ErrGone
	}
	e.forget(r)
	c.eng, c.completions, c.breakReason = e, s, 0
	c.broke.Store(0)
	c.rq.nextRecv = seq.Num(c.rq.doneCount.Load())
	c.peerData.Store(nil)
	c.reportEnd(KindAcceptFailed, StatusFlushed)
	return nil
}

// sendAccept sends Accept and stores the time, because repeated Connects are answered at most once in helloRetry. If
// replies to the peer have taken too much time, sendAccept sends nothing; a repeated Connect or the timer tries again.
func (c *Conn) sendAccept() {
	if !c.eng.mayReplyTo(c.peerAddr) {
		return
	}
	c.dial.acceptedAt = c.eng.now
	measured := c.eng.beginReply(c.peerAddr)
	if o := c.dial.opening; o != nil {
		c.eng.sendFixed(c.path, 0, o.answer)
	} else {
		hi := c.hello(c.dial.private)
		h := c.newHeader(proto.Accept, c.sent.Nxt)
		c.sendHello(&h, &hi)
	}
	c.eng.endReply(c.peerAddr, measured)
}

// Undecided returns the unanswered requests whose service satisfies match.
func (e *Engine) Undecided(match func(Service) bool) []*Request {
	e.mustOwn()
	var all []*Request
	for k, r := range e.requests {
		if k == r.key && r.conn == nil && !r.gone && r.service != nil && match(r.service) {
			all = append(all, r)
		}
	}
	return all
}

// Forget drops an unanswered request without a reply. The caller uses it if the link has no path to the requester. The
// next Connect of the requester becomes a new request.
func (e *Engine) Forget(r *Request) error {
	e.mustOwn()
	if r.gone || r.conn != nil {
		return ErrGone
	}
	e.forget(r)
	return nil
}

// Handoff delivers an unanswered request to the service of another qualifier, as a new Request. If the qualifier has no
// service, or the service has a full backlog, Handoff refuses the request, and the requester sees KindRefused. Handoff
// takes ownership of path.
func (e *Engine) Handoff(r *Request, path link.Path, qual uint64) error {
	e.mustOwn()
	if r.gone || r.conn != nil {
		e.link.Release(path)
		return ErrGone
	}
	to := *r
	r.permit = nil
	to.Qual, to.User, to.service = qual, nil, e.host.service(qual)
	r.gone = true
	e.list(&to)
	if to.service == nil || !to.sealed.allows(qual) || !to.service.Arrive(&to) {
		return e.Refuse(&to, path)
	}
	e.link.Release(path)
	return nil
}

// Reject answers a request for the consumer: the requester sees KindPeerRejected and private. It takes over path.
func (e *Engine) Reject(r *Request, path link.Path, private []byte) error {
	e.mustOwn()
	return e.reject(r, path, proto.ReasonPeer, private)
}

// Refuse answers a request that reaches no consumer: the requester sees KindRefused. Refuse takes over path.
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
	body := proto.Hello{CID: r.key.cid, Qual: r.connect.hello.Qual, Reason: why, Private: slices.Clone(private)}
	r.rejection, r.connect = &rejection{path: path, psn: r.connect.header.PSN, body: body}, nil
	if r.sealed != nil {
		e.sealReject(r)
	} else {
		e.sendReject(r)
	}
	e.rememberRejected(r)
	e.flush()
	return nil
}

// sendReject sends Reject, at most once per helloRetry. A Reject may be larger than the repeated Connect that it
// answers. The limited rate bounds the amplification that an attacker with a spoofed source address could gain.
func (e *Engine) sendReject(r *Request) {
	x, to := r.rejection, addressOf(r.From.Addr())
	if r.sealed != nil && x.sent == nil || x.at != 0 && e.now.Sub(x.at) < helloRetry || !e.mayReplyTo(to) {
		return
	}
	x.at = e.now
	measured := e.beginReply(to)
	if r.sealed != nil {
		e.sendFixed(x.path, link.Unconnected, x.sent)
	} else {
		h := proto.Header{Type: proto.Reject, CID: r.key.cid, Ack: x.psn, TS: e.now.Stamp(), Tag: r.key.tag}
		e.sendHello(x.path, link.Unconnected, &h, &x.body)
	}
	e.endReply(to, measured)
}

// rememberRejected stores a rejected request so that a repeated Connect gets the same Reject. If there is no room, the
// request replaces the oldest stored one. Without a stored request, a Connect that arrives late, or that the requester
// repeats because Reject was lost, would become a new request.
func (e *Engine) rememberRejected(r *Request) {
	e.leaveHalfOpen(r)
	releasePermit(&r.permit)
	r.gone = true
	i := int(e.nrejected % maxRejected)
	e.forgetRejected(i)
	e.rejected[i] = r
	e.nrejected++
}

// forgetAllRejected drops every rejected request and its path.
func (e *Engine) forgetAllRejected() {
	for i := range e.rejected {
		e.forgetRejected(i)
	}
}

// forgetRejected drops the rejected request in ring slot i, if any, and the path of the request.
func (e *Engine) forgetRejected(i int) {
	if r := e.rejected[i]; r != nil {
		e.forget(r)
		e.link.Release(r.rejection.path)
		e.rejected[i] = nil
	}
}
