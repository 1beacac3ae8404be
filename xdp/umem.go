package xdp

import "math/bits"

// umem is the memory in which the kernel and this process exchange packets. It contains the frames, followed by the
// consumers' memory. All frames have the same size, a power of two, and are identified by their index. The memory is
// outside the Go heap.
type umem struct {
	mem   []byte // the frames
	user  []byte // the consumers' memory; nil without
	size  uint32 // bytes in a frame
	shift uint8
}

func newUmem(mem, user []byte, frameSize uint32) umem {
	return umem{mem: mem, user: user, size: frameSize, shift: uint8(bits.TrailingZeros32(frameSize))}
}

func (u *umem) frames() uint32 { return uint32(len(u.mem) >> u.shift) }

// addr returns the kernel's address of a byte in a frame, which is the offset of the byte in the UMEM.
func (u *umem) addr(frame, off uint32) uint64 { return uint64(frame)<<u.shift | uint64(off) }

// frame converts a kernel address to a frame and an offset in it. ok is false if the address is outside the frames.
func (u *umem) frame(addr uint64) (frame, off uint32, ok bool) {
	return uint32(addr >> u.shift), uint32(addr) & (u.size - 1), addr < uint64(len(u.mem))
}

// descAddr returns the kernel's address of b, for a descriptor. b must lie in the frame, or inside one frame-sized
// block of the consumers' memory, because a descriptor cannot cross blocks. Otherwise ok is false. lent is true if b is
// in the consumers' memory.
func (u *umem) descAddr(frame uint32, b []byte) (addr uint64, lent, ok bool) {
	if off, ok := u.locate(frame, b); ok {
		return u.addr(frame, off), false, true
	}
	off, ok := offsetIn(u.user, b)
	return uint64(len(u.mem)) + off, true, ok && off&uint64(u.size-1)+uint64(len(b)) <= uint64(u.size)
}

// isUser reports whether a kernel address lies in the consumers' memory.
func (u *umem) isUser(addr uint64) bool { return addr-uint64(len(u.mem)) < uint64(len(u.user)) }

// bytes returns the n bytes at offset off of a frame, or nil if they exceed the frame. The capacity of the slice ends
// with the frame.
func (u *umem) bytes(frame, off, n uint32) []byte {
	if uint64(off)+uint64(n) > uint64(u.size) || frame >= u.frames() {
		return nil
	}
	base := int(frame) << u.shift
	return u.mem[base+int(off) : base+int(off+n) : base+int(u.size)]
}

// locate returns the offset of b in the frame; ok is false if b does not lie inside it.
func (u *umem) locate(frame uint32, b []byte) (off uint32, ok bool) {
	at, ok := offsetIn(u.mem, b)
	start := uint64(frame) << u.shift
	if !ok || at < start || at+uint64(len(b)) > start+uint64(u.size) {
		return 0, false
	}
	return uint32(at - start), true
}
