package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
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
	s := &c.send
	switch {
	case s.putOff || s.stepping:
		return dueNothing
	case s.nlost > 0:
		if s.probing || c.windowOpen() {
			return duePacket
		}
		return dueNothing
	case c.owesReady || c.atBind():
		return duePacket
	case s.nxt.Sub(s.una) >= s.reach || !c.windowOpen():
		return dueNothing
	case c.resp.pending():
		return duePacket
	case s.next.op == s.seen:
		return dueNothing
	case s.next.off == 0 && c.blocked(c.sq.at(s.next.op)):
		return dueNothing
	case s.queued >= c.room():
		return duePacket
	case s.seen.Sub(seq.Num(c.sq.done.Load())) <= eagerOps:
		if c.answered != c.recv.msn { // it answers a message
			return duePacket
		}
		return duePartial
	case s.unfilled == 0:
		return duePartial
	}
	return dueNothing
}

// windowOpen reports whether the network has room for a packet. It arms the timer for when only
// time is in the way.
func (c *Conn) windowOpen() bool {
	s := &c.send
	if s.cc.Open(c.eng.now, s.pipe) {
		return true
	}
	s.cc.Limit()
	if s.pipe == 0 {
		c.setDeadline(s.cc.NextSend())
	}
	return false
}

// room is the body of a full packet in bytes.
func (c *Conn) room() int { return c.mtu - proto.HeaderSize - proto.TrailerSize }

// count adds newly posted requests to what is queued, and returns how many there are.
func (c *Conn) count() (n int) {
	s := &c.send
	for posted := seq.Num(c.sq.posted.Load()); s.seen != posted; s.seen++ {
		w := c.sq.at(s.seen)
		s.queued += headerOf(w)
		if !w.op.answered() {
			s.queued += int(w.length)
		}
		s.binds = s.binds || w.op == OpBind
		n++
	}
	return n
}

// blocked reports whether a request that has not begun must wait: for earlier reads that it
// fences, for a receive at the peer, for the peer to be able to serve another read. Atomics count as
// reads.
func (c *Conn) blocked(w *work) bool {
	if w.flags&Fence != 0 && c.readsOut > 0 {
		return true
	}
	switch s := &c.send; w.op {
	case OpSend, OpWriteImm:
		if s.noLimit || s.msn.Less(s.credit) {
			return false
		}
		c.starving()
		return true
	case OpRead, OpFetchAdd, OpCmpSwap:
		return c.readsOut >= c.readsAllowed
	default:
		return false
	}
}

// starving starts the clock of a message without a receive.
func (c *Conn) starving() {
	if c.starved == 0 {
		c.eng.stats.CreditStalls++
		c.starved, c.probed = c.eng.now, c.eng.now
		c.setDeadline(c.eng.now.Add(probeInterval))
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
		if c.send.nlost > 0 {
			ok = c.resendNext()
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
	e, s := c.eng, &c.send
	f := c.flightAt(s.nxt)
	*f = flight{op: s.next, resp: c.resp.next}
	f.opEnd, f.respEnd = position{op: s.seen}, position{op: c.resp.tail}
	if !c.build(f, s.nxt, true) {
		return false
	}
	f.first = e.now
	s.next, c.resp.next = f.opEnd, f.respEnd
	if f.partial {
		s.unfilled++
	}
	s.nxt++
	return true
}

// build makes the packet that carries the range of f. A fresh packet takes as much of the range as
// fits and shortens f to that; a repeated one is cut just as it was.
func (c *Conn) build(f *flight, psn seq.Num, fresh bool) (built bool) {
	var p packet
	c.eng.catchFaults()
	defer c.catchBuild(&p, &built)
	built = c.fillPacket(&p, f, psn, fresh)
	p.over = true
	return built
}

// fillPacket is build where faults of memory are caught.
func (c *Conn) fillPacket(p *packet, f *flight, psn seq.Num, fresh bool) bool {
	e := c.eng
	if !e.begin(p, c.path, c.mtu) {
		return false
	}
	room := p.left
	if fresh {
		f.ready = c.owesReady
	}
	if f.ready {
		proto.PutReady(p.put(proto.ReadySize))
	}
	resp, ok := c.cutResponses(p, f.resp, f.respEnd)
	if !ok {
		p.abandon()
		c.fault(proto.ReasonAccess, proto.OpReadResp, int(c.resp.at(resp.op).num))
		return false
	}
	op, ok := c.cutRequests(p, f.op, f.opEnd, fresh)
	if !ok {
		p.abandon()
		c.failRequest(op.op, c.localFault(op.op))
		c.fault(proto.ReasonLocal, 0, 0)
		return false
	}
	if p.left == room {
		p.abandon()
		return false
	}
	if fresh {
		c.owesReady = false
		f.opEnd, f.respEnd = op, resp
		f.size = int32(c.mtu - p.left)
		f.partial = p.left > smallOp+proto.MaxChunkSize
		e.stats.TxBytes += uint64(room - p.left)
	}
	h := c.header(proto.Data, psn)
	if c.asks(f, psn, op) {
		h.Flags |= proto.AckRequest
	}
	p.finish(&h)
	f.sent, f.inPipe = e.now, true
	c.send.pipe++
	c.send.cc.Sent(e.now, c.rtt.Smoothed())
	c.setDeadline(e.now.Add(c.rto()))
	return true
}

// asks reports whether a packet should be acknowledged without delay: when nothing follows it, or
// what follows may have to wait for the acknowledgement.
func (c *Conn) asks(f *flight, psn seq.Num, end position) bool {
	s := &c.send
	return f.partial || end.op == s.seen || f.again ||
		!s.cc.Open(c.eng.now, s.pipe+1) || int(psn)%min(int(s.cc.Window())/6+1, ackEvery) == 0
}

// cutRequests appends the requests from one position to another and returns where it stopped. It
// reports false if the memory of the request it stopped at is gone.
func (c *Conn) cutRequests(p *packet, from, to position, fresh bool) (position, bool) {
	for from.before(to) {
		w := c.sq.at(from.op)
		if w.op == OpBind { // nothing of it leaves
			if fresh && c.blocked(w) {
				break
			}
			if fresh && !c.bindWindow(from.op, w) {
				return from, false
			}
			from = position{op: from.op + 1}
			continue
		}
		n := pieceOf(w, from.off, p.left)
		if n < 0 || fresh && from.off == 0 && c.blocked(w) {
			break
		}
		if from.op == to.op {
			n = min(n, int(to.off-from.off))
		}
		if fresh {
			c.begun(w, from.off, n)
		}
		p.op, p.answers = from.op, false
		if !c.putPiece(p, w, from, n) {
			return from, false
		}
		from.off += uint32(n)
		if from.off == w.length || w.op.answered() {
			from = position{op: from.op + 1}
		}
	}
	return from, true
}

// begun accounts for a piece of a request that leaves for the first time.
func (c *Conn) begun(w *work, off uint32, n int) {
	s := &c.send
	if off == 0 {
		if w.began == 0 {
			w.began = c.eng.now
		}
		s.queued -= headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			w.msn = s.msn
			s.msn++
			c.answered = c.recv.msn
		case OpRead, OpFetchAdd, OpCmpSwap:
			w.got, w.done = 0, false
			if c.readsOut++; c.readsOut == 1 {
				c.readAt = c.eng.now
			}
		default:
		}
	}
	if !w.op.answered() {
		s.queued -= n
	}
}

// cutResponses appends the answers to RDMA reads and atomics from one position to another, as
// cutRequests does.
func (c *Conn) cutResponses(p *packet, from, to position) (position, bool) {
	for from.before(to) {
		j := c.resp.at(from.op)
		if j.atomic {
			if p.left < proto.AtomicRespSize {
				break
			}
			proto.PutAtomicResp(p.put(proto.AtomicRespSize), j.num, j.old)
			from = position{op: from.op + 1}
			continue
		}
		room, rest := p.left-proto.ReadRespSize, int(j.size-from.off)
		if from.op == to.op {
			rest = int(to.off - from.off)
		}
		if room < min(rest, smallOp) {
			break
		}
		n := min(rest, room, proto.MaxChunkBytes)
		var f proto.ChunkFlags
		if from.off+uint32(n) == j.size {
			f = proto.Last
		}
		proto.PutReadResp(p.put(proto.ReadRespSize), f, n, j.num, from.off)
		if n > 0 {
			src, ok := c.target(j.key, j.addr+uint64(from.off), uint32(n), RemoteRead)
			if !ok {
				return from, false
			}
			p.op, p.answers = from.op, true
			p.add(src)
		}
		if from.off += uint32(n); from.off == j.size {
			from = position{op: from.op + 1}
		}
	}
	return from, true
}
