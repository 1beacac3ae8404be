package dat

import "unsafe"

// addressOf is the address of memory as a number. It names the memory to peers and is never turned
// back into a pointer, so it need not keep the memory alive: the region does.
func addressOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// overlap reports whether two pieces of memory have a byte in common.
func overlap(a, b []byte) bool {
	x, y := addressOf(a), addressOf(b)
	return x < y+uint64(len(b)) && y < x+uint64(len(a))
}
