package wire

import "container/heap"

// earlyFrames counts the frames that early packets of a connection, an address or a network occupy.
//
// All connections of an engine share the frames for early packets. If all of these frames are in use, they are divided
// by longest queue drop (Suter et al., "Design Considerations for Supporting TCP with Per-flow Queueing", 1998): the
// network that holds most frames drops an early packet for a network that holds fewer. So a network that wants frames
// gets an equal share of them, whatever other networks do. Within a network, addresses divide the frames in the same
// way, and within an address, connections do. Among equals, the one that has held frames for longest drops a packet,
// because its missing packet is the least likely to come.
//
// The order in which holes (missing packets) are filled has no effect on the shares. Otherwise an attacker could protect
// the frames that it holds: it would fill a hole now and then, and leave the others.
type earlyFrames struct {
	since  Time // when the holder got the first of these frames
	frames int32
	place  int32 // index in the heap of the holders; valid while frames > 0
}

// earlyHolder is a connection, an address or a network.
type earlyHolder interface {
	comparable
	earlyFrames() *earlyFrames
}

func (c *Conn) earlyFrames() *earlyFrames        { return &c.recv.held }
func (a *sendAddress) earlyFrames() *earlyFrames { return &a.held }
func (n *sendNetwork) earlyFrames() *earlyFrames { return &n.held }

// earlyHeap is a heap of the holders of early packets. The first one holds most frames.
type earlyHeap[T earlyHolder] []T

func (h earlyHeap[T]) Len() int { return len(h) }

func (h earlyHeap[T]) Less(i, j int) bool {
	a, b := h[i].earlyFrames(), h[j].earlyFrames()
	return a.frames > b.frames || a.frames == b.frames && a.since < b.since
}

func (h earlyHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].earlyFrames().place, h[j].earlyFrames().place = int32(i), int32(j)
}

// Push implements heap.Interface.
func (h *earlyHeap[T]) Push(x any) {
	t := x.(T)
	t.earlyFrames().place = int32(len(*h))
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *earlyHeap[T]) Pop() any {
	var none T
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last], *h = none, (*h)[:last]
	return t
}

// add adds n frames, which may be negative, to those that t holds. n is not 0.
func (h *earlyHeap[T]) add(t T, n int, now Time) {
	f := t.earlyFrames()
	held := f.frames
	f.frames += int32(n)
	switch {
	case held == 0:
		f.since = now
		heap.Push(h, t)
	case f.frames == 0:
		heap.Remove(h, int(f.place))
	default:
		heap.Fix(h, int(f.place))
	}
}

// largest returns the holder of most frames. If own holds as many, largest returns own. The heap must not be empty.
func (h earlyHeap[T]) largest(own T) T {
	if own.earlyFrames().frames >= h[0].earlyFrames().frames {
		return own
	}
	return h[0]
}

// addEarly adds n frames, which may be negative, to those that the early packets of c occupy.
func (c *Conn) addEarly(n int) {
	if n == 0 {
		return
	}
	e, a := c.eng, c.turn.address
	e.heldFrames += n
	c.permit.hold(n * e.caps.FrameSize)
	a.holders.add(c, n, e.now)
	a.network.holders.add(a, n, e.now)
	e.sched.holders.add(a.network, n, e.now)
}

// mostEarly returns the connection that is to drop an early packet if c needs a frame and all frames are in use. The
// result is c if c, its address and its network hold no less than others. It is nil if no early packet is held.
func (s *senders) mostEarly(c *Conn) *Conn {
	if len(s.holders) == 0 {
		return nil
	}
	own := c.turn.address
	n := s.holders.largest(own.network)
	if n != own.network {
		return n.holders[0].holders[0]
	}
	a := n.holders.largest(own)
	if a != own {
		return a.holders[0]
	}
	return a.holders.largest(c)
}

// evictFor makes another connection drop an early packet, because c needs a frame and all frames are in use. That
// connection drops its early packet with the highest PSN. If it has no early packet, it holds only the next packet in
// order, which waits for a receive; then it drops that packet. The peer sends the dropped packet again. If c itself
// should drop a packet, or no packet is held, evictFor drops nothing and reports false.
func (e *Engine) evictFor(c *Conn) bool {
	v := e.sched.mostEarly(c)
	return v != nil && v != c && v.dropLast(v.recv.nextPSN-1)
}
