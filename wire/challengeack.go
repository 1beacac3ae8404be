package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// A Reset or an ICMP port unreachable says that the peer has lost a connection. Either message quotes the header of a
// packet from this side. That header has the verification tag, which an off-path attacker does not know. But the
// message may be older than the peer's last packet. So the first such message does not break the connection, but begins
// a challenge: the connection sends a challenge ACK (RFC 5961 §3), which is an Ack with AckRequest. If a second message
// quotes the challenge ACK or a later packet, the connection breaks. Any packet from the peer ends the challenge.

// challengeAck is the state of a challenge on one connection.
type challengeAck struct {
	pending bool // a challenge ACK has left, and no packet from the peer has come since
	begunAt Time // when the first challenge ACK of the last challenge left
	retryAt Time // when the challenge ACK is repeated
}

const (
	// challengeAckRetry is the time to the first repeat, in case the challenge ACK or its answer is lost; it doubles.
	challengeAckRetry = 10 * time.Millisecond
	// portReportWait is how long the peer may take to answer a challenge ACK. If the peer has not answered after
	// portReportWait, an ICMP port unreachable that quotes a packet of another connection to the same port breaks the
	// connection. The reason is that kernels limit the rate of ICMP, so a connection may get no message that quotes its
	// own packet. An ICMP port unreachable that quotes the challenge ACK breaks the connection at once.
	portReportWait = 20 * time.Millisecond
	// challengeAckLimit is the time after which a challenge ends if no Reset or ICMP message quotes the challenge ACK
	// or a later packet. By default, Linux limits the ICMP messages to a host to one per second
	// (net.ipv4.icmp_ratelimit). challengeAckLimit is longer than a second, so the limit lets a message through before
	// the challenge ends.
	challengeAckLimit = 3 * time.Second
)

// hasSent reports whether this side can have sent the PSN that a Reset or an ICMP message quotes. Such a PSN is at most
// one window before the oldest unacknowledged packet, and not after the next new packet.
func (c *Conn) hasSent(psn seq.Num) bool { return psn.Within(c.sent.Una-proto.MaxWindow, c.sent.Nxt) }

// handleLostReport handles a Reset or an ICMP message which says that the peer has lost the connection. The argument ts
// is the time stamp of the packet that the message quotes. The caller has checked the tag and the PSN of that packet.
// If a challenge is pending and the quoted packet is the challenge ACK or a later packet, handleLostReport returns
// true, and the caller ends the connection. Otherwise handleLostReport begins a challenge, unless one is pending, and
// returns false. In secure mode, handleHint replaces it.
func (c *Conn) handleLostReport(ts, tag uint32) (confirmed bool) {
	if c.keys != nil {
		return c.handleHint(tag)
	}
	if c.challenge.pending && c.eng.sentSince(ts, c.challenge.begunAt) {
		return true
	}
	c.sendChallengeAck()
	return false
}

// sentSince reports whether this side sent the time stamp ts at the time start or later, and at most challengeAckLimit
// ago. An older time stamp proves nothing, because time stamps wrap.
func (e *Engine) sentSince(ts uint32, start Time) bool {
	now := e.now.Stamp()
	return ts-start.Stamp() <= now-start.Stamp() && now-ts <= uint32(challengeAckLimit>>clock.StampShift)
}

// sendChallengeAck begins a challenge. It does nothing while a challenge is pending. It also does nothing within a
// probe timeout after the last challenge began, because the answer to that challenge may still be in the network. It
// reports false if the link has no frame.
func (c *Conn) sendChallengeAck() bool {
	d, now := &c.challenge, c.eng.now
	if d.pending || d.begunAt != 0 && now.Sub(d.begunAt) < c.rtt.PTO() {
		return true
	}
	if !c.sendAck(proto.AckRequest) {
		return false
	}
	*d = challengeAck{pending: true, begunAt: now, retryAt: now.Add(max(challengeAckRetry, c.rtt.PTO()))}
	c.keys.noteChallenge()
	c.setDeadline(d.retryAt)
	return true
}

// dueChallengeAck repeats the challenge ACK, ends the challenge or breaks the connection. The result is the time
// at which it must run again.
func (c *Conn) dueChallengeAck() Time {
	d, now := &c.challenge, c.eng.now
	switch {
	case !d.pending:
		return never
	case c.portClosed():
		c.peerEnded()
		return never
	case now.Sub(d.begunAt) > c.challengeTime():
		d.pending = false
		return never
	case now >= d.retryAt:
		d.retryAt = c.challengeRetry()
		c.sendAck(proto.AckRequest)
	}
	return d.retryAt
}

// challengeRetry returns when the challenge ACK is repeated next.
func (c *Conn) challengeRetry() Time {
	begun, now := c.challenge.begunAt, c.eng.now
	at := now.Add(max(challengeAckRetry, c.rtt.PTO(), now.Sub(begun)))
	if silent := begun.Add(challengeAckLimit); c.keys != nil && now < silent {
		return min(at, silent) // from then on a hint may break the connection
	}
	return at
}

// portClosed reports whether a pending challenge has shown that the peer's port is closed. Two conditions must hold:
// the peer has had time to answer the challenge ACK, and the peer's kernel has refused a packet that left after the
// challenge ACK. That packet may be from this connection or from another connection to the port.
func (c *Conn) portClosed() bool {
	begun := c.challenge.begunAt
	return c.challenge.pending && c.keys == nil && c.eng.runTime(begun) >= max(portReportWait, 4*c.rtt.PTO()) && c.portClosedSince(begun)
}
