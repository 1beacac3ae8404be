package udplink

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

const (
	// maxBatch is the number of packets per system call. It is large enough to amortise the call. It is small enough
	// for the arrays to fit into the first-level cache.
	maxBatch = 64
	// controlSize is the space in bytes for the two requested control messages, 24 bytes each on 64-bit machines.
	controlSize = 64
)

// batch is a socket that moves many packets per system call. It allocates all its memory at open.
type batch struct {
	link *Link
	fd   int
	bell bell

	free  []uint32   // receive frames
	names []sockaddr // sender, by receive frame
	lost  uint32     // the kernel's count of packets dropped because the receive queue was full
	errs  errQueue
	gate  gate

	rx, tx  [maxBatch]mmsghdr
	rxIov   [maxBatch]unix.Iovec
	txIov   [maxBatch]unix.Iovec
	control [maxBatch][controlSize]byte
	sent    [maxBatch]*path  // path of each entry of tx, to mark it stale if the packet does not fit
	cut     [maxBatch]uint32 // the frames of packets that were too long
}

func openBatch(l *Link, o Options) (_ socket, err error) {
	s := &batch{link: l, fd: -1, names: make([]sockaddr, o.Frames)}
	defer func() {
		if err != nil {
			_ = s.close() // report the first error
		}
	}()
	for f := o.Frames; f > 0; f-- {
		s.free = append(s.free, uint32(f-1))
	}
	for i := range s.rx {
		s.rx[i].hdr.Iov, s.tx[i].hdr.Iov = &s.rxIov[i], &s.txIov[i]
		s.rx[i].hdr.SetIovlen(1)
		s.tx[i].hdr.SetIovlen(1)
		s.rx[i].hdr.Control = &s.control[i][0]
	}
	if err := s.bell.open(); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	if s.fd, err = bindSocket(l.local, o.Buffer); err != nil {
		return nil, err
	}
	if l.local, err = boundTo(s.fd, l.local); err != nil {
		return nil, err
	}
	if err = s.errs.open(s.fd, l.local.Addr()); err != nil {
		return nil, err
	}
	if err = s.gate.open(s.fd, l.local.Addr()); err != nil {
		return nil, err
	}
	return s, nil
}

// recv returns the packets that one system call receives.
//
// System calls: recvmmsg; three more if there is an ICMP message.
func (s *batch) recv(bufs []link.Buf) int {
	want := min(len(bufs), maxBatch, len(s.free))
	if want == 0 {
		return 0
	}
	for i := range want {
		s.arm(i, s.free[len(s.free)-1-i])
	}
	got, err := recvmmsg(s.fd, s.rx[:want])
	if err != nil && err != unix.EAGAIN || s.errs.pending.Load() {
		s.errs.drain(s.fd, s.link.local.Addr().Zone())
		if err != nil { // the error was caused by an earlier packet
			got, err = recvmmsg(s.fd, s.rx[:want])
		}
	}
	if err != nil || got == 0 {
		return 0
	}
	n, size := 0, 0
	unusable := 0
	for i := range got {
		f := s.free[len(s.free)-1-i]
		m := &s.rx[i]
		if m.hdr.Flags&unix.MSG_TRUNC != 0 {
			s.cut[unusable] = f
			unusable++
			continue
		}
		bufs[n] = link.Buf{Data: s.link.slab.data(f)[:m.n], Frame: f, Flags: s.flags(i)}
		size += int(m.n)
		n++
	}
	s.free = append(s.free[:len(s.free)-got], s.cut[:unusable]...)
	s.link.stats.rxInvalid.Add(uint64(unusable))
	s.link.stats.rxPackets.Add(uint64(n))
	s.link.stats.rxBytes.Add(uint64(size))
	return n
}

// arm points entry i at a frame, and resets the fields that the kernel wrote at the last call.
func (s *batch) arm(i int, f uint32) {
	data := s.link.slab.data(f)
	s.rxIov[i].Base = &data[0]
	s.rxIov[i].SetLen(len(data))
	h := &s.rx[i].hdr
	h.Name = &s.names[f][0]
	h.Namelen = uint32(len(s.names[f]))
	h.SetControllen(controlSize)
	h.Flags = 0
}

// flags returns the flags of entry i, from its control messages.
func (s *batch) flags(i int) link.Flags {
	c := parseControl(s.control[i][:min(controlSize, int(s.rx[i].hdr.Controllen))])
	if c.counted && c.lost != s.lost {
		s.link.stats.rxDropped.Add(uint64(c.lost - s.lost))
		s.lost = c.lost
	}
	if c.ecn == ecnCE {
		return link.CE
	}
	return 0
}

// send transmits in batches. It drops packets that the kernel refuses.
//
// System calls: sendmmsg.
func (s *batch) send(bufs []link.Buf) {
	n := 0
	for i := range bufs {
		if !s.load(n, &bufs[i]) {
			s.link.stats.txDropped.Add(1)
			continue
		}
		if n++; n == maxBatch {
			s.flush(n)
			n = 0
		}
	}
	if n > 0 {
		s.flush(n)
	}
}

// load points entry i at a packet. It returns false if the packet has no destination, or may not wait for a neighbour.
func (s *batch) load(i int, b *link.Buf) bool {
	var name *sockaddr
	s.sent[i] = nil
	switch {
	case b.Flags&link.More != 0:
		return false
	case b.Path != link.PathReply:
		way := s.link.paths.Get(b.Path)
		if way == nil {
			return false
		}
		if !s.gate.passes(way, len(b.Data)) {
			return false
		}
		name, s.sent[i] = &way.name, way
	case b.Frame < s.link.slab.frames:
		if name = &s.names[b.Frame]; !s.gate.answers(name) {
			return false
		}
		if b.Port != 0 {
			name.setPort(b.Port) // may overwrite an element of names: the caller gives up its frame with Send
		}
	default:
		return false
	}
	h := &s.tx[i].hdr
	h.Name, h.Namelen = &name[0], name.size()
	s.txIov[i].Base = nil
	if len(b.Data) > 0 {
		s.txIov[i].Base = &b.Data[0]
	}
	s.txIov[i].SetLen(len(b.Data))
	return true
}

// flush sends the first n entries. The kernel stops at the first packet that it refuses, but the error may be caused by
// an ICMP message about an earlier packet. flush therefore tries each packet twice. Then it drops the packet and
// continues with the next.
func (s *batch) flush(n int) {
	var sent, size, dropped, full, calls uint64
	failed := -1
	s.gate.waiting = 0
	for at := 0; at < n; {
		k, err := sendmmsg(s.fd, s.tx[at:n])
		calls++
		for i := range max(k, 0) {
			sent++
			size += uint64(s.tx[at+i].n)
		}
		at += max(k, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil && err != unix.EAGAIN && failed != at {
			failed = at
			s.errs.pending.Store(true)
			continue
		}
		if err != nil {
			if way := s.sent[at]; err == unix.EMSGSIZE && way != nil {
				way.stale.Store(true)
			}
			if err == unix.EAGAIN {
				full++
			}
			dropped++
			at++
		}
	}
	s.link.stats.txKicks.Add(calls)
	s.link.stats.txPackets.Add(sent)
	s.link.stats.txBytes.Add(size)
	if dropped > 0 {
		s.link.stats.txDropped.Add(dropped)
		s.link.stats.txFull.Add(full)
	}
}

func (s *batch) reports(to []link.Report) int {
	if s.errs.n == 0 {
		return 0
	}
	return s.errs.take(to)
}

func (s *batch) giveBack(frame uint32) { s.free = append(s.free, frame) }

func (s *batch) source(frame uint32) netip.AddrPort {
	if frame >= s.link.slab.frames {
		return netip.AddrPort{}
	}
	return s.names[frame].addrPort(s.link.local.Addr().Zone())
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
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("udplink: close %v: %w", s.link.local, err)
	}
	return nil
}
