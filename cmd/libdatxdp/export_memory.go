//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

//export dxCreatePZ
func dxCreatePZ(ia, handle uint64) (r uint32) {
	defer catchPanic(&r)
	pz, err := get[*dat.IA](ia).CreatePZ()
	return connectHandle(handle, pz, err)
}

//export dxFreePZ
func dxFreePZ(pz uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.PZ](pz).Free())
}

// dxCreateLMR registers memory of the program: the range that begins at the address base and has the given length. With
// DAT_MEM_TYPE_LMR, it instead registers the memory of another region: the argument parent is the handle of that
// region. It writes the results of dat_lmr_create to *out.
//
//export dxCreateLMR
func dxCreateLMR(ia uint64, kind uint32, parent uint64, base, cookie unsafe.Pointer, length, pz uint64, priv, va uint32, handle uint64, out *C.DAT_LMR_PARAM) (r uint32) {
	defer catchPanic(&r)
	if va != C.DAT_VA_TYPE_VA {
		return returnCode(dat.ErrModelNotSupported)
	}
	mem, err := cMemory(base, length)
	if err != nil {
		return returnCode(err)
	}
	var lmr *dat.LMR
	switch a, z, p := get[*dat.IA](ia), get[*dat.PZ](pz), privileges(priv); kind {
	case C.DAT_MEM_TYPE_VIRTUAL:
		lmr, err = a.CreateLMR(mem, z, p)
	case C.DAT_MEM_TYPE_LMR:
		lmr, err = a.CreateLMRFromLMR(get[*dat.LMR](parent), z, p)
	case C.DAT_MEM_TYPE_SHARED_VIRTUAL:
		if cookie == nil {
			return returnCode(dat.ErrInvalidParameter)
		}
		lmr, err = a.CreateLMRShared(mem, *(*dat.LMRCookie)(cookie), z, p)
	default:
		err = dat.ErrInvalidParameter
	}
	if r := connectHandle(handle, lmr, err); r != 0 {
		return r
	}
	p, err := lmr.Query()
	fillLMR(out, &p)
	return returnCode(err)
}

// cMemory returns a slice of the C program's memory, given its address and length. For length 0 it returns nil. It
// returns ErrInvalidParameter for a range that a Go slice cannot describe: one that begins at address 0 or ends beyond
// the address space.
func cMemory(base unsafe.Pointer, length uint64) ([]byte, error) {
	if length == 0 || base == nil && length > 1<<62 {
		return nil, nil
	}
	if at := uint64(uintptr(base)); at == 0 || length > 1<<62 || at+length < at {
		return nil, dat.ErrInvalidParameter
	}
	return unsafe.Slice((*byte)(base), length), nil
}

func fillLMR(to *C.DAT_LMR_PARAM, p *dat.LMRParam) {
	to.mem_type = C.DAT_MEM_TYPE(p.MemType)
	to.length = C.DAT_VLEN(len(p.Memory))
	to.pz_handle = C.DAT_PZ_HANDLE(pointer(handleOf(p.PZ)))
	to.mem_priv = C.DAT_MEM_PRIV_FLAGS(p.Priv)
	to.va_type = C.DAT_VA_TYPE_VA
	to.lmr_context, to.rmr_context = C.DAT_LMR_CONTEXT(p.LMRContext), C.DAT_RMR_CONTEXT(p.RMRContext)
	to.registered_size, to.registered_address = C.DAT_VLEN(p.RegisteredSize), C.DAT_VADDR(p.RegisteredAddress)
}

//export dxQueryLMR
func dxQueryLMR(lmr uint64, out *C.DAT_LMR_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.LMR](lmr).Query()
	if err == nil {
		fillLMR(out, &p)
	}
	return returnCode(err)
}

//export dxSync
func dxSync(ia uint64, segments *C.DAT_LMR_TRIPLET, n uint64, write int32) (r uint32) {
	defer catchPanic(&r)
	if n > 1<<20 {
		return returnCode(dat.ErrInvalidParameter)
	}
	a, s := get[*dat.IA](ia), triplets(segments, int32(n))
	if write != 0 {
		return returnCode(a.SyncRDMAWrite(s))
	}
	return returnCode(a.SyncRDMARead(s))
}

//export dxFreeLMR
func dxFreeLMR(lmr uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.LMR](lmr).Free())
}
