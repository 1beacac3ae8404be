//go:build cgo && datprovider

/*
 * The table of entries that libdat2 calls. Each checks its handles, takes unions and structures by
 * value apart, and hands the rest to Go as integers and pointers. What a call means is decided there.
 */

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

_Static_assert(sizeof(DAT_PROVIDER) == 81 * sizeof(void *), "DAT_PROVIDER has 81 words");
_Static_assert(sizeof(DAT_LMR_TRIPLET) == 16 && sizeof(DAT_RMR_TRIPLET) == 16, "triplets");
_Static_assert(sizeof(DAT_PROVIDER_INFO) == 268, "DAT_PROVIDER_INFO");
_Static_assert(sizeof(DAT_EP_ATTR) == 88 || sizeof(void *) != 8, "DAT_EP_ATTR");
_Static_assert(sizeof(DAT_EVENT) == 120 || sizeof(void *) != 8, "DAT_EVENT");
_Static_assert(sizeof(DAT_IA_ATTR) == 688 || sizeof(void *) != 8, "DAT_IA_ATTR");
_Static_assert(sizeof(DAT_PROVIDER_ATTR) == 520 || sizeof(void *) != 8, "DAT_PROVIDER_ATTR");
_Static_assert(sizeof(DAT_EP_PARAM) == 184 || sizeof(void *) != 8, "DAT_EP_PARAM");
_Static_assert(sizeof(DAT_CR_PARAM) == 40 || sizeof(void *) != 8, "DAT_CR_PARAM");
_Static_assert(sizeof(DAT_EVD_PARAM) == 32 || sizeof(void *) != 8, "DAT_EVD_PARAM");
_Static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) <= sizeof(((DAT_EVENT *)0)->event_extension_data), "extension data");

#define ERROR(type, sub) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (sub)))
#define UNSUPPORTED ERROR(DAT_MODEL_NOT_SUPPORTED, 0)

/* A fork takes the memory along but none of the threads that serve it: in the child nothing works. */
int dx_forked;

static void in_child(void) { dx_forked = 1; }

__attribute__((constructor)) static void watch_fork(void) { pthread_atfork(NULL, NULL, in_child); }

/* Every entry begins with this. */
#define ENTRY()                                                 \
	do {                                                    \
		if (__builtin_expect(dx_forked, 0))             \
			return ERROR(DAT_INVALID_STATE, 0);     \
	} while (0)

static inline int alive(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	const struct dx_handle *h = handle;

	return h && __atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) == DX_MAGIC && h->type == type;
}

/* A handle that has to be good. */
#define LIVE(handle, type, sub)                                                    \
	do {                                                                       \
		if (__builtin_expect(!alive(handle, DAT_HANDLE_TYPE_##type), 0))   \
			return ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_##sub);\
	} while (0)

/* A handle that may be null, if the call allows that. */
#define LIVE_OR_NULL(handle, type, sub)            \
	do {                                       \
		if (handle)                        \
			LIVE(handle, type, sub);   \
	} while (0)

#define NEED(condition, arg)                                                     \
	do {                                                                     \
		if (__builtin_expect(!(condition), 0))                           \
			return ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##arg);\
	} while (0)

static inline struct dx_handle *H(DAT_HANDLE handle) { return handle; }

static inline uint64_t id(DAT_HANDLE handle) { return handle ? H(handle)->id : 0; }

/* The number of a Go object's handle, given back to the program. */
static inline DAT_HANDLE handle(uint64_t h) { return (DAT_HANDLE)(uintptr_t)h; }

/* An object for Go to make: the handle exists before it, so that nothing can fail after it. */
static struct dx_handle *make(DAT_HANDLE sibling, DAT_HANDLE_TYPE type)
{
	return dx_make(H(sibling)->table, H(sibling)->ia, type);
}

static DAT_RETURN made(struct dx_handle *h, DAT_RETURN r, DAT_HANDLE *out)
{
	if (r != DAT_SUCCESS) {
		dx_drop(h);
		return r;
	}
	if (!dx_live(h))
		return ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	*out = h;
	return DAT_SUCCESS;
}

#define MAKE(h, sibling, type)                                                                 \
	struct dx_handle *h = make(sibling, DAT_HANDLE_TYPE_##type);                           \
	do {                                                                                   \
		if (!h)                                                                        \
			return ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);         \
	} while (0)

static DAT_RETURN freed(DAT_HANDLE handle, DAT_RETURN r)
{
	if (r == DAT_SUCCESS)
		dx_bury(handle);
	return r;
}

/* --- IA --- */

DAT_RETURN dx_open(struct dx_line *line, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *out)
{
	struct dx_handle *ia, *evd = NULL;
	DAT_EVD_HANDLE given = async ? *async : DAT_EVD_ASYNC_EXISTS;
	DAT_RETURN r;

	if (given && given != DAT_EVD_ASYNC_EXISTS)
		LIVE(given, EVD, EVD_ASYNC);
	if (!(ia = dx_make(&line->table, NULL, DAT_HANDLE_TYPE_IA)))
		return ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!given && !(evd = dx_make(&line->table, ia, DAT_HANDLE_TYPE_EVD))) {
		dx_drop(ia);
		return ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
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
	if (!(line = dx_find_line(name, thread_safe)))
		return ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	return dx_open(line, qlen, async, out);
}

/* libdat2 does not say which line it opens: lines of one name differ in thread safety only. */
static DAT_RETURN ia_open_unsafe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia)
{
	return ia_open(name, DAT_FALSE, qlen, async, ia);
}

static DAT_RETURN ia_open_safe(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia)
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
	if (provider) { /* dat_ia_close finds its registry entry by these */
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

static DAT_RETURN ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer)
{
	ENTRY();
	return UNSUPPORTED;
}

/* --- any handle --- */

static int any(DAT_HANDLE h) { return h && alive(h, H(h)->type); }

static DAT_RETURN set_consumer_context(DAT_HANDLE h, DAT_CONTEXT context)
{
	ENTRY();
	if (!any(h))
		return ERROR(DAT_INVALID_HANDLE, 0);
	H(h)->context = context;
	return DAT_SUCCESS;
}

static DAT_RETURN get_consumer_context(DAT_HANDLE h, DAT_CONTEXT *out)
{
	ENTRY();
	if (!any(h))
		return ERROR(DAT_INVALID_HANDLE, 0);
	NEED(out, 2);
	*out = H(h)->context;
	return DAT_SUCCESS;
}

static DAT_RETURN get_handle_type(DAT_HANDLE h, DAT_HANDLE_TYPE *out)
{
	ENTRY();
	if (!any(h))
		return ERROR(DAT_INVALID_HANDLE, 0);
	NEED(out, 2);
	*out = H(h)->type;
	return DAT_SUCCESS;
}

/* --- CNO --- */

/* Go has a function that calls the agent; what a query shows is kept here. */
static void keep_agent(struct dx_handle *cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	DAT_OS_WAIT_PROXY_AGENT *kept = dx_memory(cno, sizeof *kept);

	if (kept)
		*kept = agent;
}

static DAT_RETURN cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(out, 3);
	MAKE(h, ia, CNO);
	keep_agent(h, agent);
	return made(h, dxCreateCNO(id(ia), (uintptr_t)agent.proxy_agent_func, (uintptr_t)agent.instance_data, (uintptr_t)h), out);
}

static DAT_RETURN cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	DAT_RETURN r;

	ENTRY();
	LIVE(cno, CNO, CNO);
	r = dxModifyAgent(id(cno), (uintptr_t)agent.proxy_agent_func, (uintptr_t)agent.instance_data);
	if (r == DAT_SUCCESS)
		keep_agent(cno, agent);
	return r;
}

static DAT_RETURN cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *out)
{
	DAT_OS_WAIT_PROXY_AGENT *kept;
	GoUint32 agent = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(cno, CNO, CNO);
	NEED(!(mask & ~0x7), 2); /* 7: all there is; DAT_CNO_FIELD_ALL is 4 */
	NEED(out, 3);
	if ((r = dxQueryCNO(id(cno), &agent)) != DAT_SUCCESS)
		return r;
	memset(out, 0, sizeof *out);
	out->ia_handle = H(cno)->ia;
	if (agent && (kept = dx_memory(cno, sizeof *kept))) {
		out->proxy_type = DAT_PROXY_TYPE_AGENT;
		out->proxy.agent = *kept;
	}
	return DAT_SUCCESS;
}

static DAT_RETURN cno_free(DAT_CNO_HANDLE cno)
{
	ENTRY();
	LIVE(cno, CNO, CNO);
	return freed(cno, dxFreeCNO(id(cno)));
}

static DAT_RETURN cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *out)
{
	GoUint64 evd = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(cno, CNO, CNO);
	NEED(out, 3);
	r = dxWaitCNO(id(cno), timeout, &evd);
	*out = handle(evd);
	return r;
}

static DAT_RETURN cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	return UNSUPPORTED;
}

static DAT_RETURN cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *out)
{
	GoUint64 evd = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(cno, CNO, CNO);
	NEED(out, 2);
	if ((r = dxTriggerCNO(id(cno), &evd)) == DAT_SUCCESS)
		*out = handle(evd);
	return r;
}

/* --- connection requests --- */

static DAT_RETURN cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *out)
{
	ENTRY();
	LIVE(cr, CR, CR);
	NEED(!(mask & ~DAT_CR_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	return dxQueryCR(id(cr), (uintptr_t)cr, out);
}

static DAT_RETURN cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data)
{
	ENTRY();
	LIVE(cr, CR, CR);
	LIVE_OR_NULL(ep, EP, EP);
	NEED(size >= 0, 3);
	NEED(data || !size, 4);
	return freed(cr, dxAccept(id(cr), id(ep), data, size));
}

static DAT_RETURN cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data)
{
	GoUint64 ep = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(cr, CR, CR);
	NEED(size >= 0, 2);
	NEED(data || !size, 3);
	r = dxReject(id(cr), data, size, &ep);
	if (r == DAT_SUCCESS && ep)
		dx_bury(handle(ep));
	return freed(cr, r);
}

static DAT_RETURN cr_handoff(DAT_CR_HANDLE cr, DAT_CONN_QUAL qual)
{
	GoUint64 ep = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(cr, CR, CR);
	r = dxHandoff(id(cr), qual, &ep);
	if (r == DAT_SUCCESS && ep)
		dx_bury(handle(ep));
	return freed(cr, r);
}

/* --- EVD --- */

static DAT_RETURN evd_create(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
	DAT_EVD_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE_OR_NULL(cno, CNO, CNO);
	NEED(out, 5);
	MAKE(h, ia, EVD);
	return made(h, dxCreateEVD(id(ia), qlen, id(cno), flags, (uintptr_t)h), out);
}

static DAT_RETURN evd_query(DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *out)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	NEED(!(mask & ~DAT_EVD_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(evd)->ia;
	return dxQueryEVD(id(evd), out);
}

static DAT_RETURN evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	LIVE_OR_NULL(cno, CNO, CNO);
	return dxModifyCNO(id(evd), id(cno));
}

static DAT_RETURN evd_enable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	return dxEnableEVD(id(evd), 1);
}

static DAT_RETURN evd_disable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	return dxEnableEVD(id(evd), 0);
}

static DAT_RETURN evd_set_unwaitable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	return dxSetWaitable(id(evd), 0);
}

static DAT_RETURN evd_clear_unwaitable(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	return dxSetWaitable(id(evd), 1);
}

/* Events of the extensions tell in their own part what they are. */
static void fill_extension(DAT_EVENT *out, const struct dx_event *e)
{
	DAT_IB_EXTENSION_EVENT_DATA *x = (DAT_IB_EXTENSION_EVENT_DATA *)out->event_extension_data;

	memset(out->event_extension_data, 0, sizeof out->event_extension_data);
	x->type = e->extension;
	x->status = e->status;
	x->val.immed.data = e->immediate;
}

/* The address of an IA, which libdat2 has queried when it opened it. */
static DAT_IA_ADDRESS_PTR address(struct dx_handle *ia)
{
	struct dx_ia_more *more = dx_memory(ia, sizeof *more);

	return more ? (DAT_IA_ADDRESS_PTR)&more->address : NULL;
}

static void fill_request(DAT_EVENT *out, const struct dx_event *e)
{
	DAT_CR_ARRIVAL_EVENT_DATA *d = &out->event_data.cr_arrival_event_data;

	d->cr_handle = handle(e->cr);
	d->sp_handle.psp_handle = handle(e->object);
	d->local_ia_address_ptr = address(H(d->cr_handle)->ia);
	d->conn_qual = e->qual;
	d->truncate_flag = DAT_FALSE;
}

static inline void fill_completion(DAT_EVENT *out, const struct dx_event *e)
{
	DAT_DTO_COMPLETION_EVENT_DATA *d = &out->event_data.dto_completion_event_data;

	d->ep_handle = handle(e->object);
	d->user_cookie.as_64 = e->cookie;
	d->status = e->status;
	d->transfered_length = e->length;
	d->operation = e->operation;
	d->rmr_context = e->rmr_context;
}

static void fill_bind(DAT_EVENT *out, const struct dx_event *e)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *d = &out->event_data.rmr_completion_event_data;

	d->rmr_handle = handle(e->object);
	d->user_cookie.as_64 = e->cookie;
	d->status = e->status;
}

static void fill_connection(DAT_EVENT *out, const struct dx_event *e)
{
	DAT_CONNECTION_EVENT_DATA *d = &out->event_data.connect_event_data;

	d->ep_handle = handle(e->object);
	d->private_data_size = e->length;
	d->private_data = handle(e->private_data);
}

static void fill(DAT_EVENT *out, DAT_EVD_HANDLE evd, const struct dx_event *e)
{
	out->event_number = e->number;
	out->evd_handle = evd;
	switch ((uint32_t)e->number & 0xff000) {
	case 0:
		fill_completion(out, e);
		break;
	case DAT_IB_DTO_EVENT:
		fill_completion(out, e);
		fill_extension(out, e);
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT & 0xff000:
		fill_bind(out, e);
		break;
	case DAT_CONNECTION_REQUEST_EVENT & 0xff000:
		fill_request(out, e);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED & 0xff000:
		fill_connection(out, e);
		break;
	case DAT_SOFTWARE_EVENT & 0xff000:
		out->event_data.software_event_data.pointer = handle(e->cookie);
		break;
	default:
		out->event_data.asynch_error_event_data.dat_handle = handle(e->object);
		out->event_data.asynch_error_event_data.reason = e->reason;
	}
}

static DAT_RETURN evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT *out, DAT_COUNT *nmore)
{
	struct dx_event e;
	DAT_RETURN r;

	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	NEED(out, 4);
	NEED(nmore, 5);
	if ((r = dxWait(id(evd), timeout, threshold, &e, nmore)) == DAT_SUCCESS)
		fill(out, evd, &e);
	return r;
}

static DAT_RETURN evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *out)
{
	struct dx_event e;
	DAT_RETURN r;

	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	NEED(out, 2);
	if ((r = dxDequeue(id(evd), &e)) == DAT_SUCCESS)
		fill(out, evd, &e);
	return r;
}

static DAT_RETURN evd_post_se(DAT_EVD_HANDLE evd, const DAT_EVENT *event)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	NEED(event, 2);
	return dxPostSE(id(evd), event->event_number, (uintptr_t)event->event_data.software_event_data.pointer);
}

static DAT_RETURN evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT qlen)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	return dxResizeEVD(id(evd), qlen);
}

static DAT_RETURN evd_free(DAT_EVD_HANDLE evd)
{
	ENTRY();
	LIVE(evd, EVD, EVD_CR);
	return freed(evd, dxFreeEVD(id(evd)));
}

/* --- service points --- */

static DAT_RETURN psp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
	DAT_PSP_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE(evd, EVD, EVD_CR);
	NEED(out, 5);
	MAKE(h, ia, PSP);
	return made(h, dxCreatePSP(id(ia), qual, id(evd), flags, (uintptr_t)h), out);
}

static DAT_RETURN psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
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

static DAT_RETURN psp_query(DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *out)
{
	ENTRY();
	LIVE(psp, PSP, PSP);
	NEED(!(mask & ~DAT_PSP_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(psp)->ia;
	return dxQueryPSP(id(psp), out);
}

static DAT_RETURN psp_free(DAT_PSP_HANDLE psp)
{
	ENTRY();
	LIVE(psp, PSP, PSP);
	return freed(psp, dxFreePSP(id(psp)));
}

static DAT_RETURN rsp_create(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd,
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

static DAT_RETURN rsp_query(DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *out)
{
	ENTRY();
	LIVE(rsp, RSP, RSP);
	NEED(!(mask & ~DAT_RSP_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(rsp)->ia;
	return dxQueryRSP(id(rsp), out);
}

static DAT_RETURN rsp_free(DAT_RSP_HANDLE rsp)
{
	ENTRY();
	LIVE(rsp, RSP, RSP);
	return freed(rsp, dxFreeRSP(id(rsp)));
}

static DAT_RETURN csp_create(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd,
	DAT_CSP_HANDLE *out)
{
	ENTRY();
	return UNSUPPORTED;
}

static DAT_RETURN csp_query(DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *out)
{
	ENTRY();
	return UNSUPPORTED;
}

static DAT_RETURN csp_free(DAT_CSP_HANDLE csp)
{
	ENTRY();
	return UNSUPPORTED;
}

/* --- EP --- */

static DAT_RETURN ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
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

static DAT_RETURN ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
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

static DAT_RETURN ep_query(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *out)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(!(mask & ~DAT_EP_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(ep)->ia;
	return dxQueryEP(id(ep), (uintptr_t)ep, out);
}

static DAT_RETURN ep_modify(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *p)
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

static DAT_RETURN ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
	DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(to, 2);
	NEED(size >= 0, 5);
	NEED(data || !size, 6);
	return dxConnect(id(ep), to, qual, timeout, data, size, qos, flags);
}

static DAT_RETURN ep_common_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_TIMEOUT timeout, DAT_COUNT size,
	const DAT_PVOID data)
{
	ENTRY();
	return UNSUPPORTED;
}

static DAT_RETURN ep_dup_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout, DAT_COUNT size,
	const DAT_PVOID data, DAT_QOS qos)
{
	ENTRY();
	LIVE(ep, EP, EP);
	LIVE(dup, EP, EP);
	NEED(size >= 0, 4);
	NEED(data || !size, 5);
	return dxDupConnect(id(ep), id(dup), timeout, data, size, qos);
}

static DAT_RETURN ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return dxDisconnect(id(ep), flags);
}

static DAT_RETURN ep_reset(DAT_EP_HANDLE ep)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return dxResetEP(id(ep));
}

static DAT_RETURN ep_get_status(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
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

static DAT_RETURN ep_free(DAT_EP_HANDLE ep)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return freed(ep, dxFreeEP(id(ep)));
}

#define NEED_IOV()                     \
	do {                           \
		NEED(n >= 0, 2);       \
		NEED(iov || !n, 3);    \
	} while (0)

static DAT_RETURN ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	return dxPostSend(id(ep), n, iov, cookie.as_64, flags);
}

static DAT_RETURN ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	if (!invalidate)
		return dxPostSend(id(ep), n, iov, cookie.as_64, flags);
	return dxPostSendInvalidate(id(ep), n, iov, cookie.as_64, flags, context);
}

static DAT_RETURN ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	return dxPostRecv(id(ep), n, iov, cookie.as_64, flags);
}

static DAT_RETURN ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	NEED(remote, 5);
	return dxPostRead(id(ep), n, iov, cookie.as_64, remote->virtual_address, remote->segment_length,
		remote->rmr_context, flags);
}

static DAT_RETURN ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
	const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED(local, 2);
	NEED(remote, 4);
	return dxPostReadToRMR(id(ep), (DAT_RMR_TRIPLET *)local, cookie.as_64, (DAT_RMR_TRIPLET *)remote, flags);
}

static DAT_RETURN ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
	const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ENTRY();
	LIVE(ep, EP, EP);
	NEED_IOV();
	NEED(remote, 5);
	return dxPostWrite(id(ep), n, iov, cookie.as_64, remote->virtual_address, remote->segment_length,
		remote->rmr_context, flags);
}

static DAT_RETURN ep_recv_query(DAT_EP_HANDLE ep, DAT_COUNT *nbufs, DAT_COUNT *span)
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

static DAT_RETURN ep_set_watermark(DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard)
{
	ENTRY();
	LIVE(ep, EP, EP);
	return dxSetWatermark(id(ep), soft, hard);
}

/* --- SRQ --- */

static DAT_RETURN srq_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	LIVE(pz, PZ, PZ);
	NEED(attr, 3);
	NEED(out, 4);
	MAKE(h, ia, SRQ);
	return made(h, dxCreateSRQ(id(ia), id(pz), attr->max_recv_dtos, attr->max_recv_iov, attr->low_watermark, (uintptr_t)h), out);
}

static DAT_RETURN srq_query(DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *out)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	NEED(!(mask & ~DAT_SRQ_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(srq)->ia;
	return dxQuerySRQ(id(srq), out);
}

static DAT_RETURN srq_resize(DAT_SRQ_HANDLE srq, DAT_COUNT size)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	return dxResizeSRQ(id(srq), size);
}

static DAT_RETURN srq_set_lw(DAT_SRQ_HANDLE srq, DAT_COUNT watermark)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	return dxSetLW(id(srq), watermark);
}

static DAT_RETURN srq_post_recv(DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	NEED_IOV();
	return dxPostSRQ(id(srq), n, iov, cookie.as_64);
}

static DAT_RETURN srq_free(DAT_SRQ_HANDLE srq)
{
	ENTRY();
	LIVE(srq, SRQ, SRQ);
	return freed(srq, dxFreeSRQ(id(srq)));
}

/* --- PZ --- */

static DAT_RETURN pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(out, 2);
	MAKE(h, ia, PZ);
	return made(h, dxCreatePZ(id(ia), (uintptr_t)h), out);
}

static DAT_RETURN pz_query(DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *out)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	NEED(!(mask & ~DAT_PZ_FIELD_ALL), 2);
	NEED(out, 3);
	out->ia_handle = H(pz)->ia;
	return DAT_SUCCESS;
}

static DAT_RETURN pz_free(DAT_PZ_HANDLE pz)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	return freed(pz, dxFreePZ(id(pz)));
}

/* --- LMR --- */

static DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
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

static DAT_RETURN lmr_query(DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *out)
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

static DAT_RETURN lmr_sync_rdma_read(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(segments || !n, 2);
	return dxSync(id(ia), (DAT_LMR_TRIPLET *)segments, n, 0);
}

static DAT_RETURN lmr_sync_rdma_write(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n)
{
	ENTRY();
	LIVE(ia, IA, IA);
	NEED(segments || !n, 2);
	return dxSync(id(ia), (DAT_LMR_TRIPLET *)segments, n, 1);
}

static DAT_RETURN lmr_free(DAT_LMR_HANDLE lmr)
{
	ENTRY();
	LIVE(lmr, LMR, LMR);
	return freed(lmr, dxFreeLMR(id(lmr)));
}

/* --- RMR --- */

static DAT_RETURN rmr_create(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	NEED(out, 2);
	MAKE(h, pz, RMR);
	return made(h, dxCreateRMR(id(pz), 0, (uintptr_t)h), out);
}

static DAT_RETURN rmr_create_for_ep(DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out)
{
	ENTRY();
	LIVE(pz, PZ, PZ);
	NEED(out, 2);
	MAKE(h, pz, RMR);
	return made(h, dxCreateRMR(id(pz), 1, (uintptr_t)h), out);
}

static DAT_RETURN rmr_query(DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *out)
{
	ENTRY();
	LIVE(rmr, RMR, RMR);
	NEED(!(mask & ~DAT_RMR_FIELD_ALL), 2);
	NEED(out, 3);
	memset(out, 0, sizeof *out);
	out->ia_handle = H(rmr)->ia;
	return dxQueryRMR(id(rmr), out);
}

static DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *t, DAT_MEM_PRIV_FLAGS priv,
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

static DAT_RETURN rmr_free(DAT_RMR_HANDLE rmr)
{
	ENTRY();
	LIVE(rmr, RMR, RMR);
	return freed(rmr, dxFreeRMR(id(rmr)));
}

/* --- extensions --- */

static DAT_RETURN write_immed(DAT_EP_HANDLE ep, va_list args)
{
	DAT_COUNT n = va_arg(args, DAT_COUNT);
	DAT_LMR_TRIPLET *iov = va_arg(args, DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	const DAT_RMR_TRIPLET *remote = va_arg(args, DAT_RMR_TRIPLET *);
	DAT_UINT32 immediate = va_arg(args, DAT_UINT32);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);

	NEED_IOV();
	NEED(remote, 5);
	return dxPostWriteImm(id(ep), n, iov, cookie.as_64, (DAT_RMR_TRIPLET *)remote, immediate, flags);
}

static DAT_RETURN atomic(DAT_EP_HANDLE ep, int swap, va_list args)
{
	DAT_UINT64 first = va_arg(args, DAT_UINT64);
	DAT_UINT64 second = swap ? va_arg(args, DAT_UINT64) : 0;
	DAT_LMR_TRIPLET *local = va_arg(args, DAT_LMR_TRIPLET *);
	DAT_DTO_COOKIE cookie = va_arg(args, DAT_DTO_COOKIE);
	DAT_RMR_TRIPLET *remote = va_arg(args, DAT_RMR_TRIPLET *);
	DAT_COMPLETION_FLAGS flags = va_arg(args, DAT_COMPLETION_FLAGS);

	NEED(local, 4);
	NEED(remote, 6);
	if (swap)
		return dxPostCmpSwap(id(ep), first, second, local, cookie.as_64, remote, flags);
	return dxPostFetchAdd(id(ep), first, local, cookie.as_64, remote, flags);
}

DAT_RETURN dx_extended(DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args)
{
	ENTRY();
	switch ((int)op) {
	case DAT_IB_RDMA_WRITE_IMMED_OP:
		LIVE(h, EP, EP);
		return write_immed(h, args);
	case DAT_IB_FETCH_AND_ADD_OP:
	case DAT_IB_CMP_AND_SWAP_OP:
		LIVE(h, EP, EP);
		return atomic(h, op == DAT_IB_CMP_AND_SWAP_OP, args);
	case DAT_IB_OPEN_QUERY_OP:
		return dx_open_query(h, args);
	case DAT_IB_CLOSE_QUERY_OP:
		return dx_ia_close(h, DAT_CLOSE_ABRUPT_FLAG);
	default:
		return ERROR(DAT_NOT_IMPLEMENTED, 0);
	}
}

const DAT_PROVIDER dx_entries[2] = {
#define ENTRIES(open)                                                                                                        \
	{                                                                                                                    \
		.ia_open_func = open, .ia_query_func = dx_ia_query, .ia_close_func = dx_ia_close,                            \
		.set_consumer_context_func = set_consumer_context, .get_consumer_context_func = get_consumer_context,        \
		.get_handle_type_func = get_handle_type,                                                                     \
		.cno_create_func = cno_create, .cno_modify_agent_func = cno_modify_agent, .cno_query_func = cno_query,       \
		.cno_free_func = cno_free, .cno_wait_func = cno_wait, .cno_fd_create_func = cno_fd_create,                   \
		.cno_trigger_func = cno_trigger,                                                                             \
		.cr_query_func = cr_query, .cr_accept_func = cr_accept, .cr_reject_func = cr_reject,                         \
		.cr_handoff_func = cr_handoff,                                                                               \
		.evd_create_func = evd_create, .evd_query_func = evd_query, .evd_modify_cno_func = evd_modify_cno,           \
		.evd_enable_func = evd_enable, .evd_disable_func = evd_disable, .evd_wait_func = evd_wait,                   \
		.evd_resize_func = evd_resize, .evd_post_se_func = evd_post_se, .evd_dequeue_func = evd_dequeue,             \
		.evd_free_func = evd_free, .evd_set_unwaitable_func = evd_set_unwaitable,                                    \
		.evd_clear_unwaitable_func = evd_clear_unwaitable,                                                           \
		.ep_create_func = ep_create, .ep_query_func = ep_query, .ep_modify_func = ep_modify,                         \
		.ep_connect_func = ep_connect, .ep_dup_connect_func = ep_dup_connect, .ep_disconnect_func = ep_disconnect,   \
		.ep_post_send_func = ep_post_send, .ep_post_recv_func = ep_post_recv,                                        \
		.ep_post_rdma_read_func = ep_post_rdma_read, .ep_post_rdma_write_func = ep_post_rdma_write,                  \
		.ep_get_status_func = ep_get_status, .ep_free_func = ep_free, .ep_reset_func = ep_reset,                     \
		.ep_create_with_srq_func = ep_create_with_srq, .ep_recv_query_func = ep_recv_query,                          \
		.ep_set_watermark_func = ep_set_watermark, .ep_common_connect_func = ep_common_connect,                      \
		.ep_post_send_with_invalidate_func = ep_post_send_with_invalidate,                                           \
		.ep_post_rdma_read_to_rmr_func = ep_post_rdma_read_to_rmr,                                                   \
		.lmr_create_func = lmr_create, .lmr_query_func = lmr_query, .lmr_free_func = lmr_free,                       \
		.lmr_sync_rdma_read_func = lmr_sync_rdma_read, .lmr_sync_rdma_write_func = lmr_sync_rdma_write,              \
		.rmr_create_func = rmr_create, .rmr_query_func = rmr_query, .rmr_bind_func = rmr_bind,                       \
		.rmr_free_func = rmr_free, .rmr_create_for_ep_func = rmr_create_for_ep,                                      \
		.psp_create_func = psp_create, .psp_query_func = psp_query, .psp_free_func = psp_free,                       \
		.psp_create_any_func = psp_create_any,                                                                       \
		.rsp_create_func = rsp_create, .rsp_query_func = rsp_query, .rsp_free_func = rsp_free,                       \
		.csp_create_func = csp_create, .csp_query_func = csp_query, .csp_free_func = csp_free,                       \
		.pz_create_func = pz_create, .pz_query_func = pz_query, .pz_free_func = pz_free,                             \
		.srq_create_func = srq_create, .srq_free_func = srq_free, .srq_post_recv_func = srq_post_recv,               \
		.srq_query_func = srq_query, .srq_resize_func = srq_resize, .srq_set_lw_func = srq_set_lw,                   \
		.ia_ha_related_func = ia_ha_related, .handle_extendedop_func = dx_extended,                                  \
	}
	[DAT_FALSE] = ENTRIES(ia_open_unsafe),
	[DAT_TRUE] = ENTRIES(ia_open_safe),
};
