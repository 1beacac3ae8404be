//go:build cgo && datprovider

package main

import (
	_ "unsafe" // for go:linkname: the variable has the size of a sigset of the C library
)

// profiled is the set of signals that cilium/ebpf blocks in the calling thread before it loads an XDP program, and
// unblocks afterwards: SIGPROF. Emptied, it leaves the thread as the program has it. The thread may have blocked SIGPROF
// itself. The type is a sigset of the C library, 1024 bits.
//
//go:linkname profiled github.com/cilium/ebpf/internal/sys.profSet
var profiled [1024 / 64]uint64

func init() { profiled = [1024 / 64]uint64{} }
