//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

//export dxCreateRMR
func dxCreateRMR(pz uint64, forEP int32, handle uint64) (r uint32) {
	defer catchPanic(&r)
	create := get[*dat.PZ](pz).CreateRMR
	if forEP != 0 {
		create = get[*dat.PZ](pz).CreateRMRForEP
	}
	rmr, err := create()
	return connectHandle(handle, rmr, err)
}

//export dxQueryRMR
func dxQueryRMR(rmr uint64, out *C.DAT_RMR_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.RMR](rmr).Query()
	if err != nil {
		return returnCode(err)
	}
	out.pz_handle = C.DAT_PZ_HANDLE(pointer(handleOf(p.PZ)))
	*(*dat.LMRTriplet)(unsafe.Pointer(&out.lmr_triplet)) = p.Triplet
	out.mem_priv, out.rmr_context = C.DAT_MEM_PRIV_FLAGS(p.Priv), C.DAT_RMR_CONTEXT(p.Context)
	out.rmr_scope, out.va_type = C.DAT_RMR_SCOPE(p.Scope), C.DAT_VA_TYPE_VA
	return 0
}

//export dxBind
func dxBind(rmr, lmr uint64, t *C.DAT_LMR_TRIPLET, priv, va uint32, ep, cookie uint64, flags uint32, context *C.DAT_RMR_CONTEXT) (r uint32) {
	defer catchPanic(&r)
	if va != C.DAT_VA_TYPE_VA {
		return returnCode(dat.ErrModelNotSupported)
	}
	c, err := get[*dat.RMR](rmr).Bind(get[*dat.EP](ep), dat.Binding{LMR: get[*dat.LMR](lmr), Segment: triplets(t, 1)[0],
		Priv: privileges(priv)}, cookie, completion(flags))
	*context = C.DAT_RMR_CONTEXT(c)
	return returnCode(err)
}

//export dxFreeRMR
func dxFreeRMR(rmr uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.RMR](rmr).Free())
}
