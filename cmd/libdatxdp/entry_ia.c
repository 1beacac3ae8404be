//go:build cgo && datprovider

/* Adapters, and the calls for handles of all types. */

#include "entry.h"
#include "runtime.h"

DAT_RETURN dx_open(struct dx_line *line, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *out)
{
	struct dx_handle *ia, *evd = NULL;
	DAT_EVD_HANDLE given = async ? *async : DAT_EVD_ASYNC_EXISTS;
	DAT_RETURN r;

	if (given && given != DAT_EVD_ASYNC_EXISTS)
		LIVE(given, EVD, EVD_ASYNC);
	if (!(ia = dx_make(&line->table, NULL, DAT_HANDLE_TYPE_IA)))
		return NO_MEMORY;
	if (!given && !(evd = dx_make(&line->table, ia, DAT_HANDLE_TYPE_EVD))) {
		dx_drop(ia);
		return NO_MEMORY;
	}
	r = dxOpen(line->params, qlen, given == DAT_EVD_ASYNC_EXISTS ? 0 : id(given), (uintptr_t)ia, (uintptr_t)evd);
	if (r != DAT_SUCCESS) {
		if (evd)
			dx_drop(evd);
		dx_drop(ia);
		return r;
	}
	dx_live(ia);
	if (evd)
		dx_live(evd);
	if (async)
		*async = evd ? evd : given == DAT_EVD_ASYNC_EXISTS ? DAT_EVD_OUT_OF_SCOPE : given;
	*out = ia;
	return DAT_SUCCESS;
}

static DAT_RETURN ia_open(const char *name, DAT_BOOLEAN thread_safe, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
	DAT_IA_HANDLE *out)
{
	struct dx_line *line;

	ENTRY();
	NEED(name, 1);
	NEED(async, 3);
	NEED(out, 4);
	if (!dx_reserve_threads())
		return ERROR(DAT_INSUFFICIENT_RESOURCES, 0, "the process may create no more threads (ulimit -u, pids.max of a control group, seccomp)");
	if (!(line = dx_find_line(name, thread_safe)))
		return ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED, "no line of dat.conf has the name");
	return dx_open(line, qlen, async, out);
}

DAT_RETURN dx_ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia)
{
	return ia_open(name, DAT_FALSE, qlen, async, ia);
}

DAT_RETURN dx_ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia)
{
	return ia_open(name, DAT_TRUE, qlen, async, ia);
}

DAT_RETURN dx_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *attr,
	DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider)
{
	struct dx_line *line;
	DAT_RETURN r;
	GoUint64 evd = 0;

	ENTRY();
	LIVE(ia, IA, IA);
	NEED(!(ia_mask & ~DAT_IA_FIELD_ALL), 3);
	NEED(attr || !ia_mask, 4);
	NEED(!(provider_mask & ~DAT_PROVIDER_FIELD_ALL), 5);
	NEED(provider || !provider_mask, 6);
	if (!ia_mask)
		attr = NULL;
	if (!provider_mask)
		provider = NULL;
	if (attr)
		memset(attr, 0, sizeof *attr);
	if (provider)
		memset(provider, 0, sizeof *provider);
	r = dxQueryIA(id(ia), (uintptr_t)ia, attr, provider, &evd);
	if (r != DAT_SUCCESS)
		return r;
	if (async)
		*async = evd ? handle(evd) : DAT_EVD_OUT_OF_SCOPE;
	if (provider) { /* dat_ia_close of libdat2 finds the registry entry by these fields */
		line = (struct dx_line *)H(ia)->table;
		provider->dapl_version_major = line->info.dapl_version_major;
		provider->dapl_version_minor = line->info.dapl_version_minor;
		provider->is_thread_safe = line->info.is_thread_safe;
	}
	return DAT_SUCCESS;
}

DAT_RETURN dx_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{
	DAT_RETURN r;

	ENTRY();
	LIVE(ia, IA, IA);
	if ((r = dxCloseIA(id(ia), flags)) == DAT_SUCCESS)
		dx_bury_all(ia);
	return r;
}

DAT_RETURN dx_ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer)
{
	ENTRY();
	return UNSUPPORTED;
}

static int any(DAT_HANDLE h) { return h && alive(h, H(h)->type); }

DAT_RETURN dx_set_consumer_context(DAT_HANDLE h, DAT_CONTEXT context)
{
	ENTRY();
	if (!any(h))
		return NO_HANDLE(DAT, 0);
	H(h)->context = context;
	return DAT_SUCCESS;
}

DAT_RETURN dx_get_consumer_context(DAT_HANDLE h, DAT_CONTEXT *out)
{
	ENTRY();
	if (!any(h))
		return NO_HANDLE(DAT, 0);
	NEED(out, 2);
	*out = H(h)->context;
	return DAT_SUCCESS;
}

DAT_RETURN dx_get_handle_type(DAT_HANDLE h, DAT_HANDLE_TYPE *out)
{
	ENTRY();
	if (!any(h))
		return NO_HANDLE(DAT, 0);
	NEED(out, 2);
	*out = H(h)->type;
	return DAT_SUCCESS;
}
