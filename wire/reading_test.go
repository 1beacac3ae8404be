package wire

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"

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

// conversations holds the secure connections of a capture. A connection has two keys: the addresses and ports of the
// packets to the server, and the address and the CID of the requester.
type conversations map[[2]string]bool

func toServer(p datagram) [2]string { return [2]string{p.from.String(), p.to.String()} }

func toRequester(addr netip.Addr, cid uint32) [2]string {
	return [2]string{addr.String(), fmt.Sprint(cid)}
}

// read returns what the dissector should show of the next packet of a capture.
func (c conversations) read(p datagram) []item {
	b := p.payload
	var h proto.Header
	if len(b) < proto.HeaderSize+proto.TrailerSize || !h.Parse(b) {
		return read(b)
	}
	var hi proto.Hello
	if h.Type == proto.Connect && hi.Parse(b[proto.HeaderSize:len(b)-proto.TrailerSize]) && hi.Cookie != 0 &&
		(hi.Noise == nil || new(proto.Noise).Parse(hi.Noise, h.Type)) {
		c[toServer(p)], c[toRequester(p.from.Addr(), hi.CID)] = hi.Noise != nil, hi.Noise != nil
	}
	sealed := h.Type.Sealed() && (c[toServer(p)] || c[toRequester(p.to.Addr(), h.CID)])
	end := len(b) - proto.SealSize
	if !sealed || h.Type == proto.Closed && end < proto.HeaderSize {
		return read(b)
	}
	var r reading
	r.header(&h, b)
	r[len(r)-1].Name = "counter"
	if end < proto.HeaderSize {
		r.expert("malformed")
		return r
	}
	r.bytes("sealed", proto.HeaderSize, b[proto.HeaderSize:end])
	r.bytes("seal", end, b[end:])
	return r
}

// read returns what the dissector should show of a packet that is not sealed.
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
	if !known && b[0]>>4 != proto.Version {
		r.num("version", 0, 1, b[0]>>4)
		return r
	}
	r.header(&h, b)
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

func (r *reading) header(h *proto.Header, b []byte) {
	r.num("version", 0, 1, b[0]>>4)
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
	if hi.Noise != nil {
		whole = new(proto.Noise).Parse(hi.Noise, t) && whole
	}
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
		r.options(t, at+proto.HelloSize, b[proto.HelloSize:end])
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
func (r *reading) options(t proto.Type, at int, b []byte) {
	seen := make(map[byte]bool)
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
		if !r.option(t, b[0], at+2, value) || seen[b[0]] && (b[0] <= 2 || b[0] == 0x81) {
			return
		}
		seen[b[0]] = true
		at, b = at+2+n, b[2+n:]
	}
}

// option reads the value of an option. It reports false if the value is malformed.
func (r *reading) option(t proto.Type, kind byte, at int, value []byte) bool {
	switch {
	case kind == 1 && len(value) == 2:
		port := binary.BigEndian.Uint16(value)
		r.num("hello.option.udp_port", at, 2, port)
		return port != 0
	case kind == 2 && len(value) == proto.PublicKeySize:
		r.bytes("hello.option.server_key", at, value)
		return true
	case kind == 0x81 && len(value) >= 1+proto.KeyIDSize:
		r.num("hello.option.form", at, 1, value[0]&0xf)
		r.num("hello.option.cipher", at, 1, value[0]>>4)
		r.bytes("hello.option.key_id", at+1, value[1:5])
		r.bytes("hello.option.head", at+5, value[5:])
		return new(proto.Noise).Parse(value, t)
	default:
		r.bytes("hello.option.value", at, value)
		return kind != 1 && kind != 2 && kind != 0x81
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
