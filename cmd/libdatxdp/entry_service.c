//go:build cgo && datprovider

/* Service points and connection requests. */

#include "entry.h"

DAT_RETURN dx_psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
	DAT_PSP_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE(evd, EVD, EVD_CR);
	NEED(out, 5);
	MAKE(h, ia, PSP);
	return made(h, dxCreatePSP(id(ia), qual, id(evd), flags, (uintptr_t)h), out);
}

DAT_RETURN dx_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
	DAT_PSP_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE(evd, EVD, EVD_CR);
	NEED(qual, 2);
	NEED(out, 5);
	MAKE(h, ia, PSP);
	return made(h, dxCreatePSPAny(id(ia), id(evd), flags, (uintptr_t)h, qual), out);
}

DAT_RETURN dx_psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *out)
{
	ENTRY();
	LIVE(psp, PSP, PSP);
	NEED(!(mask & ~DAT_PSP_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(psp)->ia;
	return dxQueryPSP(id(psp), out);
}

DAT_RETURN dx_psp_free(DAT_PSP_HANDLE psp)
{
	ENTRY();
	LIVE(psp, PSP, PSP);
	return freed(psp, dxFreePSP(id(psp)));
}

DAT_RETURN dx_rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
	DAT_RSP_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE_OR_NULL(ep, EP, EP);
	LIVE(evd, EVD, EVD_CR);
	NEED(out, 5);
	MAKE(h, ia, RSP);
	return made(h, dxCreateRSP(id(ia), qual, id(ep), id(evd), (uintptr_t)h), out);
}

DAT_RETURN dx_rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *out)
{
	ENTRY();
	LIVE(rsp, RSP, RSP);
	NEED(!(mask & ~DAT_RSP_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(rsp)->ia;
	return dxQueryRSP(id(rsp), out);
}

DAT_RETURN dx_rsp_free(DAT_RSP_HANDLE rsp)
{
	ENTRY();
	LIVE(rsp, RSP, RSP);
	return freed(rsp, dxFreeRSP(id(rsp)));
}

DAT_RETURN dx_csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
	DAT_CSP_HANDLE *out)
{
	ENTRY();
	return UNSUPPORTED;
}

DAT_RETURN dx_csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *out)
{
	ENTRY();
	return UNSUPPORTED;
}

DAT_RETURN dx_csp_free(DAT_CSP_HANDLE csp)
{
	ENTRY();
	return UNSUPPORTED;
}

DAT_RETURN dx_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *out)
{
	ENTRY();
	LIVE(cr, CR, CR);
	NEED(!(mask & ~DAT_CR_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	return dxQueryCR(id(cr), (uintptr_t)cr, out);
}

/* Removes the handles of objects that have ended, and returns r. */
static DAT_RETURN bury_ended(const struct dx_ended *ended, DAT_RETURN r)
{
	if (ended->ep)
		dx_bury(handle(ended->ep));
	if (ended->cr)
		dx_bury(handle(ended->cr));
	return r;
}

DAT_RETURN dx_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data)
{
	struct dx_ended ended = {0};
	DAT_RETURN r;

	ENTRY();
	LIVE(cr, CR, CR);
	LIVE_OR_NULL(ep, EP, EP);
	NEED(size >= 0, 3);
	NEED(data || !size, 4);
	r = dxAccept(id(cr), id(ep), data, size, &ended);
	return bury_ended(&ended, r);
}

DAT_RETURN dx_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data)
{
	struct dx_ended ended = {0};
	DAT_RETURN r;

	ENTRY();
	LIVE(cr, CR, CR);
	NEED(size >= 0, 2);
	NEED(data || !size, 3);
	r = dxReject(id(cr), data, size, &ended);
	return bury_ended(&ended, r);
}

DAT_RETURN dx_cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL qual)
{
	struct dx_ended ended = {0};
	DAT_RETURN r;

	ENTRY();
	LIVE(cr, CR, CR);
	r = dxHandoff(id(cr), qual, &ended);
	return bury_ended(&ended, r);
}
