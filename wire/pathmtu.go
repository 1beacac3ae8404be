package wire

import (
	"time"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// Only sizes that are known to arrive carry data (RFC 8899). A connection begins with basePacket, and
// each end asks for more with a Probe of the size in question, which the other answers.

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
	h := c.header(proto.Probe, c.sent.Nxt)
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
		h := c.header(proto.Probed, c.sent.Nxt)
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
