// Package congestion decides how many packets of a connection may be in the network.
//
// The congestion window grows by one packet per round trip, after slow start. It shrinks at most once per round trip. One of three
// signals shrinks it:
//   - congestion marks, in proportion to the share of marked packets (DCTCP, RFC 8257),
//   - delay above a target (Swift, SIGCOMM 2020),
//   - loss, by a fixed factor (RFC 5681), unless the delay shows no queue and few packets are lost.
//
// While the window is below one packet, a pacer sends at most one packet per round trip.
//
// Of the delay samples in one round trip, only the shortest counts. So a receiver or sender that sometimes polls late
// is not mistaken for a queue in the network.
//
// A Controller has one owner. It reads no clock and sends nothing.
package congestion

import (
	"math"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Controller is the congestion control state of a connection.
type Controller struct {
	window        float64       // cwnd, in packets
	ssthresh      float64       // slow start threshold, in packets
	undoWindow    float64       // window before the last timeout; 0: nothing to undo
	recoverPSN    seq.Num       // the window has shrunk for losses of packets before this one (RFC 6582)
	ce            uint16        // congestion marks that the peer has counted; wraps
	windowLimited bool          // the window has delayed packets in this round
	hostDelay     time.Duration // time that packets may wait in the two hosts, which is no sign of congestion

	round    round
	lastMin  time.Duration // shortest sample of the last round
	alpha    float64       // smoothed share of marked packets (RFC 8257 §3.3)
	base     baseDelay
	pacer    pacer
	slowdown slowdown
	noise    noise
}

// round is the state of one round trip. It ends with the acknowledgement of a packet that left after its beginning.
type round struct {
	minDelay time.Duration // shortest sample; 0: none
	endPSN   seq.Num       // first packet that left after the beginning
	acked    int32         // acknowledged packets
	marks    int32         // marked packets among them
}

// New returns the state of a new connection. psn is the number of its first packet. hostDelay is the time that packets
// may wait in queues of the two hosts.
func New(psn seq.Num, hostDelay time.Duration) Controller {
	return Controller{hostDelay: hostDelay, window: InitialWindow, ssthresh: MaxWindow, recoverPSN: psn, round: round{endPSN: psn}, alpha: 1}
}

// Window returns the congestion window in packets.
func (c *Controller) Window() float64 { return c.window }

// BaseDelay returns the round trip of the empty network, or 0 without a sample.
func (c *Controller) BaseDelay() time.Duration { return c.base.delay() }

// Open reports whether a packet may leave. The argument pipe is the number of packets in the network. If the window is
// below one packet, a packet may leave only if no other one is in the network, and not before NextSend.
func (c *Controller) Open(now clock.Time, pipe int) bool {
	if c.window >= 1 {
		return float64(pipe) < c.window
	}
	return pipe == 0 && now >= c.pacer.nextAt
}

// NextSend returns when the pacer allows the next packet.
func (c *Controller) NextSend() clock.Time { return c.pacer.nextAt }

// Group returns the largest number of packets that may leave as one group: a quarter of the window, and what the window
// allows in groupTime. The base delay stands for the round trip, because a late poll does not change it.
func (c *Controller) Group() int {
	share := 0.25
	if d := c.base.delay(); d > 4*groupTime {
		share = float64(groupTime) / float64(d)
	}
	return max(1, int(c.window*share))
}

// Limit notes that a packet waits for the window. The window grows only in rounds with such a note (RFC 7661).
func (c *Controller) Limit() { c.windowLimited = true }

// Sent notes that a packet leaves.
func (c *Controller) Sent(now clock.Time, srtt time.Duration) {
	c.pacer.packetSent(now, c.window, srtt)
}

// Sample adds a round-trip sample.
func (c *Controller) Sample(now clock.Time, d time.Duration) {
	c.base.sample(now, d)
	if c.round.minDelay == 0 || d < c.round.minDelay {
		c.round.minDelay = d
	}
}

// Acked handles the acknowledgement of n packets. una is the oldest PSN that remains unacknowledged, and nextPSN is the
// PSN of the next new packet. ce is the peer's count of marked packets since the beginning of the connection.
func (c *Controller) Acked(now clock.Time, una, nextPSN seq.Num, n int, ce uint16) {
	c.round.acked += int32(n)
	c.noise.acked(n)
	c.round.marks += int32(ce - c.ce)
	c.ce = ce
	if c.windowLimited && !c.slowdown.active() && c.round.minDelay <= c.delayLimit() {
		c.grow(float64(n))
	}
	if c.round.endPSN.Less(una) {
		c.endRound(now, una)
		c.round.endPSN = nextPSN
	}
}

// grow enlarges the window after n packets were acknowledged. A window below one packet grows by a quarter. A window of
// one packet or more grows as in slow start if it is below ssthresh, and otherwise as in congestion avoidance (RFC 5681
// §3.1).
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

// delayLimit returns the round trip above which the window shrinks. On short paths this limit does not depend on the
// base delay (the round trip of an empty network): if a connection starts while there is a queue, the queue may be most
// of the delay that it measures as the base delay. The limit is longer for a smaller window, so that the windows of
// connections on the same queue converge.
func (c *Controller) delayLimit() time.Duration {
	share := 0.25 + 3/math.Sqrt(max(c.window, 1))
	return max(time.Duration(share*float64(DelayTarget)), c.base.delay()*5/4) + c.hostDelay
}

// queueing reports whether the delay shows a queue in the network.
func (c *Controller) queueing() bool { return c.round.minDelay > (c.base.delay()+c.delayLimit())/2 }

// endRound adjusts the window to the signals of the round trip that ends.
func (c *Controller) endRound(now clock.Time, una seq.Num) {
	r, limit := &c.round, c.delayLimit()
	share := min(float64(r.marks)/float64(r.acked), 1)
	c.alpha += (share - c.alpha) / 8
	switch {
	case c.slowdown.active():
		c.endSlowdownRound()
	case c.windowLimited && c.slowdown.shouldBegin(now, r.minDelay > 0 && r.minDelay < c.lastMin*3/4):
		c.beginSlowdown(now)
	case una.LessEq(c.recoverPSN): // the window has already shrunk for a loss
	case r.marks > 0:
		c.shrink(1 - c.alpha/2)
	case r.minDelay > limit && c.window > DelayFloor:
		c.shrink(max(1-0.8*float64(r.minDelay-limit)/float64(r.minDelay), DelayFloor/c.window))
	}
	c.lastMin, c.windowLimited = r.minDelay, false
	*r = round{endPSN: r.endPSN}
}

// beginSlowdown reduces a large window to slowdownWindow for slowdownRounds rounds.
func (c *Controller) beginSlowdown(now clock.Time) {
	s := &c.slowdown
	s.nextAt = now.Add(max(slowdownEvery, 300*c.round.minDelay))
	if c.window > slowdownWindow {
		s.rounds, s.window, c.window = slowdownRounds, c.window, slowdownWindow
	}
}

// endSlowdownRound counts down the rounds of a slowdown. After the last one it restores the window.
func (c *Controller) endSlowdownRound() {
	if c.slowdown.rounds--; c.slowdown.rounds == 0 {
		c.window = c.slowdown.window
	}
}

// shrink ends slow start and multiplies the window by the argument factor, or by 1/2 if the factor is less. During a
// slowdown, it instead multiplies the window that will be restored after the slowdown.
func (c *Controller) shrink(factor float64) {
	w := &c.window
	if c.slowdown.active() {
		w = &c.slowdown.window
	}
	*w = max(*w*max(factor, 0.5), MinWindow)
	c.ssthresh = *w
}

// Lost shrinks the window after a loss of n packets. Further losses of packets before nextPSN do not shrink it again.
func (c *Controller) Lost(una, nextPSN seq.Num, n int) {
	c.noise.lost(n)
	if una.Less(c.recoverPSN) {
		return
	}
	switch {
	case c.queueing():
		c.shrink(LossFactor)
	case c.noise.exceeds():
		c.shrink(NoiseFactor)
	default:
		return
	}
	c.recoverPSN = nextPSN
}

// TimedOut reduces the window to one packet after a retransmission timeout: no packet is known to be in the network.
func (c *Controller) TimedOut(nextPSN seq.Num) {
	if c.slowdown.active() {
		c.slowdown.rounds, c.window = 0, c.slowdown.window
	}
	if c.undoWindow == 0 {
		c.undoWindow = c.window
	}
	c.ssthresh = max(c.undoWindow/2, MinWindow)
	c.window = max(min(c.window/2, 1), MinWindow)
	c.recoverPSN = nextPSN
}

// Undo reverts a TimedOut if no Progress came since: the timeout was spurious (RFC 4015), and the packets had arrived.
func (c *Controller) Undo() {
	if c.undoWindow != 0 {
		c.window = max(c.window, c.undoWindow)
		c.ssthresh = max(c.ssthresh, c.window)
		c.undoWindow = 0
	}
}

// Progress notes an acknowledgement. After it, Undo does not revert an earlier timeout.
func (c *Controller) Progress() { c.undoWindow = 0 }

// Rewind notes that PSNs from psn on will be used again.
func (c *Controller) Rewind(psn seq.Num) { c.recoverPSN, c.round.endPSN = psn, psn }
