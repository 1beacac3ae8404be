package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// packet is a packet under construction at the end of the engine's transmit batch.
type packet struct {
	e          *Engine
	first      int    // index of its first frame in e.tx
	cur        []byte // free space of the frame being filled
	left       int    // free space of the packet's body
	zeroCopied bool   // some of the frames only stand for a piece of the link's memory

	op      seq.Num // request, or job of the responder, whose memory is read
	answers bool    // it is a job
	over    bool    // nothing is read any more
}

// begin starts a packet of at most size bytes on path. It reports false when the link has no frame:
// the transmit ring is full.
func (e *Engine) begin(p *packet, path link.Path, size int) bool {
	need := 1
	if size > e.caps.FrameSize {
		need = e.caps.Segments
	}
	if len(e.frames) < need && !e.refill(need) {
		e.stats.Backpressure++
		return false
	}
	p.e, p.first = e, len(e.tx)
	p.left = size - proto.HeaderSize - proto.TrailerSize
	p.cur = e.queueFrame(path)[proto.HeaderSize:]
	return true
}

// queueFrame moves one of the frames that the link has handed out to the end of tx and returns its room.
func (e *Engine) queueFrame(path link.Path) []byte {
	n := len(e.frames) - 1
	e.tx = append(e.tx, e.frames[n])
	e.frames = e.frames[:n]
	f := &e.tx[len(e.tx)-1]
	f.Path = path
	return f.Data
}

// refill asks the link for more frames and reports whether there are at least need now.
func (e *Engine) refill(need int) bool {
	if len(e.tx) > 0 && len(e.frames) == 0 {
		e.flush() // what is queued may be what fills the ring
	}
	have := len(e.frames)
	n := e.link.Alloc(e.frames[have : have+max(need-have, min(cap(e.frames)-have, allocBatch))])
	e.frames = e.frames[:have+n]
	return len(e.frames) >= need
}

// put returns n contiguous bytes of the body to be written; n is at most what is left.
func (p *packet) put(n int) []byte {
	if n > len(p.cur) {
		p.nextFrame()
	}
	b := p.cur[:n]
	p.cur = p.cur[n:]
	p.left -= n
	return b
}

// copy appends src, which is not longer than what is left.
func (p *packet) copy(src []byte) {
	p.left -= len(src)
	for {
		n := copy(p.cur, src)
		p.cur = p.cur[n:]
		if src = src[n:]; len(src) == 0 {
			return
		}
		p.nextFrame()
	}
}

// nextFrame goes on in another frame.
func (p *packet) nextFrame() {
	e := p.e
	last := &e.tx[len(e.tx)-1]
	last.Data = last.Data[:len(last.Data)-len(p.cur)]
	last.Flags |= link.More
	p.cur = e.queueFrame(last.Path)
}

// add appends src, which is not longer than what is left: as far as that pays without a copy, where the link can
// send it from where it is.
func (p *packet) add(src []byte) {
	if e := p.e; len(src) >= e.zeroCopyMin {
		if at, ok := offsetIn(e.caps.Memory, src); ok {
			if n := p.zeroCopyLen(at, len(src)); n >= e.zeroCopyMin {
				p.addZeroCopy(src[:n], at)
				src = src[n:]
			}
		}
	}
	if len(src) > 0 {
		p.copy(src)
	}
}

// lendable is how many of n bytes at an offset of the link's memory may be lent: each block takes a segment, and what
// follows in the packet, the trailer at least, needs frames.
func (p *packet) zeroCopyLen(at, n int) int {
	e := p.e
	block, room := e.caps.Block, e.caps.FrameSize-proto.MaxChunkSize
	segments := min(e.caps.Segments-(len(e.tx)-p.first), len(e.frames))
	n = min(n, segments*block-at%block)
	for n > 0 && ceil(at%block+n, block)+1+(p.left-n)/room > segments {
		n -= (at+n-1)%block + 1 // the last block
	}
	return n
}

func ceil(a, b int) int { return (a + b - 1) / b }

// lend appends src, at an offset of the link's memory, without a copy. An empty frame stands for each piece of it.
func (p *packet) addZeroCopy(src []byte, at int) {
	e := p.e
	p.zeroCopied = true
	p.left -= len(src)
	e.stats.InPlaceBytes += uint64(len(src))
	for block := e.caps.Block; len(src) > 0; {
		p.nextFrame()
		n := min(len(src), block-at%block)
		e.tx[len(e.tx)-1].Data = src[:n:n]
		p.cur = nil
		src = src[n:]
		at += n
	}
}

// finish writes header and trailer. The packet leaves with the next flush.
func (p *packet) finish(h *proto.Header) {
	e := p.e
	if len(p.cur) < proto.TrailerSize {
		p.nextFrame()
	}
	last := &e.tx[len(e.tx)-1]
	end := len(last.Data) - len(p.cur)
	last.Data = last.Data[:end+proto.TrailerSize]
	h.Put(e.tx[p.first].Data)
	var crc uint32
	for i := p.first; i < len(e.tx)-1; i++ {
		crc = proto.CRC(crc, e.tx[i].Data)
	}
	proto.PutTrailer(last.Data[end:], proto.CRC(crc, last.Data[:end]))
	e.stats.TxPackets++
	if len(e.tx) >= maxTransmit {
		e.flush()
	}
}

// abandon gives the frames of an unfinished packet back.
func (p *packet) abandon() {
	e := p.e
	if p.zeroCopied {
		e.link.Free(e.tx[p.first:])
		e.tx = e.tx[:p.first]
		return
	}
	for i := p.first; i < len(e.tx); i++ {
		f := e.tx[i]
		f.Data = f.Data[:e.caps.FrameSize]
		f.Flags = 0
		e.frames = append(e.frames, f)
	}
	e.tx = e.tx[:p.first]
}

// flush hands everything that was built to the link.
func (e *Engine) flush() {
	if len(e.tx) > 0 {
		e.link.Send(e.tx)
		e.tx = e.tx[:0]
	}
}
