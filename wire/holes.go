package wire

import "github.com/datxdp/datxdp/wire/internal/list"

// holes lists the connections that hold early packets, the connection with the oldest hole first. A hole is a missing
// packet before the early ones. When every frame is in use and another early packet arrives, the first connection of
// the list drops one of its own. Its missing packet is the least likely to arrive. So an attacker that keeps holes
// open, on any number of connections, cannot prevent others from holding early packets.
type holes struct{ conns list.List[Conn] }

// renew moves a connection to the end of the list, because it has a new hole.
func (h *holes) renew(c *Conn) {
	h.close(c)
	h.conns.PushBack(&c.recv.hole, c)
}

// close removes a connection that no longer holds early packets.
func (h *holes) close(c *Conn) {
	if c.recv.hole.Listed() {
		h.conns.Remove(&c.recv.hole)
	}
}

// evictOldest drops an early packet of a connection with an older hole than that of c. It reports whether it has
// dropped one. It tries at most evictTries connections. A connection has nothing to drop if its only held packet is the
// next one, which waits for a receive.
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
