package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/reassembly"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// hold keeps a packet that arrived before its turn, in place of the frames of the batch, and reports whether it did. All
// connections of an engine share the frames that the link can spare, and one of them has half at most. A connection
// that has used this up drops the packet that is furthest ahead for one that is less so. When all frames are used up,
// the connection with the oldest hole does.
func (c *Conn) hold(psn seq.Num, bufs []link.Buf, total int) bool {
	e, r := c.eng, &c.recv
	if psn.Sub(r.next) >= proto.MaxWindow || e.forwarded {
		e.stats.EarlyDropped++
		return false
	}
	if r.early.At(r.next, psn) != nil {
		e.stats.Duplicates++
		return false
	}
	for most := max(e.caps.RxFrames/2, len(bufs)); ; {
		own := r.early.Frames()+len(bufs) > most
		if !own && e.held+len(bufs) <= e.caps.RxFrames {
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
	r.early.Hold(r.next, psn, bufs, total)
	e.held += len(bufs)
	e.stats.Early++
	return true
}

// dropLast drops the early packet that is furthest ahead, if that is after psn.
func (c *Conn) dropLast(psn seq.Num) bool {
	r := &c.recv
	last := r.next + seq.Num(r.early.Last(r.next))
	if last.LessEq(psn) {
		return false
	}
	c.dropEarly(r.early.At(r.next, last))
	return true
}

// takeEarly takes in early packets whose turn has come.
func (c *Conn) takeEarly() {
	r := &c.recv
	for p := r.early.At(r.next, r.next); p != nil; p = r.early.At(r.next, r.next) {
		ok := c.consume(p.Bufs, p.Total)
		if !ok && c.alive() {
			return // no receive for it
		}
		if len(p.Bufs) > 0 { // else the connection ended within and has dropped it
			c.dropEarly(p)
		}
		if !ok {
			return
		}
	}
}

// dropEarly frees the frames of an early packet at the end of the batch.
func (c *Conn) dropEarly(p *reassembly.Packet) {
	e := c.eng
	e.held -= len(p.Bufs)
	e.drop = c.recv.early.Remove(p, e.drop)
	if c.recv.early.Packets() == 0 {
		e.holes.close(c)
	}
}

// dropAllEarly frees the frames of every early packet, at the end of the batch or of the next one.
func (c *Conn) dropAllEarly() {
	e := c.eng
	e.held -= c.recv.early.Frames()
	e.drop = c.recv.early.RemoveAll(e.drop)
	e.holes.close(c)
}
