package tcp

import (
	"encoding/binary"
	"time"

	"github.com/datxdp/datxdp/link"
)

const (
	initialWindow = 10                     // RFC 6928
	minWindow     = 2                      // after a reduction (RFC 5681 §3.1)
	minRTO        = 200 * time.Millisecond // Linux, TCP_RTO_MIN
	maxRTO        = time.Minute
	dupThresh     = 3 // RFC 6675
	// retry is the time after which a sender asks its link for frames again.
	retry = 5 * time.Microsecond
)

// Sender sends segments without end.
type Sender struct {
	end
	control Control
	size    int // of a packet in bytes
	window
	una, nxt int64
	board    scoreboard
	recover  int64 // recovery ends when this is acknowledged
	inLoss   bool  // recovery is in progress
	roundEnd int64 // of the round for marks
	cutEnd   int64 // no growth after a reduction by marks before this is acknowledged
	timing
	full bool // the link has no frame for what the window allows
	sent int  // packets in this turn
}

// timing is the state of the timers.
type timing struct {
	rttvar  time.Duration
	smooth  time.Duration // smoothed round trip; 0: none
	least   time.Duration
	backoff int
	rtoAt   int64
	probed  bool // a tail loss probe has left since the last acknowledgement
}

// NewSender returns a sender of packets of size bytes on a path.
func NewSender(l link.Link, path link.Path, size int, c Control) *Sender {
	return &Sender{end: end{link: l, path: path}, control: c, size: size, window: window{cwnd: initialWindow, ssthresh: 1e9},
		timing: timing{rtoAt: never}}
}

// Window returns the congestion window in segments.
func (s *Sender) Window() float64 { return s.cwnd }

// Turn does all work that is due at now. It returns the time of the next turn if no packet arrives, and the number of
// packets received and sent.
func (s *Sender) Turn(now int64) (next int64, packets int) {
	s.sent, s.now = 0, float64(now)/1e9
	n := s.receive(func(b *link.Buf) { s.acked(now, parseAck(b.Data)) })
	if now >= s.rtoAt {
		s.expire(now)
	}
	s.full = s.transmit(now)
	switch {
	case n == len(s.bufs):
		return now, n + s.sent
	case s.full:
		return min(now+int64(retry), s.rtoAt), n + s.sent
	}
	return s.rtoAt, n + s.sent
}

// acked handles an acknowledgement.
func (s *Sender) acked(now int64, a ack) {
	delivered := 0
	for _, seq := range a.listed[:a.n] {
		delivered += s.deliver(now, seq)
	}
	progress := a.next > s.una
	for ; s.una < a.next; s.una++ {
		delivered += s.deliver(now, s.una)
	}
	s.board.forget(s.una)
	if s.inLoss && s.una >= s.recover {
		s.inLoss = false
	}
	if lost := s.board.findLost(s.una, s.reorder()); lost && !s.inLoss {
		s.enterRecovery(s.control.lost(&s.window))
	}
	s.marks(delivered, a.ece)
	if !s.inLoss && s.una >= s.cutEnd && progress && s.limited() {
		s.control.grow(&s.window, delivered)
	}
	if delivered > 0 {
		s.backoff, s.probed = 0, false
		s.arm(now)
	}
}

// limited reports whether the window limits the sender, and not its link. Otherwise the window must not grow (RFC 9438
// §5.8; Linux, tcp_is_cwnd_limited).
func (s *Sender) limited() bool {
	return !s.full || s.cwnd < s.ssthresh && s.cwnd < 2*float64(s.board.pipe)
}

// deliver notes that a segment has arrived. It returns 1 if that is new.
func (s *Sender) deliver(now int64, seq int64) int {
	sentAt, again, fresh := s.board.deliver(seq)
	if !fresh {
		return 0
	}
	if !again {
		s.sample(time.Duration(now - sentAt))
	}
	return 1
}

// reorder is the time by which packets may overtake each other before they count as lost (RFC 8985 §6.2).
func (s *Sender) reorder() int64 { return int64(s.least / 4) }

// enterRecovery reduces the window to a share of it.
func (s *Sender) enterRecovery(factor float64) {
	s.ssthresh = max(s.cwnd*factor, minWindow)
	s.cwnd, s.inLoss, s.recover = s.ssthresh, true, s.nxt
}

// marks handles the echo of congestion marks (RFC 8257 §3.3).
func (s *Sender) marks(delivered int, ece bool) {
	ends := s.una > s.roundEnd
	if ends {
		s.roundEnd = s.nxt
	}
	if keep := s.control.marked(delivered, ece, ends); keep < 1 && !s.inLoss {
		s.ssthresh = max(s.cwnd*keep, minWindow)
		s.cwnd, s.cutEnd = s.ssthresh, s.nxt
	}
}

// sample takes a sample of the round trip (RFC 6298 §2).
func (s *Sender) sample(d time.Duration) {
	if s.smooth == 0 {
		s.smooth, s.rttvar, s.least = d, d/2, d
	}
	s.rttvar += ((s.smooth - d).Abs() - s.rttvar) / 4
	s.smooth += (d - s.smooth) / 8
	s.least = min(s.least, d)
	s.srtt = s.smooth.Seconds()
}

func (s *Sender) rto() time.Duration {
	if s.smooth == 0 {
		return time.Second << s.backoff
	}
	return min(max(s.smooth+4*s.rttvar, minRTO)<<s.backoff, maxRTO)
}

// arm sets the timer: to that of the tail loss probe, if one may leave before the timeout (RFC 8985 §7).
func (s *Sender) arm(now int64) {
	d := s.rto()
	if s.smooth > 0 && !s.probed && !s.inLoss {
		probe := 2 * s.smooth
		if s.board.pipe <= 1 {
			probe += delayedAck
		}
		d = min(d, probe)
	}
	s.rtoAt = now + int64(d)
}

// expire handles the timer.
func (s *Sender) expire(now int64) {
	if !s.probed && !s.inLoss && s.smooth > 0 {
		s.probed = true
		s.sendNew(now)
		s.arm(now)
		return
	}
	s.control.lost(&s.window)
	s.ssthresh = max(float64(s.board.pipe)/2, minWindow)
	s.cwnd, s.inLoss, s.recover = 1, false, s.nxt
	s.board.loseAll(s.una, s.nxt)
	s.backoff++
	s.arm(now)
}

// transmit sends what the window allows, lost segments first. It reports true if the link has no more frames.
func (s *Sender) transmit(now int64) (full bool) {
	for s.board.pipe < int(s.cwnd) {
		if seq, ok := s.board.nextLost(); ok {
			if !s.sendSegment(seq) {
				s.board.again(seq)
				return true
			}
			s.board.sentAgain(seq, now)
		} else if !s.sendNew(now) {
			return true
		}
		if s.rtoAt == never {
			s.arm(now)
		}
	}
	return false
}

// sendNew sends the next new segment. It reports false if the link has no frame.
func (s *Sender) sendNew(now int64) bool {
	if !s.sendSegment(s.nxt) {
		return false
	}
	s.board.add(s.nxt, now)
	s.nxt++
	return true
}

func (s *Sender) sendSegment(seq int64) bool {
	ok := s.send(func(b []byte) []byte {
		b = b[:s.size]
		binary.BigEndian.PutUint64(b[offSeq:], uint64(seq))
		return b
	})
	if ok {
		s.sent++
	}
	return ok
}
