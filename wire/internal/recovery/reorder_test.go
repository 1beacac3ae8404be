package recovery

import (
	"testing"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
)

// late makes packet Una arrive after the five packets behind it, d ticks after it left, and then be acknowledged with all
// others. It reports whether the packet was marked lost meanwhile.
func late(s *Sent, roundTrip, d time.Duration) (marked bool) {
	first := s.Nxt
	for range 6 {
		send(s, false)
	}
	left := s.At(first).SentAt
	s.SACK(s.At(s.Nxt-1).SentAt.Add(roundTrip), []byte{0b11111})
	if s.DetectLost(left.Add(d), roundTrip, byLoss) > 0 {
		marked = true
		_, p := s.NextLost()
		p.Retransmitted = true
		s.PacketSent(p, left.Add(d))
		s.Resent(p)
	}
	s.Ack(left.Add(d), s.Nxt, left)
	return marked
}

// The reordering window must grow by a quarter of a round trip whenever a packet was sent again in vain, up to a round
// trip. It must shrink again after many recoveries in which no packet was sent again in vain.
func TestReorderingWindow(t *testing.T) {
	const roundTrip = 1000 * time.Nanosecond
	s := start(0, 0)
	for i, d := range []time.Duration{1000, 1250, 1500, 1750, 2000, 2000} {
		if !late(s, roundTrip, d) {
			t.Fatalf("packet %d is %v late and not marked lost", i, d-roundTrip)
		}
		if late(s, roundTrip, min(d+250, 2000)-1) {
			t.Fatalf("packet %d is marked lost though it is less than a window late", i)
		}
		if got, want := s.reorder.window(roundTrip), min(d-750, roundTrip); got != want {
			t.Fatalf("after %d packets that were sent again in vain the window is %v, want %v", i+1, got, want)
		}
	}
	for range maxQuarters * (reorderPersist + 1) {
		if s.reorder.window(roundTrip) == 0 {
			t.Fatal("the window shrinks too soon")
		}
		lose(s)
	}
	if w := s.reorder.window(roundTrip); w != 0 {
		t.Errorf("the window is %v after many recoveries", w)
	}
}

// lose loses a packet, which is sent again and then acknowledged with those behind it.
func lose(s *Sent) {
	first := s.Nxt
	for range 5 {
		send(s, false)
	}
	s.SACK(s.At(s.Nxt-1).SentAt, []byte{0b1111})
	s.DetectLost(clock.Never-1, 0, byLoss)
	_, p := s.NextLost()
	p.Retransmitted = true
	s.PacketSent(p, 1<<40)
	s.Resent(p)
	s.Ack(1<<40, first+5, 1<<40)
}

// NextDetection must tell when the next overtaken packet counts as lost.
func TestNextDetection(t *testing.T) {
	const roundTrip = 1000 * time.Nanosecond
	s := start(0, 0)
	send(s, false)
	if at := s.NextDetection(roundTrip); at != clock.Never {
		t.Errorf("no packet was overtaken, and the next detection is at %v", at)
	}
	s.Ack(clock.Time(0).Add(roundTrip), 1, clock.Never)
	late(s, roundTrip, roundTrip)
	una := s.Nxt
	for range 6 {
		send(s, false)
	}
	s.SACK(s.At(s.Nxt-1).SentAt.Add(roundTrip), []byte{0b11110})
	at := s.NextDetection(roundTrip)
	if want := s.At(una).SentAt.Add(roundTrip + roundTrip/4); at != want {
		t.Errorf("the next detection is at %v, want %v", at, want)
	}
	if s.DetectLost(at-1, roundTrip, byLoss) != 0 || s.DetectLost(at, roundTrip, byLoss) != 1 || una != s.Una {
		t.Error("the packet is not marked lost at that time")
	}
}

// An acknowledgement must show a mistaken mark of each kind, and nothing else.
func TestSpuriousMarks(t *testing.T) {
	for _, tt := range []struct {
		name     string
		resentAt clock.Time // 0: not sent again
		echoed   clock.Time
		want     bool
	}{
		{"marked, and not sent again", 0, clock.Never, true},
		{"sent again, and the first transmission arrived", 100, 0, true},
		{"sent again, and that arrived", 100, 100, false},
		{"sent again, and nothing is echoed", 100, clock.Never, false},
	} {
		s := start(0, 2)
		s.MarkLost(0, byTimeout)
		if tt.resentAt != 0 {
			_, p := s.NextLost()
			p.Retransmitted = true
			s.PacketSent(p, tt.resentAt)
			s.Resent(p)
		}
		if _, got := s.Ack(0, 2, tt.echoed); got != tt.want {
			t.Errorf("%s: spurious %v", tt.name, got)
		}
		if s.reorder.quarters != 0 {
			t.Errorf("%s: a timeout counts as reordering", tt.name)
		}
	}
}
