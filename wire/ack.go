package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// firstHeld is the size of a new table of held packets, which doubles as needed up to proto.MaxWindow.
const firstHeld = 256

// heldPacket is a packet that arrived before its turn, or found no receive, in its own frames.
type heldPacket struct {
	bufs  []link.Buf
	total int
}

// hold keeps a packet that is d packets early, in place of the frames of the batch, and reports
// whether it did. When its share of frames is used up, a connection gives up what it will need last.
func (c *Conn) hold(d int, bufs []link.Buf, total int) bool {
	e, r := c.eng, &c.recv
	if d >= proto.MaxWindow || e.crossing {
		e.stats.EarlyDropped++
		return false
	}
	if d >= len(r.held) {
		r.growHeld(d)
	}
	h := r.heldAt(d)
	if len(h.bufs) > 0 {
		e.stats.Duplicates++
		return false
	}
	for e.held+len(bufs) > e.caps.RxFrames || r.frames+len(bufs) > max(e.caps.RxFrames/2, len(bufs)) {
		e.stats.EarlyDropped++
		if !c.evict(d) {
			return false
		}
	}
	h.bufs, h.total = append(h.bufs, bufs...), total
	r.nheld++
	r.frames += len(bufs)
	e.held += len(bufs)
	e.stats.Early++
	return true
}

// heldAt is the place of the packet that is d packets early. The table has more places than d.
func (r *receiver) heldAt(d int) *heldPacket {
	return &r.held[(uint32(r.next)+uint32(d))&uint32(len(r.held)-1)]
}

// growHeld makes room in the table for a packet that is d packets early.
func (r *receiver) growHeld(d int) {
	n := max(len(r.held), firstHeld)
	for n <= d {
		n *= 2
	}
	old := *r
	r.held = make([]heldPacket, n)
	for i := range old.held {
		*r.heldAt(i) = *old.heldAt(i)
	}
}

// evict lets go of the held packet that is the furthest ahead, if that is more than d.
func (c *Conn) evict(d int) bool {
	r := &c.recv
	for at := len(r.held) - 1; at > d && r.nheld > 0; at-- {
		if h := r.heldAt(at); len(h.bufs) > 0 {
			c.letGo(h)
			return true
		}
	}
	return false
}

// consumeHeld handles held packets whose turn has come.
func (c *Conn) consumeHeld() {
	r := &c.recv
	for r.nheld > 0 {
		h := r.heldAt(0)
		if len(h.bufs) == 0 {
			return
		}
		ok := c.consume(h.bufs, h.total)
		if !ok && c.alive() {
			return // put off
		}
		if len(h.bufs) > 0 { // else the connection ended within and has let go of it
			c.letGo(h)
		}
		if !ok {
			return
		}
	}
}

// letGo frees a held packet at the end of the batch.
func (c *Conn) letGo(h *heldPacket) {
	e := c.eng
	e.drop = append(e.drop, h.bufs...)
	e.held -= len(h.bufs)
	c.recv.frames -= len(h.bufs)
	c.recv.nheld--
	clear(h.bufs)
	h.bufs = h.bufs[:0]
}

// letGoAll frees every held packet, at the end of the batch or of the next one.
func (c *Conn) letGoAll() {
	for i := range c.recv.held {
		if h := &c.recv.held[i]; len(h.bufs) > 0 {
			c.letGo(h)
		}
	}
}

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
	h := c.header(proto.Ack, c.send.nxt)
	h.Flags |= flags
	if last := c.recv.lastHeld(); last > 0 {
		h.Flags |= proto.HasSACK
		c.putSACK(p.put(proto.SACKSize(last - 1)))
	}
	c.eng.stats.AcksSent++
	p.finish(&h)
	return true
}

// lastHeld is how early the held packet is that is the furthest ahead; 0 if none is.
func (r *receiver) lastHeld() int {
	if r.nheld == 0 {
		return 0
	}
	d := len(r.held) - 1
	for d > 0 && len(r.heldAt(d).bufs) == 0 {
		d--
	}
	return d
}

// putSACK writes which packets after the next one are held, as far as b has bits.
func (c *Conn) putSACK(b []byte) {
	clear(b)
	for d := 1; d <= min(len(b)*8, len(c.recv.held)-1); d++ {
		if len(c.recv.heldAt(d).bufs) > 0 {
			b[(d-1)/8] |= 1 << ((d - 1) % 8)
		}
	}
}

// header is the header of a packet that leaves now. It carries the newest acknowledgement, so that
// none is owed after it.
func (c *Conn) header(t proto.Type, psn seq.Num) proto.Header {
	r, now := &c.recv, c.eng.now
	r.advertised = c.credit()
	r.unacked, r.ackNow, r.ackAsked, r.ackBy = 0, false, false, never
	c.starve()
	h := proto.Header{Type: t, CE: r.ce, CID: c.peer, PSN: psn, Ack: r.next,
		Credit: r.advertised, TS: now.Stamp(), Tag: c.peerTag}
	h.Flags |= c.send.epoch | c.eng.portFlag
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
