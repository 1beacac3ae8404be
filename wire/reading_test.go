package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// reading lists what the codec reads in a packet, as items.
type reading []item

func (r *reading) num(name string, pos, size int, value any) {
	*r = append(*r, item{name, pos, size, fmt.Sprintf("%d", value)})
}

func (r *reading) bytes(name string, pos int, b []byte) {
	if len(b) > 0 {
		*r = append(*r, item{name, pos, len(b), hex.EncodeToString(b)})
	}
}

func (r *reading) node(name string, pos, size int) {
	*r = append(*r, item{Name: name, Pos: pos, Size: size})
}

func (r *reading) expert(name string) { *r = append(*r, item{Name: name}) }

func (r *reading) bits(name string, pos int, flags uint8, names ...string) {
	r.num(name, pos, 1, flags)
	for i, bit := range names {
		r.num(name+"."+bit, pos, 1, flags>>i&1)
	}
}

// read returns what the dissector should show of a packet.
func read(b []byte) []item {
	var r reading
	var h proto.Header
	switch {
	case len(b) == 0:
		return nil
	case len(b) < proto.HeaderSize+proto.TrailerSize:
		r.expert("malformed")
		return r
	}
	known := h.Parse(b) || h.Type == proto.Versions
	r.num("version", 0, 1, b[0]>>4)
	if !known && b[0]>>4 != proto.Version {
		return r
	}
	r.num("type", 0, 1, h.Type)
	r.bits("flags", 1, uint8(h.Flags), "ack_request", "has_sack", "key_phase", "epoch", "no_credit",
		"epoch_seen", "not_ready", "source_port")
	r.num("ce", 2, 2, h.CE)
	r.num("cid", 4, 4, h.CID)
	r.num("psn", 8, 4, h.PSN)
	r.num("ack", 12, 4, h.Ack)
	r.num("credit", 16, 4, h.Credit)
	r.num("ts", 20, 4, h.TS)
	r.num("echo", 24, 4, h.Echo)
	r.num("tag", 28, 4, h.Tag)
	end := len(b) - proto.TrailerSize
	if known {
		r.body(&h, b[proto.HeaderSize:end])
	} else {
		r.expert("malformed")
	}
	r.num("crc", end, proto.TrailerSize, proto.Trailer(b[end:]))
	if proto.CRC(0, b[:end]) == proto.Trailer(b[end:]) {
		r.expert("crc.good")
	} else {
		r.expert("crc.bad")
	}
	return r
}

func (r *reading) body(h *proto.Header, b []byte) {
	if h.Type.Established() && h.Type != proto.Ack && h.Flags&proto.HasSACK != 0 {
		r.expert("malformed")
		return
	}
	switch h.Type {
	case proto.Data:
		r.chunks(b)
	case proto.Probe:
		r.bytes("probe.padding", proto.HeaderSize, b)
	case proto.Probed:
		if len(b) != proto.ProbedSize {
			r.expert("malformed")
			return
		}
		r.num("probed.size", proto.HeaderSize, proto.ProbedSize, proto.ProbedLen(b))
	case proto.Connect, proto.Accept, proto.Reject, proto.Challenge:
		r.hello(h.Type, b)
	case proto.Close:
		r.goodbye(b)
	case proto.Versions:
		for i := range b {
			r.num("versions", proto.HeaderSize+i, 1, b[i])
		}
	default:
		if h.Type == proto.Ack && h.Flags&proto.HasSACK != 0 {
			r.sack(h, b)
		} else if len(b) > 0 {
			r.bytes("body", proto.HeaderSize, b)
			r.expert("malformed")
		}
	}
}

func (r *reading) sack(h *proto.Header, b []byte) {
	if !proto.SACKFits(len(b)) {
		r.expert("malformed")
		return
	}
	r.bytes("sack", proto.HeaderSize, b)
	for i := range len(b) * 8 {
		if b[i/8]>>(i%8)&1 != 0 {
			r.num("sack.psn", proto.HeaderSize+i/8, 1, uint32(h.Ack)+1+uint32(i))
		}
	}
}

func (r *reading) chunks(b []byte) {
	for at := proto.HeaderSize; len(b) > 0; {
		var c proto.Chunk
		n := proto.ChunkSize(b[0])
		if n == 0 || n > len(b) {
			r.expert("malformed")
			return
		}
		c.Parse(b[:n])
		r.node("chunk", at, min(n+c.Len, len(b)))
		r.num("chunk.op", at, 1, c.Op)
		r.bits("chunk.flags", at+1, uint8(c.Flags), "last", "solicited", "compare")
		r.num("chunk.len", at+2, 2, c.Len)
		switch c.Op {
		case proto.OpSend:
			r.num("chunk.msn", at+4, 4, c.Num)
			r.num("chunk.offset", at+8, 4, c.Off)
		case proto.OpWrite, proto.OpReadReq, proto.OpWriteImm, proto.OpAtomicReq:
			r.num("chunk.key", at+4, 4, c.Key)
			r.num("chunk.addr", at+8, 8, c.Addr)
		case proto.OpReadResp:
			r.num("chunk.read", at+4, 4, c.Num)
			r.num("chunk.offset", at+8, 4, c.Off)
		case proto.OpSendInv:
			r.num("chunk.msn", at+4, 4, c.Num)
			r.num("chunk.offset", at+8, 4, c.Off)
			r.num("chunk.key", at+12, 4, c.Key)
		case proto.OpAtomicResp:
			r.num("chunk.read", at+4, 4, c.Num)
			r.num("chunk.old", at+8, 8, c.Value)
		case proto.OpReady, proto.OpSendOnly:
		}
		bare := c.Op == proto.OpReady || c.Op == proto.OpReadReq || c.Op == proto.OpAtomicReq || c.Op == proto.OpAtomicResp
		if c.Op == proto.OpReadReq {
			r.num("chunk.size", at+16, 4, c.Size)
			r.num("chunk.read", at+20, 4, c.Num)
		}
		switch c.Op {
		case proto.OpWriteImm:
			r.num("chunk.msn", at+16, 4, c.Num)
			r.num("chunk.offset", at+20, 4, c.Off)
			r.num("chunk.imm", at+24, 4, c.Imm)
		case proto.OpAtomicReq:
			r.num("chunk.read", at+16, 4, c.Num)
			r.num("chunk.value", at+20, 8, c.Value)
			r.num("chunk.comparand", at+28, 8, c.Comp)
		default:
		}
		if c.Len > len(b)-n || c.Len > 0 && bare {
			r.expert("malformed")
			return
		}
		r.bytes("chunk.payload", at+n, b[n:n+c.Len])
		at, b = at+n+c.Len, b[n+c.Len:]
	}
}

func (r *reading) hello(t proto.Type, b []byte) {
	var hi proto.Hello
	whole := hi.Parse(b)
	if len(b) < proto.HelloSize {
		r.expert("malformed")
		return
	}
	const at = proto.HeaderSize
	r.node("hello", at, len(b))
	r.num("hello.cid", at, 4, hi.CID)
	r.num("hello.tag", at+4, 4, hi.Tag)
	r.num("hello.mtu", at+8, 4, hi.MTU)
	r.num("hello.window", at+12, 2, hi.Window)
	r.num("hello.read_in", at+14, 2, hi.ReadIn)
	r.num("hello.read_out", at+16, 2, hi.ReadOut)
	r.num("hello.reason", at+18, 1, hi.Reason)
	r.num("hello.reserved", at+19, 1, b[19])
	r.num("hello.capabilities", at+20, 4, hi.Capabilities)
	r.num("hello.qual", at+24, 8, hi.Qual)
	r.num("hello.port", at+32, 8, hi.Port)
	r.num("hello.cookie", at+40, 8, hi.Cookie)
	r.num("hello.options_len", at+48, 2, binary.BigEndian.Uint16(b[48:]))
	r.num("hello.private_len", at+50, 2, binary.BigEndian.Uint16(b[50:]))
	if hi.Private != nil { // the lengths match
		end := len(b) - len(hi.Private)
		r.options(at+proto.HelloSize, b[proto.HelloSize:end])
		r.bytes("hello.private", at+end, hi.Private)
	}
	if t == proto.Reject && hi.Reason != proto.ReasonNone {
		r.expert("ended")
	}
	if !whole {
		r.expert("malformed")
	}
}

// options reads options up to the first malformed one. The codec gives no access to those that it does not know.
func (r *reading) options(at int, b []byte) {
	ports := 0
	for len(b) >= 2 {
		n := int(b[1])
		r.node("hello.option", at, min(2+n, len(b)))
		r.num("hello.option.type", at, 1, b[0])
		r.num("hello.option.mandatory", at, 1, b[0]>>7)
		r.num("hello.option.len", at+1, 1, n)
		if 2+n > len(b) {
			return
		}
		value := b[2 : 2+n]
		switch {
		case b[0] != 1:
			r.bytes("hello.option.value", at+2, value)
		case n != 2:
			r.bytes("hello.option.value", at+2, value)
			return
		default:
			port := binary.BigEndian.Uint16(value)
			r.num("hello.option.udp_port", at+2, 2, port)
			if ports++; port == 0 || ports > 1 {
				return
			}
		}
		at, b = at+2+n, b[2+n:]
	}
}

func (r *reading) goodbye(b []byte) {
	var g proto.Goodbye
	if !g.Parse(b) {
		r.expert("malformed")
		return
	}
	const at = proto.HeaderSize
	r.node("goodbye", at, len(b))
	r.num("goodbye.cid", at, 4, g.CID)
	r.num("goodbye.num", at+4, 4, g.Num)
	r.num("goodbye.reason", at+8, 1, g.Reason)
	r.num("goodbye.op", at+9, 1, g.Op)
	r.num("goodbye.reserved", at+10, 2, binary.BigEndian.Uint16(b[10:]))
	if g.Reason != proto.ReasonNone {
		r.expert("ended")
	}
}
