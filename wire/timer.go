package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// setDeadline makes the connection's timer fire at t at the latest. It may fire sooner: tick finds
// out what is due, so that pushing a deadline out costs nothing.
func (c *Conn) setDeadline(t Time) {
	if t < c.armed {
		c.armed = t
		c.eng.wheel.Set(c.slot, int64(t))
	}
}

// expire handles the timer of a table slot.
func (e *Engine) expire(slot int32) {
	s := &e.table.slots[slot]
	switch {
	case s.conn != nil:
		s.conn.armed = never
		s.conn.tick()
	case s.linger != nil:
		if s.linger.tries >= closeTries {
			e.endLinger(slot, s.linger)
			return
		}
		e.sendClose(slot, s.linger)
	}
}

// tick does what is due and arms the timer for what is next.
func (c *Conn) tick() {
	switch c.State() {
	case Connecting:
		if !c.met || c.eng.now >= c.dial.until {
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

// tickHello repeats a handshake packet or gives up.
func (c *Conn) tickHello(gaveUp Kind) {
	now, d := c.eng.now, &c.dial
	switch {
	case now >= d.until && c.met:
		c.finish(gaveUp, proto.Goodbye{})
	case now >= d.until:
		c.end(gaveUp, StatusFlushed)
	case now < d.nextTry:
		c.setDeadline(min(d.nextTry, d.until))
	case c.State() == Connecting:
		c.ask()
	default:
		c.offer()
		c.again()
	}
}

// tickTraffic looks at every reason for which an established connection may need attention.
func (c *Conn) tickTraffic() {
	now := c.eng.now
	next := never
	if c.recv.ackBy <= now {
		c.recv.ackNow = true
		c.wantAck()
	} else {
		next = c.recv.ackBy
	}
	if c.epoch.changing {
		if c.epoch.askAt <= now {
			if c.lostTouch() {
				c.breakDown(StatusTransport, proto.ReasonTimeout)
				return
			}
			c.askEpoch()
		}
		next = min(next, c.epoch.askAt)
	} else if !c.sent.Empty() && !c.flow.rnr.waits {
		at := c.rtx.since(c.sent.Oldest().First).Add(c.rto())
		if at <= now {
			if c.rtxTimeout(); !c.alive() {
				return
			}
			at = now.Add(c.rto())
		}
		next = min(next, at)
	}
	next = min(next, c.tickDoubt())
	if !c.alive() {
		return
	}
	if next = min(next, c.tickShare()); !c.alive() {
		return
	}
	next = min(next, c.tickProbe())
	if !c.alive() {
		return
	}
	if c.State() != Connecting {
		next = min(next, c.tickMTU())
	}
	c.schedule() // a packet may have waited for its time
	if next != never {
		c.setDeadline(next)
	}
}

// tickProbe probes a peer that grants no credit, or has been silent for long, and gives one up that
// does not answer. It returns when to look again.
func (c *Conn) tickProbe() Time {
	now, lim := c.eng.now, &c.host.limits
	if c.readsOut > 0 && c.eng.watched(c.readAt) > lim.NotReady {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return never
	}
	if c.flow.outSince != 0 {
		if c.eng.watched(c.flow.outSince) > lim.NotReady {
			c.breakDown(StatusNotReady, proto.ReasonTimeout)
			return never
		}
		if c.flow.rnr.waits {
			if c.flow.rnr.until <= now {
				c.retryReceiver()
				return never // the retransmission timer watches
			}
			return c.flow.rnr.until
		}
		every := max(probeInterval, min(now.Sub(c.flow.outSince)/creditShare, maxRTO))
		return min(c.probe(c.probed.Add(every), every), c.flow.outSince.Add(lim.NotReady+1))
	}
	if !c.sent.Empty() {
		return never // the retransmission timer watches
	}
	if c.eng.watched(c.heard) > lim.KeepAlive+lim.GiveUp {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return never
	}
	return c.probe(max(c.heard.Add(lim.KeepAlive), c.probed.Add(lim.GiveUp/keepAliveProbes)), lim.GiveUp/keepAliveProbes)
}

// probe asks the peer for a sign of life if it is time to, and returns when it is next.
func (c *Conn) probe(at Time, every time.Duration) Time {
	if now := c.eng.now; at <= now {
		c.probed = now
		c.sendAck(proto.AckRequest)
		at = now.Add(every)
	}
	return at
}
