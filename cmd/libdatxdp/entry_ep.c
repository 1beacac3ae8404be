//go:build cgo && datprovider

/* Endpoints. */

#include "entry.h"

/* Allocates the memory for the peer's private data before connecting, because the event cannot report missing memory. */
#define NEED_ANSWER(ep)                                          \
	do {                                                     \
		if (!dx_memory(H(ep), sizeof(struct dx_more)))   \
			return NO_MEMORY;                        \
	} while (0)

DAT_RETURN dx_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
	DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE_OR_NULL(pz, PZ, PZ);
	LIVE_OR_NULL(recv, EVD, EVD_RECV);
	LIVE_OR_NULL(request, EVD, EVD_REQUEST);
	LIVE_OR_NULL(connect, EVD, EVD_CONN);
	NEED(out, 7);
	MAKE(h, ia, EP);
	return made(h, dxCreateEP(id(ia), id(pz), id(recv), id(request), id(connect), (DAT_EP_ATTR *)attr, (uintptr_t)h), out);
}

DAT_RETURN dx_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
	DAT_EVD_HANDLE connect, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE_OR_NULL(pz, PZ, PZ);
	LIVE_OR_NULL(recv, EVD, EVD_RECV);
	LIVE_OR_NULL(request, EVD, EVD_REQUEST);
	LIVE_OR_NULL(connect, EVD, EVD_CONN);
	LIVE(srq, SRQ, SRQ);
	NEED(out, 8);
	MAKE(h, ia, EP);
	return made(h, dxCreateEPWithSRQ(id(ia), id(pz), id(recv), id(request), id(connect), id(srq),
		(DAT_EP_ATTR *)attr, (uintptr_t)h), out);
}

DAT_RETURN dx_ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *out)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(!(mask & ~DAT_EP_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(ep)->ia;
	return dxQueryEP(id(ep), (uintptr_t)ep, out);
}

DAT_RETURN dx_ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *p)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(!(mask & ~DAT_EP_FIELD_ALL), 2);
	NEED(p, 3);
	if (mask & DAT_EP_FIELD_PZ_HANDLE)
		LIVE_OR_NULL(p->pz_handle, PZ, PZ);
	if (mask & DAT_EP_FIELD_RECV_EVD_HANDLE)
		LIVE_OR_NULL(p->recv_evd_handle, EVD, EVD_RECV);
	if (mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE)
		LIVE_OR_NULL(p->request_evd_handle, EVD, EVD_REQUEST);
	if (mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE)
		LIVE_OR_NULL(p->connect_evd_handle, EVD, EVD_CONN);
	return dxModifyEP(id(ep), mask, (DAT_EP_PARAM *)p,
		mask & DAT_EP_FIELD_PZ_HANDLE ? id(p->pz_handle) : 0,
		mask & DAT_EP_FIELD_RECV_EVD_HANDLE ? id(p->recv_evd_handle) : 0,
		mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE ? id(p->request_evd_handle) : 0,
		mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE ? id(p->connect_evd_handle) : 0);
}

DAT_RETURN dx_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
	DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(to, 2);
	NEED(size >= 0, 5);
	NEED(data || !size, 6);
	NEED_ANSWER(ep);
	return dxConnect(id(ep), to, qual, timeout, data, size, qos, flags);
}

DAT_RETURN dx_ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_TIMEOUT timeout, DAT_COUNT size,
	const DAT_PVOID data)
{
	ENTRY();
	return UNSUPPORTED;
}

DAT_RETURN dx_ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout, DAT_COUNT size,
	const DAT_PVOID data, DAT_QOS qos)
{
	ENTRY();
	LIVE(ep, EP, EP);
	LIVE(dup, EP, EP);
	NEED(size >= 0, 4);
	NEED(data || !size, 5);
	NEED_ANSWER(ep);
	return dxDupConnect(id(ep), id(dup), timeout, data, size, qos);
}

DAT_RETURN dx_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return dxDisconnect(id(ep), flags);
}

DAT_RETURN dx_ep_reset(DAT_EP_HANDLE ep)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return dxResetEP(id(ep));
}

DAT_RETURN dx_ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	GoUint32 s = 0, in = 0, out = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(ep, EP, EP);
	if ((r = dxStatus(id(ep), &s, &in, &out)) != DAT_SUCCESS)
		return r;
	if (state)
		*state = s;
	if (recv_idle)
		*recv_idle = in;
	if (request_idle)
		*request_idle = out;
	return DAT_SUCCESS;
}

DAT_RETURN dx_ep_free(DAT_EP_HANDLE ep)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return freed(ep, dxFreeEP(id(ep)));
}

DAT_RETURN dx_ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *nbufs, DAT_COUNT *span)
{
	GoInt32 n = 0, s = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(ep, EP, EP);
	if ((r = dxRecvQuery(id(ep), &n, &s)) != DAT_SUCCESS)
		return r;
	if (nbufs)
		*nbufs = n;
	if (span)
		*span = s;
	return DAT_SUCCESS;
}

DAT_RETURN dx_ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return dxSetWatermark(id(ep), soft, hard);
}
