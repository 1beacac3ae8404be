package wire

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// maxStrays bounds the stray packets that wait for one engine. strayBatch bounds those that it handles in one Poll.
const (
	maxStrays  = 256
	strayBatch = 64
)

// strayPacket is a packet that arrived on another queue than the queue of its connection. It holds a copy of the bytes,
// the source address and the congestion mark.
type strayPacket struct {
	data  []byte
	from  netip.Addr
	flags link.Flags
}

// keepStray is the largest buffer in bytes that a slot keeps for the next packet. A larger buffer is freed.
const keepStray = 16 << 10

// forwardRing holds the stray packets that other engines forward to this one. The owners of the other engines append
// packets, and the owner of this engine takes them.
type forwardRing struct {
	mu    sync.Mutex // held to append
	slots [maxStrays]strayPacket
	tail  atomic.Uint32
	head  atomic.Uint32
	from  netip.Addr // source of the packet that is being handled; only the owner uses it
}

// forwarding is the state of an engine that handles stray packets.
type forwarding struct {
	incoming  forwardRing
	forwarded bool // the packet that is being handled comes from incoming, so it does not lie in a frame of the link
}

// waiting returns the number of packets in the ring.
func (s *forwardRing) waiting() int { return int(s.tail.Load() - s.head.Load()) }

// put copies a packet into the ring. It reports false if the ring is full.
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

// forwardPacket hands a packet to the engine that the connection ID in the packet names. It reports false in three
// cases: the ID names this engine, the ID names no engine, or the packet was forwarded before.
func (e *Engine) forwardPacket(h *proto.Header, bufs []link.Buf) bool {
	_, _, number := e.table.findSlot(h.CID)
	index := number - e.host.firstEngine
	if index == e.index || index < 0 || index >= len(e.host.engines) || e.forwarded {
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

// takeForwarded handles the packets that other engines have forwarded. These packets do not lie in frames of the link,
// so the engine can neither hold them as early packets nor answer them in their own frame.
func (e *Engine) takeForwarded() {
	s := &e.incoming
	e.forwarded = true
	for h, n := s.head.Load(), min(s.waiting(), strayBatch); n > 0; n-- {
		x := &s.slots[h%maxStrays]
		bufs := [1]link.Buf{{Data: x.data, Flags: x.flags}}
		s.from = x.from
		e.receivePacket(bufs[:])
		if cap(x.data) > keepStray {
			x.data = nil
		}
		h++
		s.head.Store(h)
	}
	e.forwarded = false
}
