//go:build cgo && datprovider

package main

// #include <stdlib.h>
// #include "abi.h"
import "C"

import (
	"log/slog"
	"strings"
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

// storeReason stores the text of err as the reason of a refusal, for the log. It must run in the thread of the call
// from C, because the reason is kept in a thread-local variable of C.
func storeReason(r dat.Return, err error) {
	text := C.CString(strings.TrimPrefix(err.Error(), "dat: "+r.Error()+": "))
	defer C.free(unsafe.Pointer(text))
	C.dx_because(text)
}

// dxRefused logs a refused call.
//
//export dxRefused
func dxRefused(call *C.char, r uint32, why *C.char) {
	e, reason := dat.Return(r&^classError), C.GoString(why)
	if reason == "" || reason == e.Error() {
		reason = explain(e)
	}
	slog.Debug("refused", "call", C.GoString(call), "error", e, "reason", reason)
}

// explain returns the meaning of a DAT error that has no reason text.
func explain(r dat.Return) string {
	switch error(r.Type()) {
	case dat.ErrInvalidHandle:
		return "a handle was freed, or is of another kind or adapter"
	case dat.ErrInvalidState:
		return "the call is not legal in the state of an object, or another object uses the object"
	case dat.ErrInvalidParameter:
		return "an argument has a value that is not allowed"
	case dat.ErrInsufficientResources:
		return "a resource is exhausted"
	case dat.ErrModelNotSupported, dat.ErrNotImplemented:
		return "this provider does not support it: see docs/DAT.md"
	default:
		return r.Error()
	}
}
