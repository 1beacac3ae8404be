package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// Two messages say that a peer has lost a connection: Reset, and ICMP port unreachable. Both quote the header of a
// packet of ours with its verification tag, which an off-path attacker does not know. But either message may be older
// than the peer's last packet. So the first one only makes the connection send a challenge ACK (RFC 5961 §3): an Ack
// with AckRequest. The connection breaks when another such message quotes the challenge ACK or a later packet. Any
// packet of the peer cancels the challenge.

// challengeAck is the state of the challenge on one connection.
type challengeAck struct {
	pending bool // sent, and no packet of the peer has come since
	since   Time // when the first challenge ACK left; kept afterwards
	next    Time // when the challenge ACK is repeated
}

const (
	// challengeAckRetry is the time to the first repeat, since the challenge ACK or its answer may be lost. It doubles.
	challengeAckRetry = 10 * time.Millisecond
	// portReportWait is the least time that a peer has to answer the challenge ACK when the report of the closed port
	// came for another connection.
	portReportWait = 20 * time.Millisecond
	// challengeAckLimit is the time after which a challenge without a second message ends. It exceeds the time until a
	// second ICMP message: Linux sends at least one a second to a host (net.ipv4.icmp_ratelimit).
	challengeAckLimit = 3 * time.Second
)

// hasSent reports whether a quoted PSN can be one of ours: from a window before the oldest unacknowledged packet to the
// next new one.
func (c *Conn) hasSent(psn seq.Num) bool { return psn.Within(c.sent.Una-proto.MaxWindow, c.sent.Nxt) }

// handleLostReport handles a Reset or an ICMP report that the peer has lost the connection. ts is the time stamp of the
// quoted packet, and the caller has checked tag and PSN. It reports true when the message confirms a pending challenge;
// then the caller ends the connection. Otherwise it sends a challenge ACK.
func (c *Conn) handleLostReport(ts uint32) (confirmed bool) {
	if c.challengeAck.pending && c.eng.sentSince(ts, c.challengeAck.since) {
		return true
	}
	c.sendChallengeAck()
	return false
}

// sentSince reports whether a time stamp of ours is from since or later, and at most challengeAckLimit old. Time stamps
// wrap, so that an older one proves nothing.
func (e *Engine) sentSince(ts uint32, since Time) bool {
	now := e.now.Stamp()
	return ts-since.Stamp() <= now-since.Stamp() && now-ts <= uint32(challengeAckLimit>>clock.StampShift)
}

// sendChallengeAck begins a challenge. It does nothing while one is pending, or within a probe timeout after the last
// one left, whose answer may still be in the network. It reports false if the link has no frame.
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

// dueChallengeAck repeats the challenge ACK, ends the challenge or breaks the connection, and returns when it has to
// run next.
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

// portClosed reports whether the kernel has refused a packet to the peer's port that left after the challenge ACK, from
// this connection or another one, and the peer has had time to answer.
func (c *Conn) portClosed() bool {
	since := c.challengeAck.since
	return c.challengeAck.pending && c.eng.runTime(since) >= max(portReportWait, 4*c.rtt.PTO()) && c.portClosedSince(since)
}
