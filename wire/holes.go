package wire

import "github.com/datxdp/datxdp/wire/internal/list"

// holes lists the connections that hold early packets, the one with the oldest hole first. When every frame is used,
// that connection drops an early packet for the new one. Its missing packet is the least likely to come. So an attacker
// that keeps holes open, on however many connections, cannot stop others from holding early packets.
type holes struct{ conns list.List[Conn] }

// renew moves a connection to the end of the list: its hole is new.
func (h *holes) renew(c *Conn) {
	h.close(c)
	h.conns.PushBack(&c.recv.hole, c)
}

// close removes a connection that holds no early packet.
func (h *holes) close(c *Conn) {
	if c.recv.hole.Listed() {
		h.conns.Remove(&c.recv.hole)
	}
}

// evictOldest drops an early packet of a connection whose hole is older than that of c, and reports whether it did. It
// tries evictTries connections at most. A connection that holds only packet next, which waits for a receive, has
// nothing to drop.
func (h *holes) evictOldest(c *Conn) bool {
	n := h.conns.First()
	for range evictTries {
		if n == nil || n.Elem() == c {
			return false
		}
		if v := n.Elem(); v.dropLast(v.recv.next) {
			return true
		}
		n = n.Next()
	}
	return false
}
