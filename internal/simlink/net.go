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

// Net is a network that joins links. See the package comment for who may call it.
type Net struct {
	cfg   Config
	clean bool // no duplicates, reordering or damage: nothing to draw for a packet that arrives
	start time.Time
	clock clock // virtual time; unused in immediate mode

	mu    sync.Mutex // guards nodes, lines and made
	nodes map[netip.AddrPort]*node
	lines map[[2]*node]*line
	made  uint64 // links made so far
}

// node is an address, whether or not a link listens there now.
type node struct {
	addr netip.AddrPort
	link atomic.Pointer[Link]

	portIdle  int64 // when the switch port before it has sent all it holds; virtual time only
	portDrops atomic.Uint64
}

// line is one direction between two addresses and what was done to it.
type line struct {
	from, to *node
	back     *line // the other direction
	loss     atomic.Uint64
	mtu      atomic.Int64
	cut      atomic.Bool
	refusals bucket // virtual time only
}

// New makes a network. It panics on a configuration that cannot be.
func New(cfg Config) *Net {
	return &Net{
		cfg:   cfg.withDefaults(),
		clean: cfg.Duplicate == 0 && cfg.Reorder == 0 && cfg.Corrupt == 0,
		start: time.Now(),
		nodes: make(map[netip.AddrPort]*node),
		lines: make(map[[2]*node]*line),
	}
}

// Link makes the link of an address. Once it is closed, the address may be given a new one: that is
// a crash and a restart, and packets in flight reach the new link. It panics if the address has an
// open link.
func (n *Net) Link(addr netip.AddrPort) *Link {
	n.mu.Lock()
	at := n.node(addr)
	n.made++
	rng := rand.New(rand.NewPCG(n.cfg.Seed, n.made))
	n.mu.Unlock()

	l := newLink(n, at, rng)
	if !at.link.CompareAndSwap(nil, l) {
		panic(fmt.Sprintf("simlink: Link: %v has an open link", addr))
	}
	return l
}

// SetLoss sets the probability of loss from one address to another.
func (n *Net) SetLoss(from, to netip.AddrPort, p float64) {
	n.line(from, to).loss.Store(math.Float64bits(p))
}

// SetMTU makes the way from one address to another a black hole for payloads of more than bytes.
// PathMTU does not learn of it.
func (n *Net) SetMTU(from, to netip.AddrPort, bytes int) {
	n.line(from, to).mtu.Store(int64(bytes))
}

// PortDrops is how many packets the switch port before an address has dropped.
func (n *Net) PortDrops(addr netip.AddrPort) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node(addr).portDrops.Load()
}

// Partition cuts both directions between two addresses, or joins them again. Packets in flight
// still arrive.
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

// back is the line of an answer to a packet that came by there, to a port of its sender; port 0 is the one that it came
// from. It is nil, and nothing is made, for a port that the network does not know.
func (n *Net) back(there *line, port uint16) *line {
	if port == 0 || port == there.from.addr.Port() {
		return there.back
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if to := n.nodes[netip.AddrPortFrom(there.from.addr.Addr(), port)]; to != nil {
		return n.lineBetween(there.to, to)
	}
	return nil
}

// node is called with mu held.
func (n *Net) node(addr netip.AddrPort) *node {
	at := n.nodes[addr]
	if at == nil {
		at = &node{addr: addr}
		n.nodes[addr] = at
	}
	return at
}

// lineBetween makes both directions at once; it is called with mu held.
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
	d := &line{from: from, to: to}
	d.loss.Store(math.Float64bits(n.cfg.Loss))
	d.mtu.Store(int64(n.cfg.MTU))
	return d
}
