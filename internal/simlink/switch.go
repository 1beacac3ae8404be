package simlink

import (
	"net/netip"
	"time"
)

// Switch describes a switch between the hosts. Each address has one output port with a queue. A packet enters the port
// when its last bit reaches the switch: after the sender has transmitted it, and after half of the propagation delay.
// So packets of different hosts interleave in the order of their arrival.
type Switch struct {
	// Buffer is the size of the queue of a port in bytes. Packets that do not fit are dropped. 0 sets no limit, and
	// without Shared it means no switch.
	Buffer int
	// Mark is the length of the queue in bytes from which arriving packets are marked CE (RFC 8257 §3.1); 0 marks none.
	Mark int
	// Rate is the rate of a port in bits per second; 0 means the rate of the host behind it.
	Rate int64
	// Shared is memory in bytes that the queues of all ports share; 0 means that each port has memory of its own. A
	// queue may hold at most Alpha times the free part of it ("dynamic threshold"; Choudhury and Hahne, 1998).
	Shared int
	Alpha  float64
}

func (s *Switch) present() bool { return s.Buffer > 0 || s.Shared > 0 }

// PortStats are the counters of a switch port. Queue lengths are in bytes, headers included.
type PortStats struct {
	Packets, Bytes uint64 // that entered the queue
	Drops, Marks   uint64
	MeanQueue      float64 // over time
	MaxQueue       int
}

// port is the output port of the switch to one address.
type port struct {
	wire    wire
	stats   PortStats
	startAt int64   // time when counting began
	seenAt  int64   // area is the sum up to this time
	area    float64 // integral over time of the time that the queue needs to drain, in ns²
}

// queued returns the length of the queue in bytes.
func (p *port) queued(now int64) int {
	if p.wire.idleAt <= now {
		return 0
	}
	return int((p.wire.idleAt - now) * p.wire.rate / 8e9)
}

// observe extends area to now. The queue drains at the rate of the port between two packets.
func (p *port) observe(now int64) {
	wait, span := float64(max(p.wire.idleAt-p.seenAt, 0)), float64(now-p.seenAt)
	if wait > span {
		p.area += (wait - span/2) * span
	} else {
		p.area += wait * wait / 2
	}
	p.seenAt = now
}

// Port returns the counters of an address's switch port since the last ResetPorts.
func (n *Net) Port(addr netip.AddrPort) PortStats {
	n.mu.Lock()
	p, now := n.node(addr).port, n.clock.now
	n.mu.Unlock()
	p.observe(now)
	s := p.stats
	if span := float64(now - p.startAt); span > 0 {
		s.MeanQueue = p.area / span * float64(p.wire.rate) / 8e9
	}
	return s
}

// SharePort puts an address behind the switch port of another one, with a link of its own.
func (n *Net) SharePort(of, addr netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.node(addr).port = n.node(of).port
}

// ResetPorts sets the counters of all ports to zero.
func (n *Net) ResetPorts() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		p.observe(n.clock.now)
		p.startAt, p.area, p.stats = n.clock.now, 0, PortStats{}
	}
}

// forward passes a packet that has reached the switch through the port of its destination, and puts it back in flight.
// It reports false if the port drops the packet.
func (n *Net) forward(e *event) bool {
	p, now, size := e.way.to.port, n.clock.now, len(e.payload)+wireOverhead
	p.observe(now)
	queued := p.queued(now)
	if !n.cfg.Switch.fits(queued, size, n.ports, now) {
		p.stats.Drops++
		return false
	}
	if k := n.cfg.Switch.Mark; k > 0 && queued >= k {
		p.stats.Marks++
		e.markCE()
	}
	p.stats.Packets++
	p.stats.Bytes += uint64(size)
	p.stats.MaxQueue = max(p.stats.MaxQueue, queued+size)
	e.entering = false
	e.at = p.wire.transmit(now, size) + e.way.delay - e.way.delay/2 + e.hold
	return true
}

// fits reports whether a queue has room for a packet of size bytes.
func (s *Switch) fits(queued, size int, ports []*port, now int64) bool {
	if s.Buffer > 0 && queued+size > s.Buffer {
		return false
	}
	if s.Shared == 0 {
		return true
	}
	free := s.Shared
	for _, p := range ports {
		free -= p.queued(now)
	}
	return size <= free && float64(queued+size) <= s.Alpha*float64(free)
}

// wire transmits packets one after the other at a rate in bits per second. 0 is infinitely fast.
type wire struct {
	rate   int64
	idleAt int64 // time when all packets have been transmitted, rounded down
	rest   int64 // what rounding has left, in ns × rate
}

// transmit returns the time when a packet of size bytes that is ready at now has left.
func (w *wire) transmit(now int64, size int) int64 {
	if w.rate == 0 {
		return now
	}
	if w.idleAt < now {
		w.idleAt, w.rest = now, 0
	}
	x := int64(size)*8e9 + w.rest
	w.idleAt += x / w.rate
	w.rest = x % w.rate
	return w.idleAt
}

// SetDelay sets the one-way propagation delay from one address to another, as a reroute does. Packets that were sent
// before may be overtaken. Virtual time only, like all that follow.
func (n *Net) SetDelay(from, to netip.AddrPort, d time.Duration) { n.line(from, to).delay = int64(d) }

// SetHold makes packets from one address to another late (see Hold).
func (n *Net) SetHold(from, to netip.AddrPort, h Hold) { n.line(from, to).hold = h }

// SetDown cuts the cable of an address, or plugs it in again. Packets that are on their way to or from the address
// while it is down are lost.
func (n *Net) SetDown(addr netip.AddrPort, down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.node(addr).down = down
}
