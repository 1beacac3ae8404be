package wire

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// delayedAck says when an acknowledgement in a packet of its own is due (RFC 1122 §4.2.3.2): at once, when the peer asked for
// it and the consumer has not answered by the next Poll, after a number of packets, and after a delay. Every packet that
// leaves carries an acknowledgement, so that none is owed after it.
type delayedAck struct {
	packets int    // received since the last acknowledgement left
	now     bool   // without delay
	asked   bool   // the peer asked for it
	poll    uint64 // in this Poll
	by      Time   // when it is due at the latest; never: none is owed
	listed  bool   // the connection is in the engine's acks
}

// ask takes in that the peer asks for an acknowledgement, in a Poll. It reports whether that is news.
func (a *delayedAck) ask(poll uint64) bool {
	if a.asked {
		return false
	}
	a.asked, a.poll = true, poll
	return true
}

// due reports whether an acknowledgement has to leave in a Poll.
func (a *delayedAck) due(poll uint64) bool {
	return a.now || a.packets >= ackEvery || a.asked && a.poll != poll
}

// sent takes in that a packet leaves, which carries the acknowledgement.
func (a *delayedAck) sent() { *a = delayedAck{by: never, listed: a.listed} }

// wantAck has an acknowledgement leave: within ackDelay, or sooner as delayedAck has it.
func (c *Conn) wantAck() {
	if c.ack.by == never {
		c.ack.by = c.eng.now.Add(ackDelay)
		c.setDeadline(c.ack.by)
	}
	if !c.ack.listed {
		c.ack.listed = true
		c.eng.acks = append(c.eng.acks, c)
	}
}

// wantAckNow has an acknowledgement leave in this Poll, or the next one.
func (c *Conn) wantAckNow() {
	c.ack.now = true
	c.wantAck()
}

// acknowledge sends the acknowledgements that are due and that no data packet has carried. One that was asked for waits for
// the next Poll, for the consumer to have the chance to answer: then the answer carries it.
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
		default: // nothing is owed, or it waits for its time or for more packets
			a.listed = false
		}
	}
	clear(e.acks[len(keep):])
	e.acks = keep
}

// sendAck sends a packet without chunks. It reports false when the link has no frame.
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
	c.eng.stats.AcksSent++
	p.finish(&h)
	return true
}

// header is the header of a packet that leaves now. It carries the newest acknowledgement, so that
// none is owed after it.
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
