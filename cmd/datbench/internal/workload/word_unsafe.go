package workload

import (
	"sync/atomic"
	"unsafe"
)

// lastWord returns the last eight bytes of b. The adapter stores this word atomically and after all other bytes. The
// cast is sound because the pointer is aligned: the allocation begins on a word, b begins at a multiple of 64 bytes in
// it, and the offset in b is a multiple of eight.
func lastWord(b []byte) *atomic.Uint64 {
	_ = b[:len(b)&^7][7] // at least one word
	return (*atomic.Uint64)(unsafe.Pointer(&b[len(b)&^7-8]))
}
