package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// rtxTimer is the retransmission timer of a connection (RFC 6298 §5). The first timeout in a row is a probe timeout
// (RFC 9002 §6.2), which sends a tail loss probe. Those after it mark everything lost and back off.
type rtxTimer struct {
	count    int  // timeouts in a row
	firedAt  Time // last timeout
	progress Time // when something new was last acknowledged
	silent   bool // the peer had not been heard for long at the last timeout
	asked    Time // since when a short packet goes with each timeout; 0: none did yet
}

// acked takes in that something new was acknowledged.
func (t *rtxTimer) acked(now Time) { t.count, t.asked, t.progress = 0, 0, now }

// reset ends the back-off: the peer is there, and packets of the size in use pass.
func (t *rtxTimer) reset() { t.count, t.asked = 0, 0 }

// since is the moment from which the timeout counts; first is when the oldest packet left first.
func (t *rtxTimer) since(first Time) Time { return max(first, t.progress, t.firedAt) }

// rto is the retransmission timeout now: the probe timeout, doubled with each timeout in a row (RFC 6298
// §5.5) up to busyRTO or maxRTO, or to the probe timeout where the path is slower than that.
func (c *Conn) rto() time.Duration {
	most := c.host.limits.GiveUp / 4 // a peer is asked several times before it is given up
	t := min(c.rtt.PTO(), most)
	if c.rtx.count == 0 {
		return t
	}
	t = max(t, minRTO)
	ceiling := busyRTO
	if c.eng.runTime(c.eng.arrived) > busyRTO {
		ceiling = maxRTO
	}
	return min(max(t, min(t<<min(c.rtx.count, 16), ceiling)), most) // not before an acknowledgement can be there
}

// rtxTimeout handles the retransmission timeout: it marks packets lost, or gives the connection up.
func (c *Conn) rtxTimeout() {
	t, now := &c.rtx, c.eng.now
	if c.lostTouch() {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return
	}
	c.eng.stats.Timeouts++
	t.firedAt = now
	t.silent = t.silent || c.quiet(now) > max(suspendTime, 2*c.rtt.PTO())
	t.count++
	switch {
	case t.count == 1:
		c.sent.ProbeTail(uint8(CauseTailProbe))
	case c.blackHole():
		c.changeEpoch()
		return
	default:
		c.askShort()
		c.sent.MarkAllLost(now, uint8(CauseTimeout))
		c.cc.TimedOut(c.sent.Nxt)
	}
	c.setDeadline(now.Add(c.rto()))
	c.schedule()
}

// askShort asks the peer with a packet of the least size, if an outstanding packet may be lost for its
// size. Else the packet that is sent again asks.
func (c *Conn) askShort() {
	if c.pmtu.Size <= basePacket || !c.sent.HasLarger(basePacket) {
		return
	}
	if c.rtx.asked == 0 {
		c.rtx.asked = c.eng.now
	}
	c.sendAck(proto.AckRequest)
}

// endBackoff ends the back-off when a peer is heard that was silent: it was stopped, or the path to it was cut,
// and what was sent meanwhile may be lost.
func (c *Conn) endBackoff() {
	t := &c.rtx
	if !t.silent {
		return
	}
	t.silent = false
	if t.count > 1 && !c.flow.rnr.waits {
		t.count = 1
		c.setDeadline(c.eng.now.Add(c.rto()))
	}
}

// lostTouch reports whether data has been unacknowledged for too long: less where the peer is silent
// than where it talks.
func (c *Conn) lostTouch() bool {
	now, lim := c.eng.now, &c.host.limits
	first := c.sent.Oldest().First
	return c.eng.runTime(max(first, c.rtx.progress)) > lim.NotReady ||
		now.Sub(first) > lim.GiveUp && c.eng.runTime(c.lastHeard) > lim.GiveUp
}
