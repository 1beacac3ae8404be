package xdp

import "github.com/datxdp/datxdp/link"

// Recv implements link.Link. It makes no system call while packets arrive.
//
// System calls of an idle Recv: sendto, if packets wait to be transmitted; recvfrom, if the driver needs a wakeup.
func (s *Socket) Recv(bufs []link.Buf) int {
	n := s.recvLocal(bufs)
	avail := s.rx.peek()
	if avail == 0 {
		s.idle()
		return n
	}
	s.level.adjust(avail)
	var used uint32
	var got tally
	for used < avail && n < len(bufs) {
		d := s.rx.slot(used)
		if d.options&pktContd == 0 && !s.skip {
			n += s.recvOne(d, &bufs[n], &got)
			used++
			continue
		}
		k, frames := s.recvMany(used, avail, bufs[n:], &got)
		if k == 0 {
			if now := s.rx.refresh(); now > avail { // the other frames of a packet may have arrived
				avail = now
				continue
			}
			break
		}
		used += k
		n += frames
	}
	if used == 0 { // the driver may need frames for the rest of the packet
		s.idle()
		return n
	}
	s.rx.release(used)
	s.counters.received(&got)
	s.refill()
	return n
}

// recvOne receives a packet of one frame and returns the number of Bufs it filled.
func (s *Socket) recvOne(d desc, b *link.Buf, got *tally) int {
	frame, off, ok := s.kernelFrame(d.addr, isFill)
	if !ok {
		got.invalid++
		return 0
	}
	raw := s.umem.bytes(frame, off, d.len)
	l, ok := parse(raw, len(raw))
	if !ok || !s.served.now.Load().admission.admits(raw[l.ip:], l.v6) {
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

// hold moves the first frame of a packet to the owner and notes its headers.
func (s *Socket) hold(frame, off uint32, l *layout) {
	s.pool.move(frame, isFill, isHeld)
	note := &s.pool.notes[frame]
	note.headers, note.ip, note.start, note.origin = uint8(l.payload), uint8(l.ip), uint16(off)+uint16(l.payload), fromWire
}

func mark(l *layout) link.Flags {
	if l.ce {
		return link.CE
	}
	return 0
}

// recvMany receives a packet of several frames, which begins in the slot firstSlot. numSlots is the number of slots
// that the packet occupied, or 0 if the packet is incomplete or does not fit into bufs. numBufs is the number of Bufs
// that recvMany filled.
func (s *Socket) recvMany(firstSlot, avail uint32, bufs []link.Buf, got *tally) (numSlots uint32, numBufs int) {
	var total int
	for numSlots = 0; ; numSlots++ {
		if firstSlot+numSlots == avail {
			if numSlots <= maxSegments && !s.skip {
				return 0, 0 // the last frame has not arrived
			}
			s.discardRx(firstSlot, numSlots)
			if !s.skip {
				got.invalid++
			}
			s.skip = true
			return numSlots, 0
		}
		d := s.rx.slot(firstSlot + numSlots)
		total += int(d.len)
		if d.options&pktContd == 0 {
			numSlots++
			break
		}
	}
	switch {
	case s.skip:
		s.skip = false
		s.discardRx(firstSlot, numSlots)
		return numSlots, 0
	case numSlots > maxSegments:
		s.discardRx(firstSlot, numSlots)
		got.invalid++
		return numSlots, 0
	case int(numSlots) > len(bufs):
		return 0, 0
	}
	return numSlots, s.recvChain(firstSlot, numSlots, total, bufs, got)
}

// recvChain hands over the frames of a complete packet: slots first to first+k-1.
func (s *Socket) recvChain(first, k uint32, total int, bufs []link.Buf, got *tally) int {
	d := s.rx.slot(first)
	frame, off, ok := s.kernelFrame(d.addr, isFill)
	var l layout
	var raw []byte
	if ok {
		raw = s.umem.bytes(frame, off, d.len)
		l, ok = parse(raw, total)
	}
	if !ok || l.payload > len(raw) || !s.validChain(first+1, k-1) || !s.served.now.Load().admission.admits(raw[l.ip:], l.v6) {
		s.discardRx(first, k)
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
			s.discardRx(first+i, k-i) // the other frames contain only padding
			break
		}
		d = s.rx.slot(first + i)
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

// kernelFrame returns the frame and offset of an address that the kernel returned. ok is false if there is no such
// frame, or if the frame is not in the state want.
func (s *Socket) kernelFrame(addr uint64, want state) (frame, off uint32, ok bool) {
	frame, off, ok = s.umem.frame(addr)
	return frame, off, ok && s.pool.notes[frame].state == want
}

// validChain checks the frames of k slots, beginning with firstSlot. The kernel must have had each frame for reception,
// and the data must lie inside the frame.
func (s *Socket) validChain(firstSlot, k uint32) bool {
	for i := range k {
		d := s.rx.slot(firstSlot + i)
		frame, off, ok := s.kernelFrame(d.addr, isFill)
		if !ok || s.umem.bytes(frame, off, d.len) == nil {
			return false
		}
	}
	return true
}

// discardRx returns the frames of k slots, beginning at slot first, to the pool.
func (s *Socket) discardRx(first, k uint32) {
	for i := range k {
		if frame, _, ok := s.kernelFrame(s.rx.slot(first+i).addr, isFill); ok {
			s.pool.give(frame, isFill)
		}
	}
}

// refill fills the fill ring when at least refillBatch frames are missing. It leaves enough frames in the pool for
// Alloc, which may take up to txMax frames.
func (s *Socket) refill() {
	have := s.pool.count[isFill]
	if have+refillBatch > s.level.target {
		return
	}
	s.reap() // an owner that only sends replies never calls Alloc, which reaps too
	free, kept := s.pool.count[isFree], s.txMax-min(s.txMax, s.pool.sending())
	if free <= kept {
		return
	}
	n := s.fill.reserve(min(s.level.target-have, free-kept))
	for i := range n {
		s.fill.put(i, s.umem.addr(s.pool.take(isFill), 0))
	}
	s.fill.submit(n)
}

// idle is the work of Recv when no whole packet has arrived.
func (s *Socket) idle() {
	s.refill()
	if s.stall.Load() == pending {
		s.drain()
	} else if s.txStall.checkDue() {
		s.revive()
	}
	if s.fill.needWakeup() && s.rxWakeups.mustWake(s.fill.prod, s.fill.backlog()) {
		_ = s.wakeRx() // on failure, a later idle poll tries again
	}
}
