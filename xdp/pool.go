package xdp

import "fmt"

// state says who has a frame.
type state uint8

const (
	isFree  state = iota // the pool
	isFill               // the kernel, to receive into: fill ring, rx ring and between
	isHeld               // the owner, from Recv
	isAlloc              // the owner, from Alloc
	isSent               // the kernel, to transmit: tx ring, completion ring and between
	isLoop               // the socket, on its way back to its own Recv
	states
)

var stateNames = [states]string{"free", "fill", "held", "alloc", "sent", "loop"}

func (s state) String() string { return stateNames[s] }

// note is what the socket remembers of a frame.
type note struct {
	state   state
	headers uint8  // bytes of header in front of Data, for a packet's first frame from Recv
	loop    bool   // the packet never left this host
	ip      uint8  // bytes of header in front of the IP header
	start   uint16 // where Data began
}

// pool is the single-owner free list of a umem, last in first out so that the frame taken next is
// the one most likely in cache, and the record of who has every other frame. One pool serves both
// directions: a frame is in one state only, so it is never filled and transmitted at once.
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

// take removes a frame from the free list. The caller has seen count[isFree] > 0.
func (p *pool) take(to state) uint32 {
	last := len(p.free) - 1
	f := p.free[last]
	p.free = p.free[:last]
	p.move(f, isFree, to)
	return f
}

// give puts a frame back on the free list.
func (p *pool) give(f uint32, from state) {
	p.move(f, from, isFree)
	p.free = append(p.free, f)
}

// move records that a frame changes hands. A frame that is not where its holder says is a bug of
// the program, never of a peer, and continuing would corrupt packets: it panics.
func (p *pool) move(f uint32, from, to state) {
	n := &p.notes[f]
	if n.state != from {
		misuse(f, n.state, from)
	}
	n.state = to
	p.count[from]--
	p.count[to]++
}

// owned returns the state of a frame that the owner hands back, held or alloc, and panics on any
// other.
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

// sending is the number of frames that count against the tx ring.
func (p *pool) sending() uint32 { return p.count[isAlloc] + p.count[isSent] }
