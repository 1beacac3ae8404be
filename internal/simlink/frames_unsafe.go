package simlink

import "unsafe"

// offset returns the offset of data in frame; ok is false if data does not lie in frame. It is sound for any data
// because it compares addresses and reads no memory.
func offset(data, frame []byte) (at int, ok bool) {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(frame)))
	p := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return int(p - start), p >= start && p+uintptr(len(data)) <= start+uintptr(len(frame))
}
