package wire

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// maxStrays bounds the packets that wait to cross to one engine.
const maxStrays = 256

// strayRing takes packets that arrived on a queue other than their connection's. Other engines'
// owners put copies in, the engine's own takes them out.
type strayRing struct {
	mu    sync.Mutex // among those who put in
	slots [maxStrays][]byte
	tail  atomic.Uint32
	head  atomic.Uint32
}

// put copies a packet in; false when the ring is full.
func (s *strayRing) put(bufs []link.Buf) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tail.Load()
	if t-s.head.Load() == maxStrays {
		return false
	}
	b := s.slots[t%maxStrays][:0]
	for i := range bufs {
		b = append(b, bufs[i].Data...)
	}
	s.slots[t%maxStrays] = b
	s.tail.Store(t + 1)
	return true
}

// cross hands a packet to the engine that its connection ID names. It reports false if that is this
// engine, or none.
func (e *Engine) cross(h *proto.Header, bufs []link.Buf) bool {
	_, _, index := e.table.find(h.CID)
	if index == e.index || index >= len(e.host.engines) || e.crossing {
		return false
	}
	e.stats.Strays++
	to := e.host.engines[index]
	if !to.strays.put(bufs) {
		e.stats.StraysDropped++
		return true
	}
	to.link.Wake()
	return true
}

// takeStrays handles the packets that crossed to this engine. They lie in no frame of the link, so
// none is kept and none is turned round.
func (e *Engine) takeStrays() {
	s := &e.strays
	e.crossing = true
	for h, t := s.head.Load(), s.tail.Load(); h != t; h++ {
		bufs := [1]link.Buf{{Data: s.slots[h%maxStrays]}}
		e.packet(bufs[:])
		s.head.Store(h + 1)
	}
	e.crossing = false
}
