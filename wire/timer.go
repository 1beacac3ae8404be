package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Each connection has one timer, in the engine's timer wheel, and several deadlines. The timer is armed for the
// earliest deadline. A deadline is not stored but computed from the state of the connection, so postponing a deadline
// costs nothing: the timer fires early, finds that nothing is due, and is armed again.

// deadline is one of the reasons for which the timer of an established connection fires.
type deadline uint8

const (
	deadlineEarly        deadline = iota // early packets whose turn has come
	deadlineAck                          // delayed acknowledgement
	deadlineRtx                          // retransmission timeout, or repeat of the epoch change
	deadlineChallengeAck                 // repeat of a challenge ACK
	deadlineProgress                     // unfinished message that holds a receive of a shared queue
	deadlineReads                        // outstanding RDMA reads without a response
	deadlineCredit                       // message that waits for credit or for a receive of the peer
	deadlineKeepAlive                    // keep-alive
	deadlineMTU                          // search for the path MTU
	deadlineKeys                         // end of a key of secure mode
	numDeadlines
)

// setDeadline makes the connection's timer fire at t or earlier.
func (c *Conn) setDeadline(t Time) {
	if t < c.timerAt {
		c.timerAt = t
		c.eng.timers.set(c.slot, t, c.unanswered)
	}
}

// noteAnswer notes a packet from the peer. If the peer was silent, the timer of the connection is prompt again.
func (c *Conn) noteAnswer() {
	if c.unanswered >= silentAfter && c.timerAt != never {
		c.eng.timers.set(c.slot, c.timerAt, 0)
	}
	c.unanswered = 0
}

// expire handles the timer of a slot of the connection table.
func (e *Engine) expire(slot int32) {
	s := &e.table.slots[slot]
	switch {
	case s.conn != nil:
		s.conn.timerAt = never
		s.conn.tick()
	case s.linger != nil:
		if l := s.linger; l.tries >= closeTries || l.keys == nil && e.closedSince(l.path, l.lastHeard) != nil {
			e.endLinger(slot, l)
			return
		}
		e.sendClose(slot, s.linger)
	}
}

// timerDue queues the connection of a slot, whose timer is due. If the connection has armed its timer after it became a
// linger, timerDue repeats Close.
func (e *Engine) timerDue(slot int32) {
	if c := e.table.slots[slot].conn; c != nil {
		e.sched.due.push(c)
		return
	}
	e.expire(slot)
}

// tickDue handles the timers of queued connections in turns, until they have used up left. A timer that sends a packet or
// ends its connection uses idleTimers, and another timer uses 1. tickDue returns what is left, but at least 0.
func (e *Engine) tickDue(left int) int {
	e.earlyLeft = maxReceive
	for q := &e.sched.due; left > 0 && !q.empty(); left-- {
		c, sent := q.nextConn(), e.stats.TxPackets
		q.pop(c)
		c.timerAt = never
		if c.tick(); e.stats.TxPackets != sent || c.State() == Closed {
			left -= idleTimers - 1
		}
	}
	return max(left, 0)
}

// tick handles the connection's timer and arms it again.
func (c *Conn) tick() {
	switch c.State() {
	case Connecting:
		if !c.peerKnown || c.eng.now >= c.dial.deadline {
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

// tickHello repeats a handshake packet, or ends the handshake with a completion of kind gaveUp if its time is over.
func (c *Conn) tickHello(gaveUp Kind) {
	now, d := c.eng.now, &c.dial
	switch {
	case d.abandoned && now < d.deadline:
		c.setDeadline(d.deadline)
	case now >= d.deadline && c.peerKnown:
		c.finish(gaveUp, proto.Goodbye{})
	case now >= d.deadline:
		c.breakReason = d.opening.reason()
		c.end(gaveUp, StatusFlushed)
	case c.isUnreachable():
		c.breakReason = d.unreachable
		c.end(KindUnreachable, StatusFlushed)
	case now < d.nextTry:
		c.setDeadline(min(d.nextTry, d.deadline))
	case c.State() == Connecting:
		c.unanswered++
		c.sendConnect()
	case d.tries >= acceptTries: // from now on Accept only answers a repeated Connect
		c.setDeadline(d.deadline)
	default:
		d.tries++
		c.unanswered++
		c.sendAccept()
		c.armRetry()
	}
}

// tickTraffic handles the deadlines that have passed. Then it arms the timer for the earliest deadline to come. If
// handling a deadline has ended the connection, tickTraffic returns at once.
func (c *Conn) tickTraffic() {
	next := never
	for d := range numDeadlines {
		next = min(next, c.checkDeadline(d))
		if !c.alive() {
			return
		}
	}
	c.schedule() // the pacer may allow a packet now
	if next != never {
		c.setDeadline(next)
	}
}

// checkDeadline handles deadline d if it has passed. It returns the time at which d passes next, or the constant never.
func (c *Conn) checkDeadline(d deadline) Time {
	switch d {
	case deadlineEarly:
		return c.dueEarly()
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
	case deadlineKeys:
		return c.dueKeys()
	default:
		return never
	}
}

// dueAck requests the delayed acknowledgement once its delay is over.
func (c *Conn) dueAck() Time {
	if c.ack.deadline > c.eng.now {
		return c.ack.deadline
	}
	c.wantAckNow()
	return never
}

// dueRtx handles a retransmission timeout.
func (c *Conn) dueRtx() Time {
	if c.sent.Empty() || c.flow.rnr.waiting {
		return never
	}
	now, overtaken := c.eng.now, c.detectLost()
	if at := c.rtx.startTime(c.sent.Oldest().FirstSentAt).Add(c.rto()); at > now {
		return min(at, overtaken)
	}
	if c.rtxTimeout(); !c.alive() {
		return never
	}
	return now.Add(c.rto())
}

// dueEpoch announces the new epoch again, or breaks the connection if the peer has not confirmed it for too long.
func (c *Conn) dueEpoch() Time {
	if c.epoch.askAt <= c.eng.now {
		if c.ackOverdue() {
			c.breakDown(StatusTransport, proto.ReasonTimeout)
			return never
		}
		c.askEpoch()
	}
	return c.epoch.askAt
}

// dueReads breaks the connection if the peer does not respond to RDMA reads.
func (c *Conn) dueReads() Time {
	if c.readsOut > 0 && c.eng.runTime(c.readAt) > c.host.limits.NotReady {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
	}
	return never // another deadline always passes earlier
}

// dueCredit handles a message that waits for credit or for a receive of the peer. It does one of three things:
//   - breaks the connection if the wait exceeds NotReady,
//   - sends the message again when the RNR timer ends,
//   - asks the peer for credit.
func (c *Conn) dueCredit() Time {
	f, now, limit := &c.flow, c.eng.now, c.host.limits.NotReady
	switch {
	case f.stalledSince == 0:
		return never
	case c.eng.runTime(f.stalledSince) > limit:
		c.breakDown(StatusNotReady, proto.ReasonTimeout)
		return never
	case f.rnr.waiting && f.rnr.endsAt <= now:
		c.retryReceiver()
		return now.Add(c.rto()) // also if the congestion window delays the packet
	case f.rnr.waiting:
		return f.rnr.endsAt
	}
	interval := max(creditProbeInterval, min(now.Sub(f.stalledSince)/creditShare, c.eng.longestBackoff()))
	return min(c.askPeer(c.lastAsked.Add(interval), interval), f.stalledSince.Add(limit+1))
}

// dueKeepAlive sends keep-alives on an idle connection, or breaks the connection if the peer does not answer.
func (c *Conn) dueKeepAlive() Time {
	lim := &c.host.limits
	if c.flow.stalledSince != 0 || !c.sent.Empty() {
		return never // dueRtx and dueCredit detect a silent peer
	}
	if c.eng.runTime(c.lastHeard) > lim.KeepAlive+lim.GiveUp {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return never
	}
	interval := lim.GiveUp / keepAliveProbes
	return c.askPeer(max(c.lastHeard.Add(lim.KeepAlive), c.lastAsked.Add(interval)), interval)
}

// dueMTU continues the search for the path MTU.
func (c *Conn) dueMTU() Time {
	if c.State() == Connecting {
		return never
	}
	c.stepMTU()
	return c.pmtu.Deadline()
}

// askPeer sends an Ack with AckRequest if the deadline has passed. It returns the next deadline.
func (c *Conn) askPeer(deadline Time, interval time.Duration) Time {
	if now := c.eng.now; deadline <= now {
		c.lastAsked = now
		c.sendAck(proto.AckRequest)
		deadline = now.Add(interval)
	}
	return deadline
}
