//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import "github.com/datxdp/datxdp/dat"

//export dxCreateEVD
func dxCreateEVD(ia uint64, qlen int32, cno uint64, flags uint32, handle uint64) (r uint32) {
	defer caught(&r)
	evd, err := get[*dat.IA](ia).CreateEVD(int(qlen), nil, dat.EVDFlags(min(flags, 1<<16-1)))
	return created(handle, evd, err)
}

//export dxFreeEVD
func dxFreeEVD(evd uint64) (r uint32) {
	defer caught(&r)
	return code(get[*dat.EVD](evd).Free())
}

//export dxDequeue
func dxDequeue(evd uint64, out *C.struct_dx_event) (r uint32) {
	defer caught(&r)
	var ev dat.Event
	if err := get[*dat.EVD](evd).Dequeue(&ev); err != nil {
		return code(err)
	}
	fillEvent(out, &ev)
	return 0
}

//export dxWait
func dxWait(evd uint64, timeout uint32, threshold int32, out *C.struct_dx_event, nmore *C.DAT_COUNT) (r uint32) {
	defer caught(&r)
	var ev dat.Event
	more, err := get[*dat.EVD](evd).Wait(duration(timeout), int(threshold), &ev)
	*nmore = count(more)
	if err != nil {
		return code(err)
	}
	fillEvent(out, &ev)
	return 0
}

// fillEvent writes what C needs to make a DAT_EVENT.
func fillEvent(out *C.struct_dx_event, ev *dat.Event) {
	out.number = C.uint32_t(ev.Number)
	switch ev.Number {
	case dat.EventDTOCompletion:
		fillCompletion(out, ev)
	case dat.EventConnectionRequest:
		fillRequest(out, ev)
	case dat.EventAsyncEVDOverflow:
		out.object, out.reason = C.uint64_t(handleOf(ev.Source)), C.DAT_EVD_OVERFLOW_ERROR
	default:
		fillConnection(out, ev)
	}
}

func fillCompletion(out *C.struct_dx_event, ev *dat.Event) {
	out.object = C.uint64_t(handleOf(ev.EP))
	out.cookie, out.length = C.uint64_t(ev.Cookie), C.uint64_t(ev.Length)
	out.operation, out.status = C.uint32_t(ev.Op), C.uint32_t(ev.Status)
	out.rmr_context = 0
}

// fillRequest makes a handle for the connection request, and copies what queries of it point to.
func fillRequest(out *C.struct_dx_event, ev *dat.Event) {
	sp := handleOf(ev.PSP)
	cr := uint64(C.dx_new_handle(C.uint64_t(sp), C.DAT_HANDLE_TYPE_CR))
	_ = created(cr, ev.CR, nil)
	p, _ := ev.CR.Query()
	more := C.dx_more(C.uint64_t(cr))
	setAddress(&more.remote, p.RemoteAddress)
	setPrivate(more, p.PrivateData)
	C.dx_publish(C.uint64_t(cr))
	out.object, out.cr, out.qual = C.uint64_t(sp), C.uint64_t(cr), C.uint64_t(ev.ConnQual)
}

// fillConnection copies the private data to memory of the endpoint's handle, where the next connection's
// will be.
func fillConnection(out *C.struct_dx_event, ev *dat.Event) {
	ep := handleOf(ev.EP)
	out.object, out.private_data, out.length = C.uint64_t(ep), 0, 0
	if len(ev.PrivateData) == 0 || ep == 0 {
		return
	}
	if more := C.dx_more(C.uint64_t(ep)); more != nil {
		out.length = C.uint64_t(setPrivate(more, ev.PrivateData))
		out.private_data = C.uint64_t(addressOf(more))
	}
}
