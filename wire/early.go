package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// holdEarly keeps the frames of a packet that arrived early. It reports false if it does not keep them. All
// connections of an engine share the frames that the link can spare.
//   - One connection may hold half of these frames. At that limit, the connection drops its early packet that is
//     furthest ahead, which may be the new one.
//   - If no frame is left, the connection with the oldest hole (missing packet) drops an early packet (see holes).
func (c *Conn) holdEarly(psn seq.Num, bufs []link.Buf, total int) bool {
	e, r := c.eng, &c.recv
	if psn.Sub(r.nextPSN) >= proto.MaxWindow || e.forwarded {
		e.stats.EarlyDropped++
		return false
	}
	if r.early.At(r.nextPSN, psn) != nil {
		e.stats.Duplicates++
		return false
	}
	for most := max(e.caps.RxFrames/2, len(bufs)); ; {
		own := r.early.Frames()+len(bufs) > most
		if !own && e.heldFrames+len(bufs) <= e.caps.RxFrames {
			break
		}
		e.stats.EarlyDropped++
		if (own || !e.holes.evictOldest(c)) && !c.dropLast(psn) {
			return false
		}
	}
	if r.early.Packets() == 0 {
		e.holes.renew(c)
	}
	r.early.Hold(r.nextPSN, psn, bufs, total)
	e.heldFrames += len(bufs)
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

// takeEarly consumes the early packets whose turn has come.
func (c *Conn) takeEarly() {
	r := &c.recv
	for p := r.early.At(r.nextPSN, r.nextPSN); p != nil; p = r.early.At(r.nextPSN, r.nextPSN) {
		ok := c.consumePacket(p.Bufs, p.Total)
		if !ok && c.alive() {
			return // the packet stays held until a receive is posted
		}
		if len(p.Bufs) > 0 { // 0: consume has ended the connection and dropped the packet
			c.dropEarly(p)
		}
		if !ok {
			return
		}
	}
}

// dropEarly drops an early packet. Its frames are freed at the end of the batch.
func (c *Conn) dropEarly(p *reassembly.Packet) {
	e := c.eng
	e.heldFrames -= len(p.Bufs)
	e.toFree = c.recv.early.Remove(p, e.toFree)
	if c.recv.early.Packets() == 0 {
		e.holes.close(c)
	}
}

// dropAllEarly drops every early packet. Their frames are freed at the end of this batch or of the next one.
func (c *Conn) dropAllEarly() {
	e := c.eng
	e.heldFrames -= c.recv.early.Frames()
	e.toFree = c.recv.early.RemoveAll(e.toFree)
	e.holes.close(c)
}
