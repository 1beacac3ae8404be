package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// packet is a packet under construction. Its frames are the last ones in the engine's transmit batch.
type packet struct {
	e          *Engine
	firstFrame int    // index in e.tx of its first frame
	cur        []byte // free bytes of the current frame
	bytesLeft  int    // free bytes of the packet's body
	zeroCopied bool   // some entries of e.tx refer to link memory instead of a frame
	apart      bool   // the packet is built in sealing.building instead of its frames
	keys       *keys  // of the packet's connection; nil: the packet has a CRC
	single     bool   // the packet must not leave in a group of packets

	op         seq.Num // request or responder job whose memory is being read
	isResponse bool    // op is a responder job
	built      bool    // the packet is built, so a later panic is not a memory fault
}

// begin starts a packet of at most size bytes on path. The packet is sealed with k, unless k is nil. begin reports false
// if the link has no transmit frame.
func (e *Engine) begin(p *packet, path link.Path, size int, k *keys) bool {
	need := 1
	if size > e.caps.FrameSize {
		need = e.caps.Segments
		p.apart = k != nil
	}
	if len(e.frames) < need && !e.refill(need) {
		e.stats.Backpressure++
		return false
	}
	p.e, p.firstFrame, p.keys = e, len(e.tx), k
	p.bytesLeft = size - proto.HeaderSize - k.trailer()
	if p.apart {
		e.building, e.buildPath = e.sealing.tx[:size], path
		p.cur = e.building[proto.HeaderSize:]
		return true
	}
	p.cur = e.queueFrame(path)[proto.HeaderSize:]
	return true
}

// queueFrame moves an empty frame to the end of tx and returns its memory.
func (e *Engine) queueFrame(path link.Path) []byte {
	n := len(e.frames) - 1
	e.tx = append(e.tx, e.frames[n])
	e.frames = e.frames[:n]
	f := &e.tx[len(e.tx)-1]
	f.Path = path
	return f.Data
}

// refill takes transmit frames from the link. It reports whether the engine then has at least need frames.
func (e *Engine) refill(need int) bool {
	for {
		have := len(e.frames)
		n := e.link.Alloc(e.frames[have : have+max(need-have, min(cap(e.frames)-have, allocBatch))])
		e.frames = e.frames[:have+n]
		if len(e.frames) >= need || len(e.tx) == 0 {
			return len(e.frames) >= need
		}
		e.flush() // the link may lack the frames that wait in tx
	}
}

// reserve returns n contiguous bytes of the body for the caller to write. The body must have room for them.
func (p *packet) reserve(n int) []byte {
	if n > len(p.cur) {
		p.nextFrame()
	}
	b := p.cur[:n]
	p.cur = p.cur[n:]
	p.bytesLeft -= n
	return b
}

// copy appends src. The body must have room for it.
func (p *packet) copy(src []byte) {
	p.bytesLeft -= len(src)
	for {
		n := copy(p.cur, src)
		p.cur = p.cur[n:]
		if src = src[n:]; len(src) == 0 {
			return
		}
		p.nextFrame()
	}
}

// nextFrame ends the current frame and continues the packet in another frame.
func (p *packet) nextFrame() {
	e := p.e
	last := &e.tx[len(e.tx)-1]
	last.Data = last.Data[:len(last.Data)-len(p.cur)]
	last.Flags |= link.More
	p.cur = e.queueFrame(last.Path)
}

// appendMemory appends src. The body must have room for it. If src lies in link memory and is large enough, the link
// sends it from there without a copy.
func (p *packet) appendMemory(src []byte) {
	if e := p.e; len(src) >= e.zeroCopyMin && p.keys == nil {
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

// zeroCopyLen returns how many of the n bytes at the given offset of link memory can be sent without a copy. The limit
// on the segments of a packet bounds the result. Each block of link memory takes one segment. The remaining bytes of
// the packet, at least the trailer, take one or more segments.
func (p *packet) zeroCopyLen(offset, n int) int {
	e := p.e
	block, room := e.caps.Block, e.caps.FrameSize-proto.MaxChunkSize
	segments := min(e.caps.Segments-(len(e.tx)-p.firstFrame), len(e.frames))
	n = min(n, segments*block-offset%block)
	for n > 0 && ceil(offset%block+n, block)+1+(p.bytesLeft-n)/room > segments {
		n -= (offset+n-1)%block + 1 // give up the last block
	}
	return n
}

func ceil(a, b int) int { return (a + b - 1) / b }

// addZeroCopy appends src without a copy. src begins at the given offset in the link's memory, which consists of blocks
// (link.Caps). For each part of src that lies in one block, addZeroCopy appends a frame of the engine to tx, and makes
// this frame refer to the part instead of its own memory.
func (p *packet) addZeroCopy(src []byte, offset int) {
	e := p.e
	p.zeroCopied = true
	p.bytesLeft -= len(src)
	e.stats.InPlaceBytes += uint64(len(src))
	for block := e.caps.Block; len(src) > 0; {
		p.nextFrame()
		n := min(len(src), block-offset%block)
		e.tx[len(e.tx)-1].Data = src[:n:n]
		p.cur = nil
		src = src[n:]
		offset += n
	}
}

// finish writes the header and the trailer. The packet leaves with the next flush.
func (p *packet) finish(h *proto.Header) {
	if p.keys != nil {
		p.seal(h)
		return
	}
	e := p.e
	if len(p.cur) < proto.TrailerSize {
		p.nextFrame()
	}
	last := &e.tx[len(e.tx)-1]
	end := len(last.Data) - len(p.cur)
	last.Data = last.Data[:end+proto.TrailerSize]
	h.Put(e.tx[p.firstFrame].Data)
	var crc uint32
	for i := p.firstFrame; i < len(e.tx)-1; i++ {
		crc = proto.CRC(crc, e.tx[i].Data)
	}
	proto.PutTrailer(last.Data[end:], proto.CRC(crc, last.Data[:end]))
	p.done()
}

// done marks the first frame of a complete packet, and counts the packet.
func (p *packet) done() {
	if p.single {
		p.e.tx[p.firstFrame].Flags |= link.Single
	}
	p.e.countSent()
}

// countSent counts a packet that is complete, and hands the batch to the link if it is full.
func (e *Engine) countSent() {
	e.stats.TxPackets++
	if len(e.tx) >= maxTransmit {
		e.flush()
	}
}

// abandon takes back the frames of an unfinished packet.
func (p *packet) abandon() {
	e := p.e
	if p.zeroCopied {
		e.link.Free(e.tx[p.firstFrame:])
		e.tx = e.tx[:p.firstFrame]
		return
	}
	for i := p.firstFrame; i < len(e.tx); i++ {
		f := e.tx[i]
		f.Data = f.Data[:e.caps.FrameSize]
		f.Flags = 0
		e.frames = append(e.frames, f)
	}
	e.tx = e.tx[:p.firstFrame]
}

// flush hands the built packets to the link.
func (e *Engine) flush() {
	if len(e.tx) > 0 {
		e.link.Send(e.tx)
		e.tx = e.tx[:0]
	}
}
