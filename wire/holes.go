package wire

import "github.com/datxdp/datxdp/wire/internal/list"

// A value of type holes lists the connections that hold early packets, the connection with the oldest hole first. A
// hole is a missing packet before an early packet. When every frame is in use and another early packet arrives, the
// first connection of the list drops one of its early packets, because the oldest hole is the least likely to be
// filled. So an attacker that keeps holes open, on any number of connections, cannot prevent other connections from
// holding early packets.
type holes struct{ conns list.List[Conn] }

// renew moves a connection to the end of the list, because it has a new hole.
func (h *holes) renew(c *Conn) {
	h.close(c)
	h.conns.PushBack(&c.recv.holeNode, c)
}

// close removes a connection that no longer holds early packets.
func (h *holes) close(c *Conn) {
	if c.recv.holeNode.Listed() {
		h.conns.Remove(&c.recv.holeNode)
	}
}

// evictOldest drops one packet of the connection with the oldest hole. It drops the early packet with the highest PSN.
// If the connection has no early packet, it holds only the next packet in order, which waits for a receive. Then
// evictOldest drops that packet. The peer sends the dropped packet again. If the list is empty, or the connection with
// the oldest hole is c, evictOldest drops nothing and reports false.
func (h *holes) evictOldest(c *Conn) bool {
	n := h.conns.First()
	if n == nil || n.Elem() == c {
		return false
	}
	v := n.Elem()
	return v.dropLast(v.recv.nextPSN - 1)
}
