package simlink

import (
	"time"

	"github.com/datxdp/datxdp/link"
)

// clock is the virtual time and the packets in flight. The packets are in a binary heap, ordered by time, then by the
// order in which they entered the heap. The heap has only what the order needs; the rest does not move.
type clock struct {
	now    int64
	seq    uint64
	flight []due
	events []event  // of the packets in flight, and unused ones
	unused []uint32 // indices of unused events
}

// due is the place of an event in the order.
type due struct {
	at    int64
	seq   uint64
	event uint32
}

// event is one packet in flight. It happens when the packet arrives at the switch, or at its destination.
type event struct {
	at       int64
	way      *line
	batch    uint64 // number of the Send
	payload  []byte
	hold     int64 // additional delay behind the switch
	flags    link.Flags
	entering bool // arrives at the switch
}

func (e *event) markCE() { e.flags = link.CE }

// Now returns the time in nanoseconds since New: virtual time, or real time in immediate mode.
func (n *Net) Now() int64 {
	if n.cfg.Immediate {
		return int64(time.Since(n.start))
	}
	return n.clock.now
}

// Next returns the time of the next arrival at a switch or a link; ok is false if no packet is in flight.
func (n *Net) Next() (at int64, ok bool) {
	if len(n.clock.flight) == 0 {
		return 0, false
	}
	return n.clock.flight[0].at, true
}

// Advance moves virtual time forward to the given time, and delivers the packets that are due by then, in order. Time
// never goes back.
func (n *Net) Advance(to int64) {
	c := &n.clock
	for len(c.flight) > 0 && c.flight[0].at <= to {
		n.Step()
	}
	c.now = max(c.now, to)
}

// Step moves virtual time to the next arrival, which must exist. It returns the link that has received a packet; nil if
// the packet has only reached the switch, or was lost.
func (n *Net) Step() *Link {
	c := &n.clock
	d := c.pop()
	c.now = max(c.now, d.at)
	e := &c.events[d.event]
	switch {
	case e.way.from.down && e.entering || e.way.to.down:
	case !e.entering:
		l := n.land(e)
		c.unused = append(c.unused, d.event)
		return l
	case n.forward(e):
		c.push(d.event)
		return nil
	}
	c.unused = append(c.unused, d.event)
	return nil
}

// land delivers a packet to the link that its destination address has now.
func (n *Net) land(e *event) *Link {
	dst := e.way.to.link.Load()
	if dst == nil {
		n.refuse(e)
		return nil
	}
	if len(e.payload) > dst.cfg.MTU {
		return nil
	}
	pkt := [1]link.Buf{{Data: e.payload, Flags: e.flags}}
	dst.rx.mu.Lock()
	dst.rx.deliver(e.way, e.batch, pkt[:], len(e.payload), unharmed)
	dst.rx.release()
	return dst
}

// launch puts a copy of a packet in flight and returns the copy. The fields of e that describe it are set, except for
// the payload.
func (c *clock) launch(e event, pkt []link.Buf) []byte {
	if len(c.unused) == 0 {
		c.unused = append(c.unused, uint32(len(c.events)))
		c.events = append(c.events, event{})
	}
	last := len(c.unused) - 1
	i := c.unused[last]
	c.unused = c.unused[:last]
	e.payload = c.events[i].payload[:0]
	for k := range pkt {
		e.payload = append(e.payload, pkt[k].Data...)
	}
	c.events[i] = e
	c.push(i)
	return e.payload
}

func (d *due) before(o *due) bool {
	return d.at < o.at || d.at == o.at && d.seq < o.seq
}

// push adds an event to the heap.
func (c *clock) push(i uint32) {
	c.seq++
	d := due{at: c.events[i].at, seq: c.seq, event: i}
	c.flight = append(c.flight, d)
	h, k := c.flight, len(c.flight)-1
	for k > 0 {
		up := (k - 1) / 2
		if !d.before(&h[up]) {
			break
		}
		h[k] = h[up]
		k = up
	}
	h[k] = d
}

// pop takes the first event from the heap.
func (c *clock) pop() due {
	last := len(c.flight) - 1
	top, d := c.flight[0], c.flight[last]
	h := c.flight[:last]
	c.flight = h
	if last == 0 {
		return top
	}
	k := 0
	for {
		kid := 2*k + 1
		if kid >= last {
			break
		}
		if kid+1 < last && h[kid+1].before(&h[kid]) {
			kid++
		}
		if !h[kid].before(&d) {
			break
		}
		h[k] = h[kid]
		k = kid
	}
	h[k] = d
	return top
}
