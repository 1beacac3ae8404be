package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// cursor reads the body of a received packet. The frames of the packet may divide the body at any byte.
type cursor struct {
	bufs      []link.Buf // frames after the current one
	cur       []byte     // unread bytes of the current frame
	bytesLeft int        // number of unread bytes of the body, without the trailer
}

// open sets the cursor to the first byte after the header. end is the length of header and body in bytes.
func (r *cursor) open(bufs []link.Buf, end int) {
	r.bufs, r.cur = bufs[1:], bufs[0].Data[proto.HeaderSize:]
	r.bytesLeft = end - proto.HeaderSize
}

// nextFrame advances to the next frame with unread bytes. The caller knows that there is one.
func (r *cursor) nextFrame() {
	for len(r.cur) == 0 {
		r.cur, r.bufs = r.bufs[0].Data, r.bufs[1:]
	}
}

// chunk reads a chunk header into c. It reports false if the body is too short for the chunk.
func (r *cursor) chunk(c *proto.Chunk) bool {
	r.nextFrame()
	n := proto.ChunkSize(r.cur[0])
	if n == 0 || n > r.bytesLeft {
		return false
	}
	if n <= len(r.cur) {
		c.Parse(r.cur[:n])
		r.cur = r.cur[n:]
		r.bytesLeft -= n
	} else {
		var scratch [proto.MaxChunkSize]byte
		r.copy(scratch[:n])
		c.Parse(scratch[:n])
	}
	return c.Len <= r.bytesLeft
}

// copy reads len(dst) bytes into dst. The body must have that many unread bytes.
func (r *cursor) copy(dst []byte) {
	r.bytesLeft -= len(dst)
	for {
		n := copy(dst, r.cur)
		r.cur = r.cur[n:]
		if dst = dst[n:]; len(dst) == 0 {
			return
		}
		r.nextFrame()
	}
}

// skip discards n bytes. The body must have that many unread bytes.
func (r *cursor) skip(n int) {
	r.bytesLeft -= n
	for n > 0 {
		r.nextFrame()
		m := min(n, len(r.cur))
		r.cur = r.cur[m:]
		n -= m
	}
}

// sizeOf returns the length of a packet in bytes, header to trailer.
func sizeOf(bufs []link.Buf) (n int) {
	for i := range bufs {
		n += len(bufs[i].Data)
	}
	return n
}

// intact returns the length of header and body of a packet in bytes, and whether the packet's CRC is correct.
func intact(bufs []link.Buf) (end int, ok bool) {
	last := len(bufs) - 1
	end = sizeOf(bufs) - proto.TrailerSize
	if end < proto.HeaderSize || len(bufs[0].Data) < proto.HeaderSize {
		return end, false
	}
	d := bufs[last].Data
	if len(d) < proto.TrailerSize {
		return end, intactCut(bufs, end)
	}
	var crc uint32
	for i := range last {
		crc = proto.CRC(crc, bufs[i].Data)
	}
	cut := len(d) - proto.TrailerSize
	return end, proto.CRC(crc, d[:cut]) == proto.Trailer(d[cut:])
}

// intactCut checks the CRC of a packet whose trailer is divided between frames.
func intactCut(bufs []link.Buf, end int) bool {
	var crc uint32
	var trailer [proto.TrailerSize]byte
	left, got := end, 0
	for i := range bufs {
		d := bufs[i].Data
		n := min(left, len(d))
		crc = proto.CRC(crc, d[:n])
		left -= n
		got += copy(trailer[got:], d[n:])
	}
	return crc == proto.Trailer(trailer[:])
}
