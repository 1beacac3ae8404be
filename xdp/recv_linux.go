package xdp

import "github.com/datxdp/datxdp/link"

// Recv implements link.Link. System calls: none while packets arrive; with nothing to receive,
// sendto while packets are left to transmit, recvfrom when a driver asks for it.
func (s *Socket) Recv(bufs []link.Buf) int {
	n := 0
	if len(s.loop) > 0 {
		n = s.recvLoop(bufs)
	}
	avail := s.rx.peek()
	if avail == 0 {
		s.idle()
		return n
	}
	s.pace.note(avail)
	var used uint32
	var got tally
	for used < avail && n < len(bufs) {
		d := s.rx.at(used)
		if d.options&pktContd == 0 && !s.skip {
			n += s.recvOne(d, &bufs[n], &got)
			used++
			continue
		}
		k, frames := s.recvMany(used, avail, bufs[n:], &got)
		if k == 0 {
			if now := s.rx.refresh(); now > avail { // the rest of a packet may have come
				avail = now
				continue
			}
			break
		}
		used += k
		n += frames
	}
	if used > 0 {
		s.rx.release(used)
		s.counters.received(&got)
	}
	s.refill()
	return n
}

// recvOne takes in a packet of one frame and returns how many Bufs it filled.
func (s *Socket) recvOne(d desc, b *link.Buf, got *tally) int {
	frame, off, ok := s.given(d.addr, isFill)
	if !ok {
		got.invalid++
		return 0
	}
	raw := s.umem.bytes(frame, off, d.len)
	l, ok := parse(raw, len(raw))
	if !ok || !s.admission.admits(raw[l.ip:], l.v6) {
		s.pool.give(frame, isFill)
		got.invalid++
		return 0
	}
	s.hold(frame, off, &l)
	*b = link.Buf{Data: raw[l.payload : l.payload+l.size], Frame: frame, Flags: mark(&l)}
	got.packets++
	got.bytes += uint64(l.size)
	return 1
}

// hold records that the owner has the first frame of a packet.
func (s *Socket) hold(frame, off uint32, l *layout) {
	s.pool.move(frame, isFill, isHeld)
	note := &s.pool.notes[frame]
	note.headers, note.ip, note.start, note.loop = uint8(l.payload), uint8(l.ip), uint16(off)+uint16(l.payload), false
}

func mark(l *layout) link.Flags {
	if l.ce {
		return link.CE
	}
	return 0
}

// recvMany takes in a packet of several frames that begins at slot from. It returns how many slots
// it used, 0 if the packet is not complete or does not fit in bufs, and how many Bufs it filled.
func (s *Socket) recvMany(from, avail uint32, bufs []link.Buf, got *tally) (used uint32, filled int) {
	var total int
	for used = 0; ; used++ {
		if from+used == avail {
			if used <= maxSegments && !s.skip {
				return 0, 0 // the tail has not come
			}
			s.discardRx(from, used)
			if !s.skip {
				got.invalid++
			}
			s.skip = true
			return used, 0
		}
		d := s.rx.at(from + used)
		total += int(d.len)
		if d.options&pktContd == 0 {
			used++
			break
		}
	}
	switch {
	case s.skip:
		s.skip = false
		s.discardRx(from, used)
		return used, 0
	case used > maxSegments:
		s.discardRx(from, used)
		got.invalid++
		return used, 0
	case int(used) > len(bufs):
		return 0, 0
	}
	return used, s.gather(from, used, total, bufs, got)
}

// gather hands over the frames of a packet that is there as a whole: slots from to from+k.
func (s *Socket) gather(from, k uint32, total int, bufs []link.Buf, got *tally) int {
	d := s.rx.at(from)
	frame, off, ok := s.given(d.addr, isFill)
	var l layout
	var raw []byte
	if ok {
		raw = s.umem.bytes(frame, off, d.len)
		l, ok = parse(raw, total)
	}
	if !ok || l.payload > len(raw) || !s.allGiven(from+1, k-1) || !s.admission.admits(raw[l.ip:], l.v6) {
		s.discardRx(from, k)
		got.invalid++
		return 0
	}
	s.hold(frame, off, &l)
	rest := l.size
	data := raw[l.payload:]
	n := 0
	for i := uint32(0); ; {
		data = data[:min(rest, len(data))]
		rest -= len(data)
		bufs[n] = link.Buf{Data: data, Frame: frame, Flags: mark(&l) | link.More}
		n++
		if i++; i == k || rest == 0 {
			s.discardRx(from+i, k-i) // padding
			break
		}
		d = s.rx.at(from + i)
		frame, off, _ = s.umem.frame(d.addr)
		s.pool.move(frame, isFill, isHeld)
		s.pool.notes[frame].headers = 0
		data = s.umem.bytes(frame, off, d.len)
	}
	bufs[n-1].Flags &^= link.More
	got.packets++
	got.bytes += uint64(l.size - rest)
	return n
}

// given is the frame that the kernel hands back; ok is false for one that it does not have, or that
// does not exist.
func (s *Socket) given(addr uint64, by state) (frame, off uint32, ok bool) {
	frame, off, ok = s.umem.frame(addr)
	return frame, off, ok && s.pool.notes[frame].state == by
}

// allGiven reports whether the frames of k slots from slot from on are the kernel's to hand over, and
// their data lies inside them.
func (s *Socket) allGiven(from, k uint32) bool {
	for i := range k {
		d := s.rx.at(from + i)
		frame, off, ok := s.given(d.addr, isFill)
		if !ok || s.umem.bytes(frame, off, d.len) == nil {
			return false
		}
	}
	return true
}

// discardRx returns the frames of k slots from slot from on to the pool.
func (s *Socket) discardRx(from, k uint32) {
	for i := range k {
		if frame, _, ok := s.given(s.rx.at(from+i).addr, isFill); ok {
			s.pool.give(frame, isFill)
		}
	}
}

// refill tops up the fill ring when it lacks a batch, and leaves in the pool what Alloc may ask for.
func (s *Socket) refill() {
	have := s.pool.count[isFill]
	if have+refillBatch > s.pace.target {
		return
	}
	s.reap() // an owner that only answers never calls Alloc
	free, kept := s.pool.count[isFree], s.txMax-min(s.txMax, s.pool.sending())
	if free <= kept {
		return
	}
	n := s.fill.reserve(min(s.pace.target-have, free-kept))
	for i := range n {
		s.fill.put(i, s.umem.addr(s.pool.take(isFill), 0))
	}
	s.fill.submit(n)
}

// idle is what Recv does with nothing to receive.
func (s *Socket) idle() {
	s.refill()
	if s.stall.Load() == pending {
		s.drain()
	} else if s.stuck.due() {
		s.revive()
	}
	if s.fill.needWakeup() && s.nudges.due(s.fill.prod, s.fill.backlog()) {
		_ = s.nudge() // a later idle turn asks again
	}
}
