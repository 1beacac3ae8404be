package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// receiveWindow returns the number of packets that a peer may have in flight on one connection. It is what the kernel's
// buffer holds, and what can be held of early packets: if more arrive after a lost packet, they are dropped and sent again.
func receiveWindow(caps *link.Caps, maxPacket int) uint16 {
	n := caps.RxFrames / ((maxPacket + caps.FrameSize - 1) / caps.FrameSize)
	if caps.RxWindow > 0 {
		n = min(n, caps.RxWindow-beyondWindow)
	}
	return uint16(min(max(n, minPeerWindow), proto.MaxWindow))
}

// holdEarly keeps the frames of a packet that arrived early. It reports false if it does not keep them. All
// connections of an engine share the frames that the link can spare. If none is left, networks, addresses and connections
// get equal shares (see earlyFrames). A peer may have a limit of its own (Grant). At a limit, the connection drops its early
// packet that is furthest ahead, which may be the new one.
func (c *Conn) holdEarly(psn seq.Num, bufs []link.Buf, end int) bool {
	e, r := c.eng, &c.recv
	if psn.Sub(r.nextPSN) >= proto.MaxWindow || e.forwarded {
		e.stats.EarlyDropped++
		return false
	}
	if r.early.At(r.nextPSN, psn) != nil {
		e.stats.Duplicates++
		return false
	}
	bufs = e.sealing.scatter(bufs)
	for {
		own := !c.permit.mayHold(len(bufs) * e.caps.FrameSize)
		if !own && e.heldFrames+len(bufs) <= e.caps.RxFrames {
			break
		}
		e.stats.EarlyDropped++
		if (own || !e.evictFor(c)) && !c.dropLast(psn) {
			return false
		}
	}
	e.link.Keep(bufs)
	r.early.Hold(r.nextPSN, psn, bufs, end)
	c.addEarly(len(bufs))
	e.stats.Early++
	return true
}

// dropLast drops the early packet that is furthest ahead, if it comes after psn. It reports whether it dropped one.
func (c *Conn) dropLast(psn seq.Num) bool {
	r := &c.recv
	last := r.nextPSN + seq.Num(r.early.Last(r.nextPSN))
	if last.LessEq(psn) {
		return false
	}
	c.dropEarly(r.early.At(r.nextPSN, last))
	return true
}

// takeEarly consumes the early packets whose turn has come. One packet that fills a gap may release hundreds of them, so
// a batch of received packets may consume maxReceive early packets, and the timers of a Poll as many. If more are left,
// the timer of the connection consumes them.
func (c *Conn) takeEarly() {
	e, r := c.eng, &c.recv
	for p := r.early.At(r.nextPSN, r.nextPSN); p != nil; p = r.early.At(r.nextPSN, r.nextPSN) {
		if e.earlyLeft == 0 {
			c.setDeadline(e.now)
			return
		}
		e.earlyLeft--
		ok := c.consumePacket(p.Bufs, p.End)
		if !ok && c.alive() {
			return // the packet stays held until a receive is posted
		}
		if len(p.Bufs) > 0 { // 0: consumePacket has ended the connection and dropped the packet
			c.dropEarly(p)
		}
		if !ok {
			return
		}
	}
}

// dueEarly consumes early packets that an earlier takeEarly has left.
func (c *Conn) dueEarly() Time {
	r := &c.recv
	if r.notReady || r.early.At(r.nextPSN, r.nextPSN) == nil {
		return never
	}
	c.wantAckNow()
	c.takeEarly()
	return never // takeEarly arms the timer again if packets are left
}

// dropEarly drops an early packet. Its frames are freed at the end of the batch.
func (c *Conn) dropEarly(p *reassembly.Packet) {
	e := c.eng
	c.addEarly(-len(p.Bufs))
	e.toFree = c.recv.early.Remove(p, e.toFree)
}

// dropAllEarly drops every early packet. Their frames are freed at the end of this batch or of the next one.
func (c *Conn) dropAllEarly() {
	e := c.eng
	c.addEarly(-c.recv.early.Frames())
	e.toFree = c.recv.early.RemoveAll(e.toFree)
}
