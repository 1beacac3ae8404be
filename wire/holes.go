package wire

// holes are the connections that hold early packets, the one whose hole is oldest first: it has waited longest for the
// packet that is missing. When all frames are held, an early packet takes the place of one of that connection: what it
// holds will hardly be of use, and whoever keeps holes open, on however many connections, keeps nobody else from holding
// what comes early.
type holes struct{ first, last *Conn }

// hole is a connection's place.
type hole struct {
	open          bool
	before, after *Conn
}

// renew puts a connection last: its hole is new.
func (h *holes) renew(c *Conn) {
	if h.last == c {
		return
	}
	h.close(c)
	c.recv.hole = hole{open: true, before: h.last}
	if h.last == nil {
		h.first = c
	} else {
		h.last.recv.hole.after = c
	}
	h.last = c
}

// close takes a connection out that holds nothing.
func (h *holes) close(c *Conn) {
	x := c.recv.hole
	if !x.open {
		return
	}
	if x.before == nil {
		h.first = x.after
	} else {
		x.before.recv.hole.after = x.after
	}
	if x.after == nil {
		h.last = x.before
	} else {
		x.after.recv.hole.before = x.before
	}
	c.recv.hole = hole{}
}

// evictOldest lets go of an early packet of a connection whose hole is older than that of c. It looks at few: some hold
// only a packet that is put off, which has to stay.
func (h *holes) evictOldest(c *Conn) bool {
	v := h.first
	for range evictTries {
		if v == nil || v == c {
			return false
		}
		if v.dropLast(v.recv.next) {
			return true
		}
		v = v.recv.hole.after
	}
	return false
}
