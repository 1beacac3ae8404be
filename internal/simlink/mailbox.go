package simlink

import (
	"sync"
	"sync/atomic"

	"github.com/datxdp/datxdp/link"
)

// mailbox is the receiving half of a link: senders fill it, the owner empties it.
type mailbox struct {
	pending atomic.Int32 // frames in ring; the owner reads it without the lock

	mu       sync.Mutex // guards the rest and frames.free
	frames   pool
	ring     []entry
	head     uint32 // next entry to receive
	tail     uint32 // next entry to fill
	last     uint32 // first entry of the newest packet
	left     int    // packets in the newest block that Recv has not returned (see merged)
	segments int
	bound    int // largest number of pending frames
	closed   bool
	gate     gate

	packets, bytes, dropped, invalid, groups uint64
}

// entry is one received frame. segments is the number of frames of the packet, and batch is the number of the Send that
// sent it; only its first entry has them.
type entry struct {
	way      *line
	batch    uint64
	frame    uint32
	length   uint32
	segments uint16
	flags    link.Flags
}

// fate is the effect of the network on an arriving packet.
type fate struct {
	flip int  // bit to invert; -1 for none
	swap bool // swap with the packet that arrived before
}

var unharmed = fate{flip: -1}

func newMailbox(cfg *Config) mailbox {
	slots := 1
	for slots < cfg.Frames {
		slots *= 2
	}
	bound := cfg.Frames
	if cfg.Immediate && cfg.QueueFrames > 0 {
		bound = min(bound, cfg.QueueFrames)
	}
	if cfg.Group > 0 {
		bound = min(bound, cfg.Frames/2) // the others are for Keep
	}
	if cfg.RxWindow > 0 {
		bound = min(bound, cfg.RxWindow)
	}
	return mailbox{
		frames:   newPool("receive", cfg.Frames, cfg.RxFrameSize, !cfg.Unchecked),
		ring:     make([]entry, slots),
		segments: cfg.Segments,
		bound:    bound,
	}
}

func (m *mailbox) at(i uint32) *entry { return &m.ring[i&uint32(len(m.ring)-1)] }

// release ends a series of deliveries. It publishes the queued frames, wakes sleepers and unlocks mu.
func (m *mailbox) release() {
	m.publish()
	m.gate.open()
	m.mu.Unlock()
}

// publish tells the owner how many frames and packets it has not received.
func (m *mailbox) publish() { m.pending.Store(int32(m.tail-m.head) + int32(m.left)) }

// deliver copies a packet of total bytes into free frames and queues them. batch is the number of the Send that sent
// the packet. The caller holds mu; release publishes the frames.
func (m *mailbox) deliver(way *line, batch uint64, pkt []link.Buf, total int, f fate) {
	if m.closed {
		return
	}
	need := 1
	if total > m.frames.size {
		need = ceil(total, m.frames.size)
	}
	if need > m.segments {
		m.invalid++
		return
	}
	if need > len(m.frames.free) || int(m.tail-m.head)+need > m.bound {
		m.dropped++
		return
	}
	first := m.tail
	if need == 1 && len(pkt) == 1 {
		m.place(way, pkt[0].Data)
	} else {
		m.scatter(way, pkt, total)
	}
	m.at(first).segments, m.at(first).batch = uint16(need), batch
	m.at(first).flags |= pkt[0].Flags & link.CE
	if f.flip >= 0 {
		m.flip(first, f.flip)
	}
	if f.swap && first != m.head {
		m.swap(first)
	} else {
		m.last = first
	}
}

// place copies a packet of one frame into one frame.
func (m *mailbox) place(way *line, data []byte) {
	i := m.frames.take()
	n := copy(m.frames.data(i), data)
	*m.at(m.tail) = entry{way: way, frame: i, length: uint32(n)}
	m.tail++
}

// scatter copies a packet into received frames, splitting it at their size.
func (m *mailbox) scatter(way *line, pkt []link.Buf, total int) {
	var from int
	rest := pkt[0].Data
	for {
		i := m.frames.take()
		frame := m.frames.data(i)
		n := copy(frame, rest)
		rest = rest[n:]
		for n < len(frame) && from+1 < len(pkt) {
			from++
			rest = pkt[from].Data
			k := copy(frame[n:], rest)
			n, rest = n+k, rest[k:]
		}
		total -= n
		e := entry{way: way, frame: i, length: uint32(n)}
		if total > 0 {
			e.flags = link.More
		}
		*m.at(m.tail) = e
		m.tail++
		if total <= 0 {
			return
		}
	}
}

func (m *mailbox) flip(first uint32, bit int) {
	at := bit / 8
	m.frames.data(m.at(first + uint32(at/m.frames.size)).frame)[at%m.frames.size] ^= 1 << (bit % 8)
}

// swap exchanges the packet that begins at index first with the packet before it, by rotating the entries.
func (m *mailbox) swap(first uint32) {
	if int32(m.last-m.head) < 0 { // the packet before was received already
		m.last = first
		return
	}
	size := m.tail - first
	m.reverse(m.last, first)
	m.reverse(first, m.tail)
	m.reverse(m.last, m.tail)
	m.last += size
}

func (m *mailbox) reverse(from, to uint32) {
	for ; int32(to-from) > 1; from++ {
		to--
		*m.at(from), *m.at(to) = *m.at(to), *m.at(from)
	}
}
