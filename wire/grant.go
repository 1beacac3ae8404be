package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// Grant is what the policy of this host grants to the peer of one connection in secure mode. It begins with the
// request or the attempt to connect, and ends with Release. The owner of the engine calls the methods, so they must not
// block.
type Grant interface {
	// Rights returns the rights that the peer has now to the registered memory of this host. It returns an error, which is
	// or wraps a Denial, if the peer may not be connected any more.
	Rights() (Rights, error)
	// MayHold reports whether the engine may hold n further bytes for the peer.
	MayHold(n int) bool
	// Hold notes that the engine holds n further bytes for the peer. n may be negative.
	Hold(n int)
	// Confirm notes that the requester has confirmed the connection, or that its request was answered with Reject. The
	// request is then not half-open any more. An engine calls Confirm once at most.
	Confirm()
	// Guess notes that the peer has used a wrong remote key, and that the connection ends because of it.
	Guess()
	// Release ends the grant. The engine calls no method afterwards.
	Release()
}

// fullRights are the rights of a peer in plaintext mode, and of a peer without a Grant.
const fullRights = RemoteRead | RemoteWrite | RemoteAtomic

// permit holds the Grant of a request, a connection or a linger. A nil permit permits everything. It is a pointer, because
// a Conn has no room for an interface.
type permit struct{ Grant }

// newPermit returns the permit of a grant, which may be nil.
func newPermit(g Grant) *permit {
	if g == nil {
		return nil
	}
	return &permit{g}
}

// rights returns the rights of the peer, or why it may not be connected.
func (p *permit) rights() (Rights, error) {
	if p == nil {
		return fullRights, nil
	}
	return p.Rights()
}

func (p *permit) mayHold(n int) bool { return p == nil || p.MayHold(n) }

func (p *permit) hold(n int) {
	if p != nil {
		p.Hold(n)
	}
}

func (p *permit) confirm() {
	if p != nil {
		p.Confirm()
	}
}

func (p *permit) guess() {
	if p != nil {
		p.Guess()
	}
}

// releasePermit ends the grant of *p, and sets *p to nil.
func releasePermit(p **permit) {
	if *p != nil {
		(*p).Release()
		*p = nil
	}
}

// CheckGrants ends the connections and drops the requests whose peers the policy does not permit any more. It renews the
// rights of the other peers. The caller calls it after each change of the policy.
func (e *Engine) CheckGrants() {
	e.mustOwn()
	for i := range e.table.slots {
		if c := e.table.slots[i].conn; c != nil {
			c.checkGrant()
		}
	}
	for _, r := range e.requests {
		if _, err := r.permit.rights(); err != nil && r.conn == nil && !r.gone {
			e.stats.Revoked++
			e.forget(r)
		}
	}
	e.publish()
}

// checkGrant renews the rights of the peer, or ends the connection.
func (c *Conn) checkGrant() {
	var err error
	if c.peerRights, err = c.permit.rights(); err == nil {
		return
	}
	c.eng.stats.Revoked++
	switch c.State() {
	case Connecting, Accepting:
		kind := KindRefused
		if c.State() == Accepting {
			kind = KindAcceptFailed
		}
		c.breakReason = BreakDenied
		c.end(kind, StatusFlushed)
	case Established, Draining:
		c.failOldest(StatusTransport)
		c.finish(KindBroken, proto.Goodbye{Reason: proto.ReasonDenied})
	case Idle, Closed:
	}
}
