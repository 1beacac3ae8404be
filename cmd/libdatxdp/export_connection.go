//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

// adopt creates a handle for the connection request cr and returns the handle. The handle belongs to the IA of the
// service point with the handle sp. If ep is an endpoint that the provider has created for the request, adopt creates a
// handle for ep too. If the IA was closed in the meantime, or no memory can be allocated, adopt returns 0, and neither
// cr nor ep has a handle.
func adopt(sp uint64, cr *dat.CR, ep *dat.EP) uint64 {
	h := prepareHandle(sp, C.DAT_HANDLE_TYPE_CR, cr)
	switch {
	case h == 0:
		return 0
	case ep != nil && handleOf(ep) == 0 && !adoptEP(sp, ep):
		C.dx_discard(C.uint64_t(h))
		return 0
	case C.dx_publish(C.uint64_t(h)) == 0:
		return 0 // the IA was closed, which has also removed the endpoint's handle
	}
	return h
}

func adoptEP(sp uint64, ep *dat.EP) bool {
	h := prepareHandle(sp, C.DAT_HANDLE_TYPE_EP, ep)
	return h != 0 && C.dx_publish(C.uint64_t(h)) != 0
}

// prepareHandle creates a handle for an object, and connects the handle and the object. A call of dx_publish makes the
// handle valid. prepareHandle returns 0 if memory is missing or the object was freed.
func prepareHandle[T any, P handled[T]](sp uint64, kind uint32, object P) uint64 {
	h := uint64(C.dx_new_handle(C.uint64_t(sp), C.uint32_t(kind)))
	if h != 0 && connectHandle(h, object, nil) != 0 {
		C.dx_discard(C.uint64_t(h))
		return 0
	}
	return h
}

// setPrivate copies private data to the memory to which events and query results point. It returns the number of bytes.
func setPrivate(to *C.struct_dx_more, data []byte) int {
	return copy(unsafe.Slice((*byte)(unsafe.Pointer(&to.private_data)), len(to.private_data)), data)
}

// keepRequest copies the data of a connection request to the memory to which the results of dat_cr_query point. It
// copies only at the first call: the program has had a pointer to that memory since then, and may have changed it.
func keepRequest(more *C.struct_dx_more, p *dat.CRParam) {
	if more.remote.sin6_family == C.AF_UNSPEC {
		setAddress(&more.remote, p.RemoteAddress)
		setPrivate(more, p.PrivateData)
	}
}

// fillConnection fills in a connection event. It copies the private data to the memory of the endpoint's handle, where
// it stays until the next connection. That memory exists: an endpoint receives private data only after a call of
// dat_ep_connect, which has allocated the memory.
func fillConnection(out *C.struct_dx_event, ev *dat.Event) {
	ep := handleOf(ev.EP)
	out.object, out.private_data, out.length = C.uint64_t(ep), 0, 0
	if len(ev.PrivateData) == 0 || ep == 0 {
		return
	}
	if more := C.dx_more(C.uint64_t(ep)); more != nil {
		out.length = C.uint64_t(setPrivate(more, ev.PrivateData))
		out.private_data = C.uint64_t(uintptr(unsafe.Pointer(&more.private_data)))
	}
}

//export dxQueryCR
func dxQueryCR(cr, handle uint64, out *C.DAT_CR_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.CR](cr).Query()
	if err != nil {
		return returnCode(err)
	}
	more := C.dx_more(C.uint64_t(handle))
	if more == nil {
		return returnCode(dat.ErrInsufficientResources)
	}
	keepRequest(more, &p)
	out.remote_ia_address_ptr = (C.DAT_IA_ADDRESS_PTR)(unsafe.Pointer(&more.remote))
	out.remote_port_qual = C.DAT_PORT_QUAL(p.RemotePort)
	out.private_data_size, out.private_data = count(len(p.PrivateData)), C.DAT_PVOID(unsafe.Pointer(&more.private_data))
	if p.LocalEP != nil {
		out.local_ep_handle = C.DAT_EP_HANDLE(pointer(handleOf(p.LocalEP)))
	}
	return 0
}

// answer calls f, which accepts a request, rejects it or hands it off. It sets *ended to the handles whose objects have
// ended with the request: the request, if it is over, and an endpoint that was freed with the request. A request may be
// over although f fails.
func answer(cr uint64, ended *C.struct_dx_ended, f func(*dat.CR) error) uint32 {
	c := get[*dat.CR](cr)
	p, _ := c.Query()
	ended.cr, ended.ep = C.uint64_t(handleOf(c)), C.uint64_t(handleOf(p.LocalEP))
	err := f(c)
	if _, live := c.HandleType(); live == nil {
		ended.cr = 0
	}
	if _, live := p.LocalEP.HandleType(); live == nil {
		ended.ep = 0
	}
	return returnCode(err)
}

//export dxAccept
func dxAccept(cr, ep uint64, data unsafe.Pointer, size int32, ended *C.struct_dx_ended) (r uint32) {
	defer catchPanic(&r)
	return answer(cr, ended, func(c *dat.CR) error { return c.Accept(get[*dat.EP](ep), bytes(data, size)) })
}

//export dxReject
func dxReject(cr uint64, data unsafe.Pointer, size int32, ended *C.struct_dx_ended) (r uint32) {
	defer catchPanic(&r)
	return answer(cr, ended, func(c *dat.CR) error { return c.Reject(bytes(data, size)) })
}

//export dxHandoff
func dxHandoff(cr, qual uint64, ended *C.struct_dx_ended) (r uint32) {
	defer catchPanic(&r)
	return answer(cr, ended, func(c *dat.CR) error { return c.Handoff(dat.ConnQual(qual)) })
}

//export dxCreatePSP
func dxCreatePSP(ia, qual, evd uint64, flags uint32, handle uint64) (r uint32) {
	defer catchPanic(&r)
	psp, err := get[*dat.IA](ia).CreatePSP(dat.ConnQual(qual), get[*dat.EVD](evd), dat.PSPFlags(min(flags, 1<<8-1)))
	return connectHandle(handle, psp, err)
}

//export dxCreatePSPAny
func dxCreatePSPAny(ia, evd uint64, flags uint32, handle uint64, qual *C.DAT_CONN_QUAL) (r uint32) {
	defer catchPanic(&r)
	psp, err := createAny(get[*dat.IA](ia), get[*dat.EVD](evd), dat.PSPFlags(min(flags, 1<<8-1)))
	if err == nil {
		*qual = C.DAT_CONN_QUAL(psp.Qual())
	}
	return connectHandle(handle, psp, err)
}

//export dxQueryPSP
func dxQueryPSP(psp uint64, out *C.DAT_PSP_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.PSP](psp).Query()
	if err != nil {
		return returnCode(err)
	}
	out.conn_qual, out.psp_flags = C.DAT_CONN_QUAL(p.ConnQual), C.DAT_PSP_FLAGS(p.Flags)
	out.evd_handle = C.DAT_EVD_HANDLE(pointer(handleOf(p.EVD)))
	return 0
}

//export dxFreePSP
func dxFreePSP(psp uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.PSP](psp).Free())
}

//export dxCreateRSP
func dxCreateRSP(ia, qual, ep, evd, handle uint64) (r uint32) {
	defer catchPanic(&r)
	rsp, err := get[*dat.IA](ia).CreateRSP(dat.ConnQual(qual), get[*dat.EP](ep), get[*dat.EVD](evd))
	return connectHandle(handle, rsp, err)
}

//export dxQueryRSP
func dxQueryRSP(rsp uint64, out *C.DAT_RSP_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.RSP](rsp).Query()
	if err != nil {
		return returnCode(err)
	}
	out.conn_qual = C.DAT_CONN_QUAL(p.ConnQual)
	out.evd_handle = C.DAT_EVD_HANDLE(pointer(handleOf(p.EVD)))
	if p.EP != nil {
		out.ep_handle = C.DAT_EP_HANDLE(pointer(handleOf(p.EP)))
	}
	return 0
}

//export dxFreeRSP
func dxFreeRSP(rsp uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.RSP](rsp).Free())
}
