package xdp

import (
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// kernelCalls are the system calls that drive the rings, and what decides when they are due.
type kernelCalls struct {
	kick      func(raw bool) syscall.Errno // for the tx ring
	wakeRx    func() syscall.Errno         // for the fill ring
	rxWakeups rxWakeups
	txStall   txStall
	idleTx    int // kicks without progress after which drain stops
}

// Send implements link.Link.
//
// System calls: sendto, until the kernel has taken every packet or accepts no more for now.
func (s *Socket) Send(bufs []link.Buf) {
	if !s.open() {
		s.refuse(bufs)
		return
	}
	var queued uint32
	var sent tally
	for len(bufs) > 0 {
		n := span(bufs)
		queued = s.sendPacket(bufs[:n], queued, &sent)
		bufs = bufs[n:]
	}
	s.flush(queued, &sent)
}

// span returns the number of Bufs of the first packet in bufs.
func span(bufs []link.Buf) int {
	for i := range bufs {
		if bufs[i].Flags&link.More == 0 {
			return i + 1
		}
	}
	return len(bufs)
}

// open reports whether the interface accepts packets. If it was down at the last try, open tries again.
func (s *Socket) open() bool {
	if s.umem.mem == nil {
		return false
	}
	if s.stall.Load() == down {
		s.drain()
	}
	return s.stall.Load() != down
}

// refuse drops and counts all packets in bufs.
func (s *Socket) refuse(bufs []link.Buf) {
	for len(bufs) > 0 {
		n := span(bufs)
		s.drop(bufs[:n])
		bufs = bufs[n:]
	}
}

// drop frees one packet and counts it as dropped.
func (s *Socket) drop(packet []link.Buf) {
	s.Free(packet)
	s.counters.txDropped.Add(1)
}

// sendPacket puts one packet into the tx ring after the queued slots. It returns the new number of queued slots.
func (s *Socket) sendPacket(packet []link.Buf, queued uint32, sent *tally) uint32 {
	size := 0
	for i := range packet {
		size += len(packet[i].Data)
	}
	if packet[0].Path == link.PathReply {
		return s.sendReply(packet, size, queued, sent)
	}
	p := s.paths.Get(packet[0].Path)
	if p == nil || size+p.size-ethSize > s.mtu {
		s.drop(packet)
		return queued
	}
	if p.guard != nil {
		s.sendThrough(p.guard, p.to, packet, size, sent)
		return queued
	}
	at, ok := s.umem.locate(packet[0].Frame, packet[0].Data)
	if !ok || int(at) < p.size {
		s.drop(packet)
		return queued
	}
	headers := s.umem.bytes(packet[0].Frame, at-uint32(p.size), uint32(p.size))
	if !p.writeHeaders(headers, size) {
		s.reportUnresolved(p, packet[0].Data)
		s.drop(packet)
		return queued
	}
	if p.v6() {
		seal(headers[ethSize:], packet)
	}
	if p.hop == nil {
		s.sendLoop(packet, headers, at, size, sent)
		return queued
	}
	if packet[0].Flags&link.Unconnected != 0 {
		return s.queueUnconnected(packet, at, p.size, size, queued, sent)
	}
	return s.queueSlots(packet, at, p.size, size, queued, sent)
}

// sendReply turns a received packet into its answer: it reverses the headers and sends the packet. The answer goes to
// the next hop for the packet's source IP address, not to the packet's source MAC address. A host therefore cannot
// receive answers for another host's address.
func (s *Socket) sendReply(packet []link.Buf, size int, queued uint32, sent *tally) uint32 {
	headers, off, ok := s.receivedHeaders(&packet[0])
	if !ok || len(headers)+size-ethSize > s.mtu {
		s.drop(packet)
		return queued
	}
	note := &s.pool.notes[packet[0].Frame]
	if note.origin == fromGuard {
		ip := headers[note.ip:]
		s.sendThrough(s.guardOf(targetOf(ip)), s.replyTo(&packet[0]), packet, size, sent)
		return queued
	}
	mac := s.mac
	if note.origin == fromWire {
		ip := headers[note.ip:]
		mac, ok = s.router.Answer(s.at(targetOf(ip)), s.replyTo(&packet[0]), [6]byte(headers[ethSrc:]))
	}
	var l layout
	if ok {
		l, ok = s.reverseHeaders(headers, mac, size, packet[0].Port)
	}
	if !ok {
		s.drop(packet)
		return queued
	}
	if l.v6 {
		seal(headers[l.ip:], packet)
	}
	at := off + uint32(len(headers))
	if note.origin == fromSelf {
		s.sendLoop(packet, headers, at, size, sent)
		return queued
	}
	return s.queueUnconnected(packet, at, len(headers), size, queued, sent)
}

// replyTo returns the destination of the answer to a received packet.
func (s *Socket) replyTo(b *link.Buf) netip.AddrPort {
	from := s.Source(b)
	if b.Port == 0 {
		return from
	}
	return netip.AddrPortFrom(from.Addr(), b.Port)
}

// reverseHeaders turns the headers of a received packet into those of its answer. mac is the new destination MAC
// address. port is the new destination port; 0 means the packet's source port, and without that there is no answer. The
// answer leaves from the port to which the packet was sent, so both are one flow to a NAT or a firewall. size is the
// length of the payload in bytes.
func (s *Socket) reverseHeaders(headers []byte, mac [6]byte, size int, port uint16) (layout, bool) {
	l, ok := parse(headers, 1<<16+ethSize+vlanSize)
	if !ok {
		return l, false
	}
	copy(headers[ethDst:ethDst+6], mac[:])
	copy(headers[ethSrc:ethSrc+6], s.mac[:])
	ip := headers[l.ip:]
	udp := ip[l.payload-udpSize-l.ip:]
	src, dst := be.Uint16(udp[udpSrc:]), be.Uint16(udp[udpDst:])
	if port == 0 {
		port = src
	}
	if port == 0 {
		return l, false
	}
	be.PutUint16(udp[udpSrc:], dst)
	be.PutUint16(udp[udpDst:], port)
	if l.v6 {
		var was [16]byte
		copy(was[:], ip[v6Src:])
		copy(ip[v6Src:v6Src+16], ip[v6Dst:v6Dst+16])
		copy(ip[v6Dst:v6Dst+16], was[:])
		ip[v6Hops] = hops
		ip[1] = ip[1]&^(ecnMask<<4) | ecnCapable<<4
		fill6(ip, size)
		return l, true
	}
	from, to := be.Uint32(ip[v4Src:]), be.Uint32(ip[v4Dst:])
	be.PutUint32(ip[v4Src:], to)
	be.PutUint32(ip[v4Dst:], from)
	ip[v4TTL], ip[v4TOS], ip[v4Fragment] = hops, ip[v4TOS]&^ecnMask|ecnCapable, dontFragment
	fill4(ip, len(ip)-len(udp), size)
	return l, true
}

// queueUnconnected is queueSlots for a packet that belongs to no connection (link.Unconnected). In copy mode a frame is
// completed when the receiver frees the packet, so a receiver can hold frames for any time.
func (s *Socket) queueUnconnected(packet []link.Buf, dataOffset uint32, headerSize, size int, queued uint32, sent *tally) uint32 {
	share := s.txMax / unconnectedShare
	if s.pool.count[isReply] >= share {
		s.reap()
	}
	if s.pool.count[isReply] >= share {
		s.drop(packet)
		return queued
	}
	before := sent.packets
	queued = s.queueSlots(packet, dataOffset, headerSize, size, queued, sent)
	if sent.packets > before {
		s.pool.move(packet[0].Frame, isSent, isReply)
	}
	return queued
}

// queueSlots writes the tx slots of a packet behind the queued slots, and returns the new number of queued slots. The
// Data of the first Buf begins at dataOffset in its frame, after headerSize bytes of headers.
func (s *Socket) queueSlots(packet []link.Buf, dataOffset uint32, headerSize, size int, queued uint32, sent *tally) uint32 {
	k := uint32(len(packet))
	if !s.fits(packet) {
		s.drop(packet)
		return queued
	}
	if s.tx.reserve(queued+k) < queued+k {
		// A kernel before 6.17 updates the tx consumer index late, after it has completed the frames.
		s.tx.submit(queued)
		s.drain()
		queued = 0
		if s.tx.reserve(k) < k {
			s.drop(packet)
			return queued
		}
	}
	for i := range packet {
		b := &packet[i]
		d := desc{len: uint32(len(b.Data)), options: pktContd}
		if i == 0 {
			d.addr = s.umem.addr(b.Frame, dataOffset-uint32(headerSize))
			d.len += uint32(headerSize)
		} else {
			var lent bool
			if d.addr, lent, _ = s.umem.descAddr(b.Frame, b.Data); lent {
				s.lent = append(s.lent, b.Frame)
			}
		}
		if i == len(packet)-1 {
			d.options = 0
		}
		s.pool.move(b.Frame, s.pool.owned(b.Frame), isSent)
		s.tx.put(queued+uint32(i), d)
	}
	sent.packets++
	sent.bytes += uint64(size)
	return queued + k
}

// fits reports whether the kernel can take the packet:
//
//   - The tx ring has room for the packet. A packet of received frames must leave free the slots that frames from Alloc
//     may need.
//   - The packet has at most Caps().Segments frames, and no frame after the first is empty.
//   - The Data of each Buf lies inside the frame of that Buf, or inside one frame-sized block of the consumers' memory.
func (s *Socket) fits(packet []link.Buf) bool {
	if s.pool.notes[packet[0].Frame].state == isHeld && !s.room(uint32(len(packet))) {
		return false
	}
	if len(packet) == 1 {
		return true
	}
	if len(packet) > s.caps.Segments {
		return false
	}
	for i := range packet[1:] {
		b := &packet[1+i]
		if _, _, ok := s.umem.descAddr(b.Frame, b.Data); !ok || len(b.Data) == 0 {
			return false
		}
	}
	return true
}

// room reports whether k frames from Recv may be sent without using tx slots that belong to frames from Alloc.
func (s *Socket) room(k uint32) bool {
	if s.pool.sending()+k > s.txMax {
		s.reap()
	}
	return s.pool.sending()+k <= s.txMax
}

// flush publishes the queued slots and makes the kernel transmit.
func (s *Socket) flush(queued uint32, sent *tally) {
	if sent.packets > 0 {
		s.counters.sent(sent)
	}
	if queued > 0 {
		s.tx.submit(queued)
		s.drain()
	}
}

// drain makes the kernel transmit until the tx ring is empty. In copy mode one system call transmits a limited number
// of slots. The call transmits nothing if the socket's send buffer is full, so drain stops after idleTx system calls
// without progress. The remaining packets are transmitted by the owner's next call, or by Wait. drain never blocks.
func (s *Socket) drain() {
	if s.zc {
		var errno unix.Errno
		if s.tx.needWakeup() {
			s.counters.txKicks.Add(1)
			errno = s.kick(true)
		}
		s.settle(errno) // a driver that needs no wakeup is already transmitting
		return
	}
	left := s.tx.backlog()
	for tries, idle := 0, 0; left > 0; tries++ {
		if idle > s.idleTx || tries > 2*int(s.tx.size) {
			s.set(pending)
			return
		}
		s.counters.txKicks.Add(1)
		errno := s.kick(left <= rawKick)
		was := left
		left = s.tx.backlog()
		switch errno {
		case unix.EBUSY: // the device dropped one packet; its frame is completed
			s.counters.kernelDropped.Add(1)
			continue
		case 0, unix.EAGAIN, unix.EINTR, unix.ENOBUFS, unix.ENOMEM:
		default:
			s.settle(errno)
			return
		}
		if left == was {
			idle++
		}
	}
	s.set(flowing)
}

// revive makes the kernel transmit if packets wait and the tx ring has not moved since the last check. It returns true
// if it made the kernel transmit. In zero-copy mode revive is needed after the carrier was lost: without carrier a kick
// succeeds, but the driver transmits nothing and does not try again.
func (s *Socket) revive() bool {
	left := s.tx.backlog()
	if !s.txStall.stalled(s.tx.cons, left) {
		return false
	}
	s.drain()
	return true
}

// settle records whether the interface takes packets, from the errno of a kick.
func (s *Socket) settle(errno unix.Errno) {
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.EBUSY, unix.ENOBUFS, unix.ENOMEM:
		s.set(flowing)
	default:
		s.set(down)
	}
}

// set changes stall. It avoids the store if the value is unchanged, so that the cache line stays shared.
func (s *Socket) set(v uint32) {
	if s.stall.Load() != v {
		s.stall.Store(v)
	}
}
