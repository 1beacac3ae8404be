package simlink

import (
	"bytes"
	"fmt"
)

// poison fills free frames of a checked pool.
const poison = 0xDB

// pool holds the frames of one direction of a link, and the stack of free frames. It has no lock of its own. The
// transmit pool belongs to the link's owner. In the receive pool, free is guarded by the mailbox's lock, and held
// belongs to the owner.
type pool struct {
	name  string
	size  int
	slab  []byte
	blank []byte   // content of a poisoned frame; nil if unchecked
	fresh []byte   // content of a frame that was never taken and is not poisoned yet
	taken []bool   // frames that were taken before
	cuts  [][]byte // if not nil, the memory of each frame, which then is not in slab; nil for a frame never taken
	held  []bool
	free  []uint32
}

func newPool(name string, frames, size int, checked bool) pool {
	p := pool{name: name, size: size, held: make([]bool, frames)}
	p.free = make([]uint32, frames)
	for i := range p.free {
		p.free[i] = uint32(frames - 1 - i)
	}
	if checked {
		p.slab = make([]byte, frames*size)
		p.blank, p.fresh, p.taken = bytes.Repeat([]byte{poison}, size), make([]byte, size), make([]bool, frames)
	} else {
		p.cuts = make([][]byte, frames)
	}
	return p
}

// sliceFrames is the number of frames that slice makes at a time.
const sliceFrames = 32

// slice makes the memory of a frame that was never taken, and of those beside it: most networks use few of their frames.
func (p *pool) slice(i uint32) {
	first := i - i%sliceFrames
	slab := make([]byte, sliceFrames*p.size)
	for k := first; k < min(first+sliceFrames, uint32(len(p.cuts))); k++ {
		p.cuts[k], slab = slab[:p.size:p.size], slab[p.size:]
	}
}

func (p *pool) data(i uint32) []byte {
	if p.cuts != nil {
		return p.cuts[i]
	}
	at := int(i) * p.size
	return p.slab[at : at+p.size : at+p.size]
}

// take pops a free frame; there must be one.
func (p *pool) take() uint32 {
	last := len(p.free) - 1
	i := p.free[last]
	p.free = p.free[:last]
	if p.blank != nil {
		p.inspect(i)
	} else if p.cuts[i] == nil {
		p.slice(i)
	}
	return i
}

// inspect panics if a free frame was written. It poisons a frame when the frame is first taken, not at creation,
// because most networks use few of their frames.
func (p *pool) inspect(i uint32) {
	want := p.blank
	if !p.taken[i] {
		want = p.fresh
	}
	if !bytes.Equal(p.data(i), want) {
		panic(fmt.Sprintf("simlink: %s frame %d was written after it was given back", p.name, i))
	}
	if !p.taken[i] {
		p.taken[i] = true
		copy(p.data(i), p.blank)
	}
}

// giveUp ends the owner's hold on a frame and poisons it. The caller then puts it on the free stack.
func (p *pool) giveUp(i uint32, what string) {
	p.check(i, what)
	p.held[i] = false
	if p.blank != nil {
		copy(p.data(i), p.blank)
	}
}

// putBack poisons a frame that the owner does not hold, and puts it on the free stack.
func (p *pool) putBack(i uint32) {
	if p.blank != nil {
		copy(p.data(i), p.blank)
	}
	p.free = append(p.free, i)
}

// check panics unless the owner holds the frame.
func (p *pool) check(i uint32, what string) {
	if int(i) >= len(p.held) {
		panic(fmt.Sprintf("simlink: %s: there is no %s frame %d", what, p.name, i))
	}
	if !p.held[i] {
		panic(fmt.Sprintf("simlink: %s: %s frame %d is not held: freed or sent before", what, p.name, i))
	}
}
