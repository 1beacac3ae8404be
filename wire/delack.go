package wire

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// delayedAck decides when this side sends an Ack (RFC 1122 §4.2.3.2). Every packet carries an acknowledgement; an Ack
// carries nothing else. An Ack leaves as soon as one of these conditions holds:
//   - A packet has arrived out of order.
//   - The peer asked for an acknowledgement in an earlier Poll. In the Poll in which the peer asks, no Ack leaves,
//     because the consumer may send a response soon, and a response also carries the acknowledgement.
//   - ackEvery packets have arrived since the last acknowledgement.
//   - ackDelay has passed.
type delayedAck struct {
	packets      int32  // received since the last acknowledgement left
	immediate    bool   // send an Ack without delay
	ackRequested bool   // the peer has asked for an acknowledgement
	inAcks       bool   // in the engine's acks
	requestPoll  uint64 // number of the Poll in which the peer asked
	deadline     Time   // end of the delay; never: nothing to acknowledge
}

// ask notes that the peer asks for an acknowledgement in Poll number poll. It reports false if it has asked before.
func (a *delayedAck) ask(poll uint64) bool {
	if a.ackRequested {
		return false
	}
	a.ackRequested, a.requestPoll = true, poll
	return true
}

// isDue reports whether an Ack has to leave in the Poll with number poll.
func (a *delayedAck) isDue(poll uint64) bool {
	return a.immediate || a.packets >= ackEvery || a.ackRequested && a.requestPoll != poll
}

// reset clears the state, because a packet leaves and carries an acknowledgement.
func (a *delayedAck) reset() { *a = delayedAck{deadline: never, inAcks: a.inAcks} }

// wantAck requests an acknowledgement within ackDelay.
func (c *Conn) wantAck() {
	if c.ack.deadline == never {
		c.ack.deadline = c.eng.now.Add(ackDelay)
		c.setDeadline(c.ack.deadline)
	}
	if !c.ack.inAcks {
		c.ack.inAcks = true
		c.eng.acks = append(c.eng.acks, c)
	}
}

// wantAckNow requests an acknowledgement in this Poll, or in the next Poll if this one has already sent its Acks.
func (c *Conn) wantAckNow() {
	c.ack.immediate = true
	c.wantAck()
}

// acknowledge sends the Acks that are due, unless a data packet has carried the acknowledgement.
func (e *Engine) acknowledge() {
	keep := e.acks[:0]
	for _, c := range e.acks {
		a := &c.ack
		due := a.isDue(e.stats.Polls)
		switch {
		case !a.inAcks || !c.alive(), due && c.sendAck(0):
			a.inAcks = false
		case due || a.ackRequested:
			keep = append(keep, c)
		default: // nothing to acknowledge, or not yet
			a.inAcks = false
		}
	}
	clear(e.acks[len(keep):])
	e.acks = keep
}

// sendAck sends an Ack. It reports false if the link has no frame.
func (c *Conn) sendAck(flags proto.Flags) bool {
	var p packet
	if !c.eng.begin(&p, c.path, proto.HeaderSize+proto.MaxSACKSize+c.keys.trailer(), c.keys) {
		return false
	}
	h := c.newHeader(proto.Ack, c.sent.Nxt)
	h.Flags |= flags
	r := &c.recv
	if last := r.early.Last(r.nextPSN); last > 0 {
		h.Flags |= proto.HasSACK
		r.early.PutSACK(r.nextPSN, p.reserve(proto.SACKSize(last-1)))
	}
	if flags&proto.AckRequest != 0 {
		c.unanswered++
	}
	c.eng.stats.AcksSent++
	p.finish(&h)
	return true
}

// newHeader returns the header of a packet that leaves now. It also resets the delayed acknowledgement, because
// every header acknowledges all packets received so far.
func (c *Conn) newHeader(t proto.Type, psn seq.Num) proto.Header {
	r, now := &c.recv, c.eng.now
	c.flow.grantedCredit = c.grantableCredit()
	c.ack.reset()
	c.noteCredit()
	h := proto.Header{Type: t, CE: r.echo.ce, CID: c.peerCID, PSN: psn, Ack: r.nextPSN,
		Credit: c.flow.grantedCredit, TS: now.Stamp(), Tag: c.peerTag}
	h.Flags |= c.epoch.flag | c.eng.portFlag
	if r.epoch != 0 {
		h.Flags |= proto.EpochSeen
	}
	if c.noCredit {
		h.Flags |= proto.NoCredit
	}
	if r.notReady {
		h.Flags |= proto.NotReady
	}
	if r.echo.stamp != 0 {
		h.Echo = max(r.echo.stamp+uint32((now-r.echo.arrivedAt)>>clock.StampShift), 1)
	}
	return h
}
