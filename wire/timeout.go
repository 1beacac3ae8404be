package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// rtxTimer is the retransmission timer (RFC 6298 §5). In a series of consecutive timeouts, the first is a probe timeout
// (RFC 9002 §6.2) and sends a tail loss probe. Each later timeout marks all outstanding packets lost and doubles the
// time to the next timeout.
type rtxTimer struct {
	firedAt   Time  // when the timer last fired
	lastAckAt Time  // last acknowledgement of a new packet
	count     int32 // consecutive timeouts
	silent    bool  // the peer had been silent for long when the timer fired
}

// acked resets the timer after an acknowledgement of a new packet.
func (t *rtxTimer) acked(now Time) {
	t.reset()
	t.lastAckAt = now
}

// reset ends the back-off, because the peer responds and packets of the current size pass.
func (t *rtxTimer) reset() { t.count = 0 }

// startTime returns when the current timeout began. firstSent is when the oldest outstanding packet first left.
func (t *rtxTimer) startTime(firstSent Time) Time { return max(firstSent, t.lastAckAt, t.firedAt) }

// rto returns the current timeout. The first of consecutive timeouts is the probe timeout, and each further timeout is
// twice as long as the preceding timeout (RFC 6298 §5.5), up to the longest back-off. But it is never below the probe
// timeout, and a quarter of GiveUp bounds the result in every case.
func (c *Conn) rto() time.Duration {
	most := c.host.limits.GiveUp / 4 // several retransmissions fit before the connection breaks
	t := min(c.rtt.PTO(), most)
	if c.rtx.count == 0 {
		return t
	}
	t = max(t, minRTO)
	return min(max(t, min(t<<min(c.rtx.count, 16), c.eng.longestBackoff())), most) // never below the probe timeout
}

// longestBackoff returns the longest time between two packets to a peer that does not answer. When the path works again,
// everything waits for the next of these packets. So the time is as short as the load allows: all silent peers together
// get one packet per silentInterval.
func (e *Engine) longestBackoff() time.Duration {
	return min(max(time.Duration(e.timers.silent.Len())*silentInterval, minBackoff), maxRTO)
}

// rtxTimeout handles a retransmission timeout. It does one of three things:
//   - breaks the connection if data has been unacknowledged for too long,
//   - sends a tail loss probe, at the first of consecutive timeouts,
//   - marks all outstanding packets lost, and begins to test the size of the larger ones.
func (c *Conn) rtxTimeout() {
	t, now := &c.rtx, c.eng.now
	if c.ackOverdue() {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return
	}
	c.eng.stats.Timeouts++
	c.unanswered++
	t.firedAt = now
	t.silent = t.silent || c.silence(now) > max(suspendTime, 2*c.rtt.PTO())
	t.count++
	c.sent.DetectReneging(uint8(CauseEvicted))
	if t.count == 1 {
		c.sent.ProbeTail(uint8(CauseTailProbe))
	} else {
		c.verifyMTU()
		c.sent.MarkAllLost(uint8(CauseTimeout))
		c.cc.TimedOut(now, c.rto())
	}
	c.setDeadline(now.Add(c.rto()))
	c.schedule()
}

// endBackoff is called when a packet from the peer arrives. If the peer had been silent for a long time, endBackoff
// shortens the timeout to the value that follows the first of consecutive timeouts. During the silence, the peer was
// stopped or the path was down. Packets that were sent in that time may be lost, so they should be sent again soon.
func (c *Conn) endBackoff() {
	t := &c.rtx
	if !t.silent {
		return
	}
	t.silent = false
	if t.count > 1 && !c.flow.rnr.waiting {
		t.count = 1
		c.setDeadline(c.eng.now.Add(c.rto()))
	}
}

// ackOverdue reports whether data has been unacknowledged for so long that the connection should break. The limit is
// GiveUp if the peer is silent, otherwise NotReady.
func (c *Conn) ackOverdue() bool {
	now, lim := c.eng.now, &c.host.limits
	first := c.sent.Oldest().FirstSentAt
	return c.eng.runTime(max(first, c.rtx.lastAckAt)) > lim.NotReady ||
		now.Sub(first) > lim.GiveUp && c.eng.runTime(c.lastHeard) > lim.GiveUp
}
