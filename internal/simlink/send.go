package simlink

import (
	"fmt"
	"math"

	"github.com/datxdp/datxdp/link"
)

const (
	// wireOverhead is the size in bytes of the Ethernet (with FCS), IPv4 and UDP headers. Rate counts these bytes too.
	wireOverhead = 46
	// reorderSpan, in nanoseconds, limits the delay of a reordered packet; the limit is the propagation delay if that
	// is longer. It is the time of a few packets at 1 Gb/s.
	reorderSpan = 50_000
)

// Send implements link.Link. It panics on misuse: a frame that is not held, data outside its frame, too many frames or
// bytes in a packet, and a PathReply that link.Link does not allow.
func (l *Link) Send(bufs []link.Buf) {
	var t tally
	l.sending.batch++
	if l.cfg.Immediate {
		l.sendNow(bufs, &t)
	} else {
		l.sendLater(bufs, &t)
	}
	l.txPackets.Add(t.packets)
	l.txBytes.Add(t.bytes)
	if t.dropped > 0 {
		l.txDropped.Add(t.dropped)
	}
}

// tally counts the packets of one batch.
type tally struct{ packets, bytes, dropped uint64 }

func (t *tally) add(sent bool, total int) {
	if !sent {
		t.dropped++
		return
	}
	t.packets++
	t.bytes += uint64(total)
}

// sendNow delivers a batch in immediate mode.
func (l *Link) sendNow(bufs []link.Buf, t *tally) {
	var locked *mailbox
	for rest := bufs; len(rest) > 0; {
		pkt := rest[:packetLen(rest)]
		rest = rest[len(pkt):]
		total := l.checkPacket(pkt)
		way := l.way(&pkt[0])
		if way != nil {
			locked = l.pass(way, pkt, total, locked)
		}
		t.add(way != nil, total)
	}
	if locked != nil {
		locked.release()
	}
	l.giveUp(bufs, "Send")
}

// sendLater puts a batch on the wire in virtual time.
func (l *Link) sendLater(bufs []link.Buf, t *tally) {
	for len(bufs) > 0 {
		limit := l.cfg.Group
		if l.sending.single[bufs[0].Path] {
			limit = 0
		}
		behind := l.sending.next(bufs, limit)
		pkt := bufs[:packetLen(bufs)]
		bufs = bufs[len(pkt):]
		total := l.checkPacket(pkt)
		way := l.way(&pkt[0])
		sent := way != nil && l.launch(way, pkt, total, behind)
		t.add(sent, total)
		if !sent {
			l.giveUp(pkt, "Send")
		}
	}
}

// packetLen returns the number of Bufs in the first packet.
func packetLen(bufs []link.Buf) int {
	n := 1
	for bufs[n-1].Flags&link.More != 0 {
		if n == len(bufs) {
			panic("simlink: Send: the last packet is not complete")
		}
		n++
	}
	return n
}

// checkPacket panics if link.Link does not allow the packet. It returns the packet's size.
func (l *Link) checkPacket(pkt []link.Buf) int {
	total := 0
	for i := range pkt {
		frames, n := l.pool(pkt[i].Frame)
		frames.check(n, "Send")
		if _, ok := offset(pkt[i].Data, frames.data(n)); !ok && (i == 0 || !l.inMemory(pkt[i].Data)) {
			panic(fmt.Sprintf("simlink: Send: data lies outside %s frame %d", frames.name, n))
		}
		total += len(pkt[i].Data)
	}
	if len(pkt) > l.cfg.Segments || total > l.cfg.MTU {
		panic(fmt.Sprintf("simlink: Send: packet of %d bytes in %d frames, limits are %d and %d",
			total, len(pkt), l.cfg.MTU, l.cfg.Segments))
	}
	return total
}

// inMemory reports whether data is not empty and lies in one block of the link's memory.
func (l *Link) inMemory(data []byte) bool {
	at, ok := offset(data, l.caps.Memory)
	return ok && len(data) > 0 && at%l.caps.Block+len(data) <= l.caps.Block
}

// way returns the line that a packet takes; nil for none.
func (l *Link) way(b *link.Buf) *line {
	if b.Path != link.PathReply {
		return l.paths.Get(b.Path)
	}
	if b.Frame&txFrame != 0 {
		panic("simlink: Send: PathReply on a frame that was not received")
	}
	frames, n := l.pool(b.Frame)
	if at, _ := offset(b.Data, frames.data(n)); at != 0 {
		panic("simlink: Send: PathReply on data that was moved in its frame")
	}
	return l.net.back(l.ways[b.Frame], b.Port)
}

// pass delivers a packet in immediate mode. It returns the receiver's mailbox, which stays locked, so that consecutive
// packets to one receiver take the lock only once.
func (l *Link) pass(way *line, pkt []link.Buf, total int, locked *mailbox) *mailbox {
	dst := way.to.link.Load()
	if dst == nil || l.lost(way, total) {
		return locked
	}
	if locked != &dst.rx {
		if locked != nil {
			locked.release()
		}
		locked = &dst.rx
		locked.mu.Lock()
	}
	if l.net.clean {
		locked.deliver(way, l.sending.batch, pkt, total, unharmed)
		return locked
	}
	locked.deliver(way, l.sending.batch, pkt, total, l.draw(total))
	if l.roll(l.cfg.Duplicate) {
		locked.deliver(way, l.sending.batch, pkt, total, l.draw(total))
	}
	return locked
}

// launch puts a packet on the wire in virtual time, and keeps its frames until it has been transmitted. Without a switch
// the packet arrives together with the bytes behind it in its group. If the queue is full launch does nothing and
// returns false.
func (l *Link) launch(way *line, pkt []link.Buf, total, behind int) bool {
	cfg, now := l.cfg, l.net.clock.now
	l.reclaim()
	depth := len(l.egress.frames)
	if cfg.QueueFrames > 0 && depth+len(pkt) > cfg.QueueFrames {
		return false
	}
	e := event{way: way, batch: l.sending.batch, entering: cfg.Switch.present()}
	if cfg.MarkFrames > 0 && depth >= cfg.MarkFrames {
		e.markCE()
	}
	sentAt := l.egress.wire.transmit(now, total+wireOverhead)
	e.at = sentAt
	switch {
	case e.entering:
		e.at += way.delay / 2
	case cfg.Rate > 0:
		e.at += way.delay + int64(behind)*8e9/cfg.Rate
	default:
		e.at += way.delay
	}
	if !l.at.down && !l.lost(way, total) {
		l.fly(e, pkt, total)
		if l.roll(cfg.Duplicate) {
			l.fly(e, pkt, total)
		}
	}
	l.retire(pkt, sentAt)
	return true
}

// fly puts one copy of a packet in flight.
func (l *Link) fly(e event, pkt []link.Buf, total int) {
	f := l.draw(total)
	if f.swap {
		e.hold = 1 + l.rng.Int64N(e.way.delay+reorderSpan)
	}
	if h := &e.way.hold; l.roll(h.Share) {
		e.hold += int64(h.Min) + l.rng.Int64N(int64(h.Max-h.Min)+1)
	}
	if !e.entering {
		e.at += e.hold
	}
	data := l.net.clock.launch(e, pkt)
	if f.flip >= 0 {
		data[f.flip/8] ^= 1 << (f.flip % 8)
	}
}

// lost reports whether the network loses a packet of this size.
func (l *Link) lost(way *line, total int) bool {
	if way.cut.Load() || int64(total) > way.mtu.Load() || l.net.cfg.NoGroups && l.sending.whole {
		return true
	}
	p := way.loss.Load()
	return p != 0 && l.roll(math.Float64frombits(p))
}

// draw chooses the fate of an arriving packet.
func (l *Link) draw(total int) fate {
	f := unharmed
	f.swap = l.roll(l.cfg.Reorder)
	if total > 0 && l.roll(l.cfg.Corrupt) {
		f.flip = l.rng.IntN(total * 8)
	}
	return f
}

// roll returns true with probability p. If p is 0 it draws no random number, so that an option that is not used does
// not change the other random choices of a seed.
func (l *Link) roll(p float64) bool { return p > 0 && l.rng.Float64() < p }
