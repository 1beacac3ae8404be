package xdp

import "github.com/datxdp/datxdp/link"

// The raw calls move whole Ethernet frames, to measure the socket without paths and header processing. They use the
// same frames as the link.Link methods: Alloc provides a frame, Free takes it back, and Caps().FrameSize is the room in
// bytes. Only the owner may use the raw calls. It may mix them with the methods of link.Link. The socket receives only
// the packets that the program redirects: UDP to the device's port at one of its addresses.

// RecvFrames is Recv for whole frames. In a packet's first Buf, the field Data begins with the Ethernet header. If a
// packet has several frames, every Buf except the last has the flag More, and two calls may each return a part of the
// packet. The frames belong to the caller until Free or SendFrames.
func (s *Socket) RecvFrames(bufs []link.Buf) int {
	avail := s.rx.peek()
	n := min(avail, uint32(len(bufs)))
	if n == 0 {
		s.idle()
		return 0
	}
	s.level.adjust(avail)
	var got tally
	filled := 0
	for i := range n {
		d := s.rx.slot(i)
		frame, off, ok := s.umem.frame(d.addr)
		if !ok {
			got.invalid++
			continue
		}
		s.pool.move(frame, isFill, isHeld)
		s.pool.notes[frame].headers = 0
		b := &bufs[filled]
		*b = link.Buf{Data: s.umem.bytes(frame, off, d.len), Frame: frame}
		if d.options&pktContd != 0 {
			b.Flags = link.More
		} else {
			got.packets++
		}
		got.bytes += uint64(d.len)
		filled++
	}
	s.rx.release(n)
	s.counters.received(&got)
	s.refill()
	return filled
}

// SendFrames is Send for whole frames. In a packet's first Buf, the field Data begins with a complete Ethernet header.
// The field Path is ignored.
func (s *Socket) SendFrames(bufs []link.Buf) {
	if !s.open() {
		s.refuse(bufs)
		return
	}
	var queued uint32
	var sent tally
	for len(bufs) > 0 {
		n := span(bufs)
		b := &bufs[0]
		if at, ok := s.umem.locate(b.Frame, b.Data); ok && len(b.Data) > 0 {
			queued = s.queueSlots(bufs[:n], at, 0, len(b.Data), queued, &sent)
		} else {
			s.drop(bufs[:n])
		}
		bufs = bufs[n:]
	}
	s.flush(queued, &sent)
}

// InFlight reclaims completed frames, and returns the number of frames that the kernel has not yet transmitted.
func (s *Socket) InFlight() int {
	s.reap()
	return int(s.pool.inFlight())
}
