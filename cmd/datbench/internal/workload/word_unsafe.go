package workload

import (
	"sync/atomic"
	"unsafe"
)

// lastWord returns the last eight bytes of b, which the adapter stores atomically and after all others. It is sound
// because the pointer is aligned: b begins at a multiple of 64 bytes in a larger allocation, which begins on a word,
// and the offset is a multiple of eight.
func lastWord(b []byte) *atomic.Uint64 {
	_ = b[:len(b)&^7][7] // at least one word
	return (*atomic.Uint64)(unsafe.Pointer(&b[len(b)&^7-8]))
}
