package wire

import "github.com/datxdp/datxdp/wire/internal/list"

// holes are the connections that hold early packets, the one whose hole is oldest first: it has waited longest for the
// packet that is missing. When all frames are held, an early packet takes the place of one of that connection: what it
// holds will hardly be of use, and whoever keeps holes open, on however many connections, keeps nobody else from holding
// what comes early.
type holes struct{ conns list.List[Conn] }

// renew puts a connection last: its hole is new.
func (h *holes) renew(c *Conn) {
	h.close(c)
	h.conns.PushBack(&c.recv.hole, c)
}

// close takes a connection out that holds nothing.
func (h *holes) close(c *Conn) {
	if c.recv.hole.Listed() {
		h.conns.Remove(&c.recv.hole)
	}
}

// evictOldest lets go of an early packet of a connection whose hole is older than that of c. It looks at few: some hold
// only a packet that is put off, which has to stay.
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
