package wire

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// splitLastWord cuts off the last aligned word of a destination: 8 bytes where the end is so
// aligned and the range long enough, else 4, else nothing. Go guarantees no more than that an
// aligned word is stored whole, which is what a consumer that polls on it needs.
func splitLastWord(dst []byte) (body, word []byte) {
	n := len(dst)
	if n < 4 {
		return dst, nil
	}
	// Only the address's low bits are looked at; the pointer is not kept as a number.
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

// offset is where b begins in mem; ok is false if it does not lie in it. Addresses are compared, and nothing is read.
func offsetIn(mem, b []byte) (at int, ok bool) {
	base, p := uintptr(unsafe.Pointer(unsafe.SliceData(mem))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return int(p - base), p >= base && p-base+uintptr(len(b)) <= uintptr(len(mem))
}

// storeWord stores the first len(dst) bytes of b, 8 or 4, as one atomic word with release order, so
// that a consumer which loads it atomically sees everything placed before.
func storeWord(dst []byte, b *[8]byte) {
	p := unsafe.Pointer(unsafe.SliceData(dst)) // aligned: splitLastWord chose it
	if len(dst) == 8 {
		atomic.StoreUint64((*uint64)(p), binary.NativeEndian.Uint64(b[:]))
		return
	}
	atomic.StoreUint32((*uint32)(p), binary.NativeEndian.Uint32(b[:4]))
}
