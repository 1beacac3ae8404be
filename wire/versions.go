package wire

import (
	"bytes"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// handleOtherVersion answers a Connect of another protocol version with the versions that this side speaks, in the
// frame of the Connect and within the limit of stateless replies. It drops every other packet.
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

// handleVersions ends the attempt to connect: the peer speaks other versions only. A list that has our version is
// invalid, since the peer would have answered the Connect.
func (c *Conn) handleVersions(versions []byte) {
	if bytes.IndexByte(versions, proto.Version) >= 0 {
		c.eng.stats.BadPackets++
		return
	}
	c.why = BreakVersion
	c.end(KindRefused, StatusFlushed)
}
