package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/recovery"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// bodySize returns the number of bytes that fit into the body of a full packet.
func (c *Conn) bodySize() int { return c.pmtu.Size - proto.HeaderSize - c.keys.trailer() }

// sendNext builds the next new packet. It reports false if it has built none.
func (c *Conn) sendNext() bool {
	if c.bindNext() {
		return c.alive()
	}
	q, f := &c.sq, c.sent.NextEntry()
	*f = recovery.Packet{Req: q.nextPos, ReqEnd: position{Op: q.counted}, Resp: c.resp.nextPos, RespEnd: position{Op: c.resp.tail}}
	if !c.buildPacket(f, c.sent.Nxt, true) {
		return false
	}
	q.nextPos, c.resp.nextPos = f.ReqEnd, f.RespEnd
	c.sent.Add(f)
	return true
}

// retransmitNext builds the first lost packet again. It reports false if it has built none.
func (c *Conn) retransmitNext() bool {
	psn, f := c.sent.NextLost()
	if f == nil {
		return false
	}
	f.Retransmitted = true
	if !c.buildPacket(f, psn, false) {
		return false
	}
	c.sent.Resent(f)
	c.eng.stats.countRetransmits(1, Cause(f.Cause))
	return true
}

// buildPacket makes the packet that carries the range of requests and responses in f. If fresh is true, the packet
// takes as much of the range as fits, and the method shortens the range in f accordingly. If fresh is false, the packet
// carries exactly the range that it carried before.
func (c *Conn) buildPacket(f *recovery.Packet, psn seq.Num, fresh bool) (built bool) {
	var p packet
	c.eng.catchFaults()
	defer c.catchBuild(&p, &built)
	built = c.fillPacket(&p, f, psn, fresh)
	p.built = true
	return built
}

// fillPacket does the work of buildPacket. A memory fault in fillPacket raises a panic, which buildPacket recovers.
func (c *Conn) fillPacket(p *packet, f *recovery.Packet, psn seq.Num, fresh bool) bool {
	e := c.eng
	if !e.begin(p, c.path, c.pmtu.Size, c.keys) {
		return false
	}
	room := p.bytesLeft
	if fresh {
		f.Ready = c.readyPending
	}
	if f.Ready {
		proto.PutReady(p.reserve(proto.ReadySize))
	}
	req, resp, ok := c.cutChunks(p, f, fresh)
	if !ok {
		return false
	}
	if p.bytesLeft == room {
		p.abandon()
		return false
	}
	if fresh {
		c.readyPending = false
		f.ReqEnd, f.RespEnd = req, resp
		f.Size = int32(c.pmtu.Size - p.bytesLeft)
		f.Partial = p.bytesLeft > smallOp+proto.MaxChunkSize
		e.stats.TxBytes += uint64(room - p.bytesLeft)
	}
	h := c.newHeader(proto.Data, psn)
	if c.needsAck(f, psn, req) {
		h.Flags |= proto.AckRequest
	}
	p.finish(&h)
	c.sent.PacketSent(f, e.now)
	c.cc.Sent(e.now, c.rtt.Smoothed(), int(f.Size))
	c.setDeadline(e.now.Add(c.rto()))
	return true
}

// cutChunks appends the chunks of the responses and requests in f, and returns the positions at which it stopped. If
// registered memory is gone, it abandons the packet, breaks the connection and reports false.
func (c *Conn) cutChunks(p *packet, f *recovery.Packet, fresh bool) (req, resp position, ok bool) {
	resp, ok = c.cutResponses(p, f.Resp, f.RespEnd)
	if !ok {
		p.abandon()
		c.breakOnFault(proto.ReasonAccess, proto.OpReadResp, int(c.resp.at(resp.Op).num))
		return req, resp, false
	}
	req, ok = c.cutRequests(p, f.Req, f.ReqEnd, fresh)
	if !ok {
		p.abandon()
		c.failRequest(req.Op, c.localFault(req.Op))
		c.breakOnFault(proto.ReasonLocal, 0, 0)
		return req, resp, false
	}
	return req, resp, true
}

// needsAck reports whether packet f should ask for an acknowledgement without delay. One of these conditions is enough:
//   - No further packet follows soon, or f is a retransmission.
//   - The congestion window is full.
//   - The argument psn is a multiple of an interval, which is about a sixth of the congestion window and at most
//     ackEvery.
func (c *Conn) needsAck(f *recovery.Packet, psn seq.Num, end position) bool {
	return f.Partial || end.Op == c.sq.counted || f.Retransmitted ||
		!c.cc.Open(c.eng.now, c.sent.Pipe()+1) || int(psn)%min(int(c.cc.Window())/6+1, ackEvery) == 0
}

// cutRequests appends chunks of the requests between two positions, as far as they fit. It returns the position at
// which it stopped. It reports false if the memory of the request at that position is gone.
func (c *Conn) cutRequests(p *packet, from, to position, fresh bool) (position, bool) {
	for from.Before(to) {
		w := c.sq.at(from.Op)
		if fresh && from.Off == 0 {
			if m := c.waitsFor(w); m != sendPacket {
				c.blockedBy(m)
				break
			}
		}
		if w.op == OpBind { // a bind sends nothing
			if fresh && !c.bindWindow(from.Op, w) {
				return from, false
			}
			if fresh && c.sq.oldKey != 0 {
				break
			}
			from = position{Op: from.Op + 1}
			continue
		}
		n := pieceOf(w, from.Off, p.bytesLeft)
		if n < 0 {
			break
		}
		if from.Op == to.Op {
			n = min(n, int(to.Off-from.Off))
		}
		if fresh {
			c.countFirstSend(w, from.Off, n)
		}
		p.op, p.isResponse = from.Op, false
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

// countFirstSend updates the counts when a piece of a request is sent for the first time.
func (c *Conn) countFirstSend(w *work, off uint32, n int) {
	q := &c.sq
	if off == 0 {
		if w.begunAt == 0 {
			w.begunAt = c.eng.now
		}
		q.unsent -= headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			w.msn = q.msn
			q.msn++
			c.recv.answered = c.recv.msn
		case OpRead, OpFetchAdd, OpCmpSwap:
			w.arrivedBytes, w.executed = 0, false
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

// cutResponses appends chunks of responses to RDMA reads and atomics. It returns what cutRequests returns.
func (c *Conn) cutResponses(p *packet, from, to position) (position, bool) {
	for from.Before(to) {
		j := c.resp.at(from.Op)
		if j.atomic {
			if p.bytesLeft < proto.AtomicRespSize {
				break
			}
			proto.PutAtomicResp(p.reserve(proto.AtomicRespSize), j.num, j.oldWord)
			from = position{Op: from.Op + 1}
			continue
		}
		room, rest := p.bytesLeft-proto.ReadRespSize, int(j.size-from.Off)
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
		proto.PutReadResp(p.reserve(proto.ReadRespSize), f, n, j.num, from.Off)
		if n > 0 {
			src, ok := c.remoteMemory(j.key, j.addr+uint64(from.Off), uint32(n), RemoteRead)
			if !ok {
				return from, false
			}
			p.op, p.isResponse = from.Op, true
			p.appendMemory(src)
		}
		if from.Off += uint32(n); from.Off == j.size {
			from = position{Op: from.Op + 1}
		}
	}
	return from, true
}
