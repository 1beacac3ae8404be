package congestion

import "time"

// baseDelay estimates the round trip of a full packet in the empty network: the shortest sample.
//
// The estimate rises when the path has become longer. Delay that remains although the connection sends next to nothing is
// not caused by its window. So if several rounds with the smallest window still show more delay than a queue may cause,
// the shortest delay of these rounds is the new estimate.
type baseDelay struct {
	delay  time.Duration // 0: no sample
	least  time.Duration // shortest delay of the rounds that are counted
	rounds int8          // consecutive rounds with the smallest window and too much delay
}

func (b *baseDelay) sample(d time.Duration) {
	if b.delay == 0 || d < b.delay {
		b.delay = d
	}
}

// excess notes a round with the smallest window whose delay d exceeds what a queue may cause. It reports whether the
// estimate has risen.
func (b *baseDelay) excess(d time.Duration) (rose bool) {
	if b.rounds == 0 || d < b.least {
		b.least = d
	}
	if b.rounds++; b.rounds < floorRounds {
		return false
	}
	b.delay, b.rounds = b.least, 0
	return true
}
