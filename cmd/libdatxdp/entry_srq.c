//go:build cgo && datprovider

/* Shared receive queues. */

#include "entry.h"

DAT_RETURN dx_srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE(pz, PZ, PZ);
	NEED(attr, 3);
	NEED(out, 4);
	MAKE(h, ia, SRQ);
	return made(h, dxCreateSRQ(id(ia), id(pz), attr->max_recv_dtos, attr->max_recv_iov, attr->low_watermark, (uintptr_t)h), out);
}

DAT_RETURN dx_srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *out)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	NEED(!(mask & ~DAT_SRQ_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(srq)->ia;
	return dxQuerySRQ(id(srq), out);
}

DAT_RETURN dx_srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT size)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	return dxResizeSRQ(id(srq), size);
}

DAT_RETURN dx_srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT watermark)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	return dxSetLW(id(srq), watermark);
}

DAT_RETURN dx_srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	NEED_IOV();
	return dxPostSRQ(id(srq), n, iov, cookie.as_64);
}

DAT_RETURN dx_srq_free(DAT_SRQ_HANDLE srq)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	return freed(srq, dxFreeSRQ(id(srq)));
}
