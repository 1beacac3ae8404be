package simlink

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"

	"github.com/datxdp/datxdp/internal/pathtable"
	"github.com/datxdp/datxdp/link"
)

// txFrame marks the numbers of frames from Alloc; the others are received frames.
const txFrame = 1 << 31

// Link is one end of a simulated network. The rules of link.Link apply. In virtual time, a link belongs to the
// goroutine that drives the Net.
type Link struct {
	net  *Net
	cfg  *Config // of the host
	at   *node
	rng  *rand.Rand // only the owner uses it
	caps link.Caps

	tx                            pool     // only the owner uses it
	egress                        egress   // only the owner uses it
	held                          int      // number of frames that the owner holds
	last                          []uint32 // frames of the last Recv
	kept                          []bool   // received frames that Keep has announced
	ways                          []*line  // line on which a received frame arrived, by frame
	given                         []uint32 // received frames that were freed and must be put back
	merged                        *merged  // nil without groups
	sending                       outgoing // batch that Send sends; only the owner uses it
	paths                         pathtable.Table[line]
	txBytes, txPackets, txDropped atomic.Uint64

	rx      mailbox
	refused refusals
}

// egress is the transmit queue of a host and the wire behind it.
type egress struct {
	frames []leaving // oldest first
	wire   wire
}

// leaving is a frame that is being transmitted, and the virtual time when this is done.
type leaving struct {
	at    int64
	frame uint32
}

var _ link.Link = (*Link)(nil)

func newLink(n *Net, at *node, cfg *Config, rng *rand.Rand) *Link {
	received := cfg.Frames
	if cfg.Group > 0 {
		received += cfg.Blocks * maxMerged
	}
	return &Link{
		net: n, cfg: cfg, at: at, rng: rng, egress: egress{wire: wire{rate: cfg.Rate}},
		caps: link.Caps{
			SourcePort: true,
			MaxPayload: cfg.maxPayload(),
			FrameSize:  cfg.FrameSize,
			Segments:   cfg.Segments,
			RxFrames:   cfg.Frames / 2,
			TxFrames:   cfg.Frames,
			Mode:       "sim",
			Memory:     make([]byte, cfg.Memory),
			Block:      cfg.FrameSize,
			Group:      cfg.Group,
			NoGroups:   cfg.NoGroups,
			RxWindow:   cfg.RxWindow,
		},
		tx:    newPool("transmit", cfg.Frames, cfg.FrameSize, !cfg.Unchecked),
		last:  make([]uint32, 0, cfg.Frames),
		kept:  make([]bool, received),
		ways:  make([]*line, received),
		given: make([]uint32, 0, cfg.Frames),
		rx:    newMailbox(cfg),

		merged:  newMerged(cfg),
		sending: outgoing{single: make(map[link.Path]bool)},
	}
}

// Recv implements link.Link. It panics if the owner holds frames of the last Recv without Keep.
func (l *Link) Recv(bufs []link.Buf) int {
	if len(bufs) < l.caps.Segments {
		panic(fmt.Sprintf("simlink: Recv: %d bufs, a packet may need %d", len(bufs), l.caps.Segments))
	}
	l.mustKeep()
	m := &l.rx
	if m.pending.Load() == 0 && len(l.given) == 0 {
		return 0
	}
	m.mu.Lock()
	m.frames.free = append(m.frames.free, l.given...)
	l.given = l.given[:0]
	var n int
	if l.merged != nil {
		n = l.recvMerged(bufs)
	} else {
		n = l.recvFrames(bufs)
	}
	m.publish()
	m.mu.Unlock()
	l.held += n
	return n
}

// recvFrames fills bufs with packets from the mailbox. The caller holds the mailbox's lock.
func (l *Link) recvFrames(bufs []link.Buf) (n int) {
	m := &l.rx
	for m.head != m.tail && n+int(m.at(m.head).segments) <= len(bufs) {
		m.packets++
		for more := true; more; n++ {
			more = l.receive(&bufs[n])
		}
	}
	return n
}

// receive moves one entry of the mailbox into a Buf. It reports whether the next entry belongs to the same packet. The
// caller holds the mailbox's lock.
func (l *Link) receive(b *link.Buf) bool {
	m := &l.rx
	e := m.at(m.head)
	m.head++
	m.bytes += uint64(e.length)
	m.frames.held[e.frame] = true
	l.ways[e.frame] = e.way
	l.last, l.kept[e.frame] = append(l.last, e.frame), false
	*b = link.Buf{Data: m.frames.data(e.frame)[:e.length], Frame: e.frame, Flags: e.flags}
	return e.flags&link.More != 0
}

// Alloc implements link.Link.
func (l *Link) Alloc(bufs []link.Buf) int {
	l.reclaim()
	n := min(len(bufs), len(l.tx.free))
	for i := range n {
		f := l.tx.take()
		l.tx.held[f] = true
		bufs[i] = link.Buf{Data: l.tx.data(f), Frame: f | txFrame}
	}
	l.held += n
	return n
}

// Free implements link.Link. It panics on a frame that the owner does not hold.
func (l *Link) Free(bufs []link.Buf) { l.giveUp(bufs, "Free") }

// giveUp takes frames from the owner and frees them.
func (l *Link) giveUp(bufs []link.Buf, what string) {
	for i := range bufs {
		frames, n := l.pool(bufs[i].Frame)
		frames.giveUp(n, what)
		switch frames {
		case &l.tx:
			l.tx.free = append(l.tx.free, n)
		case &l.rx.frames:
			l.given = append(l.given, n)
		default:
			l.merged.release(n / maxMerged)
		}
	}
	l.held -= len(bufs)
}

// retire takes the frames of a sent packet from the owner. Frames of the transmit pool become free at sentAt, when the
// packet has been transmitted.
func (l *Link) retire(pkt []link.Buf, sentAt int64) {
	for i := range pkt {
		if pkt[i].Frame&txFrame == 0 {
			l.giveUp(pkt[i:i+1], "Send")
			continue
		}
		n := pkt[i].Frame &^ txFrame
		l.tx.giveUp(n, "Send")
		l.egress.frames = append(l.egress.frames, leaving{at: sentAt, frame: n})
		l.held--
	}
}

// reclaim frees the frames that have been transmitted by now.
func (l *Link) reclaim() {
	q, n := l.egress.frames, 0
	for n < len(q) && q[n].at <= l.net.clock.now {
		l.tx.free = append(l.tx.free, q[n].frame)
		n++
	}
	if n > 0 {
		l.egress.frames = q[:copy(q, q[n:])]
	}
}

func (l *Link) pool(frame uint32) (*pool, uint32) {
	if frame&txFrame != 0 {
		return &l.tx, frame &^ txFrame
	}
	if g := l.merged; g != nil && frame >= g.first {
		return &g.parts, frame - g.first
	}
	return &l.rx.frames, frame
}

// Outstanding returns the number of frames that the owner holds. Only the owner may call it, also after Close.
func (l *Link) Outstanding() int { return l.held }

// Pending returns the number of packets and parts of packets that wait for Recv.
func (l *Link) Pending() int { return int(l.rx.pending.Load()) }

// Sent returns the number of packets that Send has accepted.
func (l *Link) Sent() uint64 { return l.txPackets.Load() }

// Keep implements link.Link. It moves the packet into other frames, so that a holder that uses the old ones is found.
func (l *Link) Keep(bufs []link.Buf) {
	m := &l.rx
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.merged != nil {
		m.frames.free = append(m.frames.free, l.given...)
		l.given = l.given[:0]
	}
	for i := range bufs {
		b := &bufs[i]
		from, n := l.pool(b.Frame)
		from.check(n, "Keep")
		if (from != &m.frames || from.blank != nil) && len(m.frames.free) > 0 {
			f := m.frames.take()
			m.frames.held[f], l.ways[f] = true, l.ways[b.Frame]
			data := m.frames.data(f)
			data = data[:copy(data, b.Data)]
			l.giveUp(bufs[i:i+1], "Keep")
			l.held++ // f
			b.Data, b.Frame = data, f
		}
		l.kept[b.Frame] = true
	}
}

// mustKeep panics if the owner holds a frame of the last Recv that it has not announced with Keep. A real link may give
// such frames to other packets.
func (l *Link) mustKeep() {
	for _, f := range l.last {
		if frames, n := l.pool(f); frames.held[n] && !l.kept[f] {
			panic(fmt.Sprintf("simlink: Recv: frame %d is held from the last Recv without Keep", f))
		}
	}
	l.last = l.last[:0]
}

// Source implements link.Link.
func (l *Link) Source(b *link.Buf) netip.AddrPort {
	if b.Frame&txFrame != 0 {
		panic("simlink: Source: the frame was not received")
	}
	frames, n := l.pool(b.Frame)
	frames.check(n, "Source")
	return l.ways[b.Frame].from.addr
}

// Target implements link.Link.
func (l *Link) Target(*link.Buf) netip.Addr { return l.at.addr.Addr() }

// Local implements link.Link.
func (l *Link) Local() netip.AddrPort { return l.at.addr }

// Caps implements link.Link.
func (l *Link) Caps() link.Caps { return l.caps }

// Stats implements link.Link. Packets that the network loses are not counted, as in a real network. RxGroups counts the
// blocks with several packets.
func (l *Link) Stats() link.Stats {
	m := &l.rx
	m.mu.Lock()
	defer m.mu.Unlock()
	return link.Stats{
		RxPackets: m.packets, RxBytes: m.bytes, RxDropped: m.dropped, RxInvalid: m.invalid,
		TxPackets: l.txPackets.Load(), TxBytes: l.txBytes.Load(), TxDropped: l.txDropped.Load(),
		Wakeups: m.gate.wakeups, RxGroups: m.groups,
	}
}

// Close implements link.Link. Another link may use the address afterwards. A second Close does nothing.
func (l *Link) Close() error {
	l.rx.mu.Lock()
	l.rx.closed = true
	l.rx.head, l.rx.last, l.rx.left = l.rx.tail, l.rx.tail, 0
	l.rx.publish()
	l.rx.gate.open()
	l.rx.mu.Unlock()
	l.at.link.CompareAndSwap(l, nil)
	return nil
}
