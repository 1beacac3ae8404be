package xdp

import (
	"net/netip"

	"github.com/datxdp/datxdp/link"
)

// frameStore has the memory of the frames, and records who owns each frame.
type frameStore struct {
	umem umem
	pool pool
	lent []uint32 // frames in transmission that stand for a piece of the consumers' memory
}

// Alloc implements link.Link.
//
// System calls: sendto, if too few frames are free and packets wait to be transmitted.
func (s *Socket) Alloc(bufs []link.Buf) int {
	s.reap()
	n := s.allocatable(len(bufs))
	if n < len(bufs) && s.driveTx() {
		s.reap()
		n = s.allocatable(len(bufs))
	}
	for i := range bufs[:n] {
		f := s.pool.take(isAlloc)
		bufs[i] = link.Buf{Data: s.umem.bytes(f, headRoom, s.umem.size-headRoom), Frame: f}
	}
	return n
}

// driveTx makes the kernel transmit if packets wait. It returns true if it made the kernel transmit.
func (s *Socket) driveTx() bool {
	if s.stall.Load() != flowing {
		s.drain()
		return true
	}
	return s.txStall.checkDue() && s.revive()
}

func (s *Socket) allocatable(want int) int {
	room := s.txMax - min(s.txMax, s.pool.sending())
	return int(min(uint32(want), room, s.pool.count[isFree]))
}

// reap returns transmitted frames to the pool.
func (s *Socket) reap() {
	n := s.comp.peek()
	if n == 0 {
		return
	}
	for i := range n {
		addr := s.comp.slot(i)
		if f, _, ok := s.umem.frame(addr); ok && s.pool.transmitted(f) {
			s.pool.give(f, s.pool.notes[f].state)
		} else if last := len(s.lent) - 1; last >= 0 && s.umem.isUser(addr) { // any lent frame can be freed, because lent frames carry no data
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

// Keep implements link.Link. It does nothing, because a frame of the UMEM holds one packet.
func (s *Socket) Keep([]link.Buf) {}

// Source implements link.Link.
func (s *Socket) Source(b *link.Buf) netip.AddrPort {
	n := s.noteOf(b)
	if n == nil {
		return netip.AddrPort{}
	}
	payload := int(b.Frame)<<s.umem.shift + int(n.start)
	port := be.Uint16(s.umem.mem[payload-udpSize+udpSrc:])
	return netip.AddrPortFrom(sourceOf(s.umem.mem[payload-int(n.headers)+int(n.ip):]), port)
}

// Target implements link.Link.
func (s *Socket) Target(b *link.Buf) netip.Addr {
	headers, _, ok := s.receivedHeaders(b)
	if !ok {
		return netip.Addr{}
	}
	return targetOf(headers[s.pool.notes[b.Frame].ip:])
}

// noteOf returns the note that Recv made about a packet's first frame. It returns nil if the frame is not from Recv, or
// if Data no longer begins where Recv set it.
func (s *Socket) noteOf(b *link.Buf) *note {
	if int(b.Frame) >= len(s.pool.notes) { // closed
		return nil
	}
	n := &s.pool.notes[b.Frame]
	if at, ok := s.umem.locate(b.Frame, b.Data); !ok || n.state != isHeld || n.headers == 0 || at != uint32(n.start) {
		return nil
	}
	return n
}

// receivedHeaders returns the headers of a packet that Recv returned, and their offset in the frame.
func (s *Socket) receivedHeaders(b *link.Buf) (headers []byte, off uint32, ok bool) {
	n := s.noteOf(b)
	if n == nil {
		return nil, 0, false
	}
	off = uint32(n.start) - uint32(n.headers)
	return s.umem.bytes(b.Frame, off, uint32(n.headers)), off, true
}
