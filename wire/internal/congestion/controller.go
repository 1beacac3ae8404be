// Package congestion decides how many bytes of a connection may be in the network.
//
// One law moves the window (FAST TCP; Swift, SIGCOMM 2020). The delay of a round trip shows the queue: what exceeds the base
// delay, which is the round trip of the empty network. Each connection has a target for this delay, which is longer for a
// lower rate (see target). Once per round trip, the window changes by a share of the bytes that are missing in the queue or
// too many:
//
//	window += Gain × rate × (target − queue)
//
// All connections on a queue see the same queue, so they converge to the same target and the same rate, whatever their
// round trips and packet sizes are. The other signals act on parts of this law:
//   - Congestion marks lower the target in proportion to their share (compare DCTCP, RFC 8257).
//   - A loss takes the lost bytes out of the window, unless so few packets are lost that losses may be random. It also shows
//     how long a full queue is: on a long path the target is at most half of that.
//   - Timeouts leave at most one packet.
//   - Slow start doubles the window each round trip until a queue shows. It begins again when the path has room.
//   - Delay that stays although the window shrinks raises the base delay: the path has become longer. A slowdown from time to
//     time finds a base delay that is too long because the connection has never seen the network empty.
//
// A pacer spaces packets out while the window is a few packets or less, and bursts on a long path, where the window would
// otherwise leave at the rate of the host. On a short path, acknowledgements space out larger windows.
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
	window     float64       // cwnd, in bytes
	ssthresh   float64       // slow start threshold, in bytes
	undoWindow float32       // window before the first of consecutive timeouts; 0: nothing to undo
	most       float32       // largest window in packets
	size       float64       // full packet in bytes
	hostDelay  time.Duration // time that packets may wait in the two hosts, which is no sign of congestion
	newest     time.Duration // newest sample

	round round
	marks float32 // smoothed share of marked packets (RFC 8257 §3.3)
	ce    uint16  // congestion marks that the peer has counted; wraps
	empty int8    // consecutive rounds with hardly any queue
	hold  bool    // the window has shrunk much, and the next round does not show the effect yet
	base  baseDelay
	pacer pacer
	noise noise

	slowdown slowdown
}

// New returns the state of a new connection. psn is the number of its first packet. hostDelay is the time that packets
// may wait in queues of the two hosts.
func New(psn seq.Num, hostDelay time.Duration) Controller {
	return Controller{hostDelay: hostDelay, window: InitialBytes, ssthresh: math.Inf(1), size: InitialBytes / InitialPackets,
		most: math.MaxFloat32, round: round{endPSN: psn}, pacer: pacer{seed: uint32(psn)}}
}

// SetPacketSize sets the size of a full packet in bytes. Before the first packet it also sets the initial window.
func (c *Controller) SetPacketSize(n int) {
	if c.newest == 0 {
		c.window = initialWindow(float64(n))
	}
	c.size = float64(n)
}

// SetLargest sets the largest window in packets: what the peer's receive window admits.
func (c *Controller) SetLargest(n int) { c.most = float32(n) }

// initialWindow returns the window of a new connection with full packets of a size.
func initialWindow(size float64) float64 { return min(max(InitialBytes, 2*size), InitialPackets*size) }

// Probed notes the round trip d of the first packet of the present size. Before, packets were shorter, and took less time
// also in the empty network.
func (c *Controller) Probed(d time.Duration) { c.base.delay = d }

// Window returns the congestion window in packets.
func (c *Controller) Window() float64 { return c.window / c.size }

// BaseDelay returns the round trip of the empty network, or 0 without a sample.
func (c *Controller) BaseDelay() time.Duration { return c.base.delay }

// Open reports whether a packet may leave. The argument pipe is the number of packets in the network.
func (c *Controller) Open(now clock.Time, pipe int) bool {
	return c.hasRoom(pipe) && (!c.isPaced() || now >= c.pacer.nextAt)
}

// NextSend returns when the pacer allows the next packet, or clock.Never if a packet does not wait for the pacer.
func (c *Controller) NextSend(now clock.Time, pipe int) clock.Time {
	if c.hasRoom(pipe) && c.isPaced() && now < c.pacer.nextAt {
		return c.pacer.nextBurst()
	}
	return clock.Never
}

func (c *Controller) hasRoom(pipe int) bool {
	return float64(pipe)*c.size < c.window && (pipe < slowdownWindow || !c.slowdown.active())
}

// isPaced reports whether packets are paced.
func (c *Controller) isPaced() bool { return c.isSmall() || c.base.delay >= PacedPath }

func (c *Controller) isSmall() bool { return c.window < PacedWindow*c.size }

func (c *Controller) inSlowStart() bool { return c.window < c.ssthresh }

// Group returns the largest number of packets that may leave as one group: a quarter of the window, and what the window
// allows in groupTime. The base delay stands for the round trip, because a late poll does not change it.
func (c *Controller) Group() int {
	share := 0.25
	if d := c.base.delay; d > 4*groupTime {
		share = float64(groupTime) / float64(d)
	}
	return max(1, int(c.Window()*share))
}

// Limit notes that a packet waits for the window or the pacer, with pipe packets in the network. The window changes only in
// rounds in which it has delayed packets: otherwise it neither causes the queue nor needs to grow (RFC 7661). A large
// window delays packets if it has no room for a group.
func (c *Controller) Limit(pipe int) {
	if c.isSmall() || float64(pipe+c.Group())*c.size > c.window {
		c.round.limited = true
	}
}

// Sent notes that a packet of n bytes leaves.
func (c *Controller) Sent(now clock.Time, srtt time.Duration, n int) {
	if c.isPaced() {
		gap := c.gap(srtt, n)
		c.pacer.packetSent(now, gap, max(gap, time.Duration(float64(gap)*c.burst()/float64(n))))
	}
}

// gap returns the time from a packet of n bytes to the next one while packets are paced: the time in which the rate, one
// window in a round trip, sends n bytes. The newest sample stands for a part of the round trip, as in a window that
// acknowledgements move: the sooner they come, the faster packets leave. This part is smaller in a smaller window, where
// the next packet leaves long after the sample. With the newest sample alone, the queue oscillates.
func (c *Controller) gap(srtt time.Duration, n int) time.Duration {
	part := min(c.window/c.size, 1) / 2
	rtt := srtt + time.Duration(part*float64(c.newest-srtt))
	rtt = min(rtt, c.base.delay+MaxQueue+c.hostDelay) // a queue that was longer drains
	return min(time.Duration(float64(rtt)*float64(n)/(c.window*c.paceGain())), max(rtt, maxGap))
}

// paceGain returns the rate of the pacer, divided by one window in a round trip.
func (c *Controller) paceGain() float64 {
	switch {
	case c.isSmall():
		return 1
	case c.inSlowStart():
		return startPace
	}
	return steadyPace
}

// burst returns how many bytes may leave at once while packets are paced.
func (c *Controller) burst() float64 {
	if c.isSmall() {
		return 0
	}
	return min(float64(c.Group())*c.size, MaxBurst)
}

// Sample adds a round-trip sample. full reports whether the packet was so large that its sample may be the base delay.
func (c *Controller) Sample(d time.Duration, full bool) {
	if full || c.base.delay == 0 {
		c.base.sample(d)
	}
	c.newest = d
	c.noise.passed(c.queue(d))
	c.round.sample(d)
}

// Acked handles the acknowledgement of n packets. una is the oldest PSN that remains unacknowledged, and nextPSN is the
// PSN of the next new packet. ce is the peer's count of marked packets since the beginning of the connection.
func (c *Controller) Acked(now clock.Time, una, nextPSN seq.Num, n int, ce uint16) {
	r := &c.round
	r.acked += int16(n)
	c.noise.acked(n)
	r.marks += int32(ce - c.ce)
	c.ce = ce
	if r.limited && c.inSlowStart() && r.marks == 0 && c.queue(c.newest) <= c.startQueue() {
		c.window += float64(n) * min(c.size, c.window)
	}
	if c.window < DelayFloor*c.size && c.isIdle(c.newest) {
		c.window = c.size
	}
	if r.endPSN.Less(una) {
		c.endRound(now)
		c.round = round{endPSN: nextPSN}
	}
	c.window = min(c.window, float64(c.most)*c.size)
}

// queue returns the part of a delay that queues cause.
func (c *Controller) queue(d time.Duration) time.Duration { return d - c.base.delay }

// startQueue returns the delay in queues that ends slow start.
func (c *Controller) startQueue() time.Duration {
	return max(startQueue, c.share(startShare)) + c.hostDelay
}

// share returns 1/n of the base delay, but at most half of a queue that was full.
func (c *Controller) share(n time.Duration) time.Duration {
	if full := c.noise.fullQueue(); full > 0 {
		return min(c.base.delay/n, full/2)
	}
	return c.base.delay / n
}

// target returns the delay in queues that the connection tolerates, in a round of delay d.
func (c *Controller) target(d time.Duration) time.Duration {
	t := max(target(c.window/d.Seconds()), c.share(BaseShare))
	return t - time.Duration(c.marks*float32(MarkDelay)) + c.hostDelay
}

// endRound adjusts the window to the round trip that ends.
func (c *Controller) endRound(now clock.Time) {
	r := &c.round
	c.marks += (r.markShare() - c.marks) / MarkMemory
	held := c.hold
	c.hold = false
	switch {
	case c.slowdown.active():
		c.slowdown.rounds--
	case !r.limited:
		c.slowdown.putOff(now, r.least)
	case r.samples == 0:
	case c.inSlowStart():
		if r.marks > 0 || c.queue(r.delay()) > c.startQueue() {
			c.ssthresh = c.window
		}
	case c.slowdown.begin(now, r.least, c.base.delay):
	case c.pathIsLonger(r.delay()):
		c.ssthresh = math.Inf(1)
	case held:
	case c.pathHasRoom(r.delay()):
		c.ssthresh = math.Inf(1)
	default:
		c.adjust(r.delay())
	}
}

// pathIsLonger reports whether the base delay has risen in a round of delay d. If the delay was constant, the window gets
// back what it has lost since the delay began, up to the initial window: its present size is an answer to a queue that is
// none.
func (c *Controller) pathIsLonger(d time.Duration) bool {
	constant := !c.round.lost && c.base.isWithin(d, c.queue(d)/constantShare)
	rounds := c.longerAfter(d, constant)
	if rounds == 0 {
		c.base.rounds = 0
		return false
	}
	if c.base.count(d, c.window); c.base.rounds < rounds {
		return false
	}
	c.base.rise()
	if constant {
		c.window = max(c.window, min(float64(c.base.window), initialWindow(c.size)))
	}
	return true
}

// longerAfter returns the number of rounds like one of delay d after which the path counts as longer, or 0 if the window
// or a queue of others may be the cause of the delay.
func (c *Controller) longerAfter(d time.Duration, constant bool) int8 {
	q, t := c.queue(d), c.target(d)
	switch {
	case q > MaxQueue+c.hostDelay && c.window <= DelayFloor*c.size:
		return steadyRounds
	case q > 2*t && constant:
		return constantRounds
	case q > 2*t && c.base.isWithin(d, c.base.least/steadyShare):
		return steadyRounds
	case q > t/2 && constant && c.window <= c.size:
		return smallRounds
	}
	return 0
}

// isIdle reports whether a round of delay d shows hardly any queue.
func (c *Controller) isIdle(d time.Duration) bool {
	return c.round.marks == 0 && c.queue(d) < c.target(d)/emptyShare
}

// pathHasRoom reports whether there was hardly any queue for emptyRounds rounds, of which the last has delay d.
func (c *Controller) pathHasRoom(d time.Duration) bool {
	if !c.isIdle(d) {
		c.empty = 0
		return false
	}
	c.empty++
	if c.empty < emptyRounds {
		return false
	}
	c.empty = 0
	return true
}

// adjust moves the window towards the target in a round of delay d. A window that is far too large shrinks at once to the
// size that leaves the target in the queue, but at most by a half. A window below one packet moves more slowly, because
// its effect shows later.
func (c *Controller) adjust(d time.Duration) {
	t, q := c.target(d), c.queue(d)
	factor := Gain * float64(t-q) / float64(d)
	if q > 2*max(t, 0) {
		factor = float64(c.base.delay+t)/float64(d) - 1
		c.hold = true
	} else {
		factor *= min(c.window/c.size, 1)
	}
	least := min(c.window, DelayFloor*c.size)
	c.window = max(c.window*max(1+factor, 0.5), least)
	c.ssthresh = c.window
}

// Lost takes n lost packets out of the window, and ends slow start. It leaves at least one packet. It ignores losses that
// may be random.
func (c *Controller) Lost(n int) {
	c.round.lost = true
	if c.noise.lost(n); c.noise.exceeds() {
		c.window = max(c.window-float64(n)*c.size, min(c.window, c.size))
		c.ssthresh = c.window
		if q := c.queue(c.newest); q > startQueue+c.hostDelay {
			c.noise.dropped(q)
		}
	}
}

// TimedOut reduces the window after a retransmission timeout of length rto: no packet is known to be in the network. The
// first of consecutive timeouts leaves half of the window, and at most one packet. The next packet leaves after a random
// part of the timeout.
func (c *Controller) TimedOut(now clock.Time, rto time.Duration) {
	c.round.lost = true
	c.pacer.scatter(now, time.Duration(timeoutJitter*float64(rto)))
	if c.undoWindow != 0 {
		return
	}
	c.undoWindow = float32(c.window)
	c.ssthresh = c.window / 2
	c.window = max(min(c.window/2, c.size), MinWindow*c.size)
}

// Undo reverts the timeouts if no Progress came since: they were spurious (RFC 4015), and the packets had arrived.
func (c *Controller) Undo() {
	if c.undoWindow != 0 {
		c.window = max(c.window, float64(c.undoWindow))
		c.ssthresh = max(c.ssthresh, c.window)
		c.Progress()
	}
}

// Progress notes an acknowledgement. After it, Undo does not revert an earlier timeout, and packets do not wait for the
// random time that followed the timeout.
func (c *Controller) Progress() {
	if c.undoWindow != 0 {
		c.undoWindow, c.pacer.nextAt = 0, 0
	}
}

// Rewind notes that PSNs from psn on will be used again.
func (c *Controller) Rewind(psn seq.Num) { c.round.endPSN = psn }
