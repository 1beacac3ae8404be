package wire

import (
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

	roundEnd seq.Num       // when it is acknowledged the round is over
	shortest time.Duration // of this round; 0: no sample yet
	acks     int           // packets acknowledged in this round
	marks    int           // and marked
	marked   float64       // share of marks, smoothed
	ce       uint16        // the peer's count of marks
	base     baseDelay
	nextSend Time // window below 1: when the next packet may leave
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

// queueing is the delay that this round added, and what it may.
func (g *congestion) queueing() (delay, target time.Duration) {
	base := g.base.get()
	return g.shortest - base, max(queueTarget, base/4)
}

// acked takes in that n packets before una were acknowledged, of which the peer saw ce marked since
// the beginning of the connection; next is the next packet to leave.
func (g *congestion) acked(una, next seq.Num, n int, ce uint16) {
	g.acks += n
	g.marks += int(ce - g.ce)
	g.ce = ce
	if g.limited {
		if g.window < g.thresh {
			g.window = min(g.window+float64(n), g.thresh)
		} else {
			g.window = min(g.window+float64(n)/max(g.window, 1), maxWindow)
		}
	}
	if g.roundEnd.Less(una) {
		g.endRound(una)
		g.roundEnd = next
	}
}

// endRound looks at what the network said in a round trip.
func (g *congestion) endRound(una seq.Num) {
	share := min(float64(g.marks)/float64(g.acks), 1)
	g.marked += (share - g.marked) / 8
	delay, target := g.queueing()
	switch {
	case una.LessEq(g.recover): // a loss has been answered
	case g.marks > 0:
		g.shrink(1 - g.marked/2)
	case g.shortest > 0 && delay > target:
		g.shrink(1 - 0.8*float64(delay-target)/float64(g.shortest))
	}
	g.shortest, g.acks, g.marks, g.limited = 0, 0, 0, false
}

// shrink ends slow start.
func (g *congestion) shrink(factor float64) {
	g.window = max(g.window*max(factor, 0.5), minWindow)
	g.thresh = g.window
}

// lost shrinks the window, once for the packets up to next.
func (g *congestion) lost(una, next seq.Num) {
	if una.Less(g.recover) {
		return
	}
	g.recover = next
	if delay, target := g.queueing(); g.shortest > 0 && delay > target/2 {
		g.shrink(lossFactor)
	} else {
		g.shrink(noiseFactor)
	}
}

// timedOut starts over, since nothing is known to be in the network.
func (g *congestion) timedOut(next seq.Num) {
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
		g.nextSend = now.Add(time.Duration(float64(rtt) / g.window))
	}
}

// open reports whether a packet may join the pipe of those in the network.
func (g *congestion) open(now Time, pipe int) bool {
	if g.window >= 1 {
		return float64(pipe) < g.window
	}
	return pipe == 0 && now >= g.nextSend
}
