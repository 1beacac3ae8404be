package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// A connection has one timer in the engine's wheel and several deadlines. The earliest deadline arms the timer.
// Deadlines are computed from the state of the parts and not stored, so that moving one later costs nothing: the timer
// fires early, finds nothing due, and is armed again.

// deadline is a reason for an established connection's timer.
type deadline uint8

const (
	deadlineAck          deadline = iota // delayed acknowledgement
	deadlineRtx                          // retransmission timeout, or repeat of the epoch change
	deadlineChallengeAck                 // repeat of a challenge ACK
	deadlineProgress                     // message that holds a receive of a shared queue
	deadlineReads                        // response to an RDMA read
	deadlineCredit                       // message that waits for credit or a receive
	deadlineKeepAlive                    // keep-alive
	deadlineMTU                          // search for the path MTU
	numDeadlines
)

// setDeadline makes the connection's timer fire at t or earlier.
func (c *Conn) setDeadline(t Time) {
	if t < c.armed {
		c.armed = t
		c.eng.wheel.Set(c.slot, int64(t))
	}
}

// expire handles the timer of a slot in the connection table.
func (e *Engine) expire(slot int32) {
	s := &e.table.slots[slot]
	switch {
	case s.conn != nil:
		s.conn.armed = never
		s.conn.tick()
	case s.linger != nil:
		if l := s.linger; l.tries >= closeTries || e.closedSince(l.path, l.heard) != nil {
			e.endLinger(slot, l)
			return
		}
		e.sendClose(slot, s.linger)
	}
}

// tick handles the connection's timer and arms it again.
func (c *Conn) tick() {
	switch c.State() {
	case Connecting:
		if !c.peerKnown || c.eng.now >= c.dial.until {
			c.tickHello(KindTimedOut)
			return
		}
		c.tickTraffic()
	case Accepting:
		c.tickHello(KindAcceptFailed)
	case Established, Draining:
		c.tickTraffic()
	case Idle, Closed:
	}
}

// tickHello repeats a handshake packet, or gives the handshake up with a completion of kind gaveUp.
func (c *Conn) tickHello(gaveUp Kind) {
	now, d := c.eng.now, &c.dial
	switch {
	case now >= d.until && c.peerKnown:
		c.finish(gaveUp, proto.Goodbye{})
	case now >= d.until:
		c.end(gaveUp, StatusFlushed)
	case now < d.nextTry:
		c.setDeadline(min(d.nextTry, d.until))
	case c.State() == Connecting:
		c.sendConnect()
	case d.tries >= acceptTries: // from now on only a repeated Connect is answered with Accept
		c.setDeadline(d.until)
	default:
		d.tries++
		c.sendAccept()
		c.armRetry()
	}
}

// tickTraffic handles the deadlines that have passed and arms the timer for the next one. It stops if a deadline ends
// the connection.
func (c *Conn) tickTraffic() {
	next := never
	for d := range numDeadlines {
		next = min(next, c.due(d))
		if !c.alive() {
			return
		}
	}
	c.schedule() // the pacer may allow a packet now
	if next != never {
		c.setDeadline(next)
	}
}

// due handles a deadline if it has passed, and returns the next one of its kind.
func (c *Conn) due(d deadline) Time {
	switch d {
	case deadlineAck:
		return c.dueAck()
	case deadlineRtx:
		if c.epoch.changing {
			return c.dueEpoch()
		}
		return c.dueRtx()
	case deadlineChallengeAck:
		return c.dueChallengeAck()
	case deadlineProgress:
		return c.checkProgress()
	case deadlineReads:
		return c.dueReads()
	case deadlineCredit:
		return c.dueCredit()
	case deadlineKeepAlive:
		return c.dueKeepAlive()
	case deadlineMTU:
		return c.dueMTU()
	default:
		return never
	}
}

// dueAck requests the delayed acknowledgement.
func (c *Conn) dueAck() Time {
	if c.ack.by > c.eng.now {
		return c.ack.by
	}
	c.wantAckNow()
	return never
}

// dueRtx handles the retransmission timeout.
func (c *Conn) dueRtx() Time {
	if c.sent.Empty() || c.flow.rnr.waits {
		return never
	}
	now := c.eng.now
	if at := c.rtx.since(c.sent.Oldest().First).Add(c.rto()); at > now {
		return at
	}
	if c.rtxTimeout(); !c.alive() {
		return never
	}
	return now.Add(c.rto())
}

// dueEpoch repeats the announcement of a new epoch, or gives the connection up.
func (c *Conn) dueEpoch() Time {
	if c.epoch.askAt <= c.eng.now {
		if c.lostTouch() {
			c.breakDown(StatusTransport, proto.ReasonTimeout)
			return never
		}
		c.askEpoch()
	}
	return c.epoch.askAt
}

// dueReads gives the connection up if the peer does not respond to RDMA reads.
func (c *Conn) dueReads() Time {
	if c.readsOut > 0 && c.eng.runTime(c.readAt) > c.host.limits.NotReady {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
	}
	return never // the other deadlines are earlier
}

// dueCredit acts for a message that waits for credit or a receive: it asks the peer for credit, retries after the RNR
// timer, or gives the connection up.
func (c *Conn) dueCredit() Time {
	f, now, most := &c.flow, c.eng.now, c.host.limits.NotReady
	switch {
	case f.outSince == 0:
		return never
	case c.eng.runTime(f.outSince) > most:
		c.breakDown(StatusNotReady, proto.ReasonTimeout)
		return never
	case f.rnr.waits && f.rnr.until <= now:
		c.retryReceiver()
		return never // the retransmission timer runs
	case f.rnr.waits:
		return f.rnr.until
	}
	every := max(creditProbeInterval, min(now.Sub(f.outSince)/creditShare, maxRTO))
	return min(c.askPeer(c.lastAsked.Add(every), every), f.outSince.Add(most+1))
}

// dueKeepAlive sends a keep-alive on an idle connection, or gives the connection up.
func (c *Conn) dueKeepAlive() Time {
	lim := &c.host.limits
	if c.flow.outSince != 0 || !c.sent.Empty() {
		return never // other deadlines cover the connection
	}
	if c.eng.runTime(c.lastHeard) > lim.KeepAlive+lim.GiveUp {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return never
	}
	every := lim.GiveUp / keepAliveProbes
	return c.askPeer(max(c.lastHeard.Add(lim.KeepAlive), c.lastAsked.Add(every)), every)
}

// dueMTU continues the search for the path MTU.
func (c *Conn) dueMTU() Time {
	if c.State() == Connecting {
		return never
	}
	c.stepMTU()
	return c.pmtu.Deadline()
}

// askPeer sends an Ack with AckRequest if at has passed, and returns when the next one is due.
func (c *Conn) askPeer(at Time, every time.Duration) Time {
	if now := c.eng.now; at <= now {
		c.lastAsked = now
		c.sendAck(proto.AckRequest)
		at = now.Add(every)
	}
	return at
}
