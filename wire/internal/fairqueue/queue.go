// Package fairqueue divides the buffers of a shared receive queue among peers.
//
// A flow is a connection that takes a buffer for each message. A flow holds a buffer if its message continues in a
// later packet. All flows from one source address belong to one peer. All peers in one IPv4 /24 or IPv6 /64 belong to
// one network. Five rules decide which flow gets the next buffer:
//
//   - Dynamic threshold (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
//     1998). The limit of a peer is the number of free buffers. So a single peer can hold half of the buffers, and two
//     peers can hold a third each. The limit of a network is higher: NetworkShare × the number of free buffers.
//   - Fair queueing (Nagle, RFC 970). Networks are served round robin, one buffer a turn. In the turn of a network, its
//     peers are served round robin too. The flows of a peer are served in the order in which they began to wait.
//     Priority classes come before this order: peers that have proven themselves are served first, and slow peers last.
//   - A turn is a buffer. As soon as a waiting flow may have a buffer, Give reserves one for it. The buffer counts as held
//     by the flow's peer, and the flow waits no longer. So a flow that is slow to take its buffer, or never takes it,
//     keeps no other buffer from the flows behind it.
//   - Progress timeout. A message that holds a buffer has a token bucket, whose tokens are time. The bucket drains
//     while other flows wait, and arriving bytes fill it. The caller must end a message whose bucket is empty.
//   - Push-out. If no flow is served for PushOutWait while a peer waits that holds no buffer and is not slow, the caller
//     must end one message: the oldest one of a network and peer that hold at least the average number of buffers.
//
// Each peer has a threshold of its own, because all hosts of a LAN are in one network: a host should not wait because
// its neighbour holds many buffers. Networks have turns because one host may use every address of a network. Such a
// host gets only the turns of its network, so it does not delay peers of other networks. Only its neighbours wait
// longer, because all peers of a network share the turns of the network.
//
// The package knows no connections, reads no clock and locks nothing. The caller's lock guards a queue and its flows.
package fairqueue

import (
	"net/netip"
	"time"

	"github.com/datxdp/datxdp/wire/internal/clock"
	"github.com/datxdp/datxdp/wire/internal/list"
)

// Queue counts buffers and queues the flows that wait for them. The caller passes a value of type W for each waiting
// flow, and gets it back when the flow is to be woken.
type Queue[W any] struct {
	free    uint32
	peers   map[netip.Prefix]*peer[W]
	nets    map[netip.Prefix]*network[W]
	active  [classes]list.List[network[W]] // networks with waiting flows, in the order of their turns
	waiting int                            // number of waiting flows
	proven  int                            // turns of class proven since the last turn of another class
	starved stopwatch                      // time in which flows waited and no buffer was free
	slow    slowTable
	timeout time.Duration // progress timeout of a message

	held     uint32             // buffers that unfinished messages hold or that are given
	holders  uint32             // networks that hold buffers
	messages list.List[Flow[W]] // flows that hold buffers, the oldest message first
	turned   clock.Time         // when the last waiting flow was served or message was pushed out
}

// network holds the peers of one network.
type network[W any] struct {
	prefix  netip.Prefix
	peers   int                         // number of peers with flows
	held    uint32                      // buffers that unfinished messages hold or that are given
	holders uint32                      // peers that hold buffers
	turned  clock.Time                  // when the last flow that waited was served or message was pushed out for it
	waiting int                         // number of waiting flows
	delayed stopwatch                   // time in which flows of this network waited
	active  [classes]list.List[peer[W]] // peers with waiting flows, in the order of their turns
	nodes   [classes]list.Node[network[W]]
}

// peer holds the flows of one source address.
type peer[W any] struct {
	addr    netip.Prefix
	net     *network[W]
	flows   int    // number of flows
	held    uint32 // buffers that unfinished messages hold or that are given
	waiting list.List[Flow[W]]
	since   clock.Time // when the peer got its first flow
	known   bool       // the peer has sent a whole message
	slowed  bool       // a message of the peer was slow
	class   class      // class of the peer while it waits
	waits   clock.Time // when the peer began to wait for its turn
	node    list.Node[peer[W]]
}

// Flow is a connection that takes buffers. The zero value belongs to no peer.
type Flow[W any] struct {
	received  uint64             // bytes of whole messages
	holds     bool               // the flow holds a buffer for a message that continues in a later packet
	given     bool               // a buffer is reserved for the flow, which has waited for it
	bucket    bucket             // token bucket of that message
	since     clock.Time         // when the flow got that buffer
	pushedOut bool               // that message has to end for another peer
	message   list.Node[Flow[W]] // while it holds a buffer

	peer   *peer[W]
	node   list.Node[Flow[W]] // while it waits
	waiter W
}

// New makes a queue without buffers. Its progress timeout is ProgressTimeout or maxTimeout, whichever is shorter.
func New[W any](maxTimeout time.Duration) Queue[W] {
	return Queue[W]{peers: make(map[netip.Prefix]*peer[W]), nets: make(map[netip.Prefix]*network[W]), slow: make(slowTable),
		timeout: min(ProgressTimeout, maxTimeout)}
}

// Free returns the number of free buffers.
func (q *Queue[W]) Free() uint32 { return q.free }

// Waiting returns the number of waiting flows.
func (q *Queue[W]) Waiting() int { return q.waiting }

// Held returns the number of buffers that unfinished messages hold or that are given.
func (q *Queue[W]) Held() int { return int(q.held) }

// Peers returns the number of peers that have flows.
func (q *Queue[W]) Peers() int { return len(q.peers) }

// Put adds a free buffer. The caller then calls Give.
func (q *Queue[W]) Put() { q.free++ }

// Added reports whether the flow belongs to a peer.
func (f *Flow[W]) Added() bool { return f.peer != nil }

// Waits reports whether the flow waits for a buffer.
func (f *Flow[W]) Waits() bool { return f.node.Listed() }

// Given reports whether a buffer is reserved for the flow. The flow calls Take to get it.
func (f *Flow[W]) Given() bool { return f.given }

// Add makes f a flow of the peer with address addr in the network prefix.
func (q *Queue[W]) Add(f *Flow[W], addr, prefix netip.Prefix, now clock.Time) {
	p := q.peers[addr]
	if p == nil {
		n := q.nets[prefix]
		if n == nil {
			n = &network[W]{prefix: prefix}
			q.nets[prefix] = n
		}
		n.peers++
		p = &peer[W]{addr: addr, net: n, since: now}
		q.peers[addr] = p
	}
	p.flows++
	f.peer = p
}

// Remove removes a flow that has ended. partial is the number of bytes received of its unfinished message. A buffer that
// was given to the flow becomes free.
func (q *Queue[W]) Remove(f *Flow[W], partial uint32, now clock.Time) {
	p := f.peer
	if p == nil {
		return
	}
	q.dequeue(f, now)
	if f.given {
		q.ungive(f)
		q.free++
	}
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

// Take takes a buffer for f, or the buffer that was given to f. If other flows are served first, or a threshold denies f
// a buffer, Take reports false and f waits. When it is the turn of f, Give returns waiter, which stands for f.
func (q *Queue[W]) Take(f *Flow[W], waiter W, now clock.Time) bool {
	if f.given {
		q.ungive(f)
		return true
	}
	if q.waiting == 0 && q.allows(f.peer) && (q.free > 1 || len(q.slow) == 0) {
		q.free--
		return true
	}
	return q.takeTurn(f, waiter, now)
}

// takeTurn is Take for the case that flows wait or that f has to wait.
func (q *Queue[W]) takeTurn(f *Flow[W], waiter W, now clock.Time) bool {
	q.enqueue(f, waiter, now)
	if q.nextFlow() != f {
		return false
	}
	q.serve(f, now)
	return true
}

// Give reserves a free buffer for the flow to be served next. It returns the waiter of that flow, or the zero value if no
// waiting flow may take a buffer. The caller of Put, Take, Release and Remove calls Give afterwards and wakes the flow.
//
// Give takes the time of the last call as the time, because a caller that posts buffers has no clock.
func (q *Queue[W]) Give() (w W) {
	if q.waiting == 0 {
		return w
	}
	f := q.nextFlow()
	if f == nil {
		return w
	}
	w = f.waiter
	q.serve(f, q.starved.at)
	f.given = true
	q.hold(f.peer)
	return w
}

// ungive stops counting the buffer that was given to f.
func (q *Queue[W]) ungive(f *Flow[W]) {
	f.given = false
	q.unhold(f.peer)
}

// serve takes a buffer for f, which waits and whose turn it is.
func (q *Queue[W]) serve(f *Flow[W], now clock.Time) {
	q.free--
	if q.proven++; f.peer.class != proven {
		q.proven = 0
	}
	q.turned, f.peer.net.turned = now, now
	q.dequeue(f, now)
}

// allows reports whether the dynamic thresholds allow a peer another buffer.
func (q *Queue[W]) allows(p *peer[W]) bool {
	return p.held < q.free && p.net.held < NetworkShare*q.free
}

// nextFlow returns the flow to be served next: the first flow of the first peer that may take a buffer, by class and
// turn. While messages hold buffers, the last free buffer is not for slow peers and networks.
func (q *Queue[W]) nextFlow() *Flow[W] {
	if q.free == 0 {
		return nil
	}
	end := classes
	if q.free == 1 && q.held > 0 {
		end = slowNetwork
	}
	if q.proven >= ProvenTurns {
		if f := q.firstFlow(unproven, end); f != nil {
			return f
		}
	}
	return q.firstFlow(proven, end)
}

// firstFlow is nextFlow for the classes from low up to, but not including, high.
func (q *Queue[W]) firstFlow(low, high class) *Flow[W] {
	for c := low; c < high; c++ {
		for n := q.active[c].First(); n != nil; {
			net := n.Elem()
			n = n.Next() // nextOf may move the network
			if f := q.nextOf(net, c); f != nil {
				return f
			}
		}
	}
	return nil
}

// nextOf returns, for a network and class, the first flow whose peer may take a buffer, or nil. If the network may take
// no buffer, nextOf looks at none of its peers. Otherwise it skips only peers that hold buffers. So the work is bounded
// by the number of held buffers, however many peers wait.
func (q *Queue[W]) nextOf(net *network[W], c class) *Flow[W] {
	if net.held >= NetworkShare*q.free {
		return nil
	}
	for n := net.active[c].First(); n != nil; {
		p := n.Elem()
		n = n.Next()
		if q.allows(p) && !q.demote(p) {
			return p.waiting.Front()
		}
	}
	return nil
}

// enqueue adds f to the end of the waiting flows of its peer. If no other flow of the peer waits, the peer goes to the end
// of the list for its class (proven, unproven or slow peers). A flow that already waits keeps its place.
func (q *Queue[W]) enqueue(f *Flow[W], waiter W, now clock.Time) {
	p := f.peer
	q.advance(now)
	if f.Waits() {
		q.reclassify(p)
		return
	}
	p.known = p.known || f.received > 0
	p.net.advance(now)
	f.waiter = waiter
	p.waiting.PushBack(&f.node, f)
	p.net.waiting++
	q.waiting++
	if p.waiting.Len() == 1 {
		q.activate(p, now)
	}
}

// dequeue removes f from the waiting flows, if it waits. This ends the turn of f: its peer goes to the end of its
// network's list of peers of this class, and the network goes to the end of the list of networks for the class.
func (q *Queue[W]) dequeue(f *Flow[W], now clock.Time) {
	if !f.Waits() {
		return
	}
	p := f.peer
	q.advance(now)
	p.net.advance(now)
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

// activate adds a peer to the end of the waiting peers of its network and class.
func (q *Queue[W]) activate(p *peer[W], now clock.Time) {
	net := p.net
	p.class, p.waits = q.class(p, now), now
	net.active[p.class].PushBack(&p.node, p)
	if net.active[p.class].Len() == 1 {
		q.active[p.class].PushBack(&net.nodes[p.class], net)
	}
}

// deactivate removes a peer from the waiting peers of its network and class.
func (q *Queue[W]) deactivate(p *peer[W]) {
	net := p.net
	net.active[p.class].Remove(&p.node)
	if net.active[p.class].Empty() {
		q.active[p.class].Remove(&net.nodes[p.class])
	}
}

// endTurn moves a network to the end of a class, if it has waiting peers in the class.
func (q *Queue[W]) endTurn(net *network[W], c class) {
	if n := &net.nodes[c]; n.Listed() {
		q.active[c].Remove(n)
		q.active[c].PushBack(n, net)
	}
}
