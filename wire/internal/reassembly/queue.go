// Package reassembly holds packets that arrived before their turn, in their own frames, and writes the block of a
// selective acknowledgement that names them (RFC 2018).
//
// Ownership: the frames of a packet belong to the queue from Hold to Remove, which returns them.
// Threading: a Queue has one owner.
package reassembly

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// InitialSlots is the size of a new table in packets. It doubles as needed.
const InitialSlots = 256

// Packet is a packet that is held. It is valid until it is taken out.
type Packet struct {
	Bufs  []link.Buf
	Total int // bytes, header to trailer
}

// Queue is the early packets of one connection, by PSN. Its zero value is empty. Its methods get the PSN that is expected
// next: every packet that is held is that one or a later one.
type Queue struct {
	slots   []Packet // of a power of two
	packets int
	frames  int
}

// Packets is the number of packets that are held, Frames that of their frames.
func (q *Queue) Packets() int { return q.packets }

// Frames is the number of frames that are held.
func (q *Queue) Frames() int { return q.frames }

func (q *Queue) slot(psn seq.Num) *Packet { return &q.slots[uint32(psn)&uint32(len(q.slots)-1)] }

// At returns a packet, nil if it is not held.
func (q *Queue) At(next, psn seq.Num) *Packet {
	if q.packets == 0 || psn.Sub(next) >= len(q.slots) {
		return nil
	}
	if p := q.slot(psn); len(p.Bufs) > 0 {
		return p
	}
	return nil
}

// Hold takes a packet in, which is not held yet and not before next. It copies bufs, not the frames.
func (q *Queue) Hold(next, psn seq.Num, bufs []link.Buf, total int) {
	if d := psn.Sub(next); d >= len(q.slots) {
		q.grow(next, d)
	}
	p := q.slot(psn)
	p.Bufs, p.Total = append(p.Bufs, bufs...), total
	q.packets++
	q.frames += len(bufs)
}

// grow makes room for a packet that is d packets after next.
func (q *Queue) grow(next seq.Num, d int) {
	n := max(len(q.slots), InitialSlots)
	for n <= d {
		n *= 2
	}
	old := *q
	q.slots = make([]Packet, n)
	for i := range old.slots {
		psn := next + seq.Num(i)
		*q.slot(psn) = *old.slot(psn)
	}
}

// Remove takes a packet out that is held and appends its frames to drop, which it returns.
func (q *Queue) Remove(p *Packet, drop []link.Buf) []link.Buf {
	drop = append(drop, p.Bufs...)
	q.frames -= len(p.Bufs)
	q.packets--
	clear(p.Bufs)
	p.Bufs = p.Bufs[:0]
	return drop
}

// RemoveAll takes every packet out.
func (q *Queue) RemoveAll(drop []link.Buf) []link.Buf {
	for i := range q.slots {
		if p := &q.slots[i]; len(p.Bufs) > 0 {
			drop = q.Remove(p, drop)
		}
	}
	return drop
}

// Last is the distance from next to the last packet that is held. It is 0 if none is, or only next itself.
func (q *Queue) Last(next seq.Num) int {
	if q.packets == 0 {
		return 0
	}
	d := len(q.slots) - 1
	for d > 0 && len(q.slot(next+seq.Num(d)).Bufs) == 0 {
		d--
	}
	return d
}

// PutSACK writes which packets after next are held, as far as b has bits: bit i, from the least significant of the
// first byte on, is that of next + 1 + i.
func (q *Queue) PutSACK(next seq.Num, b []byte) {
	clear(b)
	for d := 1; d <= min(len(b)*8, len(q.slots)-1); d++ {
		if len(q.slot(next+seq.Num(d)).Bufs) > 0 {
			b[(d-1)/8] |= 1 << ((d - 1) % 8)
		}
	}
}
