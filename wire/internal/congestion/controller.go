// Package congestion decides how many packets of one connection may be in the network.
//
// The window grows by a packet for each round trip and shrinks, at most once in each, by what the network says: in
// proportion to the marks that it sets (DCTCP, RFC 8257), to the delay that it adds beyond a target (Swift,
// SIGCOMM 2020), or by a fixed part for what it loses (RFC 5681). A window below one packet is a rate: a pacer
// spaces the packets out.
//
// The delay of a round trip is its shortest sample, so that a receiver or a sender that polls late now and then
// is not taken for a queue.
//
// A Controller has one owner. It reads no clock and sends nothing.
package congestion

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Controller is the state of one connection.
type Controller struct {
	window   float64 // cwnd
	ssthresh float64 // up to which the window grows by one for each acknowledged packet
	undo     float64 // window before the last timeout; 0: nothing to undo
	recover  seq.Num // losses of packets before it are answered (RFC 6582)
	limited  bool    // the window has held packets back in this round

	round    round
	lastMin  time.Duration // shortest round trip of the round before
	alpha    float64       // share of marked packets, smoothed (RFC 8257 §3.3)
	ce       uint16        // the peer's count of marks
	base     baseDelay
	pacer    pacer
	slowdown slowdown
}

// round is a round trip: it ends when a packet is acknowledged that left after it began.
type round struct {
	end   seq.Num
	min   time.Duration // shortest sample; 0: none yet
	acked int           // packets acknowledged
	marks int           // and marked
}

// New is the state of a new connection, whose first packet is psn.
func New(psn seq.Num) Controller {
	return Controller{window: InitialWindow, ssthresh: MaxWindow, recover: psn, round: round{end: psn}, alpha: 1}
}

// Window is the congestion window in packets.
func (c *Controller) Window() float64 { return c.window }

// BaseDelay is the round trip of an empty network, as far as it is known; 0: it is not.
func (c *Controller) BaseDelay() time.Duration { return c.base.get() }

// Open reports whether a packet may join the pipe, which is the packets in the network. Where only time is in
// the way, that is at an empty pipe, NextSend is when it may.
func (c *Controller) Open(now clock.Time, pipe int) bool {
	if c.window >= 1 {
		return float64(pipe) < c.window
	}
	return pipe == 0 && now >= c.pacer.next
}

// NextSend is when the pacer lets the next packet leave.
func (c *Controller) NextSend() clock.Time { return c.pacer.next }

// Limit notes that the window holds packets back. Only a round in which it does lets it grow (RFC 7661).
func (c *Controller) Limit() { c.limited = true }

// Sent takes in that a packet left.
func (c *Controller) Sent(now clock.Time, srtt time.Duration) { c.pacer.sent(now, c.window, srtt) }

// Sample takes in a round trip.
func (c *Controller) Sample(now clock.Time, d time.Duration) {
	c.base.sample(now, d)
	if c.round.min == 0 || d < c.round.min {
		c.round.min = d
	}
}

// Acked takes in that n packets before una were acknowledged, of which the peer saw ce marked since
// the beginning of the connection. next is the next packet to leave.
func (c *Controller) Acked(now clock.Time, una, next seq.Num, n int, ce uint16) {
	c.round.acked += n
	c.round.marks += int(ce - c.ce)
	c.ce = ce
	if c.limited && !c.slowdown.active() && c.round.min <= c.limit() {
		c.grow(float64(n))
	}
	if c.round.end.Less(una) {
		c.endRound(now, una)
		c.round.end = next
	}
}

// grow takes in that n packets were acknowledged.
func (c *Controller) grow(n float64) {
	switch {
	case c.window < 1:
		c.window *= 1.25
	case c.window < c.ssthresh:
		c.window = min(c.window+n, c.ssthresh)
	default:
		c.window = min(c.window+n/c.window, MaxWindow)
	}
}

// limit is how long a round trip may be before the window shrinks. On short paths it does not depend
// on the base delay, which a connection that came late cannot know. The smaller the window, the longer it is, so
// that the windows of connections which share a queue converge.
func (c *Controller) limit() time.Duration {
	share := 0.25 + 3/math.Sqrt(max(c.window, 1))
	return max(time.Duration(share*float64(DelayTarget)), c.base.get()*5/4)
}

// queueing reports whether packets seem to wait in the network.
func (c *Controller) queueing() bool { return c.round.min > (c.base.get()+c.limit())/2 }

// endRound evaluates what the network said in a round trip.
func (c *Controller) endRound(now clock.Time, una seq.Num) {
	r, limit := &c.round, c.limit()
	share := min(float64(r.marks)/float64(r.acked), 1)
	c.alpha += (share - c.alpha) / 8
	switch {
	case c.slowdown.active():
		c.endSlowdownRound()
	case c.limited && c.slowdown.due(now, r.min > 0 && r.min < c.lastMin*3/4):
		c.beginSlowdown(now)
	case una.LessEq(c.recover): // a loss has been answered
	case r.marks > 0:
		c.shrink(1 - c.alpha/2)
	case r.min > limit && c.window > DelayFloor:
		c.shrink(max(1-0.8*float64(r.min-limit)/float64(r.min), DelayFloor/c.window))
	}
	c.lastMin, c.limited = r.min, false
	*r = round{end: r.end}
}

// beginSlowdown makes the window small for some rounds, if it is not.
func (c *Controller) beginSlowdown(now clock.Time) {
	s := &c.slowdown
	s.next = now.Add(max(slowdownEvery, 300*c.round.min))
	if c.window > slowdownWindow {
		s.rounds, s.window, c.window = slowdownRounds, c.window, slowdownWindow
	}
}

// endSlowdownRound counts the rounds. The first of them only ends what was under way.
func (c *Controller) endSlowdownRound() {
	if c.slowdown.rounds--; c.slowdown.rounds == 0 {
		c.window = c.slowdown.window
	}
}

// shrink multiplies the window by a factor, one half at least, and ends slow start.
func (c *Controller) shrink(factor float64) {
	w := &c.window
	if c.slowdown.active() {
		w = &c.slowdown.window
	}
	*w = max(*w*max(factor, 0.5), MinWindow)
	c.ssthresh = *w
}

// Lost shrinks the window because of a loss, once for all packets before next.
func (c *Controller) Lost(una, next seq.Num) {
	if una.Less(c.recover) {
		return
	}
	c.recover = next
	if c.queueing() {
		c.shrink(LossFactor)
	} else {
		c.shrink(NoiseFactor)
	}
}

// TimedOut starts over after a retransmission timeout, since no packet is known to be in the network.
func (c *Controller) TimedOut(next seq.Num) {
	if c.slowdown.active() {
		c.slowdown.rounds, c.window = 0, c.slowdown.window
	}
	if c.undo == 0 {
		c.undo = c.window
	}
	c.ssthresh = max(c.undo/2, MinWindow)
	c.window = max(min(c.window/2, 1), MinWindow)
	c.recover = next
}

// Undo reverts TimedOut, if there was one since the last Progress: the timeout was spurious (RFC 4015), the packets had
// arrived and the peer was slow to say so.
func (c *Controller) Undo() {
	if c.undo != 0 {
		c.window = max(c.window, c.undo)
		c.ssthresh = max(c.ssthresh, c.window)
		c.undo = 0
	}
}

// Progress takes in that a packet was acknowledged: a timeout before it can be undone no more.
func (c *Controller) Progress() { c.undo = 0 }

// Rewind takes in that packets from psn on are numbered anew.
func (c *Controller) Rewind(psn seq.Num) { c.recover, c.round.end = psn, psn }
