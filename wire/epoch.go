package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// A path may stop passing packets of the current size without notice: a black hole. Then outstanding data has to be cut
// into smaller packets, and both ends must agree on what is outstanding. The sender changes its epoch, a bit in its
// headers, and announces it in short packets until the peer answers with EpochSeen. The peer takes no more data of the
// old epoch, so the acknowledgement in that answer is final. The sender then cuts everything after it into packets of
// the base size, under the same PSNs. The peer has dropped the early packets of the old epoch.

// epochChange is the sender's epoch, and the state of a change.
type epochChange struct {
	flag     proto.Flags // epoch of our packets: proto.Epoch or 0
	changing bool        // the peer has not confirmed the epoch
	askAt    Time        // when the epoch is announced again
	failed   int         // size in bytes that no longer passes
}

// acknowledged reports whether the acknowledgement in a packet is of the current epoch. One of an old epoch is void.
func (e *epochChange) acknowledged(h *proto.Header) bool {
	return h.Flags&proto.EpochSeen != 0 == (e.flag != 0)
}

// blackHole reports whether the path seems to drop packets for their size: the peer has answered several short packets in a
// row, and larger ones that left with them are unacknowledged. The count of answers is not that of timeouts: that begins
// anew when a peer is heard after a silence, which an answer ends each time where the back-off is longer than that.
func (c *Conn) blackHole() bool {
	return c.pmtu.Size > basePacket && c.rtx.answered >= blackHoleTries && c.sent.HasLarger(basePacket)
}

// changeEpoch begins a new epoch, whose packets have the base size.
func (c *Conn) changeEpoch() {
	c.eng.stats.BlackHoles++
	c.epoch.flag ^= proto.Epoch
	c.epoch.changing = true
	c.epoch.failed = c.pmtu.Fail()
	c.rtx.reset()
	c.askEpoch()
}

// askEpoch announces the new epoch to the peer.
func (c *Conn) askEpoch() {
	c.epoch.askAt = c.eng.now.Add(c.rto())
	c.rtx.count++
	c.sendAck(proto.AckRequest)
	c.setDeadline(c.epoch.askAt)
}

// enterEpoch takes the receiver into the epoch of a packet. It reports false for a packet of an old epoch. The time
// stamp tells which of two epochs is the later one.
func (c *Conn) enterEpoch(h *proto.Header) bool {
	r := &c.recv
	newer := int32(h.TS-r.newest) > 0
	if h.Flags&proto.Epoch != r.epoch {
		if !newer {
			return false
		}
		if r.notReady { // packet next is partly consumed: its rest has to come in the same cut
			c.wantAckNow()
			return false
		}
		r.epoch = h.Flags & proto.Epoch
		c.dropAllEarly()
	}
	if newer {
		r.newest = h.TS
	}
	return true
}

// repacketize discards how outstanding data was cut into packets, so that it is cut again. Each discarded packet counts
// as retransmitted. That includes packets known from a SACK, since the peer has dropped them.
func (c *Conn) repacketize() {
	q := &c.sq
	c.readyPending = c.readyPending || c.sent.HasReady()
	n := c.sent.Rewind()
	c.eng.stats.countRetransmits(n, CauseBlackHole)
	for at := q.acked; at.Before(q.next); at = (position{Op: at.Op + 1}) {
		c.unsend(at)
	}
	q.next, c.resp.next = q.acked, c.resp.acked
	c.cc.Rewind(c.sent.Una)
	c.rtx.reset()
	c.epoch.changing, c.flow.rnr.waits = false, false
	c.searchMTU(c.epoch.failed)
	c.schedule()
}

// unsend reverts begun for the part of a request after a position.
func (c *Conn) unsend(from position) {
	q, w := &c.sq, c.sq.at(from.Op)
	if from.Off == 0 {
		q.unsent += headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			q.msn--
		case OpRead, OpFetchAdd, OpCmpSwap:
			if !w.done { // a response may have come before its request was acknowledged
				c.readsOut--
			}
		default:
		}
	}
	if w.op.hasResponse() {
		return
	}
	end := w.length
	if from.Op == q.next.Op {
		end = q.next.Off
	}
	q.unsent += int(end - from.Off)
}
