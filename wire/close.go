package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Disconnect ends a connection. If gracefully is true, the outstanding requests complete first. One completion that
// reports the end follows (KindDisconnected, for example), unless the connection was closed before.
func (e *Engine) Disconnect(c *Conn, gracefully bool) error {
	e.mustOwn()
	switch c.State() {
	case Idle:
		return ErrState
	case Closed:
		return nil
	case Connecting, Accepting:
		c.finish(KindDisconnected, proto.Goodbye{})
	case Established:
		if gracefully && !c.sq.empty() {
			c.setState(Draining)
			break
		}
		c.disconnect()
	case Draining:
		if !gracefully {
			c.disconnect()
		}
	}
	return nil
}

// disconnect ends a connection immediately. First it sends a partial packet that waits only for a token.
func (c *Conn) disconnect() {
	if c.sendWaiting() {
		c.finish(KindDisconnected, proto.Goodbye{})
	}
}

// Reset flushes the work queues of a closed connection and makes the connection Idle again. On an Idle connection it
// does nothing, and posted receives stay posted. Reset returns ErrHeld while completions of the connection wait for
// other engines. After each engine has had no owner once, a Poll of this engine ends the wait.
func (e *Engine) Reset(c *Conn) error {
	e.mustOwn()
	switch c.State() {
	case Idle:
		return nil
	case Closed:
		if e.waitOf(c) != nil {
			return ErrHeld
		}
		c.flushWork(StatusFlushed)
		e.publish()
		c.setState(Idle)
		return nil
	default:
		return ErrState
	}
}

// Drop ends a connection that the consumer frees. Neither the connection nor its requests get completions.
func (e *Engine) Drop(c *Conn) {
	e.mustOwn()
	c.completions = CompletionQueues{}
	switch c.State() {
	case Idle, Closed:
	default:
		if !c.abandon() {
			c.disconnect()
		}
	}
}

// drop ends a connection without a packet to the peer, because the engine closes.
func (c *Conn) drop() {
	c.release()
	c.reportEnd(KindDisconnected, StatusFlushed)
}

// finish closes the connection from this side: it sends Close with the reason, and leaves a linger that repeats Close.
func (c *Conn) finish(k Kind, bye proto.Goodbye) { c.finishAs(k, BreakReason(bye.Reason), bye) }

// finishAs is finish with another reason for the consumer than for the peer.
func (c *Conn) finishAs(k Kind, why BreakReason, bye proto.Goodbye) {
	if c.peerCID == 0 && c.State() == Connecting || c.eng.secure && c.keys == nil {
		c.end(k, StatusFlushed)
		return
	}
	e := c.eng
	bye.CID = c.cid
	c.breakReason = why
	if c.peerGone() || e.table.closed.has(c) {
		c.end(k, StatusFlushed)
		return
	}
	l := &linger{path: c.path, peerAddr: c.peerAddr, tag: c.tag, bye: bye, lastHeard: c.lastHeard, retryWait: closeRetry, header: c.newHeader(proto.Close, c.sent.Nxt)}
	if l.keys = c.takeKeys(); e.secure {
		l.header.Tag = 0
	}
	l.isReply = c.State() == Accepting
	l.passive = c.leave()
	l.permit, c.permit = c.permit, nil
	e.table.detach(c.slot, l)
	c.host.peers.add(e.lingerKey(l), peerName{c.cid, e.portReports.destination(c.path)})
	e.sendClose(c.slot, l)
	c.reportEnd(k, StatusFlushed)
}

// end closes a connection without sending Close, because the peer does not know it, has closed it, or has ended.
func (c *Conn) end(k Kind, s Status) {
	c.release()
	c.reportEnd(k, s)
}

// release removes the connection from the engine and frees its slot and its path. It also returns the place that the
// connection holds in the quota of connections.
func (c *Conn) release() {
	if c.leave() {
		c.eng.conns.freePlace(c.peerAddr)
	}
	releasePermit(&c.permit)
	c.eng.table.freeSlot(c.slot)
	c.eng.link.Release(c.path)
}

// leave removes the connection from every list of the engine. It frees neither the connection's slot nor its path nor
// its place in the quota of connections. Only a connection that the peer has requested has such a place; for it, the
// result passive is true.
func (c *Conn) leave() (passive bool) {
	e := c.eng
	c.dropAllEarly()
	e.timers.stop(c.slot)
	c.timerAt = never
	if c.peerKnown {
		c.host.peers.remove(c.peerKey(), c.cid)
	}
	if passive = c.req != nil; passive {
		e.forget(c.req)
		c.req = nil
	}
	if c.srq != nil {
		c.srq.q.remove(c)
	}
	e.sched.leave(c)
	c.ack.inAcks = false // acknowledge removes it from the list
	c.recv.target.region = nil
	c.takeKeys().wipe()
	c.endOpening()
	if c.dial.abandoned {
		c.dial.abandoned = false
		e.table.abandoned--
	}
	return passive
}

// reportEnd tells the consumer that the connection has ended: it sets the state, completes all posted entries, and
// emits the event last. The oldest incomplete request gets status s, and all other entries are flushed.
func (c *Conn) reportEnd(k Kind, s Status) {
	if k == KindBroken {
		c.eng.stats.Broken++
		c.broke.Store(1 + uint32(c.breakReason))
	}
	was := c.State()
	c.lowCredit.Store(false)
	c.setState(Closed)
	c.flushWork(s)
	if c.srq != nil && (was == Established || was == Draining) && !c.eng.hold(c, heldCompletion{notice: true}) {
		c.eng.publish()
		c.srq.notice(NoticeEnd)
	}
	c.emit(k)
}

// flushWork completes all posted entries: the oldest request with status s, the others with StatusFlushed.
func (c *Conn) flushWork(s Status) {
	for n := seq.Num(c.sq.doneCount.Load()); uint32(n) != c.sq.postedCount.Load(); n++ {
		w := c.sq.at(n)
		c.undoBind(w)
		c.completions.Request.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Op: w.op, Status: s, Flags: w.flags &^ Unsignalled, Window: c.sq.window(n)})
		c.sq.doneCount.Store(uint32(n + 1))
		s = StatusFlushed
	}
	for n := c.rq.nextRecv; uint32(n) != c.rq.postedCount.Load(); n++ {
		w := c.rq.at(n)
		c.completions.Recv.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Op: OpRecv, Status: StatusFlushed, Flags: w.flags &^ Unsignalled})
		c.rq.nextRecv = n + 1
	}
	c.countRecv()
	if c.srq != nil {
		c.srq.flush(c)
	}
}

// failRequest completes request n with status s. Before that, it completes all earlier incomplete requests with
// StatusFlushed. The caller closes the connection.
func (c *Conn) failRequest(n seq.Num, s Status) {
	for d := seq.Num(c.sq.doneCount.Load()); d.LessEq(n); d++ {
		w := c.sq.at(d)
		st := StatusFlushed
		if d == n {
			st = s
		}
		c.undoBind(w)
		c.completions.Request.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Op: w.op, Status: st, Flags: w.flags &^ Unsignalled, Window: c.sq.window(d)})
		c.sq.doneCount.Store(uint32(d + 1))
	}
}

// noRequest in a Close packet means that no request of the peer is the cause. A peer never has so many requests.
const noRequest = 1 << 31

// breakOnFault counts an error and breaks the connection. The cause is a packet from the peer, or local memory that
// is gone. The arguments op and num tell the peer which of its operations failed.
func (c *Conn) breakOnFault(why proto.Reason, op proto.Op, num int) {
	switch why {
	case proto.ReasonAccess:
		c.eng.stats.ProtectionErrors++
	case proto.ReasonProtocol:
		c.eng.stats.ProtocolErrors++
	default:
	}
	c.finish(KindBroken, proto.Goodbye{Reason: why, Op: op, Num: uint32(num)})
}

// breakDown breaks the connection after a timeout. The oldest request completes with status s.
func (c *Conn) breakDown(s Status, why proto.Reason) {
	c.failOldest(s)
	c.finish(KindBroken, proto.Goodbye{Reason: why})
}

// failOldest completes the oldest request with an error status. The caller closes the connection.
func (c *Conn) failOldest(s Status) {
	if !c.sq.empty() {
		c.failRequest(seq.Num(c.sq.doneCount.Load()), s)
	}
}

// handleClose ends the connection that the peer has closed, and answers Close with Closed. If Closed is lost, the peer
// repeats Close, but this side no longer knows the connection. Therefore handleClose answers the Close of an unknown
// connection too.
func (e *Engine) handleClose(h *proto.Header, body []byte, bufs []link.Buf) (kept bool) {
	var g proto.Goodbye
	if !g.Parse(body) {
		e.stats.BadPackets++
		return false
	}
	out := proto.Header{Type: proto.Closed, CID: g.CID, Ack: h.PSN, TS: e.now.Stamp(), Tag: h.Tag}
	if c := e.lookup(h.CID); c != nil && c.peerKnown && c.isFromPeer(h, &bufs[0]) && g.CID == c.peerCID {
		if c.hasPlausibleNumbers(h) {
			e.sendHeader(c.path, &out)
			e.flush() // the packet needs the path, which peerClosed releases
			c.noteClosed(nil)
			c.peerClosed(h, &g)
		}
		return false
	}
	if !e.isLate(h, &bufs[0]) {
		e.stats.UnknownConnection++
	}
	if !e.mayReply(bufs) {
		return false
	}
	e.replyHeader(bufs, h, &out)
	return true
}

// sendHeader sends a header without a body, in plaintext mode.
func (e *Engine) sendHeader(path link.Path, h *proto.Header) {
	var p packet
	if e.begin(&p, path, proto.HeaderSize+proto.TrailerSize, nil) {
		p.finish(h)
	}
}

// peerClosed ends the connection for the reason in the peer's Close.
func (c *Conn) peerClosed(h *proto.Header, g *proto.Goodbye) {
	if c.State() == Accepting {
		if g.Reason != proto.ReasonNone {
			c.breakReason = givenByPeer(g.Reason)
		}
		c.end(KindAcceptFailed, StatusFlushed)
		return
	}
	if c.alive() {
		c.takeAck(h, nil) // Close acknowledges: complete the requests that the peer received
		if !c.alive() {
			return
		}
		c.confirmReady()
	}
	c.failNamedRequest(g)
	c.breakReason = givenByPeer(g.Reason)
	kind := KindBroken
	if g.Reason == proto.ReasonNone {
		kind, c.breakReason = KindDisconnected, 0
	}
	c.end(kind, StatusFlushed)
}

// failNamedRequest completes the request that the peer's Close names as failed, with the status that belongs to the
// reason in Close. The peer handles requests in order, so it has executed all earlier requests, and these succeed. If
// Close names a request that has not been sent, failNamedRequest completes nothing, because the peer cannot have handled
// that request. Otherwise it would complete earlier binds that this end has not executed.
func (c *Conn) failNamedRequest(g *proto.Goodbye) {
	var s Status
	switch g.Reason {
	case proto.ReasonAccess:
		s = StatusRemoteAccess
	case proto.ReasonLength, proto.ReasonMemory:
		s = StatusRemoteResponder
	case proto.ReasonNotReady:
		s = StatusNotReady
	case proto.ReasonUnfinished:
		s = StatusTransport
	case proto.ReasonProtocol:
		s = StatusBadResponse
	default:
		return
	}
	n := c.requestAfter(c.sq.ackedPos.Op, g.Num)
	if g.Op == proto.OpReadResp {
		n = seq.Num(g.Num)
	}
	if n.Less(seq.Num(c.sq.doneCount.Load())) || !(position{Op: n}).Before(c.sq.nextPos) {
		return // it has completed, or nothing of it has been sent
	}
	c.succeedBefore(n)
	c.failRequest(n, s)
}

// succeedBefore completes the requests before n successfully.
func (c *Conn) succeedBefore(n seq.Num) {
	if c.sq.ackedPos.Op.Less(n) {
		c.sq.ackedPos = position{Op: n}
	}
	c.completeRequests()
}

// handleClosed frees a lingering connection after the peer has confirmed its Close. Closed carries the tag of Close. It may
// come more than once.
func (e *Engine) handleClosed(h *proto.Header, b *link.Buf) {
	s, slot, _ := e.table.findSlot(h.CID)
	from := e.source(b)
	switch {
	case s != nil && s.linger != nil && h.Tag == s.linger.header.Tag && from == s.linger.peerAddr:
		e.endClosed(slot, s.linger, nil)
	default:
		if c := e.table.closed.find(h.CID, from, e.now); c == nil || h.Tag != c.peerTag {
			e.stats.UnknownConnection++
		}
	}
}
