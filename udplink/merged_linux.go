package udplink

import (
	"golang.org/x/sys/unix"

	"github.com/datxdp/datxdp/link"
)

// merged holds the received messages, and the position in them up to which recv has returned packets. A message is one
// packet, or several packets of equal size that the kernel has merged (UDP_GRO). The last packet may be shorter.
//
// A message lies in one block. The block is free when the holder has freed each packet of the message.
type merged struct {
	blocks    [maxBatch]uint32 // block of each entry of rx
	next, end int              // entries with received messages that are not split yet; entry next-1 may be cur
	armed     int              // entries with a block; those from end on wait for a message
	cur       message
	refs      []int32 // number of references to each block: its packets that the holder has, and cur
	kept      []uint32
}

// message is a received message that is being split into packets.
type message struct {
	open  bool
	data  []byte // the packets that are left
	size  int    // of each of them but the last one
	frame uint32 // frame number of the next packet
	index uint32 // number of the next packet in the message
	flags link.Flags
}

func (m *merged) open(s *slab) {
	m.refs = make([]int32, s.blocks)
	for f := s.kept; f > 0; f-- {
		m.kept = append(m.kept, s.received()+f-1)
	}
}

// more reports whether a received message has packets left.
func (m *merged) more() bool { return m.cur.open || m.next < m.end }

// split fills bufs with packets of the received messages. It returns the number and the bytes of these packets, and the
// number of packets that it dropped because they are longer than a frame.
func (s *batch) split(bufs []link.Buf) (n, size, invalid int) {
	m := &s.merged
	for n < len(bufs) && m.more() {
		if !m.cur.open && !s.nextMessage() {
			invalid++
			continue
		}
		c := &m.cur
		k := min(len(c.data), c.size)
		switch {
		case c.index == s.link.slab.perBlock: // only a device can make such a message, not a peer
			invalid += (len(c.data) + c.size - 1) / c.size
			c.data, k = nil, 0
		case k > s.link.caps.FrameSize:
			invalid++
		default:
			bufs[n] = link.Buf{Data: c.data[:k:k], Frame: c.frame, Flags: c.flags}
			m.refs[c.frame/s.link.slab.perBlock]++
			size += k
			n++
		}
		if c.data = c.data[k:]; len(c.data) == 0 {
			c.open = false
			s.release(m.blocks[m.next-1])
			continue
		}
		c.frame++
		c.index++
	}
	return n, size, invalid
}

// nextMessage begins the next received message. It reports false if the message is not usable, because it was cut.
func (s *batch) nextMessage() bool {
	m := &s.merged
	i := m.next
	m.next++
	h, b := &s.rx[i], m.blocks[i]
	m.refs[b] = 1
	c := parseControl(s.control[i][:min(controlSize, int(h.hdr.Controllen))])
	if c.counted && c.lost != s.lost {
		s.link.stats.rxDropped.Add(uint64(c.lost - s.lost))
		s.lost = c.lost
	}
	if h.hdr.Flags&unix.MSG_TRUNC != 0 {
		s.release(b)
		return false
	}
	m.cur = message{open: true, data: s.link.slab.blockData(b)[:h.n], size: int(h.n), frame: b * s.link.slab.perBlock}
	if 0 < c.segment && c.segment < int(h.n) {
		m.cur.size = c.segment
		s.link.stats.rxGroups.Add(1)
	}
	if c.ecn == ecnCE {
		m.cur.flags = link.CE
	}
	return true
}

// release ends one reference to a block.
func (s *batch) release(b uint32) {
	if s.merged.refs[b]--; s.merged.refs[b] == 0 {
		s.free = append(s.free, b)
	}
}

func (s *batch) giveBack(frame uint32) {
	m := &s.link.slab
	if frame < m.received() {
		s.release(frame / m.perBlock)
		return
	}
	s.merged.kept = append(s.merged.kept, frame)
}

// keep copies packets out of their blocks, so that a packet that stays for long does not occupy a block. If no frame for
// a copy is left, the packet stays where it is.
func (s *batch) keep(bufs []link.Buf) {
	m := &s.link.slab
	for i := range bufs {
		b, kept := &bufs[i], s.merged.kept
		if b.Frame >= m.received() || len(kept) == 0 {
			continue
		}
		f := kept[len(kept)-1]
		s.merged.kept = kept[:len(kept)-1]
		*s.sender(f) = *s.sender(b.Frame)
		data := m.small(f)
		data = data[:copy(data, b.Data)]
		s.giveBack(b.Frame)
		b.Data, b.Frame = data, f
	}
}
