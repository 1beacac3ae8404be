package simlink

import "unsafe"

// offset is where data begins in frame; ok is false if data does not lie in it. The addresses are
// only compared, never followed, so it is sound whatever data points to.
func offset(data, frame []byte) (at int, ok bool) {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(frame)))
	p := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return int(p - start), p >= start && p+uintptr(len(data)) <= start+uintptr(len(frame))
}
