package simlink

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Net is a network that connects links. The package comment says which goroutine may call it.
type Net struct {
	cfg   Config
	clean bool // no duplicates, reordering or corruption: arriving packets need no random choice
	start time.Time
	clock clock // virtual time; unused in immediate mode

	mu    sync.Mutex // guards nodes, ports, lines and made
	nodes map[netip.AddrPort]*node
	ports []*port // of all nodes, in the order of their creation
	lines map[[2]*node]*line
	made  uint64 // links made so far
}

// node is an address, with or without a link.
type node struct {
	addr netip.AddrPort
	link atomic.Pointer[Link]

	port *port // virtual time only; of several nodes after SharePort
	down bool  // the cable is cut; virtual time only
}

// line is one direction between two addresses, with its impairments.
type line struct {
	from, to *node
	back     *line // the other direction
	loss     atomic.Uint64
	mtu      atomic.Int64
	cut      atomic.Bool
	delay    int64 // propagation delay in nanoseconds; virtual time only, like the rest
	hold     Hold
	refusals bucket
}

// New creates a network. It panics on an impossible configuration.
func New(cfg Config) *Net {
	return &Net{
		cfg:   cfg.withDefaults(),
		clean: cfg.Duplicate == 0 && cfg.Reorder == 0 && cfg.Corrupt == 0,
		start: time.Now(),
		nodes: make(map[netip.AddrPort]*node),
		lines: make(map[[2]*node]*line),
	}
}

// Host describes a host that differs from Config. A zero field means the value of Config.
type Host struct {
	Rate   int64 // of its link, and of its switch port if Switch has no rate
	MTU    int   // with another MTU, a frame holds a packet of this size. Larger packets to the host are lost.
	Frames int
}

// Link creates the link of an address. It panics if the address has an open link. After a link is closed, its address
// may get a new one: this simulates a crash and a restart. Packets in flight then reach the new link.
func (n *Net) Link(addr netip.AddrPort) *Link { return n.LinkOf(addr, Host{}) }

// LinkOf is like Link, for a host that differs from Config.
func (n *Net) LinkOf(addr netip.AddrPort, h Host) *Link {
	n.mu.Lock()
	at := n.node(addr)
	n.made++
	rng := rand.New(rand.NewPCG(n.cfg.Seed, n.made))
	n.mu.Unlock()

	cfg := n.cfg.of(h)
	l := newLink(n, at, cfg, rng)
	if !at.link.CompareAndSwap(nil, l) {
		panic(fmt.Sprintf("simlink: Link: %v has an open link", addr))
	}
	at.port.wire.rate = cfg.portRate()
	return l
}

// SetLoss sets the probability of loss from one address to another.
func (n *Net) SetLoss(from, to netip.AddrPort, p float64) {
	n.line(from, to).loss.Store(math.Float64bits(p))
}

// SetMTU makes the direction from one address to another a black hole for larger payloads. PathMTU does not change.
func (n *Net) SetMTU(from, to netip.AddrPort, bytes int) {
	n.line(from, to).mtu.Store(int64(bytes))
}

// Partition cuts both directions between two addresses, or joins them again. Packets in flight still arrive.
func (n *Net) Partition(a, b netip.AddrPort, cut bool) {
	there := n.line(a, b)
	there.cut.Store(cut)
	there.back.cut.Store(cut)
}

func (n *Net) line(from, to netip.AddrPort) *line {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lineBetween(n.node(from), n.node(to))
}

// back returns the line for an answer to a packet that arrived on the line arrival. port is the destination port of the
// answer; 0 means the packet's source port. If the network does not know the port, back returns nil and creates
// nothing.
func (n *Net) back(arrival *line, port uint16) *line {
	if port == 0 || port == arrival.from.addr.Port() {
		return arrival.back
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if to := n.nodes[netip.AddrPortFrom(arrival.from.addr.Addr(), port)]; to != nil {
		return n.lineBetween(arrival.to, to)
	}
	return nil
}

// node returns the node of an address. The caller holds mu.
func (n *Net) node(addr netip.AddrPort) *node {
	at := n.nodes[addr]
	if at == nil {
		at = &node{addr: addr, port: &port{wire: wire{rate: n.cfg.portRate()}}}
		n.nodes[addr] = at
		n.ports = append(n.ports, at.port)
	}
	return at
}

// lineBetween creates both directions at once. The caller holds mu.
func (n *Net) lineBetween(from, to *node) *line {
	if there := n.lines[[2]*node{from, to}]; there != nil {
		return there
	}
	there, back := n.newLine(from, to), n.newLine(to, from)
	if from == to {
		back = there
	}
	there.back, back.back = back, there
	n.lines[[2]*node{from, to}] = there
	n.lines[[2]*node{to, from}] = back
	return there
}

func (n *Net) newLine(from, to *node) *line {
	d := &line{from: from, to: to, delay: int64(n.cfg.Delay), hold: n.cfg.Hold}
	d.loss.Store(math.Float64bits(n.cfg.Loss))
	d.mtu.Store(math.MaxInt64)
	return d
}
