package dat

import "unsafe"

// addressOf returns the address of the first byte of mem, as a number by which peers name the memory. The number does
// not keep the memory alive; the LMR does. The conversion is sound because the number is never converted back to a
// pointer.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// overlap reports whether a and b have a byte in common.
func overlap(a, b []byte) bool {
	x, y := addressOf(a), addressOf(b)
	return x < y+uint64(len(b)) && y < x+uint64(len(a))
}
