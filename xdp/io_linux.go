package xdp

import (
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

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
	frame, off, ok := s.umem.frame(d.addr)
	if !ok {
		got.invalid++
		return 0
	}
	raw := s.umem.bytes(frame, off, d.len)
	l, ok := parse(raw, len(raw))
	if !ok || !s.owns(targetOf(raw[l.ip:])) {
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
	note.headers, note.start, note.loop = uint8(l.payload), uint16(off)+uint16(l.payload), false
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
	frame, off, ok := s.umem.frame(d.addr)
	var l layout
	var raw []byte
	if ok {
		raw = s.umem.bytes(frame, off, d.len)
		l, ok = parse(raw, total)
	}
	if !ok || l.payload > len(raw) || !s.owns(targetOf(raw[l.ip:])) {
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
		if frame, off, ok = s.umem.frame(d.addr); !ok {
			continue
		}
		s.pool.move(frame, isFill, isHeld)
		data = s.umem.bytes(frame, off, d.len)
	}
	bufs[n-1].Flags &^= link.More
	got.packets++
	got.bytes += uint64(l.size - rest)
	return n
}

// discardRx returns the frames of k slots from slot from on to the pool.
func (s *Socket) discardRx(from, k uint32) {
	for i := range k {
		if frame, _, ok := s.umem.frame(s.rx.at(from + i).addr); ok {
			s.pool.give(frame, isFill)
		}
	}
}

// refill tops up the fill ring when it lacks a batch, and leaves in the pool what Alloc may ask for.
func (s *Socket) refill() {
	have := s.pool.count[isFill]
	if have+refillBatch > s.target {
		return
	}
	s.reap() // an owner that only answers never calls Alloc
	free, kept := s.pool.count[isFree], s.txMax-min(s.txMax, s.pool.sending())
	if free <= kept {
		return
	}
	n := s.fill.reserve(min(s.target-have, free-kept))
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
	}
	if s.fill.needWakeup() {
		s.nudge()
	}
}

// Alloc implements link.Link. System calls: sendto, when frames are short and some wait to leave.
func (s *Socket) Alloc(bufs []link.Buf) int {
	s.reap()
	n := s.allocatable(len(bufs))
	if n < len(bufs) && s.stall.Load() != flowing {
		s.drain()
		s.reap()
		n = s.allocatable(len(bufs))
	}
	for i := range bufs[:n] {
		f := s.pool.take(isAlloc)
		bufs[i] = link.Buf{Data: s.umem.bytes(f, headRoom, s.umem.size-headRoom), Frame: f}
	}
	return n
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
		if f, _, ok := s.umem.frame(s.comp.at(i)); ok {
			s.pool.give(f, isSent)
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

// Source implements link.Link: the address in the packet's IP header, and the port that peers
// listen on, which is ours. The packet's own source port is entropy and says nothing.
func (s *Socket) Source(b *link.Buf) netip.AddrPort {
	raw, _, ok := s.received(b)
	if !ok {
		return netip.AddrPort{}
	}
	l, ok := parse(raw, 1<<16)
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(sourceOf(raw[l.ip:]), s.local.Port())
}

// received returns the headers of a packet whose first frame came from Recv and whose Data begins
// where Recv put it, and where in the frame the headers begin.
func (s *Socket) received(b *link.Buf) (headers []byte, off uint32, ok bool) {
	if s.umem.mem == nil {
		return nil, 0, false
	}
	note := &s.pool.notes[b.Frame]
	at, ok := s.umem.locate(b.Frame, b.Data)
	if !ok || note.state != isHeld || note.headers == 0 || at != uint32(note.start) {
		return nil, 0, false
	}
	off = at - uint32(note.headers)
	return s.umem.bytes(b.Frame, off, uint32(note.headers)), off, true
}

// Wait implements link.Link. System calls: ppoll, which in copy mode also transmits; read on a
// Wake.
func (s *Socket) Wait(d time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed.Load() || s.woken.Swap(false) || s.arrived() {
		return
	}
	s.sleepers.Add(1)
	defer s.sleepers.Add(-1)
	if s.closed.Load() || s.woken.Swap(false) {
		return
	}
	if s.stall.Load() == pending && (d < 0 || d > pendingPoll) {
		d = pendingPoll
	}
	s.sleep(d)
}

// arrived says that the rx ring holds something. Any goroutine may ask.
func (s *Socket) arrived() bool {
	return atomic.LoadUint32(s.rx.producer) != atomic.LoadUint32(s.rx.consumer)
}

func (s *Socket) sleep(d time.Duration) {
	fds := [2]unix.PollFd{
		{Fd: int32(s.event), Events: unix.POLLIN},
		{Fd: int32(s.fd), Events: unix.POLLIN},
	}
	var limit *unix.Timespec
	if d >= 0 {
		ts := unix.NsecToTimespec(int64(d))
		limit = &ts
	}
	_, err := unix.Ppoll(fds[:], limit, nil)
	s.counters.wakeups.Add(1)
	if err != nil {
		return
	}
	if fds[0].Revents != 0 && !s.closed.Load() {
		var b [8]byte
		_, _ = unix.Read(s.event, b[:])
		s.woken.Store(false)
	}
	if fds[1].Revents&unix.POLLERR != 0 {
		// The interface is gone: taking the error off the socket makes it quiet.
		_, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	}
}

// Wake implements link.Link. System calls: write, when there is a Wait to release.
func (s *Socket) Wake() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.closed.Load() {
		s.signal()
	}
}

// signal makes the sleeping Wait, or the next, return.
func (s *Socket) signal() {
	if s.woken.Swap(true) && !s.closed.Load() {
		return
	}
	if s.sleepers.Load() > 0 || s.closed.Load() {
		_, _ = unix.Write(s.event, one[:])
	}
}

var one = [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // what Wake adds to the eventfd: anything but 0
