package wire

import (
	"sync/atomic"
	"unsafe"
)

// atomicWord returns the 8-byte word in b, or nil if the word is not aligned. The address of the word in memory must be
// aligned; the address under which the consumer registered b does not matter.
func atomicWord(b []byte) *atomic.Uint64 {
	p := unsafe.Pointer(unsafe.SliceData(b[:atomicSize]))
	if uintptr(p)%atomicSize != 0 {
		return nil
	}
	return (*atomic.Uint64)(p) // size and alignment fit, no pointers, and the caller keeps the memory alive
}

// compareSwap stores swap in a word if the word equals comp. It returns the old value of the word.
func compareSwap(word *atomic.Uint64, comp, swap uint64) uint64 {
	for !word.CompareAndSwap(comp, swap) {
		if old := word.Load(); old != comp {
			return old
		}
	}
	return comp
}
