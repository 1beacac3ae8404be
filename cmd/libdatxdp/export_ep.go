//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

//export dxCreateEP
func dxCreateEP(ia, pz, recv, request, connect uint64, attr *C.DAT_EP_ATTR, handle uint64) (r uint32) {
	defer catchPanic(&r)
	a := epAttr(attr)
	if a == nil {
		a = defaultAttr(get[*dat.IA](ia))
	}
	ep, err := get[*dat.IA](ia).CreateEP(get[*dat.PZ](pz), dat.EPConfig{RecvEVD: get[*dat.EVD](recv),
		RequestEVD: get[*dat.EVD](request), ConnectEVD: get[*dat.EVD](connect), Attr: a})
	return connectHandle(handle, ep, err)
}

// defaultAttr returns the attributes of an endpoint for which the program passes none. They allow as many segments as
// the adapter supports: dapltest uses the default as its maximum number of segments.
func defaultAttr(ia *dat.IA) *dat.EPAttr {
	p, err := ia.Query()
	if err != nil {
		return nil // CreateEP reports the same error
	}
	a := dat.DefaultEPAttr()
	a.MaxRecvIOV, a.MaxRequestIOV = p.MaxIOVPerDTO, p.MaxIOVPerDTO
	a.MaxRDMAReadIOV, a.MaxRDMAWriteIOV = p.MaxIOVPerRDMARead, p.MaxIOVPerRDMAWrite
	return &a
}

// epAttr converts the attributes that the program requests; nil stays nil. If a value does not fit the Go type, it
// becomes the largest value of that type, which package dat refuses.
func epAttr(a *C.DAT_EP_ATTR) *dat.EPAttr {
	if a == nil {
		return nil
	}
	return &dat.EPAttr{
		ServiceType:    dat.ServiceType(min(a.service_type, 1<<8-1)),
		QoS:            dat.QoS(min(a.qos, 1<<8-1)),
		MaxMessageSize: uint32(a.max_message_size), MaxRDMASize: uint32(a.max_rdma_size),
		RecvCompletionFlags:    completion(uint32(a.recv_completion_flags)),
		RequestCompletionFlags: completion(uint32(a.request_completion_flags)),
		MaxRecvDTOs:            int(a.max_recv_dtos), MaxRequestDTOs: int(a.max_request_dtos),
		MaxRecvIOV: int(a.max_recv_iov), MaxRequestIOV: int(a.max_request_iov),
		MaxRDMAReadIn: int(a.max_rdma_read_in), MaxRDMAReadOut: int(a.max_rdma_read_out),
		SRQSoftHW:      int(a.srq_soft_hw),
		MaxRDMAReadIOV: int(a.max_rdma_read_iov), MaxRDMAWriteIOV: int(a.max_rdma_write_iov),
	}
}

func fillEPAttr(to *C.DAT_EP_ATTR, a *dat.EPAttr) {
	to.service_type, to.qos = C.DAT_SERVICE_TYPE(a.ServiceType), C.DAT_QOS(a.QoS)
	to.max_message_size, to.max_rdma_size = C.DAT_SEG_LENGTH(a.MaxMessageSize), C.DAT_SEG_LENGTH(a.MaxRDMASize)
	to.recv_completion_flags = C.DAT_COMPLETION_FLAGS(a.RecvCompletionFlags)
	to.request_completion_flags = C.DAT_COMPLETION_FLAGS(a.RequestCompletionFlags)
	to.max_recv_dtos, to.max_request_dtos = count(a.MaxRecvDTOs), count(a.MaxRequestDTOs)
	to.max_recv_iov, to.max_request_iov = count(a.MaxRecvIOV), count(a.MaxRequestIOV)
	to.max_rdma_read_in, to.max_rdma_read_out = count(a.MaxRDMAReadIn), count(a.MaxRDMAReadOut)
	to.srq_soft_hw = count(a.SRQSoftHW)
	to.max_rdma_read_iov, to.max_rdma_write_iov = count(a.MaxRDMAReadIOV), count(a.MaxRDMAWriteIOV)
}

//export dxQueryEP
func dxQueryEP(ep, handle uint64, out *C.DAT_EP_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.EP](ep).Query()
	if err != nil {
		return returnCode(err)
	}
	more := C.dx_more(C.uint64_t(handle))
	if more == nil {
		return returnCode(dat.ErrInsufficientResources)
	}
	out.ep_state = C.DAT_EP_STATE(p.State)
	out.local_ia_address_ptr, out.local_port_qual = setAddress(&more.local, p.LocalAddress), C.DAT_PORT_QUAL(p.LocalPort)
	out.remote_ia_address_ptr, out.remote_port_qual = setAddress(&more.remote, p.RemoteAddress), C.DAT_PORT_QUAL(p.RemotePort)
	out.pz_handle = C.DAT_PZ_HANDLE(pointer(handleOf(p.PZ)))
	out.recv_evd_handle = C.DAT_EVD_HANDLE(pointer(handleOf(p.RecvEVD)))
	out.request_evd_handle = C.DAT_EVD_HANDLE(pointer(handleOf(p.RequestEVD)))
	out.connect_evd_handle = C.DAT_EVD_HANDLE(pointer(handleOf(p.ConnectEVD)))
	out.srq_handle = C.DAT_SRQ_HANDLE(pointer(handleOf(p.SRQ)))
	fillEPAttr(&out.ep_attr, &p.Attr)
	return 0
}

//export dxModifyEP
func dxModifyEP(ep, mask uint64, p *C.DAT_EP_PARAM, pz, recv, request, connect uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).Modify(dat.EPMask(mask), &dat.EPParam{PZ: get[*dat.PZ](pz), RecvEVD: get[*dat.EVD](recv),
		RequestEVD: get[*dat.EVD](request), ConnectEVD: get[*dat.EVD](connect), Attr: *epAttr(&p.ep_attr)}))
}

//export dxConnect
func dxConnect(ep uint64, to *C.DAT_SOCK_ADDR, qual uint64, timeout uint32, data unsafe.Pointer, size int32, qos, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).ConnectWith(address(to), dat.ConnQual(qual), dat.ConnectConfig{Timeout: duration(timeout),
		PrivateData: bytes(data, size), QoS: dat.QoS(min(qos, 1<<8-1)), Flags: dat.ConnectFlags(min(flags, 1<<8-1)),
		PeerPort: portOf(qual)}))
}

//export dxDupConnect
func dxDupConnect(ep, dup uint64, timeout uint32, data unsafe.Pointer, size int32, qos uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).DupConnect(get[*dat.EP](dup), dat.ConnectConfig{Timeout: duration(timeout),
		PrivateData: bytes(data, size), QoS: dat.QoS(min(qos, 1<<8-1))}))
}

//export dxDisconnect
func dxDisconnect(ep uint64, flags uint32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).Disconnect(dat.CloseFlags(min(flags, 1<<8-1))))
}

//export dxResetEP
func dxResetEP(ep uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).Reset())
}

//export dxFreeEP
func dxFreeEP(ep uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).Free())
}

//export dxStatus
func dxStatus(ep uint64, state, recvIdle, requestIdle *uint32) (r uint32) {
	defer catchPanic(&r)
	s, in, out, err := get[*dat.EP](ep).Status()
	*state, *recvIdle, *requestIdle = uint32(s), uint32(truth(in)), uint32(truth(out))
	return returnCode(err)
}
