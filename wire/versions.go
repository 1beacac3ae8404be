package wire

import (
	"bytes"

	"github.com/datxdp/datxdp/link"
	"github.com/datxdp/datxdp/wire/internal/proto"
)

// handleOtherVersion handles a packet of another protocol version. It answers a Connect with the versions that this
// side speaks, in the frame of the Connect and within the limit of stateless replies. It drops any other packet.
func (e *Engine) handleOtherVersion(bufs []link.Buf) (kept bool) {
	e.stats.BadPackets++
	var h proto.Header
	b := bufs[0].Data
	asked, flags, ok := proto.Foreign(b, &h)
	if !ok || !e.mayReply(bufs) {
		return false
	}
	port := e.portOf(&proto.Header{Flags: flags}, &proto.Hello{}, e.link.Source(&bufs[0]))
	h.TS = e.now.Stamp()
	h.Put(b)
	e.replyInFrame(bufs, port, proto.PutVersions(b, b[proto.HeaderSize:], asked))
	return true
}

// handleVersions ends the connection attempt, because the peer speaks only other versions. A list of versions with
// ours in it is invalid: a peer that speaks our version answers the Connect instead.
func (c *Conn) handleVersions(versions []byte) {
	if bytes.IndexByte(versions, proto.Version) >= 0 {
		c.eng.stats.BadPackets++
		return
	}
	c.breakReason = BreakVersion
	c.end(KindRefused, StatusFlushed)
}
