package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/recovery"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// due is what a connection may send now.
type due uint8

const (
	dueNothing due = iota
	duePartial     // less than a packet: it takes its turn among the partials
	duePacket
)

// makeReady puts the connection where its turn to send comes, if it has something to send.
func (c *Conn) makeReady() {
	if c.inReady || !c.alive() {
		return
	}
	switch c.sendable() {
	case dueNothing:
	case duePartial:
		c.eng.partials.push(c)
	case duePacket:
		c.inReady = true
		c.eng.ready = append(c.eng.ready, c)
	}
}

// sendable says whether a data packet may leave now.
func (c *Conn) sendable() due {
	q, s := &c.sq, &c.sent
	switch {
	case c.flow.rnr.waits || c.epoch.changing:
		return dueNothing
	case s.Lost() > 0:
		if s.TailLossProbe() || c.windowOpen() {
			return duePacket
		}
		return dueNothing
	case c.owesReady || c.atBind():
		return duePacket
	case s.Full() || !c.windowOpen():
		return dueNothing
	case c.resp.pending():
		return duePacket
	case q.next.Op == q.counted:
		return dueNothing
	case q.next.Off == 0 && c.blocked(q.at(q.next.Op)):
		return dueNothing
	case q.unsent >= c.room():
		return duePacket
	case q.outstanding() <= eagerOps:
		if c.answered != c.recv.msn { // it answers a message
			return duePacket
		}
		return duePartial
	case s.Partials() == 0:
		return duePartial
	}
	return dueNothing
}

// windowOpen reports whether the network has room for a packet. It arms the timer for when only
// time is in the way.
func (c *Conn) windowOpen() bool {
	if c.cc.Open(c.eng.now, c.sent.Pipe()) {
		return true
	}
	c.cc.Limit()
	if c.sent.Pipe() == 0 {
		c.setDeadline(c.cc.NextSend())
	}
	return false
}

// room is the body of a full packet in bytes.
func (c *Conn) room() int { return c.mtu - proto.HeaderSize - proto.TrailerSize }

// blocked reports whether a request that has not begun must wait: for earlier reads that it
// fences, for a receive at the peer, for the peer to be able to serve another read. Atomics count as
// reads.
func (c *Conn) blocked(w *work) bool {
	if w.flags&Fence != 0 && c.readsOut > 0 {
		return true
	}
	switch w.op {
	case OpSend, OpWriteImm:
		if c.flow.allows(c.sq.msn) {
			return false
		}
		c.outOfCredit()
		return true
	case OpRead, OpFetchAdd, OpCmpSwap:
		return c.readsOut >= c.readsAllowed
	default:
		return false
	}
}

// transmit lets the connections that can send have their turns.
func (e *Engine) transmit() {
	if e.partials.blocked {
		e.transmitPartials()
	}
	n := len(e.ready)
	for i := 0; i < n; i++ {
		c := e.ready[i]
		more := c.alive() && c.sendBurst()
		if c.inReady = more; more {
			e.ready = append(e.ready, c)
		}
	}
	rest := copy(e.ready, e.ready[n:])
	clear(e.ready[rest:])
	e.ready = e.ready[:rest]
	e.transmitPartials()
}

// sendBurst sends what it may but the last packet that is not full, which takes its turn, and reports whether there is
// more that could be sent at once.
func (c *Conn) sendBurst() bool {
	for range maxBurst {
		switch c.sendable() {
		case dueNothing:
			return false
		case duePartial:
			c.eng.partials.push(c)
			return false
		case duePacket:
		}
		ok := false
		if c.sent.Lost() > 0 {
			ok = c.retransmitNext()
		} else {
			ok = c.sendNext()
		}
		if !ok {
			return c.alive() && c.sendable() != dueNothing
		}
	}
	return c.sendable() != dueNothing
}

// sendNext builds the next new packet. It reports false if nothing left.
func (c *Conn) sendNext() bool {
	if c.bindNext() {
		return c.alive()
	}
	q, f := &c.sq, c.sent.Next()
	*f = recovery.Packet{Req: q.next, ReqEnd: position{Op: q.counted}, Resp: c.resp.next, RespEnd: position{Op: c.resp.tail}}
	if !c.build(f, c.sent.Nxt, true) {
		return false
	}
	q.next, c.resp.next = f.ReqEnd, f.RespEnd
	c.sent.Add(f)
	return true
}

// retransmitNext sends the first lost packet again. It reports false if that could not be done.
func (c *Conn) retransmitNext() bool {
	psn, f := c.sent.NextLost()
	if f == nil {
		return false
	}
	f.Again = true
	if !c.build(f, psn, false) {
		return false
	}
	c.sent.Resent(f)
	c.eng.stats.countRetransmits(1, Cause(f.Cause))
	return true
}

// build makes the packet that carries the range of f. A fresh packet takes as much of the range as
// fits and shortens f to that; a repeated one is cut just as it was.
func (c *Conn) build(f *recovery.Packet, psn seq.Num, fresh bool) (built bool) {
	var p packet
	c.eng.catchFaults()
	defer c.catchBuild(&p, &built)
	built = c.fillPacket(&p, f, psn, fresh)
	p.over = true
	return built
}

// fillPacket is build where faults of memory are caught.
func (c *Conn) fillPacket(p *packet, f *recovery.Packet, psn seq.Num, fresh bool) bool {
	e := c.eng
	if !e.begin(p, c.path, c.mtu) {
		return false
	}
	room := p.left
	if fresh {
		f.Ready = c.owesReady
	}
	if f.Ready {
		proto.PutReady(p.put(proto.ReadySize))
	}
	resp, ok := c.cutResponses(p, f.Resp, f.RespEnd)
	if !ok {
		p.abandon()
		c.fault(proto.ReasonAccess, proto.OpReadResp, int(c.resp.at(resp.Op).num))
		return false
	}
	op, ok := c.cutRequests(p, f.Req, f.ReqEnd, fresh)
	if !ok {
		p.abandon()
		c.failRequest(op.Op, c.localFault(op.Op))
		c.fault(proto.ReasonLocal, 0, 0)
		return false
	}
	if p.left == room {
		p.abandon()
		return false
	}
	if fresh {
		c.owesReady = false
		f.ReqEnd, f.RespEnd = op, resp
		f.Size = int32(c.mtu - p.left)
		f.Partial = p.left > smallOp+proto.MaxChunkSize
		e.stats.TxBytes += uint64(room - p.left)
	}
	h := c.header(proto.Data, psn)
	if c.asks(f, psn, op) {
		h.Flags |= proto.AckRequest
	}
	p.finish(&h)
	c.sent.Left(f, e.now)
	c.cc.Sent(e.now, c.rtt.Smoothed())
	c.setDeadline(e.now.Add(c.rto()))
	return true
}

// asks reports whether a packet should be acknowledged without delay: when nothing follows it, or
// what follows may have to wait for the acknowledgement.
func (c *Conn) asks(f *recovery.Packet, psn seq.Num, end position) bool {
	return f.Partial || end.Op == c.sq.counted || f.Again ||
		!c.cc.Open(c.eng.now, c.sent.Pipe()+1) || int(psn)%min(int(c.cc.Window())/6+1, ackEvery) == 0
}

// cutRequests appends the requests from one position to another and returns where it stopped. It
// reports false if the memory of the request it stopped at is gone.
func (c *Conn) cutRequests(p *packet, from, to position, fresh bool) (position, bool) {
	for from.Before(to) {
		w := c.sq.at(from.Op)
		if w.op == OpBind { // nothing of it leaves
			if fresh && c.blocked(w) {
				break
			}
			if fresh && !c.bindWindow(from.Op, w) {
				return from, false
			}
			from = position{Op: from.Op + 1}
			continue
		}
		n := pieceOf(w, from.Off, p.left)
		if n < 0 || fresh && from.Off == 0 && c.blocked(w) {
			break
		}
		if from.Op == to.Op {
			n = min(n, int(to.Off-from.Off))
		}
		if fresh {
			c.begun(w, from.Off, n)
		}
		p.op, p.answers = from.Op, false
		if !c.putPiece(p, w, from, n) {
			return from, false
		}
		from.Off += uint32(n)
		if from.Off == w.length || w.op.hasResponse() {
			from = position{Op: from.Op + 1}
		}
	}
	return from, true
}

// begun accounts for a piece of a request that leaves for the first time.
func (c *Conn) begun(w *work, off uint32, n int) {
	q := &c.sq
	if off == 0 {
		if w.began == 0 {
			w.began = c.eng.now
		}
		q.unsent -= headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			w.msn = q.msn
			q.msn++
			c.answered = c.recv.msn
		case OpRead, OpFetchAdd, OpCmpSwap:
			w.got, w.done = 0, false
			if c.readsOut++; c.readsOut == 1 {
				c.readAt = c.eng.now
			}
		default:
		}
	}
	if !w.op.hasResponse() {
		q.unsent -= n
	}
}

// cutResponses appends the answers to RDMA reads and atomics from one position to another, as
// cutRequests does.
func (c *Conn) cutResponses(p *packet, from, to position) (position, bool) {
	for from.Before(to) {
		j := c.resp.at(from.Op)
		if j.atomic {
			if p.left < proto.AtomicRespSize {
				break
			}
			proto.PutAtomicResp(p.put(proto.AtomicRespSize), j.num, j.old)
			from = position{Op: from.Op + 1}
			continue
		}
		room, rest := p.left-proto.ReadRespSize, int(j.size-from.Off)
		if from.Op == to.Op {
			rest = int(to.Off - from.Off)
		}
		if room < min(rest, smallOp) {
			break
		}
		n := min(rest, room, proto.MaxChunkBytes)
		var f proto.ChunkFlags
		if from.Off+uint32(n) == j.size {
			f = proto.Last
		}
		proto.PutReadResp(p.put(proto.ReadRespSize), f, n, j.num, from.Off)
		if n > 0 {
			src, ok := c.target(j.key, j.addr+uint64(from.Off), uint32(n), RemoteRead)
			if !ok {
				return from, false
			}
			p.op, p.answers = from.Op, true
			p.add(src)
		}
		if from.Off += uint32(n); from.Off == j.size {
			from = position{Op: from.Op + 1}
		}
	}
	return from, true
}
