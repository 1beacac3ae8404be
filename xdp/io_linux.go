package xdp

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// Alloc implements link.Link. System calls: sendto, when frames are short and some wait to leave.
func (s *Socket) Alloc(bufs []link.Buf) int {
	s.reap()
	n := s.allocatable(len(bufs))
	if n < len(bufs) && s.hurry() {
		s.reap()
		n = s.allocatable(len(bufs))
	}
	for i := range bufs[:n] {
		f := s.pool.take(isAlloc)
		bufs[i] = link.Buf{Data: s.umem.bytes(f, headRoom, s.umem.size-headRoom), Frame: f}
	}
	return n
}

// hurry drives the kernel for frames that wait to leave, and reports whether it did.
func (s *Socket) hurry() bool {
	if s.stall.Load() != flowing {
		s.drain()
		return true
	}
	return s.stuck.due() && s.revive()
}

func (s *Socket) allocatable(want int) int {
	room := s.txMax - min(s.txMax, s.pool.sending())
	return int(min(uint32(want), room, s.pool.count[isFree]))
}

// reap takes back frames that the kernel has transmitted.
func (s *Socket) reap() {
	n := s.comp.peek()
	if n == 0 {
		return
	}
	for i := range n {
		addr := s.comp.at(i)
		if f, _, ok := s.given(addr, isSent); ok {
			s.pool.give(f, isSent)
		} else if last := len(s.lent) - 1; last >= 0 && s.umem.isUser(addr) { // any of them: what stood for it is empty
			s.pool.give(s.lent[last], isSent)
			s.lent = s.lent[:last]
		}
	}
	s.comp.release(n)
}

// Free implements link.Link. It makes no system call.
func (s *Socket) Free(bufs []link.Buf) {
	if s.umem.mem == nil {
		return // closed
	}
	for i := range bufs {
		f := bufs[i].Frame
		s.pool.give(f, s.pool.owned(f))
	}
}

// Source implements link.Link.
func (s *Socket) Source(b *link.Buf) netip.AddrPort {
	n := s.fresh(b)
	if n == nil {
		return netip.AddrPort{}
	}
	payload := int(b.Frame)<<s.umem.shift + int(n.start)
	port := be.Uint16(s.umem.mem[payload-udpSize+udpSrc:])
	return netip.AddrPortFrom(sourceOf(s.umem.mem[payload-int(n.headers)+int(n.ip):]), port)
}

// fresh is the note of a packet whose first frame came from Recv and whose Data begins where Recv put it; nil
// for any other.
func (s *Socket) fresh(b *link.Buf) *note {
	if int(b.Frame) >= len(s.pool.notes) { // closed
		return nil
	}
	n := &s.pool.notes[b.Frame]
	if at, ok := s.umem.locate(b.Frame, b.Data); !ok || n.state != isHeld || n.headers == 0 || at != uint32(n.start) {
		return nil
	}
	return n
}

// received returns the headers of a fresh packet, and where in the frame they begin.
func (s *Socket) received(b *link.Buf) (headers []byte, off uint32, ok bool) {
	n := s.fresh(b)
	if n == nil {
		return nil, 0, false
	}
	off = uint32(n.start) - uint32(n.headers)
	return s.umem.bytes(b.Frame, off, uint32(n.headers)), off, true
}
