package wire

import (
	"testing"
	"unsafe"
)

// A Conn must fit into the allocator's size class of 1408 bytes, because the next class has 1536 bytes, and a program
// may have tens of thousands of connections. The allocator adds a header of 8 bytes to an object of this size that
// contains pointers.
func TestConnFitsItsSizeClass(t *testing.T) {
	const class, header = 1408, 8
	if n := unsafe.Sizeof(Conn{}); n+header > class {
		t.Errorf("a Conn has %d bytes, want %d at most", n, class-header)
	}
}
