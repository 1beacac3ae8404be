package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// flowControl is end-to-end credit in both directions (InfiniBand §9.7.7.2). Credit is the number of messages, counted
// from the beginning of the connection, that a receiver promises to take. A receiver with a shared queue gives no
// credit. It takes a message if the queue has a receive, and otherwise answers with receiver not ready (RNR).
type flowControl struct {
	creditLimit  seq.Num // number of messages that the peer has promised to take
	unlimited    bool    // the peer gives no credit, so credit limits nothing
	stalledSince Time    // since when a message waits for credit or for a receive of the peer; 0: none waits
	rnr          rnr
	single       bool // the peer takes no groups: packets leave one by one

	grantedCredit seq.Num // credit in the last packet that this side sent
}

// rnr is the RNR timer (InfiniBand §9.7.5.2.8). In the zero value no message waits.
type rnr struct {
	waiting bool          // the peer has no receive; the connection sends no data
	delay   time.Duration // length of the wait; doubles
	endsAt  Time          // end of the wait
}

// updateCredit notes from header h whether the peer gives credit at all. If h grants more credit than before,
// updateCredit stores it and returns true. The argument msn is the number of the next message to send.
func (f *flowControl) updateCredit(h *proto.Header, msn seq.Num) bool {
	f.unlimited = h.Flags&proto.NoCredit != 0
	ahead := h.Credit.Sub(msn)
	if !f.creditLimit.Less(h.Credit) || ahead <= 0 || ahead > maxCredit {
		return false
	}
	f.creditLimit = h.Credit
	return true
}

// allows reports whether credit allows message msn.
func (f *flowControl) allows(msn seq.Num) bool { return f.unlimited || msn.Less(f.creditLimit) }

// takeCredit handles the credit in a packet.
func (c *Conn) takeCredit(h *proto.Header) {
	if c.flow.updateCredit(h, c.sq.msn) && !c.flow.rnr.waiting {
		c.flow.stalledSince = 0
	}
}

// outOfCredit starts the timer of a message that waits for credit.
func (c *Conn) outOfCredit() {
	if c.flow.stalledSince == 0 {
		c.eng.stats.CreditStalls++
		c.flow.stalledSince, c.lastAsked = c.eng.now, c.eng.now
		c.setDeadline(c.eng.now.Add(creditProbeInterval))
	}
}

// noteCredit updates lowCredit, which is true if the peer has credit for at most half of the receive queue. While
// lowCredit is true, PostRecv asks its caller to kick the engine, so that an Ack grants more credit.
func (c *Conn) noteCredit() {
	left := c.flow.grantedCredit.Sub(c.recv.msn)
	if low := left <= int(c.rq.depth/2); low != c.lowCredit.Load() {
		c.lowCredit.Store(low)
	}
}

// grantCredit requests an Ack if enough receives were posted since the last packet left. If a held packet waited for a
// receive and now has one, grantCredit first consumes that packet.
func (c *Conn) grantCredit() {
	if c.recv.notReady && !c.mustWait() {
		c.takeWaiting()
	}
	if c.noCredit || !c.alive() {
		return
	}
	r := &c.recv
	news := c.grantableCredit().Sub(c.flow.grantedCredit)
	if news <= 0 {
		return
	}
	if c.flow.grantedCredit.LessEq(r.msn) || news >= max(int(c.rq.depth/4), 1) && c.lowCredit.Load() {
		c.wantAckNow()
	}
}

// takeWaiting consumes the held packet that waited for a receive. If the packet was evicted meanwhile, the peer has to
// send it again. takeWaiting requests an Ack, unless a later message of the same packet finds no receive: then an Ack
// would say what the peer already knows. So a packet with hundreds of messages does not cause an Ack for each of them.
func (c *Conn) takeWaiting() {
	r := &c.recv
	psn := r.nextPSN
	r.notReady = false
	c.takeEarly()
	c.countRecv()       // also if the held packet was evicted
	c.eng.allowFaults() // the caller may be outside of Poll
	if c.alive() && !(r.notReady && r.nextPSN == psn) {
		c.wantAckNow()
	}
}

// receiverNotReady handles an RNR answer from the peer. The connection sends no data until the peer reports that it has
// a receive. That report may be lost, so the connection tries again when the RNR timer ends.
func (c *Conn) receiverNotReady() {
	f, now := &c.flow, c.eng.now
	c.rtx.reset()
	c.pmtu.EndVerify(now)
	if f.rnr.waiting {
		return
	}
	if f.stalledSince == 0 {
		c.eng.stats.CreditStalls++
		f.stalledSince = now
	}
	c.eng.stats.NotReadyReceived++
	delay := min(max(2*f.rnr.delay, rnrDelayMin), rnrDelayMax)
	f.rnr = rnr{waiting: true, delay: delay, endsAt: now.Add(delay)}
	c.setDeadline(f.rnr.endsAt)
}

// retryReceiver sends the packet again that found no receive at the peer.
func (c *Conn) retryReceiver() {
	c.flow.rnr.waiting = false
	if s := &c.sent; !s.Empty() && !s.Oldest().IsLost() {
		s.MarkLost(s.Una, uint8(CauseNotReady))
	}
	c.schedule()
}
