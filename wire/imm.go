package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// PostWriteImm queues an RDMA write of all segments to a remote address. When the write has arrived, it consumes a
// receive at the peer, and the completion of that receive has the immediate data imm. The memory of that receive is not
// written. Such writes and messages consume the receives in the order in which they were posted.
func (c *Conn) PostWriteImm(segs []Segment, cookie uint64, to Remote, imm uint32, flags WorkFlags) error {
	n, err := c.checkSegments(c.writeIOV.Load(), segs, LocalRead|LocalWrite, c.maxRDMA.Load())
	if err != nil {
		return err
	}
	return c.postRequest(&work{cookie: cookie, op: OpWriteImm, flags: flags, length: n,
		key: to.Key, addr: to.Addr, arrivedBytes: imm}, segs)
}

// putWriteImm appends the chunk header for n bytes, at offset off, of a write with immediate data.
func (c *Conn) putWriteImm(p *packet, w *work, f proto.ChunkFlags, n int, off uint32) {
	if w.flags&Solicited != 0 {
		f |= proto.Solicited
	}
	proto.PutWriteImm(p.reserve(proto.WriteImmSize), f, n, w.key, w.addr+uint64(off), w.msn, off, w.arrivedBytes)
}

// needsReceive reports whether a chunk needs a posted receive. Every chunk of a message needs one; all chunks of the
// message use the same receive. Of a write with immediate data, only the last chunk needs a receive.
func needsReceive(ch *proto.Chunk) bool {
	return ch.Op == proto.OpSend || ch.Op == proto.OpSendOnly || ch.Op == proto.OpSendInv || ch.Op == proto.OpWriteImm && ch.Flags&proto.Last != 0
}

// recvWriteImm places a piece of a write with immediate data. The last piece consumes a receive.
func (c *Conn) recvWriteImm(ch *proto.Chunk, p *cursor) proto.Reason {
	r, last := &c.recv, ch.Flags&proto.Last != 0
	if ch.Num != r.msn || r.off != 0 || ch.Off != r.immOff || uint32(ch.Len) > maxOperation-r.immOff {
		return proto.ReasonProtocol
	}
	var w *work
	if last {
		if w = c.nextRecv(); w == nil {
			return proto.ReasonNotReady
		}
	}
	if why := c.recvWrite(ch, p); why != proto.ReasonNone {
		return why
	}
	if r.immOff += uint32(ch.Len); !last {
		return proto.ReasonNone
	}
	c.eng.stats.RxMessages++
	w.flags = c.receiveFlags(w.flags, ch.Flags)
	c.endRecv(&Completion{Conn: c, Cookie: w.cookie, Length: r.immOff, Data: ch.Imm, Op: OpRecvImm, Flags: w.flags})
	r.msn++
	r.immOff = 0
	return proto.ReasonNone
}
