//go:build cgo && datprovider

/* Event dispatchers. */

#include "entry.h"

DAT_RETURN dx_evd_create(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
	DAT_EVD_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE_OR_NULL(cno, CNO, CNO);
	NEED(out, 5);
	MAKE(h, ia, EVD);
	return made(h, dxCreateEVD(id(ia), qlen, id(cno), flags, (uintptr_t)h), out);
}

DAT_RETURN dx_evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *out)
{
	ENTRY();
	LIVE_EVD(evd);
	NEED(!(mask & ~DAT_EVD_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(evd)->ia;
	return dxQueryEVD(id(evd), out);
}

DAT_RETURN dx_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno)
{
	ENTRY();
	LIVE_EVD(evd);
	LIVE_OR_NULL(cno, CNO, CNO);
	return dxModifyCNO(id(evd), id(cno));
}

DAT_RETURN dx_evd_enable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE_EVD(evd);
	return dxEnableEVD(id(evd), 1);
}

DAT_RETURN dx_evd_disable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE_EVD(evd);
	return dxEnableEVD(id(evd), 0);
}

DAT_RETURN dx_evd_set_unwaitable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE_EVD(evd);
	return dxSetWaitable(id(evd), 0);
}

DAT_RETURN dx_evd_clear_unwaitable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE_EVD(evd);
	return dxSetWaitable(id(evd), 1);
}

DAT_RETURN dx_evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event)
{
	ENTRY();
	LIVE_EVD(evd);
	NEED(event, 2);
	return dxPostSE(id(evd), event->event_number, (uintptr_t)event->event_data.software_event_data.pointer);
}

DAT_RETURN dx_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT qlen)
{
	ENTRY();
	LIVE_EVD(evd);
	return dxResizeEVD(id(evd), qlen);
}

DAT_RETURN dx_evd_free(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE_EVD(evd);
	return freed(evd, dxFreeEVD(id(evd)));
}
