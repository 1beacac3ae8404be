package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// takeCredit takes in how many messages the peer can receive. Credit never shrinks.
func (c *Conn) takeCredit(h *proto.Header) {
	s := &c.send
	s.noLimit = h.Flags&proto.NoCredit != 0
	if s.credit.Less(h.Credit) {
		s.credit = h.Credit
		c.starved = 0
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
	news := c.credit().Sub(r.advertised)
	if news <= 0 {
		return
	}
	if r.advertised.LessEq(r.msn) || news >= max(int(c.rq.depth/4), 1) && c.hungry.Load() {
		r.ackNow = true
		c.wantAck()
	}
}
