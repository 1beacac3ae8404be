package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// basePacket is the size in bytes, header to trailer, of the packets that every path has to carry.
const basePacket = pmtu.Base

// searchMTU begins to look for a packet size above the one in use, and below one that is known not to pass.
func (c *Conn) searchMTU(below int) {
	c.pmtu.Start(c.eng.now, below)
	c.stepMTU()
}

// stepMTU does what the search for the path MTU wants now.
func (c *Conn) stepMTU() {
	switch c.pmtu.Step(c.eng.now, c.lastHeard, c.rtt.PTO()) {
	case pmtu.Probe:
		c.sendProbe(c.pmtu.Probing())
	case pmtu.Ask:
		c.sendAck(proto.AckRequest)
	case pmtu.None:
	}
	c.setDeadline(c.pmtu.Deadline())
}

var zeros [4096]byte

// sendProbe sends a packet of a size. Without a frame for it nothing leaves, as if it was lost.
func (c *Conn) sendProbe(size int) {
	var p packet
	if !c.eng.begin(&p, c.path, size) {
		return
	}
	for p.left > 0 {
		p.copy(zeros[:min(p.left, len(zeros))])
	}
	h := c.header(proto.Probe, c.sent.Nxt)
	p.finish(&h)
}

// handleProbe says how large a Probe arrived. A peer that searches has shown that it is there: our own search
// begins too.
func (c *Conn) handleProbe(total int) {
	c.pmtu.PeerProbes(c.eng.now)
	c.setDeadline(c.pmtu.Deadline())
	var p packet
	if c.eng.begin(&p, c.path, proto.HeaderSize+proto.ProbedSize+proto.TrailerSize) {
		proto.PutProbed(p.put(proto.ProbedSize), uint32(total))
		h := c.header(proto.Probed, c.sent.Nxt)
		p.finish(&h)
	}
}

// handleProbed takes in the answer to a Probe.
func (c *Conn) handleProbed(bufs []link.Buf, total int) {
	if total != proto.HeaderSize+proto.ProbedSize+proto.TrailerSize || len(bufs) != 1 {
		c.eng.stats.BadPackets++
		return
	}
	c.pmtu.Confirm(c.eng.now, int(proto.ProbedLen(bufs[0].Data[proto.HeaderSize:])))
	c.schedule()
}
