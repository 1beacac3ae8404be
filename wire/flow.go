package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// flowControl is the end-to-end credit of a connection in both directions (InfiniBand §9.7.7.2): how many messages the
// receiver of each has promised to take, counted from the first. A peer without credit takes messages as long as it has
// receives, and says "receiver not ready" (RNR) to others.
type flowControl struct {
	limit     seq.Num // messages that the peer can take
	unlimited bool    // the peer gives no credit
	outSince  Time    // since when a message has waited for credit or a receive; 0: none does
	rnr       rnr

	granted seq.Num // credit in the last packet that left
}

// rnr is the state of a message that found no receive at the peer. Its zero value is none.
type rnr struct {
	waits bool // nothing is sent
	delay time.Duration
	until Time // when it is sent again
}

// update takes in the credit of a packet, msn being the number of the next message. Credit never shrinks. It reports
// whether there is more of it.
func (f *flowControl) update(h *proto.Header, msn seq.Num) bool {
	f.unlimited = h.Flags&proto.NoCredit != 0
	ahead := h.Credit.Sub(msn)
	if !f.limit.Less(h.Credit) || ahead <= 0 || ahead > maxCredit {
		return false
	}
	f.limit = h.Credit
	return true
}

// allows reports whether message msn may be sent.
func (f *flowControl) allows(msn seq.Num) bool { return f.unlimited || msn.Less(f.limit) }

// takeCredit takes in how many messages the peer can receive.
func (c *Conn) takeCredit(h *proto.Header) {
	if c.flow.update(h, c.sq.msn) && !c.flow.rnr.waits {
		c.flow.outSince = 0
	}
}

// outOfCredit starts the RNR timer of a message that waits for credit.
func (c *Conn) outOfCredit() {
	if c.flow.outSince == 0 {
		c.eng.stats.CreditStalls++
		c.flow.outSince, c.lastAsked = c.eng.now, c.eng.now
		c.setDeadline(c.eng.now.Add(creditProbeInterval))
	}
}

// noteCredit notes whether the peer will soon run out of the credit that it has been given, in which case
// posting a receive is worth a packet.
func (c *Conn) noteCredit() {
	left := c.flow.granted.Sub(c.recv.msn)
	if low := left <= int(c.rq.depth/2); low != c.lowCredit.Load() {
		c.lowCredit.Store(low)
	}
}

// grantCredit asks for a packet when enough receives were posted since the last one told the peer.
func (c *Conn) grantCredit() {
	r := &c.recv
	if r.notReady && !c.mustWait() {
		r.notReady = false
		c.wantAckNow()
		c.takeEarly()
		c.countRecv()       // the receive that was taken, if the packet is not here any more
		c.eng.allowFaults() // this need not be within a Poll
		if !c.alive() {
			return
		}
	}
	if c.noCredit {
		return
	}
	news := c.credit().Sub(c.flow.granted)
	if news <= 0 {
		return
	}
	if c.flow.granted.LessEq(r.msn) || news >= max(int(c.rq.depth/4), 1) && c.lowCredit.Load() {
		c.wantAckNow()
	}
}

// receiverNotReady takes in that the peer had no receive for the first packet that it has not acknowledged:
// nothing more is sent until it says otherwise, or for a time that doubles, since what it says may
// be lost.
func (c *Conn) receiverNotReady() {
	f, now := &c.flow, c.eng.now
	c.rtx.reset()
	if f.rnr.waits {
		return
	}
	if f.outSince == 0 {
		c.eng.stats.CreditStalls++
		f.outSince = now
	}
	c.eng.stats.NotReadyReceived++
	delay := min(max(2*f.rnr.delay, rnrDelayMin), rnrDelayMax)
	f.rnr = rnr{waits: true, delay: delay, until: now.Add(delay)}
	c.setDeadline(f.rnr.until)
}

// retryReceiver sends the packet again that found no receive.
func (c *Conn) retryReceiver() {
	c.flow.rnr.waits = false
	if s := &c.sent; !s.Empty() && !s.Oldest().IsLost() {
		s.MarkLost(s.Una, uint8(CauseNotReady))
	}
	c.schedule()
}
