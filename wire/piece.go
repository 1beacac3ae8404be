package wire

import "github.com/datxdp/datxdp/wire/internal/proto"

// headerOf returns the size of the chunk header of an operation.
func headerOf(w *work) int {
	switch w.op {
	case OpSend:
		switch {
		case w.window:
			return proto.SendInvSize
		case w.length <= smallOp:
			return proto.SendOnlySize
		}
		return proto.SendSize
	case OpWrite:
		return proto.WriteSize
	case OpWriteImm:
		return proto.WriteImmSize
	case OpFetchAdd, OpCmpSwap:
		return proto.AtomicReqSize
	case OpBind:
		return 0
	default:
		return proto.ReadReqSize
	}
}

// pieceOf returns how many bytes of an operation, from offset off, fit into a packet. space is the free space of the
// packet in bytes. A negative result means that the operation should wait for the next packet. There are two such
// cases:
//   - The chunk header of the operation does not fit.
//   - The rest of the operation does not fit, and dividing it is not worth a second chunk: the rest is at most smallOp
//     bytes long, or less than smallOp bytes would fit.
func pieceOf(w *work, off uint32, space int) int {
	space -= headerOf(w)
	if w.op.hasResponse() {
		return min(space, 0)
	}
	switch rest := int(w.length - off); {
	case rest <= space:
		return min(rest, proto.MaxChunkBytes)
	case rest <= smallOp || space < smallOp:
		return -1
	default:
		return min(space, proto.MaxChunkBytes)
	}
}

// putPiece appends a chunk with n bytes of a request, from a position on. It reports false if the memory is gone.
func (c *Conn) putPiece(p *packet, w *work, at position, n int) bool {
	var f proto.ChunkFlags
	if at.Off+uint32(n) == w.length {
		f = proto.Last
	}
	switch w.op {
	case OpSend:
		if w.flags&Solicited != 0 {
			f |= proto.Solicited
		}
		switch {
		case w.window && f&proto.Last != 0:
			proto.PutSendInv(p.reserve(proto.SendInvSize), f, n, w.msn, at.Off, w.key)
		case w.length <= smallOp:
			proto.PutSendOnly(p.reserve(proto.SendOnlySize), f, n)
		default:
			proto.PutSend(p.reserve(proto.SendSize), f, n, w.msn, at.Off)
		}
	case OpWrite:
		proto.PutWrite(p.reserve(proto.WriteSize), f, n, w.key, w.addr+uint64(at.Off))
	case OpWriteImm:
		c.putWriteImm(p, w, f, n, at.Off)
	case OpFetchAdd, OpCmpSwap:
		c.putAtomicReq(p, w, at.Op)
		return true
	default:
		proto.PutReadReq(p.reserve(proto.ReadReqSize), w.key, w.addr, w.length, at.Op)
		return true
	}
	return n == 0 || c.appendSegments(p, c.sq.segments(at.Op, w), at.Off, n)
}

// appendSegments appends n bytes of a gather list, from offset off. It reports false if a region is gone.
func (c *Conn) appendSegments(p *packet, segs []Segment, off uint32, n int) bool {
	for i := range segs {
		s := &segs[i]
		if off >= s.Length {
			off -= s.Length
			continue
		}
		m := min(n, int(s.Length-off))
		r := c.host.regions.find(s.Context)
		if r == nil {
			return false
		}
		src, ok := r.slice(s.Address+uint64(off), uint32(m))
		if !ok {
			return false
		}
		p.appendMemory(src)
		if n -= m; n == 0 {
			return true
		}
		off = 0
	}
	return n == 0
}
