package wire

import (
	"time"

	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/rtt"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// flight is a packet that has left and is not acknowledged: what it carried, so that it can be made
// again from the registered memory, and when it left.
type flight struct {
	op, opEnd     position
	resp, respEnd position
	first, sent   Time
	size          int32 // bytes, header to trailer
	partial       bool  // had room left
	inPipe        bool  // in the network, as far as we know
	ready         bool  // carries OpReady
	arrived       bool  // known from a SACK
	lost          bool
	again         bool  // was sent more than once
	cause         Cause // why it was taken for lost
}

// flightAt is the table entry of a packet, the table being grown if need be.
func (c *Conn) flightAt(psn seq.Num) *flight {
	s := &c.send
	if n := len(s.flights); s.nxt.Sub(s.una) >= n {
		c.growFlights(max(2*n, firstFlights))
	}
	return &s.flights[uint32(psn)&uint32(len(s.flights)-1)]
}

func (c *Conn) growFlights(n int) {
	s := &c.send
	old := s.flights
	s.flights = make([]flight, n)
	if len(old) == 0 {
		return
	}
	for psn := s.una; psn != s.nxt; psn++ {
		s.flights[uint32(psn)&uint32(n-1)] = old[uint32(psn)&uint32(len(old)-1)]
	}
}

// takeAck takes in what the peer has received.
func (c *Conn) takeAck(h *proto.Header, sack []byte) {
	s := &c.send
	if !c.epochSeen(h) || !h.Ack.Within(s.una, s.nxt) {
		return // old, or of a packet that never was
	}
	c.takeCredit(h)
	if una := s.una; h.Ack != una {
		if d, ok := rtt.Sample(c.eng.now, h.Echo); ok {
			c.rtt.Update(d)
			c.eng.stats.RoundTrip.observe(d, 1)
			s.cc.Sample(c.eng.now, d)
		}
		c.advance(h.Ack)
		s.cc.Acked(c.eng.now, s.una, s.nxt, h.Ack.Sub(una), h.CE)
		s.progress = c.eng.now
		s.putOff, s.putOffWait = false, 0
		if s.noLimit {
			c.starved = 0
		}
		c.completeRequests()
		if s.una != s.nxt {
			c.setDeadline(c.eng.now.Add(c.rto()))
		}
	}
	switch notReady := h.Flags&proto.NotReady != 0; {
	case notReady && s.noLimit && s.una != s.nxt:
		c.postpone()
	case !notReady && s.putOff:
		c.resume()
	}
	if !c.alive() {
		return
	}
	if s.stepping {
		c.recut()
		return
	}
	if sack != nil {
		c.takeSACK(sack)
	}
	c.checkHeld()
	c.resetBackoff()
}

// checkHeld notices that the peer has let go of a packet that it said had arrived: it would have
// gone on past it otherwise.
func (c *Conn) checkHeld() {
	s := &c.send
	if s.una == s.nxt || s.putOff {
		return
	}
	if f := c.flightAt(s.una); f.arrived {
		f.arrived = false
		c.lose(s.una, f, CauseEvicted)
	}
}

// advance drops the packets before ack from the outstanding table.
func (c *Conn) advance(ack seq.Num) {
	s := &c.send
	for ; s.una != ack; s.una++ {
		f := c.flightAt(s.una)
		if f.partial {
			s.unfilled--
		}
		if f.lost {
			s.cc.Undo()
		}
		c.settle(f)
		s.acked, c.resp.acked = f.opEnd, f.respEnd
	}
	s.backoff, s.asked = 0, 0
	s.cc.Progress()
	if s.resend.Less(s.una) {
		s.resend = s.una
	}
	if s.highSACK.Less(s.una) {
		s.highSACK = s.una
	}
}

// settle notes that a packet is not in the network any more and need not be sent again.
func (c *Conn) settle(f *flight) {
	if f.inPipe {
		f.inPipe = false
		c.send.pipe--
	}
	if f.lost {
		f.lost = false
		c.send.nlost--
	}
}

// lose notes that a packet is lost.
func (c *Conn) lose(psn seq.Num, f *flight, why Cause) {
	c.settle(f)
	f.lost, f.cause = true, why
	c.send.nlost++
	if psn.Less(c.send.resend) {
		c.send.resend = psn
	}
}

// takeSACK marks what arrived beyond a hole and what is lost.
func (c *Conn) takeSACK(sack []byte) {
	s := &c.send
	for i := range len(sack) * 8 {
		psn := s.una + 1 + seq.Num(i)
		if !psn.Less(s.nxt) {
			break
		}
		if sack[i/8]>>(i%8)&1 == 0 {
			continue
		}
		f := c.flightAt(psn)
		f.arrived = true
		c.settle(f)
		if s.highSACK.LessEq(psn) {
			s.highSACK = psn + 1
		}
	}
	if c.markLost(s.highSACK-1-reorderThreshold, c.eng.now.Add(-c.rtt.Smoothed()), CauseLoss) {
		s.cc.Lost(s.una, s.nxt)
	}
}

// markLost takes for lost what has not arrived of the packets up to last and left before the time,
// and reports whether there was any.
func (c *Conn) markLost(last seq.Num, before Time, why Cause) bool {
	s := &c.send
	was := s.nlost
	for psn := s.una; psn.LessEq(last) && psn.Less(s.nxt); psn++ {
		f := c.flightAt(psn)
		if f.arrived || f.lost || f.sent > before {
			continue
		}
		c.lose(psn, f, why)
	}
	return s.nlost > was
}

// probeTail takes the newest packet for lost: its acknowledgement shows what else is missing, and if
// all the peer did was to be slow, one packet was sent in vain and not a window of them.
func (c *Conn) probeTail() {
	s := &c.send
	for psn := s.nxt - 1; s.una.LessEq(psn); psn-- {
		f := c.flightAt(psn)
		if f.arrived || f.lost {
			continue
		}
		c.lose(psn, f, CauseTailProbe)
		s.probing = true
		return
	}
}

// resendNext sends the first lost packet again. It reports false if that could not be done.
func (c *Conn) resendNext() bool {
	s := &c.send
	for ; s.resend.Less(s.nxt); s.resend++ {
		f := c.flightAt(s.resend)
		if !f.lost {
			continue
		}
		f.again = true
		if !c.build(f, s.resend, false) {
			return false
		}
		f.lost, s.probing = false, false
		s.nlost--
		c.resent(1, f.cause)
		return true
	}
	s.resend, s.nlost = s.una, 0 // cannot be: nlost counts what is marked
	return false
}

// resent counts packets that were sent again.
func (c *Conn) resent(n int, why Cause) {
	st := &c.eng.stats
	st.Retransmits += uint64(n)
	st.RetransmitsBy[why] += uint64(n)
	c.send.resends += uint64(n)
}

// timeout takes everything outstanding for lost, or gives the connection up.
func (c *Conn) timeout() {
	s, now := &c.send, c.eng.now
	if c.lostTouch() {
		c.breakDown(StatusTransport, proto.ReasonTimeout)
		return
	}
	c.eng.stats.Timeouts++
	s.timedAt = now
	s.silent = s.silent || c.quiet(now) > max(stallTime, 2*c.rtt.PTO())
	s.backoff++
	switch {
	case s.backoff == 1:
		c.probeTail()
	case c.blackHole():
		c.stepDown()
		return
	default:
		c.sendShortProbe()
		c.markLost(s.nxt, now, CauseTimeout)
		s.cc.TimedOut(s.nxt)
	}
	c.setDeadline(now.Add(c.rto()))
	c.makeReady()
}

// sendShortProbe asks the peer with a packet of the least size, if one that is outstanding may be lost for its
// size. Else the packet that is sent again asks.
func (c *Conn) sendShortProbe() {
	if c.mtu <= basePacket || !c.large() {
		return
	}
	if c.send.asked == 0 {
		c.send.asked = c.eng.now
	}
	c.sendAck(proto.AckRequest)
}

// resetBackoff ends the back-off when a peer is heard that was silent: it was stopped, or the way to it was cut,
// and what was sent meanwhile may be lost.
func (c *Conn) resetBackoff() {
	s := &c.send
	if !s.silent {
		return
	}
	s.silent = false
	if s.backoff > 1 && !s.putOff {
		s.backoff = 1
		c.setDeadline(c.eng.now.Add(c.rto()))
	}
}

// lostTouch reports whether data has been unacknowledged for too long: less where the peer is silent
// than where it talks.
func (c *Conn) lostTouch() bool {
	now, lim := c.eng.now, &c.host.limits
	first := c.flightAt(c.send.una).first
	return c.eng.watched(max(first, c.send.progress)) > lim.NotReady ||
		now.Sub(first) > lim.GiveUp && c.eng.watched(c.heard) > lim.GiveUp
}

// completeRequests completes, in posting order, every request that is done: sends and writes when
// the peer has acknowledged them, reads and atomics when their answer has arrived.
func (c *Conn) completeRequests() {
	done := seq.Num(c.sq.done.Load())
	start := done
	var same run
	for ; done != c.send.acked.op; done++ {
		w := c.sq.at(done)
		if w.op.answered() && !w.done {
			break
		}
		c.eng.stats.TxRequests++
		if w.began != same.began {
			same.count(c.eng)
			same = run{began: w.began}
		}
		same.n++
		if w.flags&Suppress == 0 {
			c.sinks.Request.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Length: w.length,
				Op: w.op, Flags: w.flags, Window: c.sq.window(done)})
		}
	}
	same.count(c.eng)
	if done != start {
		c.sq.done.Store(uint32(done))
	}
	if c.State() == Draining && c.sq.empty() {
		c.finish(KindDisconnected, proto.Goodbye{Reason: proto.ReasonNone})
	}
}

// rto is the retransmission timeout now: the answer time, doubled with each timeout in a row (RFC 6298
// §5.5) up to busyRTO or maxRTO, or to the answer time where the path is slower than that.
func (c *Conn) rto() time.Duration {
	most := c.host.limits.GiveUp / 4 // a peer is asked several times before it is given up
	t := min(c.rtt.PTO(), most)
	if c.send.backoff == 0 {
		return t
	}
	t = max(t, minRTO)
	ceiling := busyRTO
	if c.eng.watched(c.eng.arrived) > busyRTO {
		ceiling = maxRTO
	}
	return min(max(t, min(t<<min(c.send.backoff, 16), ceiling)), most) // not before an answer can be there
}
