package wire

import (
	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/pmtu"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// basePacket is the packet size in bytes, header to trailer, that every path must carry.
const basePacket = pmtu.Base

// searchMTU starts a search for a larger packet size.
func (c *Conn) searchMTU() {
	c.pmtu.Start(c.eng.now, c.pmtu.Unlimited())
	c.stepMTU()
}

// verifyMTU begins to test the current packet size if an outstanding packet is larger than the base size, because the path
// may drop packets of that size: a black hole. Lost data alone proves little, since a full queue drops large packets where
// it has room for short ones, and the back-off makes few packets leave. So Probes of the current size leave at short
// intervals, each with a short packet that asks for an answer. If one of the Probes arrives, or data is acknowledged, there
// is no black hole. If the short packets are answered and none of the Probes is, there is one.
func (c *Conn) verifyMTU() {
	if c.pmtu.Size > basePacket && c.sent.HasLarger(basePacket) {
		c.pmtu.Verify(c.eng.now)
		c.stepMTU()
	}
}

// stepMTU takes the next step of the search.
func (c *Conn) stepMTU() {
	switch c.pmtu.Step(c.eng.now, c.lastHeard, c.rtt.PTO()) {
	case pmtu.Probe:
		c.sendProbe(c.pmtu.Probing())
	case pmtu.Ask:
		c.sendAck(proto.AckRequest)
	case pmtu.Test:
		c.sendProbe(c.pmtu.Probing())
		c.sendAck(proto.AckRequest)
	case pmtu.Failed:
		c.changeEpoch()
	case pmtu.None:
	}
	c.setDeadline(c.pmtu.Deadline())
}

var zeros [4096]byte

// sendProbe sends a Probe of size bytes. If the link has no frame, the Probe counts as lost.
func (c *Conn) sendProbe(size int) {
	var p packet
	if !c.eng.begin(&p, c.path, size, c.keys) {
		return
	}
	for p.bytesLeft > 0 {
		p.copy(zeros[:min(p.bytesLeft, len(zeros))])
	}
	h := c.newHeader(proto.Probe, c.sent.Nxt)
	p.single = true
	p.finish(&h)
}

// handleProbe tells the peer the size of the Probe that has arrived. A peer sends Probes only when its side of the
// connection is established, so this side may begin its own search for the path MTU.
func (c *Conn) handleProbe(end int) {
	c.pmtu.PeerProbes(c.eng.now)
	c.setDeadline(c.pmtu.Deadline())
	var p packet
	if c.eng.begin(&p, c.path, proto.HeaderSize+proto.ProbedSize+c.keys.trailer(), c.keys) {
		proto.PutProbed(p.reserve(proto.ProbedSize), uint32(end+c.keys.trailer()))
		h := c.newHeader(proto.Probed, c.sent.Nxt)
		p.finish(&h)
	}
}

// handleProbed handles the answer to a Probe, which confirms that packets of the probed size pass.
func (c *Conn) handleProbed(bufs []link.Buf, end int) {
	if end != proto.HeaderSize+proto.ProbedSize || len(bufs) != 1 {
		c.eng.stats.BadPackets++
		return
	}
	was := c.pmtu.Size
	sentAt, sole := c.pmtu.ProbeSent()
	c.pmtu.Confirm(c.eng.now, int(proto.ProbedLen(bufs[0].Data[proto.HeaderSize:])))
	c.cc.SetPacketSize(c.pmtu.Size)
	if sole && c.pmtu.Size > was {
		c.cc.Probed(c.eng.now.Sub(sentAt))
	}
	c.setDeadline(c.pmtu.Deadline())
	c.schedule()
}
