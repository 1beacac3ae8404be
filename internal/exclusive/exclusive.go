// Package exclusive lists the open descriptors with which this process keeps something of the host that one process can
// have at a time: a UDP port, a receive queue, the XDP program of an interface.
//
// A process that a program forks inherits them. Without this list it would keep them after the program has closed the
// adapter, or has ended. The C provider closes them in the child (cmd/libdatxdp/runtime.c).
//
// Any goroutine may call the functions. A fork may happen at any moment in them.
package exclusive

import "sync/atomic"

// Size is the number of descriptors that fit. An adapter has one for each queue, two for each address of its
// interface, and one for each of its source ports.
const Size = 4096

// table has a descriptor plus one, or 0, in each place. Its address does not change.
var table [Size]atomic.Int32

// Add lists a descriptor. If the list is full, a child keeps the descriptor.
func Add(fd int) { replace(0, int32(fd)+1) }

// Remove ends the listing of a descriptor. Call it before the descriptor is closed: then the number can belong to a file
// of the program.
func Remove(fd int) { replace(int32(fd)+1, 0) }

func replace(old, now int32) {
	for i := range table {
		if table[i].CompareAndSwap(old, now) {
			return
		}
	}
}

// Table returns the list for code that runs in the child, where no goroutine runs: a descriptor plus one, or 0, in each
// place.
func Table() *[Size]atomic.Int32 { return &table }
