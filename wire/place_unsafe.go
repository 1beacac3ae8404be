package wire

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// splitLastWord splits dst into a body and its last aligned word. The size of the word depends on the length of dst and
// the alignment of its end:
//   - 8 bytes, if dst is long enough and its end is aligned to 8 bytes,
//   - otherwise 4 bytes, if dst is long enough and its end is aligned to 4 bytes,
//   - otherwise 0.
//
// One instruction stores an aligned word, so a consumer that polls on the word never sees half of a new value.
func splitLastWord(dst []byte) (body, word []byte) {
	n := len(dst)
	if n < 4 {
		return dst, nil
	}
	// Only the low bits of the address are used; the pointer is not kept as a number.
	end := uintptr(unsafe.Pointer(unsafe.SliceData(dst))) + uintptr(n)
	switch {
	case n >= 8 && end%8 == 0:
		return dst[:n-8], dst[n-8:]
	case end%4 == 0:
		return dst[:n-4], dst[n-4:]
	default:
		return dst, nil
	}
}

// offsetIn returns the offset of b in mem, and whether b is part of mem. It compares addresses and reads no memory.
func offsetIn(mem, b []byte) (at int, ok bool) {
	base, p := uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return int(p - base), p >= base && p-base+uintptr(len(b)) <= uintptr(len(mem))
}

// storeWord stores the first len(dst) bytes of b, 8 or 4, with one atomic store. A consumer that loads the word
// atomically sees the new value only after all data placed before it.
func storeWord(dst []byte, b *[8]byte) {
	p := unsafe.Pointer(unsafe.SliceData(dst)) // splitLastWord made sure of the alignment
	if len(dst) == 8 {
		atomic.StoreUint64((*uint64)(p), binary.NativeEndian.Uint64(b[:]))
		return
	}
	atomic.StoreUint32((*uint32)(p), binary.NativeEndian.Uint32(b[:4]))
}
