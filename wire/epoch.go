package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// A path may begin to drop packets of the current size without notice: a black hole. The outstanding data then has to
// be cut into smaller packets, and both ends must agree on what is outstanding. An epoch change does this:
//   - The sender toggles its epoch, which is a bit in its headers. It announces the new epoch in short packets until
//     the peer answers with EpochSeen.
//   - The peer drops the early packets of the old epoch and accepts no more data of the old epoch. So the
//     acknowledgement in its answer is final.
//   - The sender cuts all data after that acknowledgement into packets of the base size. The first of these packets has
//     the PSN of the oldest unacknowledged packet, so PSNs are used again.

// epochChange is the epoch of the sender, and the state of an epoch change.
type epochChange struct {
	flag     proto.Flags // epoch of our packets: proto.Epoch or 0
	changing bool        // the peer has not confirmed the epoch
	askAt    Time        // when the epoch is announced again
}

// acknowledged reports whether the acknowledgement in a packet belongs to the current epoch. Otherwise it is void.
func (e *epochChange) acknowledged(h *proto.Header) bool {
	return h.Flags&proto.EpochSeen != 0 == (e.flag != 0)
}

// changeEpoch begins a new epoch with packets of the base size.
func (c *Conn) changeEpoch() {
	c.eng.stats.BlackHoles++
	c.epoch.flag ^= proto.Epoch
	c.epoch.changing = true
	c.pmtu.Fail()
	c.cc.SetPacketSize(c.pmtu.Size)
	c.rtx.reset()
	c.askEpoch()
}

// askEpoch announces the new epoch to the peer and asks for an answer.
func (c *Conn) askEpoch() {
	c.epoch.askAt = c.eng.now.Add(c.rto())
	c.rtx.count++
	c.sendAck(proto.AckRequest)
	c.setDeadline(c.epoch.askAt)
}

// enterEpoch handles the epoch of an arriving packet. The epoch is a single bit. If the bit of the packet differs from
// the receiver's epoch, the packet is either the first of a new epoch or a late packet of the old epoch. The time stamp
// shows which of the two is true: the first packet of a new epoch has a later time stamp than all packets before, and a
// late packet has not. For the first packet of a new epoch, enterEpoch changes the receiver's epoch and drops all early
// packets.
//
// enterEpoch reports false if the packet must be dropped, because its epoch is old or because the new epoch cannot
// begin yet.
func (c *Conn) enterEpoch(h *proto.Header) bool {
	r := &c.recv
	newer := int32(h.TS-r.newestTS) > 0
	if h.Flags&proto.Epoch != r.epoch {
		if !newer {
			return false
		}
		if r.notReady || r.consumed > 0 { // a packet that waits for a receive is partly consumed, so it must not be cut again
			c.wantAckNow()
			return false
		}
		r.epoch = h.Flags & proto.Epoch
		c.dropAllEarly()
	}
	if newer {
		r.newestTS = h.TS
	}
	return true
}

// repacketize removes all unacknowledged packets from the records of this side, so that their data is cut into new
// packets. Each removed packet counts as retransmitted, even if a SACK has acknowledged it: such a packet was an early
// packet at the peer, and the peer dropped its early packets when the new epoch began.
func (c *Conn) repacketize() {
	q := &c.sq
	c.readyPending = c.readyPending || c.sent.HasReady()
	n := c.sent.Rewind()
	c.eng.stats.countRetransmits(n, CauseBlackHole)
	for at := q.ackedPos; at.Before(q.nextPos); at = (position{Op: at.Op + 1}) {
		c.unsend(at)
	}
	q.nextPos, c.resp.nextPos = q.ackedPos, c.resp.ackedPos
	c.cc.Undo() // the timeouts were no sign of congestion
	c.cc.Rewind(c.sent.Una)
	c.rtx.reset()
	c.epoch.changing, c.flow.rnr.waiting = false, false
	c.searchMTU() // also for the size that failed: congestion may have looked like a black hole
	c.schedule()
}

// unsend reverts countFirstSend for the part of a request from a position on.
func (c *Conn) unsend(from position) {
	q, w := &c.sq, c.sq.at(from.Op)
	if from.Off == 0 {
		q.unsent += headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			q.msn--
		case OpRead, OpFetchAdd, OpCmpSwap:
			if !w.executed { // a response may have come before its request was acknowledged
				c.readsOut--
			}
		default:
		}
	}
	if w.op.hasResponse() {
		return
	}
	end := w.length
	if from.Op == q.nextPos.Op {
		end = q.nextPos.Off
	}
	q.unsent += int(end - from.Off)
}
