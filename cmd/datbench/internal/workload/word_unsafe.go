package workload

import (
	"sync/atomic"
	"unsafe"
)

// lastWord returns the last eight bytes of b. The adapter stores this word atomically and after all other bytes. The
// cast is sound because the pointer is aligned: the allocation is aligned to a word, the offset of b in the allocation
// is a multiple of 64, and the offset of the word in b is a multiple of eight.
func lastWord(b []byte) *atomic.Uint64 {
	_ = b[:len(b)&^7][7] // at least one word
	return (*atomic.Uint64)(unsafe.Pointer(&b[len(b)&^7-8]))
}
