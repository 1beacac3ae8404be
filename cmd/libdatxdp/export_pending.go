//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import (
	"unsafe"

	"github.com/datxdp/datxdp/dat"
)

func pending() uint32 { return code(dat.ErrNotImplemented) }

//export dxCreateCNO
func dxCreateCNO(ia, function, instance, handle uint64) (r uint32) { return pending() }

//export dxModifyAgent
func dxModifyAgent(cno, function, instance uint64) (r uint32) { return pending() }

//export dxQueryCNO
func dxQueryCNO(cno uint64, function, instance *uint64) (r uint32) { return pending() }

//export dxFreeCNO
func dxFreeCNO(cno uint64) (r uint32) { return pending() }

//export dxWaitCNO
func dxWaitCNO(cno uint64, timeout uint32, evd *uint64) (r uint32) { return pending() }

//export dxTriggerCNO
func dxTriggerCNO(cno uint64, evd *uint64) (r uint32) { return pending() }

//export dxHandoff
func dxHandoff(cr, qual uint64, ep *uint64) (r uint32) { return pending() }

//export dxQueryEVD
func dxQueryEVD(evd uint64, out *C.DAT_EVD_PARAM) (r uint32) {
	e := get[*dat.EVD](evd)
	out.evd_qlen = count(e.QLen())
	return 0
}

//export dxModifyCNO
func dxModifyCNO(evd, cno uint64) (r uint32) { return pending() }

//export dxEnableEVD
func dxEnableEVD(evd uint64, on int32) (r uint32) { return pending() }

//export dxSetWaitable
func dxSetWaitable(evd uint64, on int32) (r uint32) { return pending() }

//export dxPostSE
func dxPostSE(evd uint64, number uint32, pointer uint64) (r uint32) { return pending() }

//export dxResizeEVD
func dxResizeEVD(evd uint64, qlen int32) (r uint32) { return pending() }

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

//export dxCreateEPWithSRQ
func dxCreateEPWithSRQ(ia, pz, recv, request, connect, srq uint64, attr *C.DAT_EP_ATTR, handle uint64) (r uint32) {
	return pending()
}

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

//export dxPostSendInvalidate
func dxPostSendInvalidate(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64, flags, context uint32) (r uint32) {
	return pending()
}

//export dxPostReadToRMR
func dxPostReadToRMR(ep uint64, local *C.DAT_RMR_TRIPLET, cookie uint64, remote *C.DAT_RMR_TRIPLET, flags uint32) (r uint32) {
	return pending()
}

//export dxRecvQuery
func dxRecvQuery(ep uint64, held, span *int32) (r uint32) { return pending() }

//export dxSetWatermark
func dxSetWatermark(ep uint64, soft, hard int32) (r uint32) { return pending() }

//export dxCreateSRQ
func dxCreateSRQ(ia, pz uint64, dtos, iov, watermark int32, handle uint64) (r uint32) {
	return pending()
}

//export dxQuerySRQ
func dxQuerySRQ(srq uint64, out *C.DAT_SRQ_PARAM) (r uint32) { return pending() }

//export dxResizeSRQ
func dxResizeSRQ(srq uint64, size int32) (r uint32) { return pending() }

//export dxSetLW
func dxSetLW(srq uint64, watermark int32) (r uint32) { return pending() }

//export dxPostSRQ
func dxPostSRQ(srq uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64) (r uint32) {
	return pending()
}

//export dxFreeSRQ
func dxFreeSRQ(srq uint64) (r uint32) { return pending() }

//export dxCreateRMR
func dxCreateRMR(pz uint64, forEP int32, handle uint64) (r uint32) { return pending() }

//export dxQueryRMR
func dxQueryRMR(rmr uint64, out *C.DAT_RMR_PARAM) (r uint32) { return pending() }

//export dxBind
func dxBind(rmr, lmr uint64, t *C.DAT_LMR_TRIPLET, priv, va uint32, ep, cookie uint64, flags uint32, context *C.DAT_RMR_CONTEXT) (r uint32) {
	return pending()
}

//export dxFreeRMR
func dxFreeRMR(rmr uint64) (r uint32) { return pending() }

//export dxPostWriteImm
func dxPostWriteImm(ep uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64, remote *C.DAT_RMR_TRIPLET, immediate, flags uint32) (r uint32) {
	return pending()
}

//export dxPostFetchAdd
func dxPostFetchAdd(ep, add uint64, local *C.DAT_LMR_TRIPLET, cookie uint64, remote *C.DAT_RMR_TRIPLET, flags uint32) (r uint32) {
	return pending()
}

//export dxPostCmpSwap
func dxPostCmpSwap(ep, compare, swap uint64, local *C.DAT_LMR_TRIPLET, cookie uint64, remote *C.DAT_RMR_TRIPLET, flags uint32) (r uint32) {
	return pending()
}
