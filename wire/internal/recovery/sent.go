// Package recovery keeps the sent packets of a connection until they are acknowledged, and detects lost ones. A packet
// is marked lost in three cases: later packets were selectively acknowledged (RFC 6675, with the time condition of
// RACK, RFC 8985), a timeout has passed, or the receiver has reneged (RFC 2018 §8).
//
// The package sends nothing and has no timer. Its caller builds the packets and reports timeouts.
//
// A Sent has one owner.
package recovery

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

const (
	// ReorderThreshold is the number of later packets that must have arrived before a packet is marked lost (RFC 9002
	// §6.1.1).
	ReorderThreshold = 3
	// initialPackets is the size of a new table in packets. The table doubles as needed.
	initialPackets = 16
)

// Sent holds the packets from Una to Nxt-1.
type Sent struct {
	Una, Nxt seq.Num // oldest unacknowledged packet, and next new packet (RFC 9293 §3.3.1)
	Limit    int     // receive window of the peer: largest Nxt-Una, in packets

	packets  []Packet // length is a power of two
	pipe     int32    // packets assumed to be in the network (RFC 6675)
	partials int32    // unacknowledged partial packets
	lost     int32    // packets marked lost and not sent again since
	firstGap seq.Num  // no packet before this one is marked lost
	highSACK seq.Num  // PSN after the highest selectively acknowledged packet
	tailLoss bool     // the next lost packet is a tail loss probe, which may exceed the congestion window
	arrived  arrival
	reorder  reordering

	Retransmits uint64 // packets sent again
}

// Restart empties the table. The next packet has PSN psn.
func (s *Sent) Restart(psn seq.Num) {
	*s = Sent{Una: psn, Nxt: psn, firstGap: psn, highSACK: psn, reorder: reordering{roundEnd: psn}, packets: s.packets}
}

// Empty reports whether every sent packet is acknowledged.
func (s *Sent) Empty() bool { return s.Una == s.Nxt }

// Full reports whether the peer's receive window is full.
func (s *Sent) Full() bool { return s.Nxt.Sub(s.Una) >= s.Limit }

// Pipe returns the number of packets assumed to be in the network.
func (s *Sent) Pipe() int { return int(s.pipe) }

// Partials returns the number of unacknowledged partial packets.
func (s *Sent) Partials() int { return int(s.partials) }

// Lost returns the number of packets that are marked lost and were not sent again since.
func (s *Sent) Lost() int { return int(s.lost) }

// TailLossProbe reports whether NextLost returns a tail loss probe, which may exceed the congestion window.
func (s *Sent) TailLossProbe() bool { return s.tailLoss }

// At returns the entry of packet psn, which must be in [Una, Nxt).
func (s *Sent) At(psn seq.Num) *Packet { return &s.packets[uint32(psn)&uint32(len(s.packets)-1)] }

// Oldest returns the entry of packet Una. There must be an unacknowledged packet.
func (s *Sent) Oldest() *Packet { return s.At(s.Una) }

// NextEntry returns a free entry for the next new packet. Add puts the entry into the table.
func (s *Sent) NextEntry() *Packet {
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

// Add adds the entry from NextEntry to the table, after its packet has left.
func (s *Sent) Add(p *Packet) {
	p.FirstSentAt = p.SentAt
	if p.Partial {
		s.partials++
	}
	s.Nxt++
}

// PacketSent notes that a packet leaves, for the first time or again.
func (s *Sent) PacketSent(p *Packet, now clock.Time) {
	p.SentAt, p.inPipe = now, true
	s.pipe++
}

// Ack removes the packets before ack, which is in (Una, Nxt]. It returns the last removed entry, which is valid until
// the next call of NextEntry. The acknowledgement answers a packet that left at echoedAt, or later if echoedAt is
// clock.Never. If a removed packet was marked lost and then arrived without being sent again, the mark was a mistake, and
// the result spurious is true. Such a packet has not been sent again at all, or only after echoedAt (the Eifel detection
// algorithm, RFC 3522).
func (s *Sent) Ack(now clock.Time, ack seq.Num, echoedAt clock.Time) (last *Packet, spurious bool) {
	overtaken := false
	for ; s.Una != ack; s.Una++ {
		last = s.At(s.Una)
		if last.Retransmitted || s.Una+1 == ack { // of packets that were sent once, the last one left last
			s.arrived.observe(now, last)
		}
		if last.Partial {
			s.partials--
		}
		if last.lost || last.Retransmitted && last.SentAt > echoedAt {
			spurious = true
			overtaken = overtaken || last.overtaken
		}
		s.settle(last)
	}
	if overtaken {
		s.reorder.observe(s.Una, s.Nxt)
	}
	if s.firstGap.Less(s.Una) {
		s.firstGap = s.Una
	}
	if s.highSACK.Less(s.Una) {
		s.highSACK = s.Una
	}
	return last, spurious
}

// settle stops counting a packet as in the network or as lost.
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

// MarkLost marks a packet lost, so that NextLost returns it.
func (s *Sent) MarkLost(psn seq.Num, cause uint8) {
	p := s.At(psn)
	s.settle(p)
	p.lost, p.overtaken, p.Cause = true, false, cause
	s.lost++
	if psn.Less(s.firstGap) {
		s.firstGap = psn
	}
}

// SACK handles a SACK block. Bit i, least significant bits first, says whether packet Una+1+i has arrived.
func (s *Sent) SACK(now clock.Time, block []byte) {
	for i := range len(block) * 8 {
		psn := s.Una + 1 + seq.Num(i)
		if !psn.Less(s.Nxt) {
			return
		}
		if !isSet(block, i) {
			continue
		}
		p := s.At(psn)
		s.arrived.observe(now, p)
		p.sacked = true
		s.settle(p)
		if s.highSACK.LessEq(psn) {
			s.highSACK = psn + 1
		}
	}
}

// DetectLost marks a packet lost if four conditions hold: the packet is not known to have arrived, a packet at least
// ReorderThreshold PSNs later has arrived, so has a packet that left no sooner, and a smoothed round trip and a reordering
// window have passed since the packet left. DetectLost returns the number of packets that it has marked.
func (s *Sent) DetectLost(now clock.Time, smoothed time.Duration, cause uint8) int {
	by := min(s.arrived.sentAt, now.Add(-s.patience(smoothed)))
	was := s.lost
	for psn := s.Una; psn.LessEq(s.lastOvertaken()); psn++ {
		if p := s.At(psn); p.outstanding() && p.SentAt <= by {
			s.MarkLost(psn, cause)
			p.overtaken = true
		}
	}
	if s.lost > was {
		s.reorder.recovery(s.Una, s.Nxt)
	}
	return int(s.lost - was)
}

// patience returns how long a packet that others have overtaken may take to be acknowledged.
func (s *Sent) patience(smoothed time.Duration) time.Duration {
	return smoothed + s.reorder.window(smoothed)
}

// lastOvertaken returns the last PSN that is so far before a packet that has arrived that it may be lost.
func (s *Sent) lastOvertaken() seq.Num { return s.highSACK - 1 - ReorderThreshold }

// NextDetection returns when DetectLost has to be called because a packet that later ones have overtaken will then count
// as lost. It returns clock.Never on a path without reordering, where the next acknowledgement or a timeout does this.
func (s *Sent) NextDetection(smoothed time.Duration) clock.Time {
	at := clock.Never
	if s.reorder.window(smoothed) == 0 {
		return at
	}
	for psn := s.Una; psn.LessEq(s.lastOvertaken()); psn++ {
		if p := s.At(psn); p.outstanding() && p.SentAt <= s.arrived.sentAt {
			at = min(at, p.SentAt.Add(s.patience(smoothed)))
		}
	}
	return at
}

// MarkAllLost marks as lost every packet that is not known to have arrived.
func (s *Sent) MarkAllLost(cause uint8) {
	for psn := s.Una; psn != s.Nxt; psn++ {
		if s.At(psn).outstanding() {
			s.MarkLost(psn, cause)
		}
	}
}

// ProbeTail chooses the newest packet that is not known to have arrived. It marks this packet lost and allows it to
// exceed the congestion window, so that the caller sends it again as a tail loss probe (RFC 8985 §7). The peer's answer
// to the probe shows which other packets are missing. If no packet was lost and the peer was only slow, the probe has
// cost one packet. Sending all outstanding packets again would have cost a whole window.
func (s *Sent) ProbeTail(cause uint8) {
	for psn := s.Nxt - 1; s.Una.LessEq(psn); psn-- {
		if p := s.At(psn); !p.sacked && !p.lost {
			s.MarkLost(psn, cause)
			s.tailLoss = true
			return
		}
	}
}

// DetectReneging marks packet Una lost if it was selectively acknowledged. The peer must have dropped it: otherwise its
// cumulative acknowledgement would include it.
func (s *Sent) DetectReneging(cause uint8) {
	if s.Empty() {
		return
	}
	if p := s.Oldest(); p.sacked {
		p.sacked = false
		s.MarkLost(s.Una, cause)
	}
}

// DetectDropped marks each packet lost that an earlier SACK block acknowledged and that the newest SACK block does not
// acknowledge. A SACK block shows all packets that the peer holds, so the peer must have dropped that packet.
func (s *Sent) DetectDropped(newest []byte, cause uint8) {
	for psn := s.Una + 1; psn.Less(s.highSACK); psn++ {
		if p := s.At(psn); p.sacked && !isSet(newest, psn.Sub(s.Una+1)) {
			p.sacked = false
			s.MarkLost(psn, cause)
		}
	}
}

// isSet reports whether bit i of a SACK block is set.
func isSet(block []byte, i int) bool { return i/8 < len(block) && block[i/8]>>(i%8)&1 != 0 }

// IsLost reports whether the packet is marked lost.
func (p *Packet) IsLost() bool { return p.lost }

// NextLost returns the first packet that is marked lost, or nil.
func (s *Sent) NextLost() (seq.Num, *Packet) {
	for ; s.firstGap.Less(s.Nxt); s.firstGap++ {
		if p := s.At(s.firstGap); p.lost {
			return s.firstGap, p
		}
	}
	s.firstGap, s.lost = s.Una, 0 // unreachable: lost counts the marked packets
	return s.Nxt, nil
}

// Resent notes that a lost packet has left again.
func (s *Sent) Resent(p *Packet) {
	p.lost, s.tailLoss = false, false
	s.lost--
	s.Retransmits++
}

// HasLarger reports whether a packet of more than size bytes is not known to have arrived.
func (s *Sent) HasLarger(size int32) bool {
	for psn := s.Una; psn != s.Nxt; psn++ {
		if p := s.At(psn); !p.sacked && p.Size > size {
			return true
		}
	}
	return false
}

// HasReady reports whether an unacknowledged packet carries OpReady.
func (s *Sent) HasReady() bool {
	for psn := s.Una; psn != s.Nxt; psn++ {
		if s.At(psn).Ready {
			return true
		}
	}
	return false
}

// Rewind discards the unacknowledged packets and counts them as retransmitted. It returns their number. Their PSNs will
// be used again.
func (s *Sent) Rewind() int {
	n := s.Nxt.Sub(s.Una)
	s.Retransmits += uint64(n)
	s.Nxt, s.firstGap, s.highSACK = s.Una, s.Una, s.Una
	s.pipe, s.lost, s.partials = 0, 0, 0
	return n
}
