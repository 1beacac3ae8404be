package wire

import (
	"github.com/datxdp/datxdp/wire/internal/proto"
	"github.com/datxdp/datxdp/wire/internal/rtt"
	"github.com/datxdp/datxdp/wire/internal/seq"
)

// takeAck handles what a packet acknowledges and grants: cumulative and selective acknowledgement, credit, RNR.
func (c *Conn) takeAck(h *proto.Header, sack []byte) {
	s := &c.sent
	if !c.epoch.acknowledged(h) || !h.Ack.Within(s.Una, s.Nxt) {
		return // the acknowledgement is from an old epoch, or acknowledges a packet that was never sent
	}
	c.takeCredit(h)
	progress := h.Ack != s.Una
	if progress {
		c.advance(h)
	}
	switch notReady := h.Flags&proto.NotReady != 0; {
	case notReady && c.flow.unlimited && !s.Empty():
		c.receiverNotReady()
	case !notReady && c.flow.rnr.waiting:
		c.retryReceiver()
	}
	if !c.alive() {
		return
	}
	if c.epoch.changing {
		c.repacketize()
		return
	}
	c.takeSACK(h, sack)
	if !progress && !c.flow.rnr.waiting { // after progress, the peer may be about to consume more early packets
		s.DetectReneging(uint8(CauseEvicted))
	}
	c.endBackoff()
}

// takeSACK handles the SACK block of a packet. The newest Ack shows all packets that the peer holds.
func (c *Conn) takeSACK(h *proto.Header, sack []byte) {
	s := &c.sent
	if sack != nil {
		s.SACK(c.eng.now, sack)
		c.setDeadline(c.detectLost())
	}
	if h.Type == proto.Ack && h.TS == c.recv.newestTS {
		s.DetectDropped(sack, uint8(CauseEvicted))
	}
}

// detectLost marks packets lost that later ones have overtaken. It returns when it has to run again.
func (c *Conn) detectLost() Time {
	s, srtt := &c.sent, c.rtt.Smoothed()
	if n := s.DetectLost(c.eng.now, srtt, uint8(CauseLoss)); n > 0 {
		c.cc.Lost(n)
	}
	return s.NextDetection(srtt)
}

// takeEcho takes the round-trip sample of a packet that echoes a time stamp. It returns when the packet with this time
// stamp left, or never if there is no sample.
func (c *Conn) takeEcho(h *proto.Header) (echoedAt Time) {
	now := c.eng.now
	d, ok := rtt.Sample(now, h.Echo)
	if !ok {
		return never
	}
	c.rtt.Update(d)
	c.eng.stats.RoundTrip.observe(d, 1)
	c.cc.Sample(d, c.acksFullPacket(h))
	return now.Add(echoPrecision - d)
}

// acksFullPacket reports whether the newest packet that h acknowledges is about as large as a full packet.
func (c *Conn) acksFullPacket(h *proto.Header) bool {
	return h.Ack != c.sent.Una && 16*int(c.sent.At(h.Ack-1).Size) >= 15*c.pmtu.Size
}

// advance handles a cumulative acknowledgement of new packets.
func (c *Conn) advance(h *proto.Header) {
	s, now := &c.sent, c.eng.now
	echoedAt := c.takeEcho(h)
	una := s.Una
	last, undo := s.Ack(now, h.Ack, echoedAt)
	c.sq.ackedPos, c.resp.ackedPos = last.ReqEnd, last.RespEnd
	if undo {
		c.cc.Undo()
	}
	c.cc.Progress()
	c.cc.Acked(now, s.Una, s.Nxt, h.Ack.Sub(una), h.CE)
	c.rtx.acked(now)
	c.pmtu.EndVerify(now)
	c.flow.rnr = rnr{}
	if c.flow.unlimited {
		c.flow.stalledSince = 0
	}
	c.completeRequests()
	if !s.Empty() {
		c.setDeadline(now.Add(c.rto()))
	}
}

// completeRequests completes finished requests in posting order. A send or a write is finished when the peer has
// acknowledged it. A read or an atomic is finished when its response has arrived.
func (c *Conn) completeRequests() {
	done := seq.Num(c.sq.doneCount.Load())
	start := done
	var same run
	for ; done != c.sq.ackedPos.Op; done++ {
		w := c.sq.at(done)
		if w.op.hasResponse() && !w.executed {
			break
		}
		c.eng.stats.TxRequests++
		if w.begunAt != same.began {
			same.count(c.eng)
			same = run{began: w.begunAt}
		}
		same.n++
		if w.flags&Suppress == 0 {
			c.completions.Request.push(c.eng, &Completion{Conn: c, Cookie: w.cookie, Length: w.length,
				Op: w.op, Flags: w.flags, Window: c.sq.window(done)})
		}
	}
	same.count(c.eng)
	if done != start {
		c.sq.doneCount.Store(uint32(done))
	}
	if c.State() == Draining && c.sq.empty() {
		c.finish(KindDisconnected, proto.Goodbye{Reason: proto.ReasonNone})
	}
}
