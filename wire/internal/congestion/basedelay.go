package congestion

import "time"

// baseDelay estimates the round trip of a full packet in the empty network: the shortest sample.
//
// The estimate rises when the path has become longer. Delay that remains while the window shrinks is not caused by the
// window. A queue of several connections drains, because the windows of all of them shrink. So the shortest delay of
// longerRounds rounds is the new estimate if each of them shows too much delay (see Controller.pathIsLonger).
type baseDelay struct {
	delay  time.Duration // 0: no sample
	least  time.Duration // shortest delay of the rounds that are counted
	rounds int8          // consecutive rounds with too much delay
}

func (b *baseDelay) sample(d time.Duration) {
	if b.delay == 0 || d < b.delay {
		b.delay = d
	}
}

// isSteady reports whether the delay d of a round differs little from the delay of the rounds that are counted.
func (b *baseDelay) isSteady(d time.Duration) bool {
	return b.rounds == 0 || (d-b.least).Abs() <= b.least/steadyShare
}

// excess notes a round of delay d that the window does not explain. It reports whether the estimate has risen.
func (b *baseDelay) excess(d time.Duration) (rose bool) {
	if b.rounds == 0 || d < b.least {
		b.least = d
	}
	if b.rounds++; b.rounds < longerRounds {
		return false
	}
	b.delay, b.rounds = b.least, 0
	return true
}
