package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// receive handles a batch of packets from the link. It returns the number of frames in the batch.
func (e *Engine) receive() int {
	n := e.link.Recv(e.rx)
	e.earlyLeft = maxReceive
	for i := 0; i < n; {
		j := i + 1
		for e.rx[j-1].Flags&link.More != 0 && j < n {
			j++
		}
		if !e.receivePacket(e.rx[i:j:j]) {
			e.toFree = append(e.toFree, e.rx[i:j]...)
		}
		i = j
	}
	if len(e.toFree) > 0 {
		e.link.Free(e.toFree)
		e.toFree = e.toFree[:0]
	}
	return n
}

// receivePacket handles one packet and reports whether the engine keeps its frames.
func (e *Engine) receivePacket(bufs []link.Buf) (kept bool) {
	e.stats.RxPackets++
	if e.ignores(&bufs[0]) {
		return false
	}
	if e.secure {
		if kept, handled := e.receiveSealed(bufs); handled {
			return kept
		}
	}
	end, ok := intact(bufs)
	if !ok {
		e.stats.BadChecksum++
		return false
	}
	var h proto.Header
	if !h.Parse(bufs[0].Data) {
		return e.handleOtherVersion(bufs)
	}
	if !h.Type.Established() {
		return e.control(&h, bufs, end)
	}
	c := e.lookup(h.CID)
	switch {
	case c == nil, !c.isFromPeer(&h, &bufs[0]):
		return e.handleUnknown(&h, bufs)
	case !c.hasPlausibleNumbers(&h):
		return false
	}
	return c.receivePacket(&h, bufs, end)
}

// isFromPeer reports whether a packet has the verification tag of the connection and comes from the peer's address. If
// the tag or the address is wrong, the packet gets the same answer as a packet of an unknown connection. So an attacker
// who guesses does not learn which of these was wrong.
func (c *Conn) isFromPeer(h *proto.Header, b *link.Buf) bool {
	return h.Tag == c.tag && c.eng.source(b) == c.peerAddr
}

// hasPlausibleNumbers reports whether the numbers in a header can come from the peer: the PSN is at most a window away
// from the expected PSN, and this side has sent the packets that the header acknowledges. It runs before the packet has
// any effect on the connection.
func (c *Conn) hasPlausibleNumbers(h *proto.Header) bool {
	const most = proto.MaxWindow
	ahead, behind := h.PSN.Sub(c.recv.nextPSN), c.sent.Nxt.Sub(h.Ack)
	if -most <= ahead && ahead <= most && 0 <= behind && behind <= 2*most {
		return true
	}
	c.eng.stats.Forged++
	return false
}

// source returns the source address of a packet, normalised by addressOf.
func (e *Engine) source(b *link.Buf) netip.Addr {
	if e.forwarded {
		return e.incoming.from
	}
	return addressOf(e.link.Source(b).Addr())
}

// addressOf normalises an address for comparison. It removes the zone, and turns an IPv4-mapped address into IPv4.
func addressOf(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// lookup returns the connection with a connection ID, or nil.
func (e *Engine) lookup(cid uint32) *Conn {
	t := &e.table
	if t.lastConn != nil && t.lastCID == cid {
		return t.lastConn
	}
	s, _, _ := t.findSlot(cid)
	if s == nil || s.conn == nil || s.conn.cid != cid {
		return nil
	}
	t.lastCID, t.lastConn = cid, s.conn
	return s.conn
}

// receivePacket handles a packet from the peer on this connection. The header and the body take end bytes. It reports
// whether the engine keeps the frames.
func (c *Conn) receivePacket(h *proto.Header, bufs []link.Buf, end int) (kept bool) {
	e, r := c.eng, &c.recv
	if c.State() == Accepting && h.Type == proto.Data {
		e.stats.Accepts++
		c.takeEcho(h)
		c.establish()
	}
	if !c.alive() {
		return false
	}
	c.lastHeard, c.challenge.pending = e.now, false
	if c.unanswered > 0 {
		c.noteAnswer()
	}
	e.suspension.rxPeers++
	if !c.enterEpoch(h) {
		e.stats.Duplicates++
		return false
	}
	if bufs[0].Flags&link.CE != 0 {
		r.echo.ce++
	}
	sack, ok := sackOf(h, bufs, end)
	if !ok {
		e.stats.BadPackets++
		return false
	}
	if c.takeAck(h, sack); !c.alive() {
		return false // the connection was draining and this was the last acknowledgement
	}
	c.confirmReady()
	if h.Flags&proto.AckRequest != 0 && c.ack.ask(e.stats.Polls) {
		c.wantAck()
	}
	return c.dispatch(h, bufs, end)
}

// confirmReady establishes the connection of the active side if the peer has acknowledged Ready.
func (c *Conn) confirmReady() {
	if c.State() == Connecting && !c.readyPending && c.sent.Empty() {
		c.eng.stats.Connects++
		c.establish()
	}
}

// sackOf returns the SACK block of a packet, or nil if the packet has none. It reports false if the block is malformed,
// or if the packet is not an Ack: no other packet may carry a SACK block.
func sackOf(h *proto.Header, bufs []link.Buf, end int) (sack []byte, ok bool) {
	if h.Flags&proto.HasSACK == 0 {
		return nil, true
	}
	n := end - proto.HeaderSize
	if h.Type != proto.Ack || !proto.SACKFits(n) || len(bufs) > 1 {
		return nil, false
	}
	return bufs[0].Data[proto.HeaderSize : proto.HeaderSize+n], true
}

// dispatch handles a packet by its type.
func (c *Conn) dispatch(h *proto.Header, bufs []link.Buf, end int) (kept bool) {
	switch h.Type {
	case proto.Ack:
		c.schedule() // an Ack has only a header, which takeAck has handled
	case proto.Probe:
		c.handleProbe(end)
	case proto.Probed:
		c.handleProbed(bufs, end)
	default:
		return c.handleData(h, bufs, end)
	}
	return false
}

// handleData handles a packet with chunks. Then it schedules the connection, because the acknowledgement in the packet
// may allow more packets to leave.
func (c *Conn) handleData(h *proto.Header, bufs []link.Buf, end int) (kept bool) {
	kept = c.receiveData(h, bufs, end)
	if c.alive() {
		c.schedule()
	}
	return kept
}

// receiveData consumes a data packet if its turn has come, holds it if it is early, and drops it if it is a duplicate.
func (c *Conn) receiveData(h *proto.Header, bufs []link.Buf, end int) (kept bool) {
	e, r := c.eng, &c.recv
	c.ack.packets++
	c.wantAck()
	switch d := h.PSN.Sub(r.nextPSN); {
	case d < 0:
		e.stats.Duplicates++
		c.ack.immediate = true
	case d == 0:
		r.echo.stamp, r.echo.arrivedAt = h.TS, e.now
		kept = c.receiveNext(h, bufs, end)
		c.ack.immediate = c.ack.immediate || r.notReady
		return kept
	default:
		c.ack.immediate = true
		return c.holdEarly(h.PSN, bufs, end)
	}
	return false
}

// receiveNext consumes a data packet whose turn has come. It holds the packet if a message in it finds no receive.
func (c *Conn) receiveNext(h *proto.Header, bufs []link.Buf, end int) (kept bool) {
	r := &c.recv
	if r.early.At(r.nextPSN, r.nextPSN) != nil { // a held copy of this packet found no receive: try that copy again
		c.eng.stats.Duplicates++
		c.takeEarly()
		return false
	}
	if c.consumePacket(bufs, end) {
		c.takeEarly()
		return false
	}
	return c.alive() && c.holdEarly(h.PSN, bufs, end) // if the connection is alive, the packet found no receive
}

// consumePacket handles the chunks of a packet whose turn has come. The result allHandled is true if it has handled all
// of them. It is false in two cases:
//   - The packet has ended the connection.
//   - A message in the packet has found no receive. The rest of the packet is handled later: when a receive is posted
//     and the packet is still held, or when the peer sends the packet again.
func (c *Conn) consumePacket(bufs []link.Buf, end int) (allHandled bool) {
	var in intake
	c.eng.catchFaults()
	defer c.catchIntake(&in, &allHandled)
	allHandled = c.takeChunks(&in, bufs, end)
	in.finished = true
	return allHandled
}

// takeChunks does the work of consumePacket. A memory fault in takeChunks raises a panic, which consumePacket recovers.
//
// A packet that found no receive needs one each time that it comes again, because a peer must not change it. Otherwise
// the connection would wait for a receive, or be given one, that it does not need. So such a change breaks the
// connection.
func (c *Conn) takeChunks(in *intake, bufs []link.Buf, end int) bool {
	var r cursor
	ch, first := &in.chunk, c.recv.consumed == 0
	r.open(bufs, end)
	if !first && !c.skipConsumed(in, &r) {
		return false
	}
	for ; r.bytesLeft > 0; first = false {
		fault, left := proto.ReasonProtocol, r.bytesLeft
		if r.chunk(ch) {
			switch {
			case ch.Op == proto.OpReady && !first: // only the first chunk may be Ready
			case needsReceive(ch) && c.mustWait():
				c.awaitReceive(end-proto.HeaderSize-left, in.done)
				return false
			default:
				c.recv.notReady = c.recv.notReady && !needsReceive(ch)
				fault = c.take(ch, &r)
			}
		}
		if fault != proto.ReasonNone {
			c.rejectPacket(fault, ch, in.done)
			return false
		}
		if ch.Flags&proto.Last != 0 && !ch.Op.Answer() && ch.Op != proto.OpReady {
			in.done++
		}
		if !c.alive() {
			return false
		}
	}
	if c.recv.notReady {
		c.rejectPacket(proto.ReasonProtocol, ch, in.done)
		return false
	}
	c.endPacket()
	return true
}

// skipConsumed skips the bytes of a packet that are already consumed, so that messages which wait for receives do not
// cause a packet to be parsed from its start each time. The peer sends the same bytes again, except for the numbers in
// the header. If the packet is shorter than what was consumed, skipConsumed breaks the connection and reports false.
func (c *Conn) skipConsumed(in *intake, r *cursor) bool {
	in.done = int(c.recv.consumedOps)
	if int(c.recv.consumed) > r.bytesLeft {
		c.rejectPacket(proto.ReasonProtocol, &in.chunk, in.done)
		return false
	}
	r.skip(int(c.recv.consumed))
	return true
}

// awaitReceive remembers how much of the next packet is consumed, because the message after that finds no receive. The
// arguments are the number of bytes of the body, and the number of operations of the peer that end in them.
func (c *Conn) awaitReceive(consumed, ops int) {
	c.recv.notReady, c.recv.consumed, c.recv.consumedOps = true, int32(consumed), uint16(ops)
	c.eng.stats.NotReadySent++
	c.countRecv()
}

// endPacket moves on to the next packet.
func (c *Conn) endPacket() {
	c.countRecv()
	c.recv.nextPSN++
	c.recv.consumed, c.recv.consumedOps = 0, 0
}

// rejectPacket breaks the connection because of chunk ch. opsDone is the number of the peer's operations that the
// packet completed before ch. The Close packet carries this number, and the peer derives from it which operation
// failed. If ch is a response, Close carries noRequest instead, because a response belongs to a request of this side.
//
// ReasonAccess counts as a wrong key of the peer. A key that becomes invalid while a read is served does not count,
// because this method does not run then.
func (c *Conn) rejectPacket(why proto.Reason, ch *proto.Chunk, opsDone int) {
	if ch.Op.Answer() {
		opsDone = noRequest
	}
	if why == proto.ReasonAccess && !c.eng.secure {
		c.eng.keyGuesses.recordGuess(c.peerAddr, c.eng.now)
	}
	if why == proto.ReasonAccess {
		c.permit.guess()
	}
	c.breakOnFault(why, 0, opsDone)
}

// take dispatches a chunk by its opcode.
func (c *Conn) take(ch *proto.Chunk, r *cursor) proto.Reason {
	switch ch.Op {
	case proto.OpSend, proto.OpSendInv, proto.OpSendOnly:
		return c.recvSend(ch, r)
	case proto.OpWrite:
		return c.recvWrite(ch, r)
	case proto.OpReadReq:
		return c.recvReadReq(ch)
	case proto.OpReadResp:
		return c.recvReadResp(ch, r)
	case proto.OpWriteImm:
		return c.recvWriteImm(ch, r)
	case proto.OpAtomicReq:
		return c.recvAtomicReq(ch)
	case proto.OpAtomicResp:
		return c.recvAtomicResp(ch)
	case proto.OpReady:
		if ch.Len == 0 {
			return proto.ReasonNone
		}
	}
	return proto.ReasonProtocol
}
