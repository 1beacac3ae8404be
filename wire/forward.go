package wire

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// maxStrays bounds the packets that wait to cross to one engine, strayBatch those that it takes in one Poll.
const (
	maxStrays  = 256
	strayBatch = 64
)

// stray is a packet that crosses: a copy of its bytes, where it came from, and its congestion mark.
type strayPacket struct {
	data  []byte
	from  netip.Addr
	flags link.Flags
}

// keepStray is the size in bytes up to which the memory of a stray's copy is kept for the next one.
const keepStray = 16 << 10

// strayRing takes packets that arrived on a queue other than their connection's. Other engines'
// owners put copies in, the engine's own takes them out.
type forwardRing struct {
	mu    sync.Mutex // held to put in
	slots [maxStrays]strayPacket
	tail  atomic.Uint32
	head  atomic.Uint32
	from  netip.Addr // source of the stray that is being handled; the owner's
}

// crossings are the packets that cross to this engine, and whether the one being handled is one of them: it lies in no
// frame of the link.
type forwarding struct {
	incoming  forwardRing
	forwarded bool
}

// waiting is the number of strays to be handled.
func (s *forwardRing) waiting() int { return int(s.tail.Load() - s.head.Load()) }

// put copies a packet in; false when the ring is full.
func (s *forwardRing) put(bufs []link.Buf, from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tail.Load()
	if t-s.head.Load() == maxStrays {
		return false
	}
	x := &s.slots[t%maxStrays]
	x.data = x.data[:0]
	for i := range bufs {
		x.data = append(x.data, bufs[i].Data...)
	}
	x.from, x.flags = from, bufs[0].Flags&link.CE
	s.tail.Store(t + 1)
	return true
}

// cross hands a packet to the engine that its connection ID names. It reports false if that is this
// engine, or none.
func (e *Engine) forward(h *proto.Header, bufs []link.Buf) bool {
	_, _, index := e.table.find(h.CID)
	if index == e.index || index >= len(e.host.engines) || e.forwarded {
		return false
	}
	e.stats.Strays++
	to := e.host.engines[index]
	if !to.incoming.put(bufs, e.source(&bufs[0])) {
		e.stats.StraysDropped++
		return true
	}
	to.link.Wake()
	return true
}

// takeForwarded handles the packets that crossed to this engine. They lie in no frame of the link, so
// none is kept and none is turned round.
func (e *Engine) takeForwarded() {
	s := &e.incoming
	e.forwarded = true
	for h, n := s.head.Load(), min(s.waiting(), strayBatch); n > 0; n-- {
		x := &s.slots[h%maxStrays]
		bufs := [1]link.Buf{{Data: x.data, Flags: x.flags}}
		s.from = x.from
		e.packet(bufs[:])
		if cap(x.data) > keepStray {
			x.data = nil
		}
		h++
		s.head.Store(h)
	}
	e.forwarded = false
}
