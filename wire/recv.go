package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// mustWait reports whether the next message finds no receive, and none was promised: the peer is told that the receiver
// is not ready.
func (c *Conn) mustWait() bool {
	return c.noCredit && c.nextRecv() == nil
}

// nextRecv is the receive of the message that arrives; nil when there is none. One of a shared queue
// is taken here. A caller that can have the message sent again calls mustWait before.
func (c *Conn) nextRecv() *work {
	switch {
	case c.srq != nil:
		return c.srq.receive(c)
	case uint32(c.rq.next) == c.rq.posted.Load():
		return nil
	default:
		return c.rq.at(c.rq.next)
	}
}

// recvSegments are the segments of the receive of the message that arrives.
func (c *Conn) recvSegments(w *work) []Segment {
	if c.srq != nil && w.nseg > 1 {
		return c.srq.segs[:w.nseg]
	}
	return c.rq.segments(c.rq.next, w)
}

// recvSend puts a piece of a message into the receive it belongs to.
func (c *Conn) recvSend(ch *proto.Chunk, p *cursor) proto.Reason {
	r := &c.recv
	if ch.Op == proto.OpSendOnly { // packets are taken in in order: it can be no other
		ch.Num, ch.Off = r.msn, 0
	}
	if ch.Num != r.msn || ch.Off != r.off || r.immOff != 0 || ch.Op != proto.OpSend && ch.Flags&proto.Last == 0 {
		return proto.ReasonProtocol
	}
	w := c.nextRecv()
	if w == nil {
		return proto.ReasonNotReady
	}
	if uint32(ch.Len) > w.length-r.off {
		c.completeRecv(w, StatusLocalLength, 0)
		return proto.ReasonLength
	}
	if !c.scatter(c.recvSegments(w), r.off, p, ch.Len) {
		c.completeRecv(w, StatusLocalProtection, 0)
		return proto.ReasonLocal
	}
	r.off += uint32(ch.Len)
	if ch.Flags&proto.Last != 0 {
		if ch.Op == proto.OpSendInv {
			if !c.invalidate(ch.Key) {
				return proto.ReasonAccess
			}
			w.op, w.key = OpRecvInvalidate, ch.Key
		}
		c.eng.stats.RxMessages++
		w.flags = c.receiveFlags(w.flags, ch.Flags)
		c.completeRecv(w, StatusSuccess, r.off)
		r.msn++
		r.off = 0
	}
	return proto.ReasonNone
}

// receiveFlags are the flags of a receive whose message came with flags of its own.
func (c *Conn) receiveFlags(w WorkFlags, f proto.ChunkFlags) WorkFlags {
	switch {
	case f&proto.Solicited != 0:
		return w | Solicited
	case c.completions.Solicited:
		return w | Unsignalled
	default:
		return w
	}
}

// completeRecv ends the oldest receive as one of a message.
func (c *Conn) completeRecv(w *work, s Status, n uint32) {
	c.endRecv(&Completion{Conn: c, Cookie: w.cookie, Length: n, Op: w.op, Data: w.key, Status: s, Flags: w.flags})
}

// endRecv completes the receive that nextRecv found.
func (c *Conn) endRecv(done *Completion) {
	c.completions.Recv.push(c.eng, done)
	if c.srq != nil {
		c.srq.held.Store(false)
		c.srq.flow.Complete(done.Length)
		return
	}
	c.rq.next++
}

// countRecv makes room for as many receives as were completed. A poster that looks before the end of the
// packet finds the queue fuller than it is, but the consumer has no completion of it yet.
func (c *Conn) countRecv() {
	if c.srq != nil {
		c.srq.packetDone(c)
		return
	}
	if next := uint32(c.rq.next); c.rq.done.Load() != next {
		c.rq.done.Store(next)
	}
}

// scatter places n bytes at offset off of a list of segments, which is known to be long enough. It
// reports false if a region is gone.
func (c *Conn) scatter(segs []Segment, off uint32, p *cursor, n int) bool {
	c.eng.stats.RxBytes += uint64(n)
	for i := range segs {
		s := &segs[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		if n == 0 {
			return true
		}
		m := min(n, int(s.Length-off))
		r := c.host.regions.find(s.Context)
		if r == nil {
			return false
		}
		dst, ok := r.slice(s.Address+uint64(off), uint32(m))
		if !ok {
			return false
		}
		p.copy(dst)
		n -= m
		off = 0
	}
	return true
}
