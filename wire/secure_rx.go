package wire

import (
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/seal"
)

// receiveSealed handles a packet of a type that is sealed. It reports false as handled for other packets. Nothing in a
// packet has an effect on a connection before the packet is opened. A packet that names a connection and does not open
// gets no answer, so its sender does not learn why.
func (e *Engine) receiveSealed(bufs []link.Buf) (kept, handled bool) {
	var h proto.Header
	if !h.Parse(bufs[0].Data) || !h.Type.Established() && h.Type != proto.Close && h.Type != proto.Closed {
		return false, false
	}
	if sizeOf(bufs) < proto.HeaderSize+seal.Overhead {
		e.stats.BadPackets++
		return false, true
	}
	c := e.lookup(h.CID)
	from := e.source(&bufs[0])
	if c == nil {
		if s, slot, _ := e.table.findSlot(h.CID); s != nil && s.linger != nil && from == s.linger.peerAddr {
			e.receiveOnLinger(&h, bufs, slot, s.linger)
			return false, true
		}
		if x := e.table.closed.find(h.CID, from, e.now); x != nil {
			return e.receiveLate(&h, bufs, x), true
		}
	}
	if c == nil || from != c.peerAddr {
		return e.handleUnknownSealed(&h, bufs), true
	}
	kept = c.receiveSealed(&h, bufs)
	e.sealing.frames = nil
	return kept, true
}

// handleUnknownSealed handles a packet that names no connection of its sender. It may belong to another engine.
func (e *Engine) handleUnknownSealed(h *proto.Header, bufs []link.Buf) (kept bool) {
	if h.Type != proto.Closed {
		return e.handleUnknown(h, bufs)
	}
	if !e.forwardPacket(h, bufs) {
		e.stats.UnknownConnection++
	}
	return false
}

// open opens a packet with the keys k. It returns the packet as one Buf, and its body. It returns nil if the packet does
// not open.
func (e *Engine) open(k *keys, bufs []link.Buf) (whole []link.Buf, body []byte) {
	if k == nil { // the handshake is not over
		e.stats.Unopened++
		return nil, nil
	}
	if whole = e.sealing.gather(bufs); whole == nil {
		e.stats.BadPackets++
		return nil, nil
	}
	body, result := k.Open(whole[0].Data, e.now)
	switch result {
	case seal.Opened:
		k.noteOpened()
		return whole, body
	case seal.Replayed, seal.TooOld:
		e.stats.Replayed++
	case seal.Short:
		e.stats.BadPackets++
	case seal.Exhausted:
		k.exhaust()
		fallthrough
	case seal.NoKey, seal.Forged:
		e.stats.Unopened++
	}
	return nil, nil
}

// receiveSealed opens a packet with the ID and the address of the peer, and handles it. It reports whether the engine
// keeps the frames.
func (c *Conn) receiveSealed(h *proto.Header, bufs []link.Buf) (kept bool) {
	whole, body := c.eng.open(c.keys, bufs)
	if whole == nil || !c.hasPlausibleNumbers(h) {
		return false
	}
	switch h.Type {
	case proto.Close:
		c.receiveClose(h, body)
		return false
	case proto.Closed: // it answers no Close of this connection
		return false
	default:
		return c.receivePacket(h, whole, proto.HeaderSize+len(body))
	}
}

// receiveClose ends the connection that the peer has closed, and answers Close. It remembers the answer, because the peer
// repeats Close if the answer is lost.
func (c *Conn) receiveClose(h *proto.Header, body []byte) {
	e := c.eng
	var g proto.Goodbye
	if !g.Parse(body) || g.CID != c.peerCID {
		e.stats.BadPackets++
		return
	}
	answer := e.sendSealedClosed(c.path, h, &g, c.keys)
	e.flush() // the packet needs the path, which peerClosed releases
	c.noteClosed(answer)
	c.peerClosed(h, &g)
}

// receiveOnLinger handles a sealed packet of the peer of a closed connection. Closed ends the linger, and so does a Close,
// which gets an answer: both ends have closed the connection, and neither needs to learn it.
func (e *Engine) receiveOnLinger(h *proto.Header, bufs []link.Buf, slot int32, l *linger) {
	if len(bufs) > 1 { // data
		return
	}
	whole, body := e.open(l.keys, bufs)
	if whole == nil {
		return
	}
	var g proto.Goodbye
	switch {
	case h.Type == proto.Closed:
		e.endClosed(slot, l, nil)
	case h.Type == proto.Close && g.Parse(body):
		answer := e.sendSealedClosed(l.path, h, &g, l.keys)
		e.flush() // the packet needs the path, which endClosed releases
		e.endClosed(slot, l, answer)
	}
}

// A Reset and an ICMP message are not authenticated. In secure mode they are hints. A hint has to quote the header of a
// packet that this side has sealed, and starts a challenge, as in plaintext mode. The connection breaks only if the peer
// answers none of the challenge ACKs for challengeAckLimit, and a further hint then quotes one of them or a later packet.
// Otherwise GiveUp decides. An attacker that reads can break a connection in this way only if it also drops the packets
// of the peer.

// isOurTag reports whether a packet of this side has had this tag. In secure mode, the tag is the lower half of a counter.
func (c *Conn) isOurTag(tag uint32) bool {
	if c.keys == nil {
		return tag == c.peerTag
	}
	_, ok := c.keys.sealed(tag)
	return ok
}

// sealed returns the newest counter with a lower half, among those of the sealed packets.
func (k *keys) sealed(low uint32) (counter uint64, ok bool) {
	last := k.Sealed() - 1
	ago := uint64(uint32(last) - low)
	return last - ago, ago <= last && last+1 > 0
}

// handleHint handles a Reset or an ICMP message. The caller has checked what it quotes; tag is the tag in it. handleHint
// reports whether the connection is lost.
func (c *Conn) handleHint(tag uint32) (confirmed bool) {
	d := &c.challenge
	quoted, _ := c.keys.sealed(tag)
	if d.pending && c.eng.runTime(d.begunAt) >= challengeAckLimit && quoted >= c.keys.challenge {
		return true
	}
	c.sendChallengeAck()
	return false
}

// noteChallenge notes that the packet sealed last is the first challenge ACK of a challenge. k may be nil.
func (k *keys) noteChallenge() {
	if k != nil {
		k.challenge = k.Sealed() - 1
	}
}

// challengeTime returns how long a challenge lasts. In secure mode a hint counts only after challengeAckLimit.
func (c *Conn) challengeTime() time.Duration {
	if c.keys != nil {
		return max(c.host.limits.GiveUp, 2*challengeAckLimit)
	}
	return challengeAckLimit
}
