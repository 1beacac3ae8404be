package simlink

import (
	"time"

	"github.com/datxdp/datxdp/link"
)

// clock is the virtual time and the packets in flight. The packets are in a binary heap, ordered by delivery time, then
// by order of sending.
type clock struct {
	now    int64
	seq    uint64
	flight []event
	spare  [][]byte // payload memory of delivered packets, for reuse
}

// event is one packet in flight.
type event struct {
	at      int64
	seq     uint64
	way     *line
	batch   uint64 // number of the Send
	payload []byte
	flags   link.Flags
}

// Now returns the time in nanoseconds since New: virtual time, or real time in immediate mode.
func (n *Net) Now() int64 {
	if n.cfg.Immediate {
		return int64(time.Since(n.start))
	}
	return n.clock.now
}

// Next returns the time of the next delivery; ok is false if no packet is in flight.
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
		e := c.pop()
		c.now = max(c.now, e.at)
		n.land(&e)
		c.spare = append(c.spare, e.payload)
	}
	c.now = max(c.now, to)
}

// land delivers a packet to the link that its destination address has now.
func (n *Net) land(e *event) {
	dst := e.way.to.link.Load()
	if dst == nil {
		n.refuse(e)
		return
	}
	pkt := [1]link.Buf{{Data: e.payload, Flags: e.flags}}
	dst.rx.mu.Lock()
	dst.rx.deliver(e.way, e.batch, pkt[:], len(e.payload), unharmed)
	dst.rx.release()
}

// launch puts a copy of a packet in flight and returns the copy.
func (c *clock) launch(at int64, way *line, batch uint64, pkt []link.Buf, flags link.Flags) []byte {
	var payload []byte
	if n := len(c.spare); n > 0 {
		payload, c.spare = c.spare[n-1][:0], c.spare[:n-1]
	}
	for i := range pkt {
		payload = append(payload, pkt[i].Data...)
	}
	c.seq++
	c.push(event{at: at, seq: c.seq, way: way, batch: batch, payload: payload, flags: flags})
	return payload
}

func (e *event) before(o *event) bool {
	return e.at < o.at || e.at == o.at && e.seq < o.seq
}

func (c *clock) push(e event) {
	c.flight = append(c.flight, e)
	for i := len(c.flight) - 1; i > 0; {
		up := (i - 1) / 2
		if !c.flight[i].before(&c.flight[up]) {
			return
		}
		c.flight[i], c.flight[up] = c.flight[up], c.flight[i]
		i = up
	}
}

func (c *clock) pop() event {
	h := c.flight
	top, last := h[0], len(h)-1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	c.flight = h
	for i := 0; ; {
		least := i
		for kid := 2*i + 1; kid <= 2*i+2 && kid < len(h); kid++ {
			if h[kid].before(&h[least]) {
				least = kid
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
