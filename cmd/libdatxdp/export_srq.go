//go:build cgo && datprovider

package main

// #include "abi.h"
import "C"

import "github.com/datxdp/datxdp/dat"

//export dxCreateSRQ
func dxCreateSRQ(ia, pz uint64, dtos, iov, watermark int32, handle uint64) (r uint32) {
	defer catchPanic(&r)
	attr := dat.SRQAttr{MaxRecvDTOs: int(dtos), MaxRecvIOV: int(iov), LowWatermark: int(watermark)}
	srq, err := get[*dat.IA](ia).CreateSRQ(get[*dat.PZ](pz), attr)
	return connectHandle(handle, srq, err)
}

//export dxQuerySRQ
func dxQuerySRQ(srq uint64, out *C.DAT_SRQ_PARAM) (r uint32) {
	defer catchPanic(&r)
	p, err := get[*dat.SRQ](srq).Query()
	if err != nil {
		return returnCode(err)
	}
	out.srq_state, out.pz_handle = C.DAT_SRQ_STATE(p.State), C.DAT_PZ_HANDLE(pointer(handleOf(p.PZ)))
	out.max_recv_dtos, out.max_recv_iov = count(p.MaxRecvDTOs), count(p.MaxRecvIOV)
	out.low_watermark = count(p.LowWatermark)
	out.available_dto_count, out.outstanding_dto_count = count(p.Available), count(p.Outstanding)
	return 0
}

//export dxResizeSRQ
func dxResizeSRQ(srq uint64, size int32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.SRQ](srq).Resize(int(size)))
}

//export dxSetLW
func dxSetLW(srq uint64, watermark int32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.SRQ](srq).SetLW(int(watermark)))
}

//export dxPostSRQ
func dxPostSRQ(srq uint64, n int32, iov *C.DAT_LMR_TRIPLET, cookie uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.SRQ](srq).PostRecv(triplets(iov, n), cookie))
}

//export dxFreeSRQ
func dxFreeSRQ(srq uint64) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.SRQ](srq).Free())
}

//export dxCreateEPWithSRQ
func dxCreateEPWithSRQ(ia, pz, recv, request, connect, srq uint64, attr *C.DAT_EP_ATTR, handle uint64) (r uint32) {
	defer catchPanic(&r)
	queue := get[*dat.SRQ](srq)
	if queue == nil {
		return returnCode(dat.ErrInvalidHandle)
	}
	ep, err := get[*dat.IA](ia).CreateEP(get[*dat.PZ](pz), dat.EPConfig{RecvEVD: get[*dat.EVD](recv),
		RequestEVD: get[*dat.EVD](request), ConnectEVD: get[*dat.EVD](connect), SRQ: queue, Attr: epAttr(attr)})

	return connectHandle(handle, ep, err)
}

//export dxRecvQuery
func dxRecvQuery(ep uint64, held, span *int32) (r uint32) {
	defer catchPanic(&r)
	n, s, err := get[*dat.EP](ep).RecvQuery()
	*held, *span = int32(n), int32(s)
	return returnCode(err)
}

//export dxSetWatermark
func dxSetWatermark(ep uint64, soft, hard int32) (r uint32) {
	defer catchPanic(&r)
	return returnCode(get[*dat.EP](ep).SetWatermark(int(soft), int(hard)))
}
