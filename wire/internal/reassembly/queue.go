// Package reassembly holds packets that arrive before their turn, in the frames in which they arrived. It also writes
// the SACK block that names them (RFC 2018).
//
// A queue has a table only while it holds packets. Empty tables wait in a Pool for the next queue that needs one. So a
// lost packet costs no allocation on an ordinary path, and the number of tables is bounded by the number of held
// packets, not by the number of connections.
//
// Ownership: the queue owns the frames of a packet from Hold until Remove returns them.
//
// Threading: a Pool and its queues have one owner.
package reassembly

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// InitialSlots is the size of a new table in packets. The table doubles as needed.
const InitialSlots = 256

// PoolSize is the largest number of tables in a Pool.
const PoolSize = 64

// Pool keeps empty tables for the queues of an engine. The zero value is empty.
type Pool struct {
	tables [][]Packet
}

// Len returns the number of tables in the pool.
func (p *Pool) Len() int { return len(p.tables) }

// get returns an empty table.
func (p *Pool) get() []Packet {
	n := len(p.tables) - 1
	if n < 0 {
		return make([]Packet, InitialSlots)
	}
	t := p.tables[n]
	p.tables[n], p.tables = nil, p.tables[:n]
	return t
}

// put takes back an empty table. If the pool is full, the table is garbage.
func (p *Pool) put(t []Packet) {
	if len(p.tables) < PoolSize {
		p.tables = append(p.tables, t)
	}
}

// Packet is a held packet. It is valid until Remove.
type Packet struct {
	Bufs []link.Buf
	End  int // length of header and body in bytes
}

// Queue holds the early packets of one connection by PSN. In all methods, nextPSN is the PSN that the receiver expects.
// No held packet precedes that PSN.
type Queue struct {
	pool    *Pool
	slots   []Packet // the table; its length is a power of two; nil while no packet is held
	packets int
	frames  int
}

// New returns an empty queue with tables from a pool.
func New(p *Pool) Queue { return Queue{pool: p} }

// Packets returns the number of held packets.
func (q *Queue) Packets() int { return q.packets }

// Frames returns the number of frames of all held packets.
func (q *Queue) Frames() int { return q.frames }

func (q *Queue) slot(psn seq.Num) *Packet { return &q.slots[uint32(psn)&uint32(len(q.slots)-1)] }

// At returns the held packet with PSN psn, or nil.
func (q *Queue) At(nextPSN, psn seq.Num) *Packet {
	if q.packets == 0 || psn.Sub(nextPSN) >= len(q.slots) {
		return nil
	}
	if p := q.slot(psn); len(p.Bufs) > 0 {
		return p
	}
	return nil
}

// Hold adds a packet that is not held yet and does not precede nextPSN. Hold copies bufs, but not the frames.
func (q *Queue) Hold(nextPSN, psn seq.Num, bufs []link.Buf, end int) {
	if q.packets == 0 {
		q.slots = q.pool.get()
	}
	if d := psn.Sub(nextPSN); d >= len(q.slots) {
		q.grow(nextPSN, d)
	}
	p := q.slot(psn)
	p.Bufs, p.End = append(p.Bufs, bufs...), end
	q.packets++
	q.frames += len(bufs)
}

// grow enlarges the table for a packet whose PSN is nextPSN+d.
func (q *Queue) grow(nextPSN seq.Num, d int) {
	n := len(q.slots)
	for n <= d {
		n *= 2
	}
	old := *q
	q.slots = make([]Packet, n)
	for i := range old.slots {
		psn := nextPSN + seq.Num(i)
		*q.slot(psn) = *old.slot(psn)
	}
}

// Remove removes a held packet. It appends the frames of the packet to drop and returns the extended slice.
func (q *Queue) Remove(p *Packet, drop []link.Buf) []link.Buf {
	drop = append(drop, p.Bufs...)
	q.frames -= len(p.Bufs)
	q.packets--
	clear(p.Bufs)
	p.Bufs = p.Bufs[:0]
	if q.packets == 0 {
		q.pool.put(q.slots)
		q.slots = nil
	}
	return drop
}

// RemoveAll removes every packet, as Remove does.
func (q *Queue) RemoveAll(drop []link.Buf) []link.Buf {
	t := q.slots
	for i := 0; q.packets > 0; i++ {
		if p := &t[i]; len(p.Bufs) > 0 {
			drop = q.Remove(p, drop)
		}
	}
	return drop
}

// Last returns the distance from nextPSN to the last held packet, or 0 if no packet after nextPSN is held.
func (q *Queue) Last(nextPSN seq.Num) int {
	if q.packets == 0 {
		return 0
	}
	d := len(q.slots) - 1
	for d > 0 && len(q.slot(nextPSN+seq.Num(d)).Bufs) == 0 {
		d--
	}
	return d
}

// PutSACK fills b with a SACK block. Bit i, least significant bits first, stands for packet nextPSN+1+i.
func (q *Queue) PutSACK(nextPSN seq.Num, b []byte) {
	clear(b)
	for d := 1; d <= min(len(b)*8, len(q.slots)-1); d++ {
		if len(q.slot(nextPSN+seq.Num(d)).Bufs) > 0 {
			b[(d-1)/8] |= 1 << ((d - 1) % 8)
		}
	}
}
