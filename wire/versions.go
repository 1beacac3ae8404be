package wire

import (
	"bytes"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// foreign handles a packet that is not of this version. A Connect is answered with the versions that are
// spoken here, in its own frame and within the limit of Resets; every other packet is dropped.
func (e *Engine) handleOtherVersion(bufs []link.Buf) (kept bool) {
	e.stats.BadPackets++
	var h proto.Header
	b := bufs[0].Data
	asked, ok := proto.Foreign(b, &h)
	if !ok || !e.mayReply(bufs) {
		return false
	}
	h.TS = e.now.Stamp()
	h.Put(b)
	e.reply(bufs, e.udpPort, proto.PutVersions(b, b[proto.HeaderSize:], asked))
	return true
}

// handleVersions takes in that the peer does not speak our version but the ones listed.
func (c *Conn) handleVersions(versions []byte) {
	if bytes.IndexByte(versions, proto.Version) >= 0 {
		c.eng.stats.BadPackets++
		return
	}
	c.why = BreakVersion
	c.end(KindRefused, StatusFlushed)
}
