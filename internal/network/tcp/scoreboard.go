package tcp

// scoreboard knows the state of each segment in flight (RFC 6675 §3).
type scoreboard struct {
	ring []segment
	pipe int // segments in the network
	una  int64

	top      [dupThresh]int64 // the highest segments that have arrived, highest first
	checked  int64            // segments below were checked against top
	lost     []int64          // segments to send again, in order
	resent   []int64          // segments that were sent again, in the order of sending
	lastSent int64            // latest time of sending of a segment that has arrived
}

// segment is the state of a segment.
type segment struct {
	sentAt  int64
	arrived bool
	again   bool // it was sent more than once
	lost    bool // it is lost, and was not sent again since
}

func (b *scoreboard) at(seq int64) *segment { return &b.ring[seq&int64(len(b.ring)-1)] }

// add notes that a new segment leaves.
func (b *scoreboard) add(seq, now int64) {
	if seq-b.una >= int64(len(b.ring)) {
		b.enlarge(seq)
	}
	*b.at(seq) = segment{sentAt: now}
	b.pipe++
}

// enlarge doubles the ring, which holds the segments before nxt.
func (b *scoreboard) enlarge(nxt int64) {
	old := b.ring
	b.ring = make([]segment, max(64, 2*len(old)))
	for seq := b.una; seq < nxt; seq++ {
		*b.at(seq) = old[seq&int64(len(old)-1)]
	}
}

// deliver notes that a segment has arrived. fresh is false if that was known.
func (b *scoreboard) deliver(seq int64) (sentAt int64, again, fresh bool) {
	if seq < b.una {
		return 0, false, false
	}
	s := b.at(seq)
	if s.arrived {
		return 0, false, false
	}
	s.arrived = true
	if !s.lost {
		b.pipe--
	}
	s.lost = false
	b.lastSent = max(b.lastSent, s.sentAt)
	b.rank(seq)
	return s.sentAt, s.again, true
}

// rank puts a segment into top if it is one of the highest.
func (b *scoreboard) rank(seq int64) {
	for i := range b.top {
		if seq > b.top[i] {
			seq, b.top[i] = b.top[i], seq
		}
	}
}

// forget notes that all segments before una have arrived.
func (b *scoreboard) forget(una int64) {
	b.una = una
	b.checked = max(b.checked, una)
}

// findLost marks segments as lost: those below enough segments that have arrived, and those that were sent again before
// a segment that has arrived, by more than reorder. It reports whether there are any.
func (b *scoreboard) findLost(una, reorder int64) bool {
	found := false
	for ; b.checked < b.top[dupThresh-1]; b.checked++ {
		found = b.lose(b.checked) || found
	}
	for len(b.resent) > 0 {
		seq := b.resent[0]
		if seq >= una {
			if s := b.at(seq); !s.arrived && s.sentAt+reorder >= b.lastSent {
				break
			}
			found = b.lose(seq) || found
		}
		b.resent = b.resent[1:]
	}
	return found
}

// lose marks a segment as lost, if it has not arrived. It reports whether it did.
func (b *scoreboard) lose(seq int64) bool {
	s := b.at(seq)
	if s.arrived || s.lost {
		return false
	}
	s.lost = true
	b.pipe--
	b.lost = append(b.lost, seq)
	return true
}

// loseAll marks all segments as lost after a timeout.
func (b *scoreboard) loseAll(una, nxt int64) {
	b.lost, b.resent = b.lost[:0], b.resent[:0]
	for seq := una; seq < nxt; seq++ {
		if s := b.at(seq); !s.arrived && s.lost {
			b.lost = append(b.lost, seq)
		} else {
			b.lose(seq)
		}
	}
	b.checked = nxt
}

// nextLost takes the first segment to send again.
func (b *scoreboard) nextLost() (seq int64, ok bool) {
	for len(b.lost) > 0 {
		seq = b.lost[0]
		b.lost = b.lost[1:]
		if seq >= b.una && b.at(seq).lost {
			return seq, true
		}
	}
	return 0, false
}

// again puts back a segment that could not be sent.
func (b *scoreboard) again(seq int64) { b.lost = append([]int64{seq}, b.lost...) }

// sentAgain notes that a lost segment leaves again.
func (b *scoreboard) sentAgain(seq, now int64) {
	*b.at(seq) = segment{sentAt: now, again: true}
	b.pipe++
	b.resent = append(b.resent, seq)
}
