package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// When a path stops passing packets of the size in use, silently as paths do, the data that is
// outstanding has to be cut anew, and the two ends must agree on what that is. The sender changes to
// another epoch: it says so in a short packet until the answer shows that the peer takes data of the
// new epoch only, which makes the acknowledgement in that answer final. From there on everything is
// sent again in packets of the base size, under the packet numbers that it had before. The peer has
// dropped what it held of the old epoch, and drops what is still to come.

// epochChange is the sender's epoch, and its change.
type epochChange struct {
	flag     proto.Flags // of our packets: proto.Epoch or 0
	changing bool        // the peer is not known to have entered the epoch
	askAt    Time        // when it is told again
	failed   int         // size in bytes that did not pass any more
}

// acknowledged reports whether what a packet acknowledges counts: what was said of an earlier epoch does
// not. The first that is said of a new one ends the change.
func (e *epochChange) acknowledged(h *proto.Header) bool {
	return h.Flags&proto.EpochSeen != 0 == (e.flag != 0)
}

// blackHole reports whether it looks as if large packets are lost for their size: the peer is there,
// and has not got one after several tries.
func (c *Conn) blackHole() bool {
	t := &c.rtx
	if c.pmtu.Size <= basePacket || t.count < blackHoleTries || c.lastHeard <= t.asked || t.asked == 0 {
		return false
	}
	return c.sent.HasLarger(basePacket)
}

// changeEpoch begins a new epoch with packets of the base size.
func (c *Conn) changeEpoch() {
	c.eng.stats.BlackHoles++
	c.epoch.flag ^= proto.Epoch
	c.epoch.changing = true
	c.epoch.failed = c.pmtu.Fail()
	c.rtx.count = 0
	c.askEpoch()
}

// askEpoch tells the peer of the new epoch.
func (c *Conn) askEpoch() {
	c.epoch.askAt = c.eng.now.Add(c.rto())
	c.rtx.count++
	c.sendAck(proto.AckRequest)
	c.setDeadline(c.epoch.askAt)
}

// enterEpoch has the receiver follow the sender into the epoch that a packet is of. It reports false
// for a packet of an epoch that is over. Of two packets of different epochs, the one that was sent
// later is of the later epoch.
func (c *Conn) enterEpoch(h *proto.Header) bool {
	r := &c.recv
	newer := int32(h.TS-r.newest) > 0
	if h.Flags&proto.Epoch != r.epoch {
		if !newer {
			return false
		}
		if r.notReady { // what is half taken in must be finished as it was cut
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

// repacketize forgets how what is not acknowledged was cut into packets. Each of them counts as sent again, those
// known from a SACK too: the peer has dropped what it held.
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

// unsend takes back what begun accounted for the part of a request from a position on.
func (c *Conn) unsend(from position) {
	q, w := &c.sq, c.sq.at(from.Op)
	if from.Off == 0 {
		q.unsent += headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			q.msn--
		case OpRead, OpFetchAdd, OpCmpSwap:
			if !w.done { // a peer may have answered what it does not acknowledge
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
