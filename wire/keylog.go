package wire

import (
	"fmt"

	"github.com/datxdp/datxdp/wire/internal/proto"
)

// logKeys writes the secrets of a connection to the key log, if there is one (docs/WIRE.md, Key log). packet is the payload
// of message 2: nothing is written unless it is an Accept. up is the secret of the direction to the server. Only jobs call
// logKeys, because it may block.
func (s *Security) logKeys(packet []byte, up, down *[32]byte) {
	if s.KeyLog == nil {
		return
	}
	var h proto.Header
	var hi proto.Hello
	if !h.Parse(packet) || h.Type != proto.Accept || !hi.Parse(packet[proto.HeaderSize:]) {
		return
	}
	lines := fmt.Appendf(nil, "DATXDP2_REQUESTER %08x %08x %08x %x\nDATXDP2_SERVER %08[1]x %08[2]x %08[3]x %[5]x\n",
		h.CID, h.Tag, hi.CID, *up, *down)
	_, _ = s.KeyLog.Write(lines) // a connection does not end because its keys cannot be written
	clear(lines)
}
