package wire

import (
	"sync/atomic"
	"unsafe"
)

// atomicWord returns the word in b, which has 8 bytes, or nil if its address is not aligned. The address counts, not
// the one that the consumer registered for it.
func atomicWord(b []byte) *atomic.Uint64 {
	p := unsafe.Pointer(unsafe.SliceData(b[:atomicSize]))
	if uintptr(p)%atomicSize != 0 {
		return nil
	}
	return (*atomic.Uint64)(p) // size and alignment fit, no pointers, and the caller keeps the memory alive
}

// compareSwap stores swap in a word if the word equals comp, and returns the value before.
func compareSwap(word *atomic.Uint64, comp, swap uint64) uint64 {
	for !word.CompareAndSwap(comp, swap) {
		if old := word.Load(); old != comp {
			return old
		}
	}
	return comp
}
