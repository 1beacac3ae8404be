//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

// adopt gives an object that the provider has made a handle beside that of a service point.
func adopt(sp uint64, kind uint32, object dat.Handle) uint64 {
	h := uint64(C.dx_new_handle(C.uint64_t(sp), C.uint32_t(kind)))
	if h == 0 || created(h, object, nil) != 0 {
		return 0
	}
	if C.dx_publish(C.uint64_t(h)) == 0 {
		return 0
	}
	return h
}

// setPrivate copies private data to where events and queries point to.
func setPrivate(to *C.struct_dx_more, data []byte) int {
	return copy(unsafe.Slice((*byte)(unsafe.Pointer(&to.private_data)), len(to.private_data)), data)
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
		out.private_data = C.uint64_t(uintptr(unsafe.Pointer(&more.private_data)))
	}
}

//export dxQueryCR
func dxQueryCR(cr, handle uint64, out *C.DAT_CR_PARAM) (r uint32) {
	defer caught(&r)
	p, err := get[*dat.CR](cr).Query()
	if err != nil {
		return code(err)
	}
	more := C.dx_more(C.uint64_t(handle))
	out.remote_ia_address_ptr = (C.DAT_IA_ADDRESS_PTR)(unsafe.Pointer(&more.remote))
	out.remote_port_qual = C.DAT_PORT_QUAL(p.RemotePort)
	out.private_data_size, out.private_data = count(len(p.PrivateData)), C.DAT_PVOID(unsafe.Pointer(&more.private_data))
	return 0
}

//export dxAccept
func dxAccept(cr, ep uint64, data unsafe.Pointer, size int32) (r uint32) {
	defer caught(&r)
	return code(get[*dat.CR](cr).Accept(get[*dat.EP](ep), bytes(data, size)))
}

// dxReject refuses a request. ep is the endpoint that goes with it, if the provider made one.
//
//export dxReject
func dxReject(cr uint64, data unsafe.Pointer, size int32, ep *uint64) (r uint32) {
	defer caught(&r)
	return code(get[*dat.CR](cr).Reject(bytes(data, size)))
}

//export dxCreatePSP
func dxCreatePSP(ia, qual, evd uint64, flags uint32, handle uint64) (r uint32) {
	defer caught(&r)
	psp, err := get[*dat.IA](ia).CreatePSP(dat.ConnQual(qual), get[*dat.EVD](evd), dat.PSPFlags(min(flags, 1<<8-1)))
	return created(handle, psp, err)
}

//export dxFreePSP
func dxFreePSP(psp uint64) (r uint32) {
	defer caught(&r)
	return code(get[*dat.PSP](psp).Free())
}

//export dxCreateEP
func dxCreateEP(ia, pz, recv, request, connect uint64, attr *C.DAT_EP_ATTR, handle uint64) (r uint32) {
	defer caught(&r)
	ep, err := get[*dat.IA](ia).CreateEP(get[*dat.PZ](pz), get[*dat.EVD](recv), get[*dat.EVD](request), get[*dat.EVD](connect), epAttr(attr))
	return created(handle, ep, err)
}

func epAttr(a *C.DAT_EP_ATTR) *dat.EPAttr {
	if a == nil {
		return nil
	}
	return &dat.EPAttr{MaxMessageSize: uint32(a.max_message_size), MaxRDMASize: uint32(a.max_rdma_size),
		MaxRecvDTOs: int(a.max_recv_dtos), MaxRequestDTOs: int(a.max_request_dtos), MaxRecvIOV: int(a.max_recv_iov),
		MaxRequestIOV: int(a.max_request_iov), MaxRDMAReadIn: int(a.max_rdma_read_in), MaxRDMAReadOut: int(a.max_rdma_read_out)}
}

//export dxConnect
func dxConnect(ep uint64, to *C.DAT_SOCK_ADDR, qual uint64, timeout uint32, data unsafe.Pointer, size int32, qos, flags uint32) (r uint32) {
	defer caught(&r)
	return code(get[*dat.EP](ep).Connect(address(to), dat.ConnQual(qual), duration(timeout), bytes(data, size)))
}

//export dxDisconnect
func dxDisconnect(ep uint64, flags uint32) (r uint32) {
	defer caught(&r)
	return code(get[*dat.EP](ep).Disconnect(dat.CloseFlags(min(flags, 1<<8-1))))
}

//export dxResetEP
func dxResetEP(ep uint64) (r uint32) {
	defer caught(&r)
	return code(get[*dat.EP](ep).Reset())
}

//export dxFreeEP
func dxFreeEP(ep uint64) (r uint32) {
	defer caught(&r)
	return code(get[*dat.EP](ep).Free())
}

//export dxStatus
func dxStatus(ep uint64, state, recvIdle, requestIdle *uint32) (r uint32) {
	defer caught(&r)
	s, in, out, err := get[*dat.EP](ep).Status()
	*state, *recvIdle, *requestIdle = uint32(s), uint32(truth(in)), uint32(truth(out))
	return code(err)
}
