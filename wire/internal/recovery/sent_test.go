package recovery

import (
	"math/rand/v2"
	"testing"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Causes of the tests.
const (
	byLoss = iota + 1
	byTail
	byTimeout
	byReneging
)

// start returns a connection of which n packets have left, one per tick.
func start(psn seq.Num, n int) *Sent {
	s := &Sent{}
	s.Restart(psn)
	s.Limit = 1024
	for range n {
		send(s, false)
	}
	return s
}

func send(s *Sent, partial bool) {
	p := s.NextEntry()
	*p = Packet{Partial: partial, Size: 1200}
	s.PacketSent(p, s.At(s.Nxt-1).SentAt+1)
	s.Add(p)
}

// lost returns the packets that are marked lost, as offsets from the first.
func lost(s *Sent, first seq.Num) (all []int) {
	for psn := s.Una; psn != s.Nxt; psn++ {
		if s.At(psn).IsLost() {
			all = append(all, psn.Sub(first))
		}
	}
	return all
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestDetectLost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		block []byte
		late  int // packets from this offset on left after those that have arrived
		want  []int
	}{
		{"nothing arrived", []byte{0}, 100, nil},
		{"two after a hole", []byte{0b11}, 100, nil},
		{"the third packet after a hole", []byte{0b100}, 100, []int{0}},
		{"holes, and one far behind", []byte{0b10010010}, 100, []int{0, 1, 3, 4}},
		{"the same, left after those that arrived", []byte{0b10010010}, 3, []int{0, 1}},
		{"more than was sent", []byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, 100, nil},
	} {
		for _, psn := range []seq.Num{0, 1<<32 - 2} {
			s := start(psn, 10)
			s.SACK(1<<40, tt.block)
			for i := tt.late; i < 10; i++ {
				s.At(psn + seq.Num(i)).SentAt = clock.Never
			}
			found := s.DetectLost(clock.Never-1, 0, byLoss)
			if got := lost(s, psn); !equal(got, tt.want) || found != len(tt.want) {
				t.Errorf("%s: lost %v, %v; want %v", tt.name, got, found, tt.want)
			}
		}
	}
}

// A packet that was sent again must not be marked lost again before a packet arrives that left later, however long that takes.
func TestLostAgain(t *testing.T) {
	s := start(0, 5)
	const roundTrip = 100
	s.SACK(roundTrip, []byte{0b1111})
	if n := s.DetectLost(2*roundTrip, roundTrip, byLoss); n != 1 {
		t.Fatalf("%d packets are lost, want 1", n)
	}
	_, p := s.NextLost()
	p.Retransmitted = true
	s.PacketSent(p, 2*roundTrip)
	s.Resent(p)
	for range 4 {
		send(s, false)
		s.At(s.Nxt - 1).SentAt = 2*roundTrip + 1
	}
	if n := s.DetectLost(50*roundTrip, roundTrip, byLoss); n != 0 {
		t.Error("the packet is lost again, though none that left after it has arrived")
	}
	s.SACK(50*roundTrip, []byte{0b11111})
	if n := s.DetectLost(50*roundTrip, roundTrip, byLoss); n != 1 {
		t.Error("the packet is not lost again, though one that left after it has arrived")
	}
}

func TestTimeouts(t *testing.T) {
	s := start(7, 5)
	s.SACK(1<<40, []byte{0b1000}) // the newest has arrived
	s.ProbeTail(byTail)
	if got := lost(s, 7); !equal(got, []int{3}) || !s.TailLossProbe() {
		t.Fatalf("the probe sends %v again, want 3", got)
	}
	psn, p := s.NextLost()
	if psn != 10 || p.Cause != byTail {
		t.Fatalf("packet %d is sent again because of %d", psn, p.Cause)
	}
	s.PacketSent(p, 100)
	s.Resent(p)
	if s.TailLossProbe() || s.Lost() != 0 || s.Retransmits != 1 {
		t.Errorf("after the probe: %d lost, %d sent again", s.Lost(), s.Retransmits)
	}
	s.MarkAllLost(byTimeout)
	if got := lost(s, 7); !equal(got, []int{0, 1, 2, 3}) || s.Pipe() != 0 {
		t.Errorf("after a timeout %v are lost, %d in the pipe", got, s.Pipe())
	}
	if _, undo := s.Ack(1<<40, 9, clock.Never); !undo || s.Lost() != 2 {
		t.Errorf("an acknowledgement of packets marked lost: undo %v, %d lost", undo, s.Lost())
	}
	if psn, _ := s.NextLost(); psn != 9 {
		t.Errorf("packet %d is sent next, want 9", psn)
	}
}

// If a peer drops a packet that it has selectively acknowledged, the packet must be sent again.
func TestReneging(t *testing.T) {
	s := start(0, 3)
	s.SACK(1<<40, []byte{1})
	s.DetectReneging(byReneging)
	if s.Lost() != 0 {
		t.Error("a packet that has arrived is lost")
	}
	s.Ack(1<<40, 1, clock.Never)
	s.DetectReneging(byReneging)
	if got := lost(s, 0); !equal(got, []int{1}) {
		t.Errorf("%v are lost, want the packet that was said to have arrived", got)
	}
	s.Ack(1<<40, 3, clock.Never)
	if s.DetectReneging(byReneging); s.Lost() != 0 || !s.Empty() {
		t.Error("an empty table has lost packets")
	}
}

// A packet that the newest block does not show any more was dropped by the peer.
func TestDetectDropped(t *testing.T) {
	for _, tt := range []struct {
		name       string
		was, block []byte
		want       []int
	}{
		{"nothing was held", nil, nil, nil},
		{"all is still held", []byte{0b1011}, []byte{0b1011}, nil},
		{"more is held", []byte{0b1000}, []byte{0b1011}, nil},
		{"two were dropped", []byte{0b1011}, []byte{0b0010}, []int{1, 4}},
		{"all were dropped", []byte{0b1011}, nil, []int{1, 2, 4}},
		{"a shorter block", []byte{1, 1}, []byte{1}, []int{9}},
	} {
		s := start(1<<32-3, 12)
		s.SACK(1<<40, tt.was)
		s.SACK(1<<40, tt.block)
		for range 2 { // a packet is reported once
			s.DetectDropped(tt.block, byReneging)
			if got := lost(s, 1<<32-3); !equal(got, tt.want) || s.Lost() != len(tt.want) {
				t.Errorf("%s: lost %v (%d), want %v", tt.name, got, s.Lost(), tt.want)
			}
		}
	}
}

func TestPartials(t *testing.T) {
	s := start(0, 2)
	send(s, true)
	send(s, false)
	if s.Partials() != 1 {
		t.Fatalf("%d partial packets, want 1", s.Partials())
	}
	if s.Ack(1<<40, 3, clock.Never); s.Partials() != 0 {
		t.Errorf("%d partial packets after the acknowledgement", s.Partials())
	}
}

func TestRewind(t *testing.T) {
	s := start(0, 8)
	s.Ack(1<<40, 2, clock.Never)
	s.SACK(1<<40, []byte{0b1000})
	s.MarkAllLost(byTimeout)
	if n := s.Rewind(); n != 6 || !s.Empty() || s.Pipe() != 0 || s.Lost() != 0 || s.Retransmits != 6 {
		t.Errorf("%d packets; %d in the pipe, %d lost, %d sent again", n, s.Pipe(), s.Lost(), s.Retransmits)
	}
	if send(s, false); s.Una != 2 || s.Nxt != 3 || s.HasLarger(1200) || !s.HasLarger(1199) {
		t.Error("a packet after Rewind is not the one after the last that was acknowledged")
	}
}

// The counts must match the packets after any actions of a connection and any acknowledgements of the peer.
func TestCounts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := start(seq.Num(r.Uint32()), 0)
		for range 200 {
			act(s, r)
			pipe, gone, partials := 0, 0, 0
			for psn := s.Una; psn != s.Nxt; psn++ {
				p := s.At(psn)
				pipe += count(p.inPipe)
				gone += count(p.lost)
				partials += count(p.Partial)
			}
			if pipe != s.Pipe() || gone != s.Lost() || partials != s.Partials() {
				t.Fatalf("seed %d: pipe %d, lost %d, partial %d; the table has %d, %d, %d", seed, s.Pipe(), s.Lost(), s.Partials(), pipe, gone, partials)
			}
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// act executes a random action of a connection.
func act(s *Sent, r *rand.Rand) {
	switch r.IntN(8) {
	case 0:
		if n := s.Nxt.Sub(s.Una); n > 0 {
			s.Ack(1<<40, s.Una+seq.Num(1+r.IntN(n)), clock.Never)
		}
	case 1:
		block := make([]byte, 4*(1+r.IntN(8)))
		for i := range block {
			block[i] = byte(r.Uint32() & r.Uint32())
		}
		s.SACK(1<<40, block)
		s.DetectLost(clock.Never, 0, byLoss)
		if r.IntN(2) == 0 {
			s.DetectDropped(block, byReneging)
		}
	case 2:
		if !s.Empty() {
			s.ProbeTail(byTail)
		}
	case 3:
		if r.IntN(8) == 0 {
			s.MarkAllLost(byTimeout)
		}
		s.DetectReneging(byReneging)
	case 4:
		if s.Lost() > 0 {
			_, p := s.NextLost()
			s.PacketSent(p, 1)
			s.Resent(p)
		}
	case 5:
		if r.IntN(16) == 0 {
			s.Rewind()
		}
	default:
		for range r.IntN(20) {
			if s.Nxt.Sub(s.Una) < 300 {
				send(s, r.IntN(4) == 0)
			}
		}
	}
}
