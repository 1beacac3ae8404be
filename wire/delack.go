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
	packets   int    // received since the last acknowledgement left
	immediate bool   // send an Ack without delay
	asked     bool   // the peer has asked for an acknowledgement
	listed    bool   // in the engine's acks
	poll      uint64 // number of the Poll in which the peer asked
	deadline  Time   // end of the delay; never: nothing to acknowledge
}

// ask notes that the peer asks for an acknowledgement in Poll number poll. It reports false if it has asked before.
func (a *delayedAck) ask(poll uint64) bool {
	if a.asked {
		return false
	}
	a.asked, a.poll = true, poll
	return true
}

// due reports whether an Ack has to leave in the Poll with number poll.
func (a *delayedAck) due(poll uint64) bool {
	return a.immediate || a.packets >= ackEvery || a.asked && a.poll != poll
}

// sent resets the state, because a packet leaves and carries an acknowledgement.
func (a *delayedAck) sent() { *a = delayedAck{deadline: never, listed: a.listed} }

// wantAck requests an acknowledgement within ackDelay.
func (c *Conn) wantAck() {
	if c.ack.deadline == never {
		c.ack.deadline = c.eng.now.Add(ackDelay)
		c.setDeadline(c.ack.deadline)
	}
	if !c.ack.listed {
		c.ack.listed = true
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
		due := a.due(e.stats.Polls)
		switch {
		case !a.listed || !c.alive(), due && c.sendAck(0):
			a.listed = false
		case due || a.asked:
			keep = append(keep, c)
		default: // nothing to acknowledge, or not yet
			a.listed = false
		}
	}
	clear(e.acks[len(keep):])
	e.acks = keep
}

// sendAck sends an Ack. It reports false if the link has no frame.
func (c *Conn) sendAck(flags proto.Flags) bool {
	var p packet
	if !c.eng.begin(&p, c.path, proto.HeaderSize+proto.MaxSACKSize+proto.TrailerSize) {
		return false
	}
	h := c.header(proto.Ack, c.sent.Nxt)
	h.Flags |= flags
	r := &c.recv
	if last := r.early.Last(r.next); last > 0 {
		h.Flags |= proto.HasSACK
		r.early.PutSACK(r.next, p.put(proto.SACKSize(last-1)))
	}
	if flags&proto.AckRequest != 0 {
		c.unanswered++
	}
	c.eng.stats.AcksSent++
	p.finish(&h)
	return true
}

// The method header returns the header of a packet that leaves now. It also resets the delayed acknowledgement, because
// every header acknowledges all packets received so far.
func (c *Conn) header(t proto.Type, psn seq.Num) proto.Header {
	r, now := &c.recv, c.eng.now
	c.flow.granted = c.credit()
	c.ack.sent()
	c.noteCredit()
	h := proto.Header{Type: t, CE: r.echo.ce, CID: c.peerCID, PSN: psn, Ack: r.next,
		Credit: c.flow.granted, TS: now.Stamp(), Tag: c.peerTag}
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
		h.Echo = max(r.echo.stamp+uint32((now-r.echo.at)>>clock.StampShift), 1)
	}
	return h
}
