package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// mustWait reports whether the next message must be answered with NotReady, because this side gives no credit and has
// no receive for the message. The peer then sends the message again.
func (c *Conn) mustWait() bool {
	return c.noCredit && c.nextRecv() == nil
}

// nextRecv returns the receive for the message that is arriving, or nil if there is none. If the connection has a
// shared queue, nextRecv takes the receive from it.
func (c *Conn) nextRecv() *work {
	switch {
	case c.srq != nil:
		return c.srq.nextReceive(c)
	case uint32(c.rq.nextRecv) == c.rq.postedCount.Load():
		return nil
	default:
		return c.rq.at(c.rq.nextRecv)
	}
}

// recvSegments returns the segments of the receive for the message that is arriving.
func (c *Conn) recvSegments(w *work) []Segment {
	if c.srq != nil && w.nseg > 1 {
		return c.srq.segs[:w.nseg]
	}
	return c.rq.segments(c.rq.nextRecv, w)
}

// recvSend places a piece of a message into the receive for the message.
func (c *Conn) recvSend(ch *proto.Chunk, p *cursor) proto.Reason {
	r := &c.recv
	if ch.Op == proto.OpSendOnly { // packets are consumed in order, so this is the next message
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
	if !c.copyToSegments(c.recvSegments(w), r.off, p, ch.Len) {
		c.completeRecv(w, StatusLocalProtection, 0)
		return proto.ReasonLocal
	}
	r.off += uint32(ch.Len)
	if ch.Flags&proto.Last != 0 {
		if ch.Op == proto.OpSendInv {
			if !c.invalidateWindow(ch.Key) {
				return proto.ReasonAccess
			}
			w.op, w.key = OpRecvInvalidate, ch.Key
			c.awaitKey(ch.Key)
		}
		c.eng.stats.RxMessages++
		w.flags = c.receiveFlags(w.flags, ch.Flags)
		c.completeRecv(w, StatusSuccess, r.off)
		r.msn++
		r.off = 0
	}
	return proto.ReasonNone
}

// receiveFlags returns the completion flags of a receive, from its own flags w and the flags f of the message's chunk.
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

// completeRecv completes the receive that nextRecv found. s is its status, and n the number of bytes received.
func (c *Conn) completeRecv(w *work, s Status, n uint32) {
	c.endRecv(&Completion{Conn: c, Cookie: w.cookie, Length: n, Op: w.op, Data: w.key, Status: s, Flags: w.flags})
}

// endRecv pushes a completion of the receive that nextRecv found, and moves on to the next receive.
func (c *Conn) endRecv(done *Completion) {
	c.completions.Recv.push(c.eng, done)
	if c.srq != nil {
		c.srq.holdsReceive.Store(false)
		c.srq.flow.Complete(done.Length)
		return
	}
	c.rq.nextRecv++
}

// countRecv frees the ring slots of the completed receives. It runs at the end of a packet. Until then, a post may find
// the ring full although receives have completed. This does no harm, because the consumer has not seen the completions
// of these receives yet.
func (c *Conn) countRecv() {
	if c.srq != nil {
		c.srq.packetDone(c)
		return
	}
	if next := uint32(c.rq.nextRecv); c.rq.doneCount.Load() != next {
		c.rq.doneCount.Store(next)
	}
}

// copyToSegments copies n bytes from the packet p into a scatter list, whose length the caller has checked. The
// argument off is the offset in the list. The method reports false if a region is gone.
func (c *Conn) copyToSegments(segs []Segment, off uint32, p *cursor, n int) bool {
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
