//go:build cgo && datprovider

/* Protection zones and memory regions. */

#include "entry.h"

DAT_RETURN dx_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(out, 2);
	MAKE(h, ia, PZ);
	return made(h, dxCreatePZ(id(ia), (uintptr_t)h), out);
}

DAT_RETURN dx_pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *out)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	NEED(!(mask & ~DAT_PZ_FIELD_ALL), 2);
	NEED(out, 3);
	out->ia_handle = H(pz)->ia;
	return DAT_SUCCESS;
}

DAT_RETURN dx_pz_free(DAT_PZ_HANDLE pz)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	return freed(pz, dxFreePZ(id(pz)));
}

DAT_RETURN dx_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
	DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va, DAT_LMR_HANDLE *out, DAT_LMR_CONTEXT *lmr_context,
	DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *size, DAT_VADDR *address)
{
	DAT_LMR_PARAM p = {0};
	uint64_t from = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(ia, IA, IA);
	LIVE(pz, PZ, PZ);
	if (type == DAT_MEM_TYPE_LMR) {
		LIVE(region.for_lmr_handle, LMR, LMR);
		from = id(region.for_lmr_handle);
	}
	NEED(out, 8);
	MAKE(h, ia, LMR);
	r = dxCreateLMR(id(ia), type, from, type == DAT_MEM_TYPE_LMR ? NULL : region.for_va,
		type == DAT_MEM_TYPE_SHARED_VIRTUAL ? region.for_shared_memory.shared_memory_id : NULL,
		length, id(pz), priv, va, (uintptr_t)h, &p);
	if ((r = made(h, r, out)) != DAT_SUCCESS)
		return r;
	if (lmr_context)
		*lmr_context = p.lmr_context;
	if (rmr_context)
		*rmr_context = p.rmr_context;
	if (size)
		*size = p.registered_size;
	if (address)
		*address = p.registered_address;
	return DAT_SUCCESS;
}

DAT_RETURN dx_lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *out)
{
	DAT_RETURN r;

	ENTRY();
	LIVE(lmr, LMR, LMR);
	NEED(!(mask & ~DAT_LMR_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	if ((r = dxQueryLMR(id(lmr), out)) != DAT_SUCCESS)
		return r;
	out->ia_handle = H(lmr)->ia;
	out->region_desc.for_va = handle(out->registered_address);
	return DAT_SUCCESS;
}

DAT_RETURN dx_lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(segments || !n, 2);
	return dxSync(id(ia), (DAT_LMR_TRIPLET *)segments, n, 0);
}

DAT_RETURN dx_lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(segments || !n, 2);
	return dxSync(id(ia), (DAT_LMR_TRIPLET *)segments, n, 1);
}

DAT_RETURN dx_lmr_free(DAT_LMR_HANDLE lmr)
{
	ENTRY();
	LIVE(lmr, LMR, LMR);
	return freed(lmr, dxFreeLMR(id(lmr)));
}

DAT_RETURN dx_rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	NEED(out, 2);
	MAKE(h, pz, RMR);
	return made(h, dxCreateRMR(id(pz), 0, (uintptr_t)h), out);
}

DAT_RETURN dx_rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	NEED(out, 2);
	MAKE(h, pz, RMR);
	return made(h, dxCreateRMR(id(pz), 1, (uintptr_t)h), out);
}

DAT_RETURN dx_rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *out)
{
	ENTRY();
	LIVE(rmr, RMR, RMR);
	NEED(!(mask & ~DAT_RMR_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(rmr)->ia;
	return dxQueryRMR(id(rmr), out);
}

DAT_RETURN dx_rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *t, DAT_MEM_PRIV_FLAGS priv,
	DAT_VA_TYPE va, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context)
{
	ENTRY();
	LIVE(rmr, RMR, RMR);
	LIVE_OR_NULL(lmr, LMR, LMR);
	NEED(t, 3);
	LIVE(ep, EP, EP);
	NEED(context, 9);
	return dxBind(id(rmr), id(lmr), (DAT_LMR_TRIPLET *)t, priv, va, id(ep), cookie.as_64, flags, context);
}

DAT_RETURN dx_rmr_free(DAT_RMR_HANDLE rmr)
{
	ENTRY();
	LIVE(rmr, RMR, RMR);
	return freed(rmr, dxFreeRMR(id(rmr)));
}
