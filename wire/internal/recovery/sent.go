// Package recovery keeps the packets of one connection that have left and are not acknowledged, and finds those that are lost:
// by a selective acknowledgement of packets that left later (RFC 6675, with the time condition of RACK, RFC 8985), by a
// timeout, or because the receiver reneged (RFC 2018 §8).
//
// It sends nothing and arms no timer. Its caller makes the packets, and says when a timeout fired.
//
// A Sent has one owner.
package recovery

import (
	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

const (
	// ReorderThreshold is how many later packets must have arrived before one is marked lost (RFC 9002 §6.1.1).
	ReorderThreshold = 3
	// initialPackets is the size of a new connection's table, which doubles as needed.
	initialPackets = 16
)

// Sent is the packets from Una to Nxt.
type Sent struct {
	Una, Nxt seq.Num // oldest packet not acknowledged, next new packet (RFC 9293 §3.3.1)
	Limit    int     // how far Nxt may be ahead of Una, in packets

	packets  []Packet // of a power of two
	pipe     int      // packets in the network, as far as is known (RFC 6675)
	partials int      // partial packets that are not acknowledged
	lost     int      // packets marked lost and not sent again
	firstGap seq.Num  // no packet before it is marked lost
	highSACK seq.Num  // one past the highest packet known to have arrived
	tailLoss bool     // a tail loss probe is to be sent: one packet above the window

	Retransmits uint64 // packets sent again
}

// Restart empties the table and begins with packet psn.
func (s *Sent) Restart(psn seq.Num) {
	*s = Sent{Una: psn, Nxt: psn, firstGap: psn, highSACK: psn, packets: s.packets}
}

// Empty reports whether everything that left is acknowledged.
func (s *Sent) Empty() bool { return s.Una == s.Nxt }

// Full reports whether no new packet may leave before Una is acknowledged.
func (s *Sent) Full() bool { return s.Nxt.Sub(s.Una) >= s.Limit }

// Pipe is the number of packets in the network, as far as is known.
func (s *Sent) Pipe() int { return s.pipe }

// Partials is the number of partial packets that are not acknowledged.
func (s *Sent) Partials() int { return s.partials }

// Lost is the number of packets that are marked lost and were not sent again.
func (s *Sent) Lost() int { return s.lost }

// TailLossProbe reports whether the next packet that is sent again is a tail loss probe, which the congestion
// window does not hold back.
func (s *Sent) TailLossProbe() bool { return s.tailLoss }

// At is the entry of a packet from Una to Nxt-1.
func (s *Sent) At(psn seq.Num) *Packet { return &s.packets[uint32(psn)&uint32(len(s.packets)-1)] }

// Oldest is the entry of Una, which there is.
func (s *Sent) Oldest() *Packet { return s.At(s.Una) }

// Next is the entry for the next new packet. It becomes one of the table with Add.
func (s *Sent) Next() *Packet {
	if n := len(s.packets); s.Nxt.Sub(s.Una) >= n {
		s.grow(max(2*n, initialPackets))
	}
	return s.At(s.Nxt)
}

func (s *Sent) grow(n int) {
	old := *s
	s.packets = make([]Packet, n)
	for psn := s.Una; psn != s.Nxt; psn++ {
		*s.At(psn) = *old.At(psn)
	}
}

// Add takes in that the packet of Next has left.
func (s *Sent) Add(p *Packet) {
	p.First = p.Sent
	if p.Partial {
		s.partials++
	}
	s.Nxt++
}

// Left takes in that a packet leaves, for the first time or again.
func (s *Sent) Left(p *Packet, now clock.Time) {
	p.Sent, p.inPipe = now, true
	s.pipe++
}

// Ack drops the packets before ack, which is in (Una, Nxt], and returns the last of them. undo says that one of them
// was marked lost and not sent again: it had arrived. The result is valid until the next call of Next.
func (s *Sent) Ack(ack seq.Num) (last *Packet, undo bool) {
	for ; s.Una != ack; s.Una++ {
		last = s.At(s.Una)
		if last.Partial {
			s.partials--
		}
		undo = undo || last.lost
		s.settle(last)
	}
	if s.firstGap.Less(s.Una) {
		s.firstGap = s.Una
	}
	if s.highSACK.Less(s.Una) {
		s.highSACK = s.Una
	}
	return last, undo
}

// settle takes a packet out of the pipe and off the lost ones.
func (s *Sent) settle(p *Packet) {
	if p.inPipe {
		p.inPipe = false
		s.pipe--
	}
	if p.lost {
		p.lost = false
		s.lost--
	}
}

// MarkLost marks a packet lost, to be sent again.
func (s *Sent) MarkLost(psn seq.Num, cause uint8) {
	p := s.At(psn)
	s.settle(p)
	p.lost, p.Cause = true, cause
	s.lost++
	if psn.Less(s.firstGap) {
		s.firstGap = psn
	}
}

// SACK takes in a block of a selective acknowledgement: bit i, from the least significant of the first byte on, says
// that packet Una + 1 + i has arrived.
func (s *Sent) SACK(block []byte) {
	for i := range len(block) * 8 {
		psn := s.Una + 1 + seq.Num(i)
		if !psn.Less(s.Nxt) {
			return
		}
		if block[i/8]>>(i%8)&1 == 0 {
			continue
		}
		p := s.At(psn)
		p.sacked = true
		s.settle(p)
		if s.highSACK.LessEq(psn) {
			s.highSACK = psn + 1
		}
	}
}

// DetectLost marks lost what has not arrived, left at a time or before, and comes ReorderThreshold packets before one that
// has arrived. It reports whether there was any.
func (s *Sent) DetectLost(before clock.Time, cause uint8) bool {
	return s.markLost(s.highSACK-1-ReorderThreshold, before, cause)
}

// MarkAllLost marks lost everything that has not arrived.
func (s *Sent) MarkAllLost(now clock.Time, cause uint8) { s.markLost(s.Nxt, now, cause) }

func (s *Sent) markLost(last seq.Num, before clock.Time, cause uint8) bool {
	was := s.lost
	for psn := s.Una; psn.LessEq(last) && psn.Less(s.Nxt); psn++ {
		if p := s.At(psn); !p.sacked && !p.lost && p.Sent <= before {
			s.MarkLost(psn, cause)
		}
	}
	return s.lost > was
}

// ProbeTail marks the newest packet lost that has not arrived, and has it leave above the window: a tail loss probe
// (RFC 8985 §7). Its acknowledgement shows what else is missing, and if the peer was only slow, one packet was sent
// in vain and not a window of them.
func (s *Sent) ProbeTail(cause uint8) {
	for psn := s.Nxt - 1; s.Una.LessEq(psn); psn-- {
		if p := s.At(psn); !p.sacked && !p.lost {
			s.MarkLost(psn, cause)
			s.tailLoss = true
			return
		}
	}
}

// DetectReneging marks Una lost if it was said to have arrived: the peer has dropped it again, it would have acknowledged
// beyond it otherwise.
func (s *Sent) DetectReneging(cause uint8) {
	if s.Empty() {
		return
	}
	if p := s.Oldest(); p.sacked {
		p.sacked = false
		s.MarkLost(s.Una, cause)
	}
}

// IsLost reports whether a packet is marked lost.
func (p *Packet) IsLost() bool { return p.lost }

// NextLost is the first packet that is marked lost; nil if none is.
func (s *Sent) NextLost() (seq.Num, *Packet) {
	for ; s.firstGap.Less(s.Nxt); s.firstGap++ {
		if p := s.At(s.firstGap); p.lost {
			return s.firstGap, p
		}
	}
	s.firstGap, s.lost = s.Una, 0 // cannot be: lost counts what is marked
	return s.Nxt, nil
}

// Resent takes in that a packet which was marked lost has left again.
func (s *Sent) Resent(p *Packet) {
	p.lost, s.tailLoss = false, false
	s.lost--
	s.Retransmits++
}

// HasLarger reports whether a packet above a size in bytes has not arrived.
func (s *Sent) HasLarger(size int32) bool {
	for psn := s.Una; psn != s.Nxt; psn++ {
		if p := s.At(psn); !p.sacked && p.Size > size {
			return true
		}
	}
	return false
}

// HasReady reports whether a packet carries OpReady.
func (s *Sent) HasReady() bool {
	for psn := s.Una; psn != s.Nxt; psn++ {
		if s.At(psn).Ready {
			return true
		}
	}
	return false
}

// Rewind forgets the packets that are not acknowledged, whose numbers are used again, and returns how many there
// were. They count as sent again.
func (s *Sent) Rewind() int {
	n := s.Nxt.Sub(s.Una)
	s.Retransmits += uint64(n)
	s.Nxt, s.firstGap, s.highSACK = s.Una, s.Una, s.Una
	s.pipe, s.lost, s.partials = 0, 0, 0
	return n
}
