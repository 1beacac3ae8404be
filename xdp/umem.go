package xdp

import "math/bits"

// umem is the memory that the kernel and we exchange packets in: frames of one size, a power of
// two, named by their index, and behind them the memory of the consumers. It lies outside the Go heap.
type umem struct {
	mem   []byte // the frames
	user  []byte // the consumers' memory, where they have it
	size  uint32 // bytes in a frame
	shift uint8
}

func newUmem(mem, user []byte, frameSize uint32) umem {
	return umem{mem: mem, user: user, size: frameSize, shift: uint8(bits.TrailingZeros32(frameSize))}
}

func (u *umem) frames() uint32 { return uint32(len(u.mem) >> u.shift) }

// addr is the kernel's name of a byte in a frame.
func (u *umem) addr(frame, off uint32) uint64 { return uint64(frame)<<u.shift | uint64(off) }

// frame is the frame that holds a kernel address; ok is false for an address outside.
func (u *umem) frame(addr uint64) (frame, off uint32, ok bool) {
	return uint32(addr >> u.shift), uint32(addr) & (u.size - 1), addr < uint64(len(u.mem))
}

// place is the kernel's name of where b begins: in a frame, or in the consumers' memory, of which one descriptor
// names no more than a block of the size of a frame holds. ok is false when b lies in neither.
func (u *umem) place(frame uint32, b []byte) (addr uint64, lent, ok bool) {
	if off, ok := u.locate(frame, b); ok {
		return u.addr(frame, off), false, true
	}
	off, ok := offset(u.user, b)
	return uint64(len(u.mem)) + off, true, ok && off&uint64(u.size-1)+uint64(len(b)) <= uint64(u.size)
}

// isUser reports whether a kernel address lies in the consumers' memory.
func (u *umem) isUser(addr uint64) bool { return addr-uint64(len(u.mem)) < uint64(len(u.user)) }

// bytes returns n bytes of a frame from off on, its capacity ending with the frame, or nil if the
// frame does not hold them.
func (u *umem) bytes(frame, off, n uint32) []byte {
	if uint64(off)+uint64(n) > uint64(u.size) || frame >= u.frames() {
		return nil
	}
	base := int(frame) << u.shift
	return u.mem[base+int(off) : base+int(off+n) : base+int(u.size)]
}

// locate returns where in the frame b begins; ok is false when b does not lie inside it.
func (u *umem) locate(frame uint32, b []byte) (off uint32, ok bool) {
	at, ok := offset(u.mem, b)
	start := uint64(frame) << u.shift
	if !ok || at < start || at+uint64(len(b)) > start+uint64(u.size) {
		return 0, false
	}
	return uint32(at - start), true
}
