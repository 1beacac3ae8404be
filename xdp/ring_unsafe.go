package xdp

import "unsafe"

const (
	ringNeedWakeup = 1 // XDP_RING_NEED_WAKEUP
	pktContd       = 1 // XDP_PKT_CONTD
)

var _ [16]byte = [unsafe.Sizeof(desc{})]byte{} // the kernel's struct xdp_desc

// word returns the 32-bit word at offset off of a mapping. The conversion is sound because the slice expression checks
// the bounds, the kernel aligns its words, and Socket.Close unmaps a mapping only after the last use of its rings.
func word(mem []byte, off uint64) *uint32 {
	return (*uint32)(unsafe.Pointer(unsafe.SliceData(mem[off : off+4 : off+4])))
}

// array returns n values of type T at offset off of a mapping. It is sound for the same reasons as word.
func array[T uint64 | desc](mem []byte, off uint64, n uint32) []T {
	var t T
	end := off + uint64(n)*uint64(unsafe.Sizeof(t))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem[off:end:end]))), n)
}

// offsetIn returns the offset of b in mem; ok is false if b does not lie in mem. Any b is allowed, because offsetIn
// compares addresses and reads no memory.
func offsetIn(mem, b []byte) (off uint64, ok bool) {
	base := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return uint64(at - base), at >= base && at-base+uintptr(len(b)) <= uintptr(len(mem))
}
