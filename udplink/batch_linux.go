package udplink

import (
	"fmt"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/internal/exclusive"
	"github.com/datxdp/datxdp/link"
)

const (
	// maxBatch is the number of packets per system call. It is large enough to amortise the call. It is small enough
	// for the arrays to fit into the first-level cache.
	maxBatch = 64
	// controlSize is the space in bytes for the three requested control messages, 24 bytes each on 64-bit machines.
	controlSize = 96
)

// batch is a socket that moves many packets per system call. It allocates all its memory at open.
//
// If the kernel can, it moves groups of packets: with UDP_SEGMENT the kernel cuts one message into packets
// (group_linux.go), and with UDP_GRO it merges received packets into one message (merged_linux.go).
type batch struct {
	link    *Link
	fd      int
	bell    bell
	offload offload

	free   []uint32   // free blocks
	names  []sockaddr // sender, by block, then by kept frame
	merged merged
	lost   uint32 // the kernel's count of packets dropped because the receive queue was full
	errs   errQueue
	gate   gate

	renewal renewal

	rx      [maxBatch]mmsghdr
	rxIov   [maxBatch]unix.Iovec
	control [maxBatch][controlSize]byte
	groups  groups
	unread  atomic.Bool // a received message has packets that recv has not returned
}

func openBatch(l *Link, o Options) (_ socket, err error) {
	s := &batch{link: l, fd: -1}
	defer func() {
		if err != nil {
			_ = s.close() // report the first error
		}
	}()
	if err := s.bell.open(); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if s.fd, err = bindSocket(l.local, o.Interface, o.Buffer); err != nil {
		return nil, err
	}
	exclusive.Add(s.fd)
	l.caps.RxWindow = receiveWindow(s.fd, l.caps.MaxPayload)
	if l.local, err = boundTo(s.fd, l.local); err != nil {
		return nil, err
	}
	if err = s.errs.open(s.fd, l.local.Addr()); err != nil {
		return nil, err
	}
	if err = s.gate.open(s.fd, l.local); err != nil {
		return nil, err
	}
	l.routes.reach = s.gate.reach
	s.renewal.open(o)
	if !o.NoOffload {
		s.offload.open(s.fd)
		l.caps.Offload = s.offload.String()
		if s.offload.segment {
			l.caps.Group = maxGroup
		}
	}
	s.allocate(o)
	return s, nil
}

// allocate makes the frames and fills in the fields of the message headers that do not change.
func (s *batch) allocate(o Options) {
	m := &s.link.slab
	if s.offload.merge {
		n := keptFrames(o.Frames, m.size)
		s.link.caps.RxFrames = n // copies: they occupy no block
		m.merge(min(o.Frames, mergedBlocks), n+keptSpare)
	}
	m.allocate()
	s.names = make([]sockaddr, m.blocks+m.kept)
	for b := m.blocks; b > 0; b-- {
		s.free = append(s.free, b-1)
	}
	s.merged.open(m)
	for i := range s.rx {
		h := &s.rx[i].hdr
		h.Iov = &s.rxIov[i]
		h.SetIovlen(1)
		h.Control = &s.control[i][0]
	}
	s.groups.open()
}

// recv returns packets of the last message that it has not returned yet or, if there is none, receives messages.
//
// System calls: recvmmsg; three more if there is an ICMP message.
func (s *batch) recv(bufs []link.Buf) int {
	if !s.merged.more() {
		s.receive(len(bufs))
	}
	n, size, invalid := s.split(bufs)
	if more := s.merged.more(); more != s.unread.Load() { // a load costs less than a store
		s.unread.Store(more)
		if more && s.bell.waiters.Load() > 0 {
			s.bell.ring() // the socket may be empty now
		}
	}
	if invalid > 0 {
		s.link.stats.rxInvalid.Add(uint64(invalid))
	}
	if n > 0 {
		s.link.stats.rxPackets.Add(uint64(n))
		s.link.stats.rxBytes.Add(uint64(size))
	}
	return n
}

// receive receives at most limit messages.
func (s *batch) receive(limit int) {
	want := s.armEntries(min(limit, maxBatch))
	if want == 0 {
		return
	}
	got, err := recvmmsg(s.fd, s.rx[:want])
	if err != nil && err != unix.EAGAIN || s.errs.pending.Load() {
		s.errs.drain(s.fd, s.link.local.Addr().Zone())
		if err != nil { // the error was caused by an earlier packet
			got, err = recvmmsg(s.fd, s.rx[:want])
		}
	}
	if err != nil || got == 0 {
		return
	}
	s.merged.next, s.merged.end = 0, got
}

// armEntries arms the first n entries, as far as there are blocks, and returns the number of armed entries, at most n.
// Entries that the last call did not fill are still armed.
func (s *batch) armEntries(n int) int {
	m := &s.merged
	for i := range m.end {
		switch {
		case len(s.free) > 0:
			s.arm(i, s.takeFree())
		case m.armed > m.end: // the first entries must be armed: take the block of the last one
			m.armed--
			s.arm(i, m.blocks[m.armed])
		default:
			m.armed, m.next, m.end = i, 0, 0
			return min(i, n)
		}
	}
	m.next, m.end = 0, 0
	for m.armed < n && len(s.free) > 0 {
		s.arm(m.armed, s.takeFree())
		m.armed++
	}
	return min(n, m.armed)
}

func (s *batch) takeFree() uint32 {
	b := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return b
}

// arm points entry i at a block, and resets the fields that the kernel wrote at the last call.
func (s *batch) arm(i int, b uint32) {
	data := s.link.slab.blockData(b)
	s.merged.blocks[i] = b
	s.rxIov[i].Base = &data[0]
	s.rxIov[i].SetLen(len(data))
	h := &s.rx[i].hdr
	h.Name = &s.names[b][0]
	h.Namelen = uint32(len(s.names[b]))
	h.SetControllen(controlSize)
	h.Flags = 0
}

// send transmits in batches. It drops packets that the kernel refuses.
//
// System calls: sendmmsg; those of renew, if packets have found no room for a while.
func (s *batch) send(bufs []link.Buf) {
	refused := false
	for i := range bufs {
		if !s.load(&bufs[i]) {
			s.link.stats.txDropped.Add(1)
			refused = true
			continue
		}
		if s.groups.full() {
			s.flush()
		}
	}
	if s.flush(); refused {
		s.renewIfStuck()
	}
}

// load adds a packet to the messages of the next flush. It returns false if the packet has no destination, or does not
// pass the gate.
func (s *batch) load(b *link.Buf) bool {
	switch {
	case b.Flags&link.More != 0:
		return false
	case b.Path != link.PathReply:
		way := s.link.paths.Get(b.Path)
		if way == nil || b.Flags&link.Unconnected != 0 && !s.gate.passesUnconnected(len(b.Data)) || !s.gate.passes(way, len(b.Data)) {
			return false
		}
		s.groups.add(b.Data, way, s.offload.segment && b.Flags&link.Single == 0)
		return true
	}
	name := s.sender(b.Frame)
	if name == nil || !s.gate.answers(name, len(b.Data)) {
		return false
	}
	s.groups.addReply(b.Data, name, b.Port)
	return true
}

// flush sends the loaded messages. The kernel stops at the first message that it refuses, but the error may be caused by
// an ICMP message about an earlier packet. flush therefore tries each message twice. Then it hands the message to refused
// and continues with the next.
//
// System calls: sendmmsg.
func (s *batch) flush() {
	g := &s.groups
	var sent sendCount
	failed := -1
	s.gate.flushed()
	for at := 0; at < g.messages; {
		k, err := sendmmsg(s.fd, g.tx[at:g.messages])
		sent.calls++
		for i := at; i < at+max(k, 0); i++ {
			sent.packets += uint64(g.info[i].packets)
			if g.info[i].packets > 1 {
				sent.groups++
			}
			sent.bytes += uint64(g.tx[i].n)
		}
		at += max(k, 0)
		if k > 0 && at < g.messages { // an error has ended the call, and the kernel does not return it
			s.errs.pending.Store(true)
		}
		if err == nil || err == unix.EINTR {
			continue
		}
		if err != unix.EAGAIN && failed != at {
			failed = at
			s.errs.pending.Store(true)
			continue
		}
		s.refused(at, err, &sent)
		at++
	}
	g.reset()
	sent.addTo(&s.link.stats)
	s.renewal.full.passed += sent.packets
	if sent.full > 0 {
		s.renewal.full.refuse(sent.full)
		s.renewIfStuck()
	}
}

// sendCount counts what one flush sent.
type sendCount struct{ packets, groups, bytes, dropped, full, calls uint64 }

func (n *sendCount) addTo(c *counters) {
	if n.calls == 0 {
		return
	}
	c.txKicks.Add(n.calls)
	c.txPackets.Add(n.packets)
	c.txBytes.Add(n.bytes)
	if n.groups > 0 {
		c.txGroups.Add(n.groups)
	}
	if n.dropped > 0 {
		c.txDropped.Add(n.dropped)
		c.txFull.Add(n.full)
	}
}

// refused handles message i, which the kernel did not accept. If the device or the path cannot cut a group, its packets
// are sent one by one. If the kernel then accepts one of them, later packets of the path leave one by one too.
func (s *batch) refused(i int, err error, sent *sendCount) {
	g := &s.groups
	m := &g.info[i]
	if m.packets == 1 || err != unix.EIO && err != unix.EINVAL {
		s.drop(m.way, err, m.packets, sent)
		return
	}
	for k := range m.packets {
		n, err := sendmmsg(s.fd, g.alone(i, k))
		if err != nil && err != unix.EAGAIN { // it may be caused by an ICMP message
			s.errs.pending.Store(true)
			n, err = sendmmsg(s.fd, g.single[:])
			sent.calls++
		}
		sent.calls++
		if n != 1 {
			s.drop(m.way, err, 1, sent)
			continue
		}
		m.way.alone = true
		sent.packets++
		sent.bytes += uint64(g.single[0].n)
	}
}

// drop counts packets that the kernel did not accept.
func (s *batch) drop(way *path, err error, packets int, sent *sendCount) {
	if err == unix.EMSGSIZE && way != nil {
		way.stale.Store(true)
	}
	if err == unix.EAGAIN {
		sent.full += uint64(packets)
	}
	sent.dropped += uint64(packets)
}

func (s *batch) reports(to []link.Report) int {
	if s.errs.n == 0 {
		return 0
	}
	return s.errs.take(to)
}

func (s *batch) source(frame uint32) netip.AddrPort {
	if name := s.sender(frame); name != nil {
		return name.addrPort(s.link.local.Addr().Zone())
	}
	return netip.AddrPort{}
}

// sender returns the address that a received packet came from, or nil if the frame is a transmit frame.
func (s *batch) sender(frame uint32) *sockaddr {
	m := &s.link.slab
	switch {
	case frame < m.received():
		return &s.names[frame/m.perBlock]
	case frame < m.received()+m.kept:
		return &s.names[m.blocks+frame-m.received()]
	}
	return nil
}

// close ends every wait before it closes the descriptors. Otherwise a wait could poll a descriptor number that is
// already used for another file.
func (s *batch) close() error {
	if !s.bell.close() {
		return nil
	}
	s.gate.close()
	fd := s.fd
	s.fd = -1
	if fd < 0 {
		return nil
	}
	exclusive.Remove(fd)
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("udplink: close %v: %w", s.link.local, err)
	}
	return nil
}
