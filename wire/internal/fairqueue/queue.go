// Package fairqueue divides the buffers of a shared receive queue among peers.
//
// A flow is a connection that takes a buffer for each message. A peer is the source address of its flows, and a network is
// the IPv4 /24 or IPv6 /64 of its peers. Three rules decide:
//
//   - Dynamic threshold (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998): a
//     peer may hold as many buffers as it leaves free, and a network NetworkShare times as many. A single peer can hold half
//     of the buffers, two peers a third each. Messages of one packet hold no buffer.
//   - Fair queueing (Nagle, RFC 970), in three levels: networks take turns of one buffer, the peers of a network share its
//     turns in the same way, and the flows of a peer come in the order in which they began to wait. Priority classes come
//     before the turns: peers whose messages were slow wait behind others.
//   - Progress: a message that holds a buffer while others wait has a token bucket, whose tokens are time. The time that others
//     wait drains it, and bytes that arrive fill it. The caller has to end a message whose bucket is empty.
//
// The threshold belongs to the address first, because all neighbours of a LAN are in one network: what one of them holds does
// not count against the others. A host may also have all addresses of a network. It then has that network's turns, so that
// peers of other networks do not wait for it. Its neighbours in the network share these turns with it.
//
// The package knows no connections, reads no clock and locks nothing: the caller's lock guards a queue and its flows.
package fairqueue

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/list"
)

// Queue is a number of buffers and the flows that take them. W is what a waiting flow is woken by.
type Queue[W any] struct {
	free    uint32
	peers   map[netip.Prefix]*peer[W]
	nets    map[netip.Prefix]*network[W]
	active  [classes]list.List[network[W]] // networks with flows that wait, in the order of their turns
	waiting int                            // flows
	starved stopwatch                      // time in which flows waited and no buffer was free
	slow    slowTable
	timeout time.Duration // of a message without progress
}

// network is the peers of one network.
type network[W any] struct {
	prefix  netip.Prefix
	peers   int                         // peers that have flows
	held    uint32                      // buffers of unfinished messages
	waiting int                         // flows
	delayed stopwatch                   // time in which flows of the network waited
	active  [classes]list.List[peer[W]] // peers with flows that wait, in the order of their turns
	nodes   [classes]list.Node[network[W]]
}

// peer is the flows of one source address.
type peer[W any] struct {
	addr    netip.Prefix
	net     *network[W]
	flows   int    // flows of the peer
	held    uint32 // buffers of unfinished messages
	waiting list.List[Flow[W]]
	known   bool  // it has sent a whole message
	slowed  bool  // a message of it was slow
	class   class // while it waits
	node    list.Node[peer[W]]
}

// Flow is a connection that takes buffers. The zero value belongs to no peer.
type Flow[W any] struct {
	received uint64 // bytes of whole messages
	holds    bool   // a buffer for a message that goes on in another packet
	bucket   bucket // of that message

	peer   *peer[W]
	node   list.Node[Flow[W]] // while it waits
	waiter W
}

// New makes a queue without buffers. The progress timeout is at most most.
func New[W any](most time.Duration) Queue[W] {
	return Queue[W]{peers: make(map[netip.Prefix]*peer[W]), nets: make(map[netip.Prefix]*network[W]), slow: make(slowTable),
		timeout: min(ProgressTimeout, most)}
}

// Free is the number of buffers that may be taken.
func (q *Queue[W]) Free() uint32 { return q.free }

// Waiting is the number of flows that wait.
func (q *Queue[W]) Waiting() int { return q.waiting }

// Held is the number of buffers of unfinished messages.
func (q *Queue[W]) Held() (n int) {
	for _, p := range q.peers {
		n += int(p.held)
	}
	return n
}

// Peers is the number of peers that have flows.
func (q *Queue[W]) Peers() int { return len(q.peers) }

// Put adds a free buffer. Next says who is to be woken.
func (q *Queue[W]) Put() { q.free++ }

// Added reports whether the flow belongs to a peer.
func (f *Flow[W]) Added() bool { return f.peer != nil }

// Waits reports whether the flow waits for a buffer.
func (f *Flow[W]) Waits() bool { return f.node.Listed() }

// Add makes f a flow of the peer with an address, which is in a network.
func (q *Queue[W]) Add(f *Flow[W], addr, prefix netip.Prefix) {
	p := q.peers[addr]
	if p == nil {
		n := q.nets[prefix]
		if n == nil {
			n = &network[W]{prefix: prefix}
			q.nets[prefix] = n
		}
		n.peers++
		p = &peer[W]{addr: addr, net: n}
		q.peers[addr] = p
	}
	p.flows++
	f.peer = p
}

// Remove takes a flow away that is over, with partial bytes of an unfinished message.
func (q *Queue[W]) Remove(f *Flow[W], partial uint32, now clock.Time) {
	p := f.peer
	if p == nil {
		return
	}
	q.unwait(f, now)
	if f.holds {
		q.Release(f, partial, now)
	}
	f.peer = nil
	if p.flows--; p.flows > 0 {
		return
	}
	delete(q.peers, p.addr)
	if p.net.peers--; p.net.peers == 0 {
		delete(q.nets, p.net.prefix)
	}
}

// Take takes a buffer for f, and reports whether there is one that f may have. If not, f waits, and Next returns w in its
// turn. Where flows wait, those whose turn it is come first.
func (q *Queue[W]) Take(f *Flow[W], w W, now clock.Time) bool {
	if q.waiting == 0 && q.allows(f.peer) {
		q.free--
		return true
	}
	return q.takeTurn(f, w, now)
}

// takeTurn is Take where flows wait or f has to.
func (q *Queue[W]) takeTurn(f *Flow[W], w W, now clock.Time) bool {
	q.wait(f, w, now)
	if q.next() != f {
		return false
	}
	q.free--
	q.unwait(f, now)
	return true
}

// Next is what wakes the flow whose turn it is; the zero value if there is none that may take a buffer.
func (q *Queue[W]) Next() (w W) {
	if q.waiting > 0 {
		if f := q.next(); f != nil {
			w = f.waiter
		}
	}
	return w
}

// allows is the dynamic threshold.
func (q *Queue[W]) allows(p *peer[W]) bool {
	return p.held < q.free && p.net.held < NetworkShare*q.free
}

// next is the first flow of the first peer that may take a buffer, of the network whose turn it is.
func (q *Queue[W]) next() *Flow[W] {
	if q.free == 0 {
		return nil
	}
	for c := range q.active {
		for n := q.active[c].First(); n != nil; {
			net := n.Elem()
			n = n.Next() // nextOf may move the network
			if f := q.nextOf(net, class(c)); f != nil {
				return f
			}
		}
	}
	return nil
}

// nextOf is the first flow of the first peer of a network and class that may take a buffer.
func (q *Queue[W]) nextOf(net *network[W], c class) *Flow[W] {
	for n := net.active[c].First(); n != nil; {
		p := n.Elem()
		n = n.Next()
		if q.allows(p) && !q.demote(p) {
			return p.waiting.Front()
		}
	}
	return nil
}

// wait adds f to the end of those of its peer that wait, and its peer to the end of its class if it was not there. A
// flow that waits already keeps its turn.
func (q *Queue[W]) wait(f *Flow[W], w W, now clock.Time) {
	p := f.peer
	q.count(now)
	if f.Waits() {
		q.reclassify(p)
		return
	}
	p.known = p.known || f.received > 0
	p.net.count(now)
	f.waiter = w
	p.waiting.PushBack(&f.node, f)
	p.net.waiting++
	q.waiting++
	if p.waiting.Len() == 1 {
		q.activate(p, now)
	}
}

// unwait takes f out of those that wait, if it is one of them. Its peer goes to the end of the peers of its network, and
// the network to the end of its class.
func (q *Queue[W]) unwait(f *Flow[W], now clock.Time) {
	if !f.Waits() {
		return
	}
	p := f.peer
	q.count(now)
	p.net.count(now)
	p.waiting.Remove(&f.node)
	var none W
	f.waiter = none
	p.net.waiting--
	q.waiting--
	q.deactivate(p)
	q.endTurn(p.net, p.class)
	if !p.waiting.Empty() {
		q.activate(p, now)
	}
}

// activate adds a peer to the end of the peers of its network and class.
func (q *Queue[W]) activate(p *peer[W], now clock.Time) {
	net := p.net
	p.class = q.class(p, now)
	net.active[p.class].PushBack(&p.node, p)
	if net.active[p.class].Len() == 1 {
		q.active[p.class].PushBack(&net.nodes[p.class], net)
	}
}

// deactivate takes a peer away from those of its network and class.
func (q *Queue[W]) deactivate(p *peer[W]) {
	net := p.net
	net.active[p.class].Remove(&p.node)
	if net.active[p.class].Empty() {
		q.active[p.class].Remove(&net.nodes[p.class])
	}
}

// endTurn moves a network to the end of a class, if it has peers there.
func (q *Queue[W]) endTurn(net *network[W], c class) {
	if n := &net.nodes[c]; n.Listed() {
		q.active[c].Remove(n)
		q.active[c].PushBack(n, net)
	}
}
