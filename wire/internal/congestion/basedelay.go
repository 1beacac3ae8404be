package congestion

import "time"

// baseDelay estimates the round trip of a full packet in the empty network: the shortest sample.
//
// The estimate rises when the path has become longer. Delay that remains while the window shrinks is not caused by the
// window. A queue of several connections drains, because the windows of all of them shrink. And a queue never stays the
// same for long, because the packets of others come and go in it, while a path does. So the shortest delay of some rounds
// is the new estimate if each of them shows such delay (see Controller.longerAfter).
type baseDelay struct {
	delay  time.Duration // 0: no sample
	least  time.Duration // shortest delay of the rounds that are counted
	window float32       // window before the first of them
	rounds int8          // consecutive rounds with delay that the window may not explain
}

func (b *baseDelay) sample(d time.Duration) {
	if b.delay == 0 || d < b.delay {
		b.delay = d
	}
}

// isWithin reports whether the delay d of a round differs by at most a tolerance from the delay of the rounds that are
// counted.
func (b *baseDelay) isWithin(d, tolerance time.Duration) bool {
	return b.rounds == 0 || (d-b.least).Abs() <= tolerance
}

// count counts a round of delay d that begins with a window.
func (b *baseDelay) count(d time.Duration, window float64) {
	if b.rounds == 0 {
		b.window = float32(window)
	}
	if b.rounds == 0 || d < b.least {
		b.least = d
	}
	b.rounds++
}

// rise makes the shortest delay of the counted rounds the estimate.
func (b *baseDelay) rise() { b.delay, b.rounds = b.least, 0 }
