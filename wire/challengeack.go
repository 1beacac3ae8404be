package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Two kinds of messages say that a peer does not have a connection any more: Reset, and ICMP port unreachable. Both
// repeat the header of a packet of ours with its verification tag, which a stranger does not know. Both may be
// older than the peer's last packet. The first one raises a doubt: an Ack with AckRequest, the probe, asks the
// peer. One about the probe or a later packet breaks the connection. Any packet of the peer ends the doubt.

// doubt is the state of that on one connection.
type challengeAck struct {
	pending bool
	since   Time // when the first probe left; kept when the doubt is over
	next    Time // of the next probe
}

const (
	// challengeAckRetry is the time to the second probe, the first one or its answer may be lost; from then on it doubles.
	challengeAckRetry = 10 * time.Millisecond
	// portReportWait is how long a peer may take to answer when another connection's report tells of its port.
	portReportWait = 20 * time.Millisecond
	// challengeAckLimit ends a doubt that nothing confirms. Linux sends one ICMP message a second to a host at
	// least (net.ipv4.icmp_ratelimit).
	challengeAckLimit = 3 * time.Second
)

// hasSent reports whether a number can be that of a packet of ours that a message repeats.
func (c *Conn) hasSent(psn seq.Num) bool { return psn.Within(c.sent.Una-proto.MaxWindow, c.sent.Nxt) }

// doubted handles a message that the peer does not have the connection, about a packet of ours with a time stamp. The
// caller has compared the tag and the number. It reports whether that confirms the doubt: the caller ends the connection.
func (c *Conn) handleLostReport(ts uint32) (confirmed bool) {
	if c.challengeAck.pending && c.eng.sentSince(ts, c.challengeAck.since) {
		return true
	}
	c.sendChallengeAck()
	return false
}

// sentSince reports whether a time stamp of ours is of a packet that left at a moment or later, and not before
// challengeAckLimit.
func (e *Engine) sentSince(ts uint32, since Time) bool {
	now := e.now.Stamp()
	return ts-since.Stamp() <= now-since.Stamp() && now-ts <= uint32(challengeAckLimit>>clock.StampShift)
}

// verify sends the probe of a new doubt, but none when that of the last doubt left so recently that its answer may be
// on the way. It reports false if the link has no frame.
func (c *Conn) sendChallengeAck() bool {
	d, now := &c.challengeAck, c.eng.now
	if d.pending || d.since != 0 && now.Sub(d.since) < c.rtt.PTO() {
		return true
	}
	if !c.sendAck(proto.AckRequest) {
		return false
	}
	*d = challengeAck{pending: true, since: now, next: now.Add(max(challengeAckRetry, c.rtt.PTO()))}
	c.setDeadline(d.next)
	return true
}

// dueChallengeAck probes again, or breaks the connection, and returns when to look again.
func (c *Conn) dueChallengeAck() Time {
	d, now := &c.challengeAck, c.eng.now
	switch {
	case !d.pending:
		return never
	case c.portClosed():
		c.peerEnded()
		return never
	case now.Sub(d.since) > challengeAckLimit:
		d.pending = false
		return never
	case now >= d.next:
		d.next = now.Add(max(challengeAckRetry, c.rtt.PTO(), now.Sub(d.since)))
		c.sendAck(proto.AckRequest)
	}
	return d.next
}

// portClosed reports whether a packet to the peer's port that left since the doubt began, of this connection or another,
// was refused, and the peer has had time to answer the probe.
func (c *Conn) portClosed() bool {
	since := c.challengeAck.since
	return c.challengeAck.pending && c.eng.runTime(since) >= max(portReportWait, 4*c.rtt.PTO()) && c.portClosedSince(since)
}
