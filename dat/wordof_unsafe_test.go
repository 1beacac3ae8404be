package dat

import (
	"sync/atomic"
	"unsafe"
)

// wordOf registers a variable for atomics of peers.
func (h *host) wordOf(v *atomic.Uint64) RMRTriplet {
	h.t.Helper()
	mem := unsafe.Slice((*byte)(unsafe.Pointer(v)), 8) // all of v, which the LMR keeps alive
	return must(h.ia.CreateLMR(mem, h.pz, allOfMemory))(h.t).Remote(0, 8)
}
