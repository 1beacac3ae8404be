//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

// dat.LMRTriplet has the layout of DAT_LMR_TRIPLET, so the program's array of triplets is passed to package dat without
// a copy. These constants check the layout: if the layouts differ, one of the constants is negative and the package
// does not compile.
const (
	_ = uint(unsafe.Sizeof(dat.LMRTriplet{}) - C.sizeof_DAT_LMR_TRIPLET)
	_ = uint(C.sizeof_DAT_LMR_TRIPLET - unsafe.Sizeof(dat.LMRTriplet{}))
	_ = -unsafe.Offsetof(dat.LMRTriplet{}.Address)
	_ = uint(8 - unsafe.Offsetof(dat.LMRTriplet{}.Length))
	_ = uint(unsafe.Offsetof(dat.LMRTriplet{}.Length) - 8)
)

func triplets(iov *C.DAT_LMR_TRIPLET, n int32) []dat.LMRTriplet {
	return unsafe.Slice((*dat.LMRTriplet)(unsafe.Pointer(iov)), n)
}

// completion converts completion flags. Flags with unknown bits become a value that package dat refuses.
func completion(flags uint32) dat.CompletionFlags {
	return dat.CompletionFlags(min(flags, 1<<8-1))
}

// privileges converts memory privileges. Privileges with unknown bits become a value that package dat refuses.
func privileges(priv uint32) dat.MemPriv { return dat.MemPriv(min(priv, 1<<8-1)) }

func remote(t *C.DAT_RMR_TRIPLET) dat.RMRTriplet {
	return dat.RMRTriplet{Context: uint32(t.rmr_context), Address: uint64(t.virtual_address), Length: uint64(t.segment_length)}
}

//export dxPostSend
func dxPostSend(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostSend(triplets(iov, n), cookie, completion(flags)))
}

//export dxPostRecv
func dxPostRecv(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostRecv(triplets(iov, n), cookie, completion(flags)))
}

//export dxPostRead
func dxPostRead(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie, address uint64, length, context, flags uint32) (r uint32) {
	defer catchPanic(&r)
	from := dat.RMRTriplet{Context: context, Address: address, Length: uint64(length)}
	return returnCode(get[*dat.EP](ep).PostRDMARead(triplets(iov, n), cookie, from, completion(flags)))
}

//export dxPostWrite
func dxPostWrite(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie, address uint64, length, context, flags uint32) (r uint32) {
	defer catchPanic(&r)
	to := dat.RMRTriplet{Context: context, Address: address, Length: uint64(length)}
	return returnCode(get[*dat.EP](ep).PostRDMAWrite(triplets(iov, n), cookie, to, completion(flags)))
}

//export dxPostSendInvalidate
func dxPostSendInvalidate(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64, flags, context uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostSendWithInvalidate(triplets(iov, n), cookie, completion(flags), context))
}

//export dxPostReadToRMR
func dxPostReadToRMR(ep uint64, local *C.DAT_RMR_TRIPLET, cookie uint64, from *C.DAT_RMR_TRIPLET, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostRDMAReadToRMR(remote(local), cookie, remote(from), completion(flags)))
}

//export dxPostWriteImm
func dxPostWriteImm(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64, to *C.DAT_RMR_TRIPLET, immediate, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostRDMAWriteImm(triplets(iov, n), cookie, remote(to), immediate, completion(flags)))
}

//export dxPostFetchAdd
func dxPostFetchAdd(ep, add uint64, local *C.DAT_LMR_TRIPLET, cookie uint64, at *C.DAT_RMR_TRIPLET, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostFetchAdd(add, triplets(local, 1)[0], cookie, remote(at), completion(flags)))
}

//export dxPostCmpSwap
func dxPostCmpSwap(ep, compare, swap uint64, local *C.DAT_LMR_TRIPLET, cookie uint64, at *C.DAT_RMR_TRIPLET, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).PostCmpSwap(compare, swap, triplets(local, 1)[0], cookie, remote(at), completion(flags)))
}
