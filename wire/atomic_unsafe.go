package wire

import (
	"sync/atomic"
	"unsafe"
)

// atomicWord is the word that fills b, 8 bytes, or nil if it is not aligned for atomic operations,
// in whatever place the consumer says that it is.
func atomicWord(b []byte) *atomic.Uint64 {
	p := unsafe.Pointer(unsafe.SliceData(b[:atomicSize]))
	if uintptr(p)%atomicSize != 0 {
		return nil
	}
	return (*atomic.Uint64)(p) // as large as b and aligned, without pointers, and b's memory stays where it is
}

// compareSwap stores swap in a word if it is comp, and returns what it was.
func compareSwap(word *atomic.Uint64, comp, swap uint64) uint64 {
	for !word.CompareAndSwap(comp, swap) {
		if old := word.Load(); old != comp {
			return old
		}
	}
	return comp
}
