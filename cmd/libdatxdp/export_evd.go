//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import "github.com/datxdp/datxdp/dat"

//export dxCreateEVD
func dxCreateEVD(ia uint64, qlen int32, cno uint64, flags uint32, handle uint64) (r uint32) {
	defer catchPanic(&r)
	evd, err := get[*dat.IA](ia).CreateEVD(int(qlen), get[*dat.CNO](cno), dat.EVDFlags(min(flags, 1<<16-1)))
	return connectHandle(handle, evd, err)
}

//export dxQueryEVD
func dxQueryEVD(evd uint64, out *C.DAT_EVD_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.EVD](evd).Query()
	if err != nil {
		return returnCode(err)
	}
	out.evd_qlen, out.evd_state = count(p.QLen), C.DAT_EVD_STATE(p.State)
	out.cno_handle, out.evd_flags = C.DAT_CNO_HANDLE(pointer(handleOf(p.CNO))), C.DAT_EVD_FLAGS(p.Flags)
	return 0
}

//export dxModifyCNO
func dxModifyCNO(evd, cno uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EVD](evd).ModifyCNO(get[*dat.CNO](cno)))
}

//export dxEnableEVD
func dxEnableEVD(evd uint64, on int32) (r uint32) {
	defer catchPanic(&r)
	if on != 0 {
		return returnCode(get[*dat.EVD](evd).Enable())
	}
	return returnCode(get[*dat.EVD](evd).Disable())
}

//export dxSetWaitable
func dxSetWaitable(evd uint64, on int32) (r uint32) {
	defer catchPanic(&r)
	if on != 0 {
		return returnCode(get[*dat.EVD](evd).ClearUnwaitable())
	}
	return returnCode(get[*dat.EVD](evd).SetUnwaitable())
}

//export dxPostSE
func dxPostSE(evd uint64, number uint32, pointer uint64) (r uint32) {
	defer catchPanic(&r)
	if dat.EventNumber(number) != dat.EventSoftware {
		return returnCode(dat.ErrInvalidParameter)
	}
	return returnCode(get[*dat.EVD](evd).PostSE(pointer))
}

//export dxResizeEVD
func dxResizeEVD(evd uint64, qlen int32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EVD](evd).Resize(int(qlen)))
}

//export dxFreeEVD
func dxFreeEVD(evd uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EVD](evd).Free())
}

//export dxDequeue
func dxDequeue(evd uint64, out *C.struct_dx_event) (r uint32) {
	defer catchPanic(&r)
	var ev dat.Event
	if err := get[*dat.EVD](evd).Dequeue(&ev); err != nil {
		return returnCode(err)
	}
	fillEvent(out, &ev)
	return 0
}

//export dxWait
func dxWait(evd uint64, timeout uint32, threshold int32, out *C.struct_dx_event, nmore *C.DAT_COUNT) (r uint32) {
	defer catchPanic(&r)
	var ev dat.Event
	more, err := get[*dat.EVD](evd).Wait(duration(timeout), int(threshold), &ev)
	*nmore = count(more)
	if err != nil {
		return returnCode(err)
	}
	fillEvent(out, &ev)
	return 0
}

// fillEvent writes the fields that C needs to build a DAT_EVENT.
func fillEvent(out *C.struct_dx_event, ev *dat.Event) {
	out.number = C.uint32_t(ev.Number)
	switch ev.Number {
	case dat.EventDTOCompletion:
		fillCompletion(out, ev, handleOf(ev.EP))
	case dat.EventIBDTO:
		fillCompletion(out, ev, handleOf(ev.EP))
		out.extension, out.immediate = C.uint32_t(ev.Ext), C.uint32_t(ev.Imm)
	case dat.EventRMRBindCompletion:
		fillCompletion(out, ev, handleOf(ev.RMR))
	case dat.EventConnectionRequest:
		fillRequest(out, ev)
	case dat.EventSoftware:
		pointer, _ := ev.Software.(uint64)
		out.cookie = C.uint64_t(pointer)
	case dat.EventAsyncEVDOverflow, dat.EventAsyncEPBroken, dat.EventAsyncIACatastrophic, dat.EventAsyncProviderInternalError:
		out.object, out.reason = C.uint64_t(sourceOf(ev)), C.int32_t(ev.Reason)
	default:
		fillConnection(out, ev)
	}
}

func fillCompletion(out *C.struct_dx_event, ev *dat.Event, object uint64) {
	out.object = C.uint64_t(object)
	out.cookie, out.length = C.uint64_t(ev.Cookie), C.uint64_t(ev.Length)
	out.operation, out.status = C.uint32_t(ev.Op), C.uint32_t(ev.Status)
	out.rmr_context = C.uint32_t(ev.RMRContext)
}

// fillRequest fills in the event of a connection request. It creates a handle for the request. If the provider has
// created an endpoint for the request, it also creates a handle for the endpoint. It also copies the address of the
// requester and the private data, because the results of dat_cr_query point to this copy. If memory is missing,
// fillRequest rejects the request. The program then gets an event with a null cr_handle, and every call with this
// handle returns DAT_INVALID_HANDLE.
func fillRequest(out *C.struct_dx_event, ev *dat.Event) {
	var sp uint64
	if ev.RSP != nil {
		sp = settled(ev.RSP)
	} else {
		sp = settled(ev.PSP)
	}
	p, _ := ev.CR.Query()
	cr := adopt(sp, ev.CR, p.LocalEP)
	if cr == 0 {
		_ = ev.CR.Reject(nil) // the program cannot answer the request, because it gets no handle
	} else if more := C.dx_more(C.uint64_t(cr)); more != nil {
		keepRequest(more, &p)
	}
	out.object, out.cr, out.qual = C.uint64_t(sp), C.uint64_t(cr), C.uint64_t(ev.ConnQual)
}

// sourceOf returns the handle of the object in Event.Source.
func sourceOf(ev *dat.Event) uint64 {
	switch object := ev.Source.(type) {
	case *dat.EP:
		return handleOf(object)
	case *dat.EVD:
		return handleOf(object)
	case *dat.SRQ:
		return handleOf(object)
	case *dat.IA:
		return handleOf(object)
	default:
		return 0
	}
}
