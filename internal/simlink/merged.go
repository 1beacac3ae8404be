package simlink

import (
	"bytes"
	"fmt"

	"github.com/datxdp/datxdp/link"
)

// maxMerged is the largest number of packets in a block.
const maxMerged = 64

// merged has the blocks into which a link receives if Config.Group is set. A block holds one packet, or packets of one
// group that arrived one after the other. It is free again when the owner has given up each of its packets. The owner
// of the link uses merged while it holds the mailbox's lock, except for refs and free.
type merged struct {
	first uint32   // frame number of the first packet of block 0; each block has maxMerged frame numbers
	size  int      // of a block in bytes
	slab  []byte   // memory of all blocks
	parts pool     // the packets in the blocks; its cuts say where they are
	refs  []uint32 // references to each block: packets that the owner holds, and 1 for packets that are left in it
	free  []uint32 // free blocks

	next  uint32     // index of the next packet that Recv returns
	left  int        // number of packets in the same block that Recv has not returned
	flags link.Flags // of these packets
}

// outgoing is the batch that a link sends, and what is left of the group in it.
type outgoing struct {
	batch   uint64             // number of the Send
	packets int                // left in the group; virtual time only
	bytes   int                // of these packets on the wire
	whole   bool               // the group has several packets
	single  map[link.Path]bool // paths of SendSingly
}

// next takes the first packet of bufs out of its group, which has at most limit bytes. It returns the bytes on the wire
// that are behind the packet in the group.
func (o *outgoing) next(bufs []link.Buf, limit int) int {
	if limit == 0 {
		o.whole = false
		return 0
	}
	lead := &bufs[0]
	if o.packets == 0 {
		size := 0
		for more := true; more && o.packets < len(bufs); o.packets++ {
			b := &bufs[o.packets]
			if size += len(b.Data); o.packets > 0 && (b.Path != lead.Path || len(b.Data) > len(lead.Data) || size > limit) {
				break
			}
			o.bytes += len(b.Data) + wireOverhead
			more = len(b.Data) == len(lead.Data) && b.Path != link.PathReply
		}
		o.whole = o.packets > 1
	}
	o.packets--
	o.bytes -= len(lead.Data) + wireOverhead
	return o.bytes
}

// newMerged returns nil if the configuration has no groups.
func newMerged(cfg *Config) *merged {
	if cfg.Group == 0 {
		return nil
	}
	g := &merged{
		first: uint32(cfg.Frames),
		size:  max(cfg.Group, cfg.RxFrameSize),
		parts: pool{name: "merged", held: make([]bool, cfg.Blocks*maxMerged), cuts: make([][]byte, cfg.Blocks*maxMerged)},
		refs:  make([]uint32, cfg.Blocks),
	}
	g.slab = make([]byte, cfg.Blocks*g.size)
	if !cfg.Unchecked {
		g.parts.blank = bytes.Repeat([]byte{poison}, g.size)
		for i := 0; i < len(g.slab); i += g.size {
			copy(g.slab[i:], g.parts.blank)
		}
	}
	for b := cfg.Blocks; b > 0; b-- {
		g.free = append(g.free, uint32(b-1))
	}
	return g
}

// recvMerged fills bufs with packets from blocks. The caller holds the mailbox's lock.
func (l *Link) recvMerged(bufs []link.Buf) (n int) {
	g := l.merged
	for n < len(bufs) && (g.left > 0 || l.merge()) {
		block, frame := g.next/maxMerged, g.first+g.next
		g.refs[block]++
		g.parts.held[g.next] = true
		l.last, l.kept[frame] = append(l.last, frame), false
		bufs[n] = link.Buf{Data: g.parts.data(g.next), Frame: frame, Flags: g.flags}
		n++
		g.next++
		if g.left--; g.left == 0 {
			g.release(block)
		}
	}
	l.rx.left = g.left
	return n
}

// merge moves the oldest waiting packet, and the packets that belong to the same group and follow it, from the mailbox
// into a block. It reports false if no packet waits or no block is free. The caller holds the mailbox's lock.
func (l *Link) merge() bool {
	g, m := l.merged, &l.rx
	if m.head == m.tail || len(g.free) == 0 {
		return false
	}
	block, lead := g.take(), *m.at(m.head)
	rest := g.slab[int(block)*g.size:][:g.size]
	g.refs[block], g.next, g.flags = 1, block*maxMerged, lead.flags
	for more := true; more && m.head != m.tail && g.left < maxMerged; {
		e := m.at(m.head)
		n := int(e.length)
		if g.left > 0 && (e.way != lead.way || e.batch != lead.batch || e.flags != lead.flags || n > min(int(lead.length), len(rest))) {
			break
		}
		i := g.next + uint32(g.left)
		copy(rest, m.frames.data(e.frame)[:n])
		g.parts.cuts[i], rest = rest[:n:n], rest[n:]
		l.ways[g.first+i] = e.way
		m.frames.putBack(e.frame)
		m.head++
		m.packets++
		m.bytes += uint64(n)
		g.left++
		more = e.length == lead.length && n > 0 // a shorter packet is the last one of its group
	}
	if g.left > 1 {
		m.groups++
	}
	return true
}

// take pops a free block; there must be one. It panics if the block was written.
func (g *merged) take() uint32 {
	b := g.free[len(g.free)-1]
	g.free = g.free[:len(g.free)-1]
	if blank := g.parts.blank; blank != nil && !bytes.Equal(g.slab[int(b)*g.size:][:g.size], blank) {
		panic(fmt.Sprintf("simlink: block %d was written after its packets were given back", b))
	}
	return b
}

// release ends one reference to a block.
func (g *merged) release(block uint32) {
	if g.refs[block]--; g.refs[block] == 0 {
		g.free = append(g.free, block)
	}
}
