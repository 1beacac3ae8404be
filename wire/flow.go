package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// takeCredit takes in how many messages the peer can receive. Credit never shrinks.
func (c *Conn) takeCredit(h *proto.Header) {
	s := &c.send
	s.noLimit = h.Flags&proto.NoCredit != 0
	if ahead := h.Credit.Sub(s.msn); s.credit.Less(h.Credit) && ahead > 0 && ahead <= maxCredit {
		s.credit = h.Credit
		if !s.putOff {
			c.starved = 0
		}
	}
}

// starve notes whether the peer will soon run out of the credit it has been given, in which case
// posting a receive is worth a packet.
func (c *Conn) starve() {
	left := c.recv.advertised.Sub(c.recv.msn)
	if hungry := left <= int(c.rq.depth/2); hungry != c.hungry.Load() {
		c.hungry.Store(hungry)
	}
}

// feed asks for a packet when enough receives were posted since the last one told the peer.
func (c *Conn) feed() {
	r := &c.recv
	if r.notReady && !c.mustWait() {
		r.notReady, r.ackNow = false, true
		c.wantAck()
		c.takeEarly()
		c.eng.allowFaults() // this need not be within a Poll
		if !c.alive() {
			return
		}
	}
	if c.noCredit {
		return
	}
	news := c.credit().Sub(r.advertised)
	if news <= 0 {
		return
	}
	if r.advertised.LessEq(r.msn) || news >= max(int(c.rq.depth/4), 1) && c.hungry.Load() {
		r.ackNow = true
		c.wantAck()
	}
}

// postpone takes in that the peer had no receive for the first packet that it has not acknowledged:
// nothing more is sent until it says otherwise, or for a while that doubles, since what it says may
// be lost.
func (c *Conn) postpone() {
	s, now := &c.send, c.eng.now
	s.backoff, s.asked = 0, 0 // the peer is there, and the packet passes
	if s.putOff {
		return
	}
	if c.starved == 0 {
		c.eng.stats.CreditStalls++
		c.starved = now
	}
	c.eng.stats.NotReadyReceived++
	s.putOff = true
	s.putOffWait = min(max(2*s.putOffWait, putOffMin), putOffMax)
	s.putOffTill = now.Add(s.putOffWait)
	c.setDeadline(s.putOffTill)
}

// resume sends the packet that was put off again.
func (c *Conn) resume() {
	s := &c.send
	s.putOff = false
	if f := c.flightAt(s.una); s.una != s.nxt && !f.lost {
		c.lose(s.una, f, CauseNotReady)
	}
	c.makeReady()
}
