package xdp

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// selfTraffic are packets that do not cross the interface: those that the socket sends to itself, and those of other
// programs of this host, which arrive through a guard.
type selfTraffic struct {
	loop []link.Buf
	mail mailbox
}

// mailbox is a bounded queue of packets from guards. Its memory is allocated with the first packet.
type mailbox struct {
	waiting atomic.Int32 // packets in the queue; written with mu
	dropped atomic.Uint64

	mu    sync.Mutex
	ring  []letter
	first int
	spare []byte // a packet of several frames is collected here, to be sent; only the owner uses it
}

// letter is a packet that arrived through a guard.
type letter struct {
	data []byte
	from netip.AddrPort
	to   netip.Addr
}

// recvLocal returns packets of this host: of this socket, and of other programs.
func (s *Socket) recvLocal(bufs []link.Buf) (n int) {
	if len(s.loop) > 0 {
		n = s.recvLoop(bufs)
	}
	if s.mail.waiting.Load() > 0 {
		n += s.recvMail(bufs[n:])
	}
	return n
}

// deliver queues a copy of a packet for the owner, and wakes it. It drops the packet if the queue is full, as the kernel
// does with a full receive buffer.
func (s *Socket) deliver(data []byte, from netip.AddrPort, to netip.Addr) {
	m := &s.mail
	m.mu.Lock()
	if m.ring == nil {
		m.ring = make([]letter, mailSlots)
	}
	n := int(m.waiting.Load())
	if n == len(m.ring) {
		m.mu.Unlock()
		m.dropped.Add(1)
		return
	}
	l := &m.ring[(m.first+n)%len(m.ring)]
	l.data = append(l.data[:0], data...)
	l.from, l.to = from, to
	m.waiting.Add(1)
	m.mu.Unlock()
	if n == 0 {
		s.Wake()
	}
}

// recvMail fills bufs with packets from guards.
func (s *Socket) recvMail(bufs []link.Buf) (n int) {
	m := &s.mail
	m.mu.Lock()
	defer m.mu.Unlock()
	var got tally
	for m.waiting.Load() > 0 {
		l := &m.ring[m.first]
		k, ok := s.unpack(l, bufs[n:])
		if !ok {
			break
		}
		if k > 0 {
			got.packets++
			got.bytes += uint64(len(l.data))
		}
		n += k
		m.first = (m.first + 1) % len(m.ring)
		m.waiting.Add(-1)
	}
	s.counters.received(&got)
	return n
}

// unpack copies a packet from a guard into frames, behind headers like those of a packet from the network. It returns the
// number of Bufs that it filled; 0 for a packet that needs more frames than a packet may have. ok is false if too few
// frames or Bufs are left now.
func (s *Socket) unpack(l *letter, bufs []link.Buf) (n int, ok bool) {
	room := int(s.umem.size) - headRoom
	k := max(1, (len(l.data)+room-1)/room)
	if k > maxSegments {
		return 0, true
	}
	if k > len(bufs) || uint32(k) > s.pool.count[isFree] {
		return 0, false
	}
	rest := l.data
	for i := range k {
		f := s.pool.take(isHeld)
		data := s.umem.bytes(f, headRoom, uint32(min(room, len(rest))))
		rest = rest[copy(data, rest):]
		bufs[i] = link.Buf{Data: data, Frame: f}
		if s.pool.notes[f].headers = 0; i < k-1 {
			bufs[i].Flags = link.More
		}
	}
	size := headers4
	if l.to.Is6() {
		size = headers6
	}
	putTemplate(s.umem.bytes(bufs[0].Frame, headRoom-uint32(size), uint32(size)), s.mac, l.from, netip.AddrPortFrom(l.to, s.local.Port()))
	note := &s.pool.notes[bufs[0].Frame]
	note.headers, note.ip, note.start, note.origin = uint8(size), ethSize, headRoom, fromGuard
	return k, true
}

// sendThrough sends a packet to a program of this host.
func (s *Socket) sendThrough(g *guard, to netip.AddrPort, packet []link.Buf, size int, sent *tally) {
	data := packet[0].Data
	if len(packet) > 1 {
		data = s.mail.spare[:0]
		for i := range packet {
			data = append(data, packet[i].Data...)
		}
		s.mail.spare = data
	}
	if g == nil || !g.send(data, sockaddr(to)) {
		s.drop(packet)
		return
	}
	s.Free(packet)
	sent.packets++
	sent.bytes += uint64(size)
}

// guardOf returns the guard at an address of the device, or nil.
func (h *host) guardOf(a netip.Addr) *guard { return h.served.now.Load().guards[a] }
