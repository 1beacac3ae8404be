package wire

import (
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Only sizes that are known to arrive carry data (RFC 8899). A connection begins with basePacket, and
// each end asks for more with a Probe of the size in question, which the other answers.
//
// When a path stops passing the size in use, without a word as paths do, the data that is
// outstanding has to be cut anew, and the two ends must agree on what that is. The sender steps into
// a new epoch: it says so in a short packet until the answer shows that the peer takes data of the
// new epoch only, which makes the acknowledgement in that answer final; from there on everything is
// sent again in packets of the base size, under the packet numbers it had before. The peer has
// dropped what it held of the old epoch, and drops what is still to come.

// pathProbe is the search for the largest packet that passes.
type pathProbe struct {
	limit int // largest packet that both ends and the link allow
	size  int // being probed; 0: the search is over
	tries int
	at    Time // next try, or next search
	asked Time // when the last Probe left; a further one leaves when something was heard since
	wait  time.Duration
}

// usualSizes are the UDP payloads that common links carry: jumbo frames, 4 KiB, Ethernet, and
// Ethernet less what tunnels take; IPv4 before IPv6.
var usualSizes = [...]int{8972, 8952, 4052, 4032, 1472, 1452, 1400}

// search begins to look for a size above the one in use, and below a size that is known not to pass.
func (c *Conn) search(below int) {
	p := &c.probeMTU
	p.tries = 0
	if p.size = c.smaller(below); p.size == 0 {
		p.at = c.eng.now.Add(searchEvery)
		return
	}
	p.at = c.eng.now
	c.tickMTU()
}

// smaller is the next size to try below another one; 0 if there is none above the size in use.
func (c *Conn) smaller(below int) int {
	if c.mtu >= c.probeMTU.limit {
		return 0
	}
	if c.probeMTU.limit < below {
		return c.probeMTU.limit
	}
	for _, n := range usualSizes {
		if n < below && n > c.mtu && n < c.probeMTU.limit {
			return n
		}
	}
	return 0
}

// tickMTU tries the size again, or the next smaller one, and returns when it wants to be called.
func (c *Conn) tickMTU() Time {
	p, now := &c.probeMTU, c.eng.now
	switch {
	case c.mtu >= p.limit:
		return never
	case now < p.at:
		return p.at
	case p.size == 0:
		c.search(p.limit + 1)
		return p.at
	case p.tries == probeTries:
		c.search(p.size)
		return p.at
	case c.heard <= p.asked: // a peer that is silent gets no more Probes
		c.sendAck(proto.AckRequest)
		p.wait = min(max(2*p.wait, 2*c.rtt.PTO()), maxRTO)
	default:
		p.tries++
		p.asked, p.wait = now, 2*c.rtt.PTO()
		c.sendProbe(p.size)
	}
	p.at = now.Add(p.wait)
	c.setDeadline(p.at)
	return p.at
}

var zeros [4096]byte

func (c *Conn) sendProbe(size int) {
	var p packet
	if !c.eng.begin(&p, c.path, size) {
		return // tried again like one that was lost
	}
	for p.left > 0 {
		p.copy(zeros[:min(p.left, len(zeros))])
	}
	h := c.header(proto.Probe, c.send.nxt)
	p.finish(&h)
}

// answerProbe says how large a Probe arrived. A peer that searches has shown that it is there: our own search
// begins too.
func (c *Conn) answerProbe(total int) {
	if p := &c.probeMTU; p.tries == 0 && p.size > 0 {
		p.at = min(p.at, c.eng.now)
		c.setDeadline(p.at)
	}
	var p packet
	if c.eng.begin(&p, c.path, proto.HeaderSize+proto.ProbedSize+proto.TrailerSize) {
		proto.PutProbed(p.put(proto.ProbedSize), uint32(total))
		h := c.header(proto.Probed, c.send.nxt)
		p.finish(&h)
	}
}

// takeProbed takes in the answer to a Probe.
func (c *Conn) takeProbed(bufs []link.Buf, total int) {
	if total != proto.HeaderSize+proto.ProbedSize+proto.TrailerSize || len(bufs) != 1 {
		c.eng.stats.BadPackets++
		return
	}
	p := &c.probeMTU
	if n := int(proto.ProbedLen(bufs[0].Data[proto.HeaderSize:])); n == p.size && n > c.mtu {
		c.mtu = n
		p.size, p.at = 0, c.eng.now.Add(searchEvery)
	}
}

// blackHole reports whether it looks as if large packets are lost for their size: the peer is there,
// and has not got one after several tries.
func (c *Conn) blackHole() bool {
	s := &c.send
	if c.mtu <= basePacket || s.backoff < blackHoleTries || c.heard <= s.asked || s.asked == 0 {
		return false
	}
	return c.large()
}

// large reports whether a packet above basePacket has not arrived.
func (c *Conn) large() bool {
	s := &c.send
	for psn := s.una; psn != s.nxt; psn++ {
		if f := c.flightAt(psn); !f.arrived && f.size > basePacket {
			return true
		}
	}
	return false
}

// stepDown begins a new epoch with packets of the base size.
func (c *Conn) stepDown() {
	s := &c.send
	c.eng.stats.BlackHoles++
	s.epoch ^= proto.Epoch
	s.stepping = true
	s.failed = c.mtu
	c.mtu = basePacket
	s.backoff = 0
	c.askStep()
}

// askStep tells the peer of the new epoch.
func (c *Conn) askStep() {
	c.send.stepAt = c.eng.now.Add(c.rto())
	c.send.backoff++
	c.sendAck(proto.AckRequest)
	c.setDeadline(c.send.stepAt)
}

// enterEpoch has the receiver follow the sender into the epoch that a packet is of. It reports false
// for a packet of an epoch that is over. Of two packets of different epochs, the one that was sent
// later is of the later epoch.
func (c *Conn) enterEpoch(h *proto.Header) bool {
	r := &c.recv
	newer := int32(h.TS-r.newest) > 0
	if h.Flags&proto.Epoch != r.epoch {
		if !newer {
			return false
		}
		if r.notReady { // what is half taken in must be finished as it was cut
			r.ackNow = true
			c.wantAck()
			return false
		}
		r.epoch = h.Flags & proto.Epoch
		c.dropAllEarly()
	}
	if newer {
		r.newest = h.TS
	}
	return true
}

// epochSeen reports whether what a packet acknowledges counts: what was said of an earlier epoch does
// not. The first that is said of a new one ends the step.
func (c *Conn) epochSeen(h *proto.Header) bool {
	return h.Flags&proto.EpochSeen != 0 == (c.send.epoch != 0)
}

// recut forgets how what is not acknowledged was cut into packets. Each of them counts as sent again, those
// known from a SACK too: the peer has dropped what it held.
func (c *Conn) recut() {
	s := &c.send
	for psn := s.una; psn != s.nxt; psn++ {
		if c.flightAt(psn).ready {
			c.owesReady = true
		}
	}
	c.resent(s.nxt.Sub(s.una), CauseBlackHole)
	for at := s.acked; at.before(s.next); at = (position{op: at.op + 1}) {
		c.unsend(at)
	}
	s.next, c.resp.next = s.acked, c.resp.acked
	s.nxt, s.resend, s.highSACK = s.una, s.una, s.una
	s.cc.Rewind(s.una)
	s.pipe, s.nlost, s.unfilled, s.backoff, s.asked = 0, 0, 0, 0, 0
	s.stepping, s.putOff = false, false
	c.search(s.failed)
	c.makeReady()
}

// unsend takes back what begun accounted for the part of a request from a position on.
func (c *Conn) unsend(from position) {
	s, w := &c.send, c.sq.at(from.op)
	if from.off == 0 {
		s.queued += headerOf(w)
		switch w.op {
		case OpSend, OpWriteImm:
			s.msn--
		case OpRead, OpFetchAdd, OpCmpSwap:
			if !w.done { // a peer may have answered what it does not acknowledge
				c.readsOut--
			}
		default:
		}
	}
	if w.op.answered() {
		return
	}
	end := w.length
	if from.op == s.next.op {
		end = s.next.off
	}
	s.queued += int(end - from.off)
}
