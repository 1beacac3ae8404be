package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// cursor reads the body of a packet that may be cut at any byte into several frames.
type cursor struct {
	bufs []link.Buf // frames after the current one
	cur  []byte     // what is left of the current one
	left int        // what is left of the body, trailer excluded
}

// open starts at the byte after the header. total is the length of the whole packet.
func (r *cursor) open(bufs []link.Buf, total int) {
	r.bufs, r.cur = bufs[1:], bufs[0].Data[proto.HeaderSize:]
	r.left = total - proto.HeaderSize - proto.TrailerSize
}

// more makes the current frame one that is not empty. The caller knows that there is one.
func (r *cursor) more() {
	for len(r.cur) == 0 {
		r.cur, r.bufs = r.bufs[0].Data, r.bufs[1:]
	}
}

// chunk reads a chunk header; false if what is left does not hold it and its payload.
func (r *cursor) chunk(c *proto.Chunk) bool {
	r.more()
	n := proto.ChunkSize(r.cur[0])
	if n == 0 || n > r.left {
		return false
	}
	if n <= len(r.cur) {
		c.Parse(r.cur[:n])
		r.cur = r.cur[n:]
		r.left -= n
	} else {
		var scratch [proto.MaxChunkSize]byte
		r.copy(scratch[:n])
		c.Parse(scratch[:n])
	}
	return c.Len <= r.left
}

// copy moves len(dst) bytes, which the body has left, to dst.
func (r *cursor) copy(dst []byte) {
	r.left -= len(dst)
	for {
		n := copy(dst, r.cur)
		r.cur = r.cur[n:]
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		r.more()
	}
}

// skip passes over n bytes, which the body has left.
func (r *cursor) skip(n int) {
	r.left -= n
	for n > 0 {
		r.more()
		m := min(n, len(r.cur))
		r.cur = r.cur[m:]
		n -= m
	}
}

// intact computes the length of a packet and checks its trailer.
func intact(bufs []link.Buf) (total int, ok bool) {
	last := len(bufs) - 1
	for i := range bufs {
		total += len(bufs[i].Data)
	}
	if total < proto.HeaderSize+proto.TrailerSize || len(bufs[0].Data) < proto.HeaderSize {
		return total, false
	}
	d := bufs[last].Data
	if len(d) < proto.TrailerSize {
		return total, intactCut(bufs, total)
	}
	var crc uint32
	for i := range last {
		crc = proto.CRC(crc, bufs[i].Data)
	}
	cut := len(d) - proto.TrailerSize
	return total, proto.CRC(crc, d[:cut]) == proto.Trailer(d[cut:])
}

// intactCut checks a packet whose trailer lies in more than one frame.
func intactCut(bufs []link.Buf, total int) bool {
	var crc uint32
	var trailer [proto.TrailerSize]byte
	left, got := total-proto.TrailerSize, 0
	for i := range bufs {
		d := bufs[i].Data
		n := min(left, len(d))
		crc = proto.CRC(crc, d[:n])
		left -= n
		got += copy(trailer[got:], d[n:])
	}
	return crc == proto.Trailer(trailer[:])
}
