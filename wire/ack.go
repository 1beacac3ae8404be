package wire

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// wantAck puts the connection on the list of those that owe an acknowledgement.
func (c *Conn) wantAck() {
	if c.recv.ackBy == never {
		c.recv.ackBy = c.eng.now.Add(ackDelay)
		c.setDeadline(c.recv.ackBy)
	}
	if !c.inAcks {
		c.inAcks = true
		c.eng.acks = append(c.eng.acks, c)
	}
}

// acknowledge sends the acknowledgements that no data packet has carried.
//
// One that was asked for waits for the next Poll, for the consumer to have the chance to answer:
// then the answer carries it.
func (e *Engine) acknowledge() {
	keep := e.acks[:0]
	for _, c := range e.acks {
		r := &c.recv
		due := r.ackNow || r.unacked >= ackEvery || r.ackAsked && r.askedPoll != e.stats.Polls
		switch {
		case !c.inAcks || !c.alive():
			c.inAcks = false
			continue
		case due && c.sendAck(0):
			c.inAcks = false
		case due || r.ackAsked:
			keep = append(keep, c)
		case r.unacked == 0:
			c.inAcks = false
		default: // waits for its time or for company
			c.inAcks = false
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
	r.unacked, r.ackNow, r.ackAsked, r.ackBy = 0, false, false, never
	c.noteCredit()
	h := proto.Header{Type: t, CE: r.ce, CID: c.peer, PSN: psn, Ack: r.next,
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
	if r.stamp != 0 {
		h.Echo = max(r.stamp+uint32((now-r.stampAt)>>clock.StampShift), 1)
	}
	return h
}
