package wire

import (
	"net/netip"

	"github.com/datxdp/datxdp/wire/internal/list"
)

// turns is a queue of connections that want to send, or whose timers are due. Turns go round robin to networks, within
// a network round robin to addresses, and within an address round robin to connections (hierarchical round robin). So
// an address with many connections gets no more turns than an address with one. A host that uses every address of its
// network delays its neighbours in that network, but no peer of another network.
//
// The data path uses no map: a connection has a pointer to its address, and an address to its network.
type turns struct {
	kind     turnKind
	networks list.List[sendNetwork] // networks with a queued connection, in the order of their turns
	conns    int                    // number of queued connections
}

// turnKind names one of the queues of an engine.
type turnKind uint8

const (
	readyTurns   turnKind = iota // scheduler.ready
	partialTurns                 // scheduler.partials
	dueTurns                     // scheduler.due
	turnKinds
)

// sendNetwork is a network with connections to the engine.
type sendNetwork struct {
	prefix    netip.Prefix
	addresses int // addresses with connections
	held      earlyFrames
	holders   earlyHeap[*sendAddress] // addresses that hold early packets
	queued    [turnKinds]struct {
		node      list.Node[sendNetwork]
		addresses list.List[sendAddress] // addresses with a queued connection, in the order of their turns
	}
}

// sendAddress is an address with connections to the engine.
type sendAddress struct {
	prefix  netip.Prefix
	network *sendNetwork
	conns   int // connections of the address
	held    earlyFrames
	holders earlyHeap[*Conn] // connections that hold early packets
	queued  [turnKinds]struct {
		node  list.Node[sendAddress]
		conns list.List[Conn] // queued connections, in the order of their turns
	}
}

// empty reports whether no connection is queued.
func (t *turns) empty() bool { return t.conns == 0 }

// isQueued reports whether c is queued.
func (t *turns) isQueued(c *Conn) bool { return c.turn.nodes[t.kind].Listed() }

// nextConn returns the connection whose turn it is. The queue must not be empty.
func (t *turns) nextConn() *Conn {
	return t.networks.Front().queued[t.kind].addresses.Front().queued[t.kind].conns.Front()
}

// push queues c, unless c is queued already.
func (t *turns) push(c *Conn) {
	k := t.kind
	node := &c.turn.nodes[k]
	if node.Listed() {
		return
	}
	t.conns++
	a := c.turn.address
	a.queued[k].conns.PushBack(node, c)
	if node := &a.queued[k].node; !node.Listed() {
		a.network.queued[k].addresses.PushBack(node, a)
	}
	if node := &a.network.queued[k].node; !node.Listed() {
		t.networks.PushBack(node, a.network)
	}
}

// remove removes c, if it is queued.
func (t *turns) remove(c *Conn) {
	k := t.kind
	node := &c.turn.nodes[k]
	if !node.Listed() {
		return
	}
	t.conns--
	a := c.turn.address
	n := a.network
	if a.queued[k].conns.Remove(node); !a.queued[k].conns.Empty() {
		return
	}
	if n.queued[k].addresses.Remove(&a.queued[k].node); n.queued[k].addresses.Empty() {
		t.networks.Remove(&n.queued[k].node)
	}
}

// pop removes c, which has had its turn. The address and the network of c go to the end of their queues. If c is not
// queued any more, because it has ended, pop does nothing.
func (t *turns) pop(c *Conn) {
	if !t.isQueued(c) {
		return
	}
	k := t.kind
	n := c.turn.address.network
	n.queued[k].addresses.Rotate()
	t.networks.Rotate()
	t.remove(c)
}

// senders holds the addresses and networks of the connections of an engine. They share the turns of the engine and its
// frames for early packets (see earlyFrames).
type senders struct {
	addresses map[netip.Prefix]*sendAddress
	networks  map[netip.Prefix]*sendNetwork
	holders   earlyHeap[*sendNetwork] // networks that hold early packets
}

// join adds c to the connections of its address. A connection joins before it sends data packets.
func (s *senders) join(c *Conn) {
	addr, prefix := holders(c.peerAddr)
	a := s.addresses[addr]
	if a == nil {
		n := s.networks[prefix]
		if n == nil {
			n = &sendNetwork{prefix: prefix}
			s.networks[prefix] = n
		}
		n.addresses++
		a = &sendAddress{prefix: addr, network: n}
		s.addresses[addr] = a
	}
	a.conns++
	c.turn = turn{address: a}
}

// leave removes a connection that is in no queue from the connections of its address.
func (s *senders) leave(c *Conn) {
	a := c.turn.address
	if a == nil {
		return
	}
	c.turn.address = nil
	if a.conns--; a.conns > 0 {
		return
	}
	delete(s.addresses, a.prefix)
	if a.network.addresses--; a.network.addresses == 0 {
		delete(s.networks, a.network.prefix)
	}
}
