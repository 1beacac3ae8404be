package xdp

import "github.com/datxdp/datxdp/link"

// sendLoop delivers a packet to this socket itself: the next Recv returns its frames. Data in the consumers' memory is
// copied into the frames, because the sender may change this memory before the receiver has freed the packet. The
// headers are complete, so that Source and PathReply work as for any received packet.
func (s *Socket) sendLoop(packet []link.Buf, headers []byte, at uint32, size int, sent *tally) {
	if len(s.loop)+len(packet) > cap(s.loop) || !s.fits(packet) {
		s.drop(packet)
		return
	}
	for i := range packet {
		b := &packet[i]
		s.pool.move(b.Frame, s.pool.owned(b.Frame), isLoop)
		s.pool.notes[b.Frame].headers = 0
		data := b.Data
		if _, ok := s.umem.locate(b.Frame, data); !ok {
			data = s.umem.bytes(b.Frame, 0, uint32(len(data)))
			copy(data, b.Data)
		}
		s.loop = append(s.loop, link.Buf{Data: data, Frame: b.Frame, Flags: b.Flags & link.More})
	}
	note := &s.pool.notes[packet[0].Frame]
	note.headers, note.ip, note.start, note.origin = uint8(len(headers)), ethSize, uint16(at), fromSelf
	one := tally{packets: 1, bytes: uint64(size)}
	s.counters.sent(&one)
	s.signal() // wakes a Wait that sleeps
}

// recvLoop returns whole packets that were sent to this socket itself.
func (s *Socket) recvLoop(bufs []link.Buf) int {
	n := 0
	var got tally
	for n < len(s.loop) {
		k := span(s.loop[n:])
		if n+k > len(bufs) {
			break
		}
		for i := range k {
			b := s.loop[n+i]
			s.pool.move(b.Frame, isLoop, isHeld)
			got.bytes += uint64(len(b.Data))
			bufs[n+i] = b
		}
		got.packets++
		n += k
	}
	s.loop = s.loop[:copy(s.loop, s.loop[n:])]
	s.counters.received(&got)
	return n
}
