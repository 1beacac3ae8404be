package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// rtxTimer is the retransmission timer (RFC 6298 §5). The first timeout in a row is a probe timeout (RFC 9002 §6.2),
// which sends a tail loss probe. Later ones mark all outstanding packets lost and back off.
type rtxTimer struct {
	count    int  // timeouts in a row
	firedAt  Time // when it fired last
	progress Time // last acknowledgement of a new packet
	silent   bool // at a timeout, the peer had been silent for long
	asked    bool // a short packet of a black-hole test has left
	answered int  // timeouts since then that the peer answered
}

// acked resets the timer after an acknowledgement of a new packet.
func (t *rtxTimer) acked(now Time) {
	t.reset()
	t.progress = now
}

// reset ends the back-off: the peer responds, and packets of this size pass.
func (t *rtxTimer) reset() { t.count, t.asked, t.answered = 0, false, 0 }

// since returns when the timeout begins. first is when the oldest outstanding packet left for the first time.
func (t *rtxTimer) since(first Time) Time { return max(first, t.progress, t.firedAt) }

// rto returns the retransmission timeout: the probe timeout, doubled with each timeout in a row (RFC 6298 §5.5). The
// bound of the back-off is busyRTO while anything arrives at the engine, else maxRTO. A path with a longer probe
// timeout has that as its bound.
func (c *Conn) rto() time.Duration {
	most := c.host.limits.GiveUp / 4 // the peer gets several retransmissions before it is given up
	t := min(c.rtt.PTO(), most)
	if c.rtx.count == 0 {
		return t
	}
	t = max(t, minRTO)
	ceiling := busyRTO
	if c.eng.runTime(c.eng.arrived) > busyRTO {
		ceiling = maxRTO
	}
	return min(max(t, min(t<<min(c.rtx.count, 16), ceiling)), most) // never below the probe timeout
}

// rtxTimeout handles a retransmission timeout: it sends a tail loss probe, tests for a black hole, marks all packets
// lost, or gives the connection up.
func (c *Conn) rtxTimeout() {
	t, now := &c.rtx, c.eng.now
	if c.lostTouch() {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return
	}
	c.eng.stats.Timeouts++
	if t.asked && c.lastHeard > t.firedAt {
		t.answered++
	}
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

// askShort sends the peer an Ack with AckRequest if an outstanding packet is larger than the base size. A peer that
// answers this short packet, and acknowledges no larger one, is behind a black hole.
func (c *Conn) askShort() {
	if c.pmtu.Size <= basePacket || !c.sent.HasLarger(basePacket) {
		return
	}
	c.rtx.asked = true
	c.sendAck(proto.AckRequest)
}

// endBackoff ends the back-off when a silent peer is heard again. The peer was stopped or the path was down, so what
// was sent meanwhile may be lost and should be sent again soon.
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

// lostTouch reports whether data is unacknowledged for too long: GiveUp if the peer is silent, NotReady if it is not.
func (c *Conn) lostTouch() bool {
	now, lim := c.eng.now, &c.host.limits
	first := c.sent.Oldest().First
	return c.eng.runTime(max(first, c.rtx.progress)) > lim.NotReady ||
		now.Sub(first) > lim.GiveUp && c.eng.runTime(c.lastHeard) > lim.GiveUp
}
