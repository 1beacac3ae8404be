//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

func pending() uint32 { return code(dat.ErrNotImplemented) }

//export dxHandoff
func dxHandoff(cr, qual uint64, ep *uint64) (r uint32) { return pending() }

//export dxCreatePSPAny
func dxCreatePSPAny(ia, evd uint64, flags uint32, handle uint64, qual *C.DAT_CONN_QUAL) (r uint32) {
	return pending()
}

//export dxQueryPSP
func dxQueryPSP(psp uint64, out *C.DAT_PSP_PARAM) (r uint32) { return pending() }

//export dxCreateRSP
func dxCreateRSP(ia, qual, ep, evd, handle uint64) (r uint32) { return pending() }

//export dxQueryRSP
func dxQueryRSP(rsp uint64, out *C.DAT_RSP_PARAM) (r uint32) { return pending() }

//export dxFreeRSP
func dxFreeRSP(rsp uint64) (r uint32) { return pending() }

//export dxQueryEP
func dxQueryEP(ep, handle uint64, out *C.DAT_EP_PARAM) (r uint32) {
	a := dat.DefaultEPAttr()
	out.ep_attr.max_recv_dtos, out.ep_attr.max_request_dtos = 256, 256
	out.ep_attr.max_recv_iov, out.ep_attr.max_request_iov = C.DAT_COUNT(a.MaxRecvIOV), C.DAT_COUNT(a.MaxRequestIOV)
	out.ep_attr.max_rdma_read_in, out.ep_attr.max_rdma_read_out = 4, 4
	return 0
}

//export dxModifyEP
func dxModifyEP(ep, mask uint64, p *C.DAT_EP_PARAM, pz, recv, request, connect uint64) (r uint32) {
	return pending()
}

//export dxDupConnect
func dxDupConnect(ep, dup uint64, timeout uint32, data unsafe.Pointer, size int32, qos uint32) (r uint32) {
	return pending()
}

