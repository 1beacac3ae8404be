package wire

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire/internal/seq"
)

// congestion decides how many packets of one connection may be in the network. The window grows by a
// packet for each round trip and shrinks, at most once in each, by what the network says: in
// proportion to the marks it sets (DCTCP, RFC 8257), to the delay it adds beyond a target (Swift,
// SIGCOMM 2020), or by a fixed part for what it loses (RFC 5681).
//
// The delay of a round trip is its shortest sample, so that a receiver, or ourselves, being slow to
// look now and then is not taken for a queue.
type congestion struct {
	window  float64 // packets; below 1 they are spaced out
	thresh  float64 // up to which the window grows by one for each acknowledged packet
	prior   float64 // window before the last timeout; 0: nothing to restore
	recover seq.Num // losses before it have been answered
	limited bool    // the window held packets back in this round

	roundEnd  seq.Num       // when it is acknowledged the round is over
	shortest  time.Duration // of this round; 0: no sample yet
	lastRound time.Duration // shortest of the round before
	acks      int           // packets acknowledged in this round
	marks     int           // and marked
	marked    float64       // share of marks, smoothed
	ce        uint16        // the peer's count of marks
	base      baseDelay
	nextSend  Time // window below 1: when the next packet may leave

	nextDrain Time
	drain     int     // rounds for which the window is kept small, to see the network empty
	kept      float64 // window to go back to then
}

func newCongestion(psn seq.Num) congestion {
	return congestion{window: firstWindow, thresh: maxWindow, recover: psn, roundEnd: psn, marked: 1}
}

// baseDelay is the shortest round trip of the last while: that of an empty network.
type baseDelay struct {
	now, before time.Duration // shortest of this period and of the last; 0: none
	until       Time
}

func (b *baseDelay) sample(now Time, d time.Duration) {
	if now >= b.until {
		b.before, b.now, b.until = b.now, 0, now.Add(basePeriod)
	}
	if b.now == 0 || d < b.now {
		b.now = d
	}
}

func (b *baseDelay) get() time.Duration {
	if b.before == 0 {
		return b.now
	}
	return min(b.now, b.before)
}

// sample takes in a round trip.
func (g *congestion) sample(now Time, d time.Duration) {
	g.base.sample(now, d)
	if g.shortest == 0 || d < g.shortest {
		g.shortest = d
	}
}

// limit is how long a round trip may be before the window shrinks. On short ways it does not depend
// on what the connection takes for the round trip of an empty network, which one that came late
// cannot know; the smaller the window, the longer it is, so that connections which share a queue come
// to be alike.
func (g *congestion) limit() time.Duration {
	share := 0.25 + 3/math.Sqrt(max(g.window, 1))
	return max(time.Duration(share*float64(delayTarget)), g.base.get()*5/4)
}

// queueing reports whether packets seem to wait in the network.
func (g *congestion) queueing() bool { return g.shortest > (g.base.get()+g.limit())/2 }

// acked takes in that n packets before una were acknowledged, of which the peer saw ce marked since
// the beginning of the connection; next is the next packet to leave.
func (g *congestion) acked(now Time, una, next seq.Num, n int, ce uint16) {
	g.acks += n
	g.marks += int(ce - g.ce)
	g.ce = ce
	if g.limited && g.drain == 0 && g.shortest <= g.limit() {
		g.grow(float64(n))
	}
	if g.roundEnd.Less(una) {
		g.endRound(now, una)
		g.roundEnd = next
	}
}

// grow takes in that n packets were acknowledged.
func (g *congestion) grow(n float64) {
	switch {
	case g.window < 1:
		g.window *= 1.25
	case g.window < g.thresh:
		g.window = min(g.window+n, g.thresh)
	default:
		g.window = min(g.window+n/g.window, maxWindow)
	}
}

// endRound looks at what the network said in a round trip.
func (g *congestion) endRound(now Time, una seq.Num) {
	share := min(float64(g.marks)/float64(g.acks), 1)
	g.marked += (share - g.marked) / 8
	limit := g.limit()
	switch {
	case g.drain > 0:
		g.endDrain()
	case g.limited && g.mustDrain(now):
		g.beginDrain(now)
	case una.LessEq(g.recover): // a loss has been answered
	case g.marks > 0:
		g.shrink(1 - g.marked/2)
	case g.shortest > limit && g.window > delayFloor:
		g.shrink(max(1-0.8*float64(g.shortest-limit)/float64(g.shortest), delayFloor/g.window))
	}
	g.lastRound = g.shortest
	g.shortest, g.acks, g.marks, g.limited = 0, 0, 0, false
}

// mustDrain reports whether it is time to see the network empty. When the delay drops all at once,
// another connection may be doing just that, and doing it together shows both more (BBR).
func (g *congestion) mustDrain(now Time) bool {
	dip := g.shortest > 0 && g.shortest < g.lastRound*3/4
	return now >= g.nextDrain || dip && now >= g.nextDrain.Add(-drainEvery/2)
}

// beginDrain lets the network become empty for a moment. A connection that never saw it empty would
// take the queue of others for part of its base delay, and push them aside (LEDBAT++).
func (g *congestion) beginDrain(now Time) {
	g.nextDrain = now.Add(max(drainEvery, 300*g.shortest))
	if g.window > drainWindow {
		g.drain, g.kept, g.window = drainRounds, g.window, drainWindow
	}
}

// endDrain counts the rounds, of which the first only ends what was under way.
func (g *congestion) endDrain() {
	if g.drain--; g.drain == 0 {
		g.window = g.kept
	}
}

// shrink ends slow start.
func (g *congestion) shrink(factor float64) {
	if g.drain > 0 {
		g.kept = max(g.kept*max(factor, 0.5), minWindow)
		g.thresh = g.kept
		return
	}
	g.window = max(g.window*max(factor, 0.5), minWindow)
	g.thresh = g.window
}

// lost shrinks the window, once for the packets up to next.
func (g *congestion) lost(una, next seq.Num) {
	if una.Less(g.recover) {
		return
	}
	g.recover = next
	if g.queueing() {
		g.shrink(lossFactor)
	} else {
		g.shrink(noiseFactor)
	}
}

// timedOut starts over, since nothing is known to be in the network.
func (g *congestion) timedOut(next seq.Num) {
	if g.drain > 0 {
		g.drain, g.window = 0, g.kept
	}
	if g.prior == 0 {
		g.prior = g.window
	}
	g.thresh = max(g.prior/2, minWindow)
	g.window = max(min(g.window/2, 1), minWindow)
	g.recover = next
}

// late undoes timedOut: what was taken for lost had arrived, the peer was slow to say so.
func (g *congestion) late() {
	g.window = max(g.window, g.prior)
	g.thresh = max(g.thresh, g.window)
	g.prior = 0
}

// sent spaces packets out when less than one may be in the network.
func (g *congestion) sent(now Time, rtt time.Duration) {
	if g.window < 1 {
		g.nextSend = now.Add(min(time.Duration(float64(rtt)/g.window), max(rtt, maxGap)))
	}
}

// open reports whether a packet may join the pipe of those in the network.
func (g *congestion) open(now Time, pipe int) bool {
	if g.window >= 1 {
		return float64(pipe) < g.window
	}
	return pipe == 0 && now >= g.nextSend
}
