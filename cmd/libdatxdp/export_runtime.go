//go:build cgo && datprovider

package main

// #cgo LDFLAGS: -Wl,--wrap=pthread_create -Wl,--wrap=pthread_key_create -Wl,--wrap=sigaction
// #include "abi.h"
import "C"

import (
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/internal/exclusive"
)

// dxStarted is called once, when the runtime has started. A timer opens the descriptors of the runtime's poller: later,
// the process may have none left. dxStarted returns the address of the list of exclusive descriptors, which has *n
// places. The list is a variable of Go, so it does not move.
//
//export dxStarted
func dxStarted(n *uint32) uintptr {
	time.AfterFunc(time.Hour, func() {}).Stop()
	*n = exclusive.Size
	return uintptr(unsafe.Pointer(exclusive.Table()))
}

// dxEnter is the first function that a thread of the program calls, with use = 0. The stack of the thread's goroutine
// grows to the size of the frame, about 1 MiB. It does not shrink, because the library is linked with
// gcshrinkstackoff=1 (Makefile). Handlers of the program that interrupt Go code use this stack, which is resident only as
// far as they have used it. dxEnter returns the address of the end of the frame.
//
// The frame has several variables, because the compiler would put a variable of more than 128 KiB on the heap.
//
//export dxEnter
func dxEnter(use uint32) uintptr {
	if use == 0 {
		return bottom()
	}
	var a, b, c, d, e, f, g, h [120 << 10]byte
	return sum(a[:], b[:], c[:], d[:], e[:], f[:], g[:], h[:])
}

// bottom returns an address below the frame of its caller.
//
//go:noinline
func bottom() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}

// sum uses the frame of dxEnter, so that the compiler keeps it.
//
//go:noinline
func sum(variables ...[]byte) (n uintptr) {
	for _, v := range variables {
		n += uintptr(v[0])
	}
	return n
}
