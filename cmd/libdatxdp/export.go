//go:build cgo && datprovider

package main

// #cgo CFLAGS: -O2 -Wall -Wextra -Wno-unused-parameter
// #cgo LDFLAGS: -ldat2
// #include "abi.h"
import "C"

import (
	"errors"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

// The C part of this library calls the exported functions. In their arguments, an object is given by the id of its
// handle; 0 is a null handle. The C part has checked that the handles are valid. Each function returns a DAT_RETURN,
// except dxRetire and dxRefused.

// classError marks a DAT_RETURN as an error (DAT_CLASS_ERROR).
const classError = 1 << 31

// returnCode converts err to a DAT_RETURN. For an error, this value normally has the bit DAT_CLASS_ERROR. The value
// DAT_QUEUE_EMPTY is returned without this bit, because programs compare the returned value with DAT_QUEUE_EMPTY.
func returnCode(err error) uint32 {
	if err == nil {
		return uint32(dat.Success)
	}
	r, ok := err.(dat.Return)
	if !ok && !errors.As(err, &r) {
		r = dat.ErrInternalError.(dat.Return)
	}
	if refusals {
		storeReason(r, err)
	}
	if error(r) == dat.ErrQueueEmpty {
		return uint32(r)
	}
	return classError | uint32(r)
}

// catchPanic turns a panic into DAT_INTERNAL_ERROR, because a panic must not unwind into C. Every exported function
// defers a call of catchPanic.
func catchPanic(r *uint32) {
	if p := recover(); p != nil {
		slog.Error("panic", "reason", p, "stack", string(debug.Stack()))
		*r = returnCode(dat.ErrInternalError)
	}
}

// connectHandle connects a new object and its handle. If the creation of the object failed, err is not nil, and
// connectHandle only returns the DAT_RETURN for err.
func connectHandle[T any, P handled[T]](handle uint64, object P, err error) uint32 {
	if err != nil {
		return returnCode(err)
	}
	return returnCode(introduce(uint64(C.dx_id(C.uint64_t(handle))), handle, object, giveBack))
}

// giveBack gives back a handle whose object was garbage-collected.
func giveBack(handle uint64) { C.dx_give(C.uint64_t(handle)) }

// duration converts a DAT_TIMEOUT, in microseconds. DAT_TIMEOUT_INFINITE (all bits set) becomes a negative duration.
func duration(timeout uint32) time.Duration {
	if timeout == 1<<32-1 {
		return -1
	}
	return time.Duration(timeout) * time.Microsecond
}

func truth(b bool) C.DAT_BOOLEAN {
	if b {
		return C.DAT_TRUE
	}
	return C.DAT_FALSE
}

// bytes returns C memory as a slice, which is valid during the call from C.
func bytes(p unsafe.Pointer, n int32) []byte { return unsafe.Slice((*byte)(p), n) }

// address converts an IPv4 or IPv6 socket address. For other families it returns the zero Addr.
func address(sa *C.DAT_SOCK_ADDR) netip.Addr {
	switch sa.sa_family {
	case C.AF_INET:
		return netip.AddrFrom4(*(*[4]byte)(unsafe.Pointer(&(*C.struct_sockaddr_in)(unsafe.Pointer(sa)).sin_addr)))
	case C.AF_INET6:
		return netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&(*C.struct_sockaddr_in6)(unsafe.Pointer(sa)).sin6_addr))).Unmap()
	default:
		return netip.Addr{}
	}
}

// setAddress writes an IPv4 or IPv6 socket address to *to, without a port, and returns to.
func setAddress(to *C.struct_sockaddr_in6, a netip.Addr) C.DAT_IA_ADDRESS_PTR {
	*to = C.struct_sockaddr_in6{}
	switch a = a.Unmap(); {
	case a.Is4():
		in := (*C.struct_sockaddr_in)(unsafe.Pointer(to))
		in.sin_family = C.AF_INET
		*(*[4]byte)(unsafe.Pointer(&in.sin_addr)) = a.As4()
	case a.Is6():
		to.sin6_family = C.AF_INET6
		*(*[16]byte)(unsafe.Pointer(&to.sin6_addr)) = a.As16()
	}
	return (C.DAT_IA_ADDRESS_PTR)(unsafe.Pointer(to))
}

// setText writes s with a terminating zero. If s is too long, it is truncated.
func setText(to []C.char, s string) {
	n := min(len(s), len(to)-1)
	for i := range n {
		to[i] = C.char(s[i])
	}
	to[n] = 0
}

// pointer converts the address of a handle to a pointer, the type of handles in C structures.
func pointer(handle uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&handle)) }

// dxRetire returns 1 if the handle with this id has an object, and removes the object from the table of all objects.
// When the object is garbage-collected, giveBack is called.
//
//export dxRetire
func dxRetire(id uint64) int32 { return int32(truth(retire(id))) }
