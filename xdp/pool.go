package xdp

import "fmt"

// state says who owns a frame.
type state uint8

const (
	isFree  state = iota // the pool
	isFill               // the kernel, for reception: from the fill ring to the rx ring
	isHeld               // the owner, from Recv
	isAlloc              // the owner, from Alloc
	isSent               // the kernel, for transmission: from the tx ring to the completion ring
	isReply              // as isSent: the first frame of a packet that belongs to no connection
	isLoop               // the socket, queued for its own Recv
	states
)

var stateNames = [states]string{"free", "fill", "held", "alloc", "sent", "reply", "loop"}

func (s state) String() string { return stateNames[s] }

// note is what the socket records about a frame.
type note struct {
	state   state
	headers uint8  // bytes of headers before Data; set for the first frame of a received packet
	origin  origin // of the first frame of a received packet
	ip      uint8  // offset of the IP header in headers
	start   uint16 // offset of Data in the frame
}

// origin says how a packet has arrived.
type origin uint8

const (
	fromWire  origin = iota // through the rx ring
	fromSelf                // the socket has sent it to itself
	fromGuard               // from another program of this host
)

// pool is the free list of a umem, and records the state of every frame. The list is last in, first out, because the
// frame freed last is the most likely to be in a CPU cache. One pool serves both directions and records one state for
// each frame. So a frame cannot be in reception and in transmission at once. Only the socket's owner uses the pool.
type pool struct {
	free  []uint32
	notes []note
	count [states]uint32
}

func newPool(frames uint32) pool {
	p := pool{free: make([]uint32, frames), notes: make([]note, frames)}
	for i := range p.free {
		p.free[i] = frames - 1 - uint32(i)
	}
	p.count[isFree] = frames
	return p
}

// take removes a frame from the free list. The caller must have checked count[isFree] > 0.
func (p *pool) take(to state) uint32 {
	last := len(p.free) - 1
	f := p.free[last]
	p.free = p.free[:last]
	p.move(f, isFree, to)
	return f
}

// give returns a frame to the free list.
func (p *pool) give(f uint32, from state) {
	p.move(f, from, isFree)
	p.free = append(p.free, f)
}

// transmitted reports whether the kernel has a frame for transmission.
func (p *pool) transmitted(f uint32) bool {
	s := p.notes[f].state
	return s == isSent || s == isReply
}

// move changes the state of a frame. If from is not the frame's present state, move panics, because packets would be
// corrupted if the program continued. Only a bug of this program can cause the panic, never a peer.
func (p *pool) move(f uint32, from, to state) {
	n := &p.notes[f]
	if n.state != from {
		misuse(f, n.state, from)
	}
	n.state = to
	p.count[from]--
	p.count[to]++
}

// owned returns the state of a frame that the owner hands back: isHeld or isAlloc. It panics on any other state.
func (p *pool) owned(f uint32) state {
	s := p.notes[f].state
	if s != isHeld && s != isAlloc {
		misuse(f, s, isAlloc)
	}
	return s
}

//go:noinline
func misuse(f uint32, is, want state) {
	panic(fmt.Sprintf("xdp: frame %d is %v and not %v: freed or sent twice", f, is, want))
}

// sending returns the number of frames that count against the tx ring.
func (p *pool) sending() uint32 { return p.count[isAlloc] + p.inFlight() }

// inFlight returns the number of frames that the kernel has for transmission.
func (p *pool) inFlight() uint32 { return p.count[isSent] + p.count[isReply] }
