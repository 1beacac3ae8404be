//go:build cgo && datprovider

/*
 * The tables of entries that libdat2 calls, plain ones, and logged ones for DATXDP_LOG=debug. Logged entries log the name,
 * the result and the reason of each refused call. DAT_QUEUE_EMPTY and DAT_TIMEOUT_EXPIRED do not count as refusals.
 *
 * Both refuse a call by a signal handler that has interrupted a call of its thread. Such a call would enter the Go runtime
 * a second time, and end the process. Handlers that call exit run functions that may close the adapter.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entry.h"

static __thread char why[512]; /* reason of the current call of this thread */

void dx_because(const char *text) { snprintf(why, sizeof why, "%s", text); }

int dx_logging(void)
{
	const char *level = getenv("DATXDP_LOG");

	return level && !strcasecmp(level, "debug");
}

void dx_report(const char *text)
{
	if (getenv("DATXDP_LOG"))
		fprintf(stderr, "level=ERROR msg=\"dat: not opened\" reason=\"%s\"\n", text);
}

static DAT_RETURN tell(const char *call, DAT_RETURN r)
{
	DAT_RETURN type = DAT_GET_TYPE(r);
	const char *major = "", *minor = "";

	if (type == DAT_SUCCESS || type == DAT_QUEUE_EMPTY || type == DAT_TIMEOUT_EXPIRED)
		return r;
	if (!dx_ready) { /* Go cannot write the log: it does not run yet, or this is the child of a fork */
		dat_strerror(r, &major, &minor);
		fprintf(stderr, "level=DEBUG msg=refused call=%s error=%s reason=\"%s\"\n", call, major, why);
	} else {
		dxRefused((char *)call, r, why);
	}
	return r;
}

static __thread int inside __attribute__((tls_model("initial-exec"))); /* 1 while this thread is in a call */

static __attribute__((cold)) DAT_RETURN interrupted(void)
{
	return ERROR(DAT_INVALID_STATE, 0, "a signal handler has interrupted another call of this thread");
}

#define LOGGED_AS(call, name, params, args)                     \
	static DAT_RETURN plain_##name params                   \
	{                                                       \
		DAT_RETURN r;                                   \
                                                                \
		if (__builtin_expect(inside, 0))                \
			return interrupted();                   \
		inside = 1;                                     \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);        \
		r = dx_##name args;                             \
		__atomic_signal_fence(__ATOMIC_SEQ_CST);        \
		inside = 0;                                     \
		return r;                                       \
	}                                                       \
	static DAT_RETURN logged_##name params                  \
	{                                                       \
		if (inside)                                     \
			return interrupted();                   \
		why[0] = 0;                                     \
		return tell(call, plain_##name args);           \
	}
#define LOGGED(name, params, args) LOGGED_AS("dat_" #name, name, params, args)

LOGGED_AS("dat_ia_open", ia_open_unsafe,
	(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia), (name, qlen, async, ia))
LOGGED_AS("dat_ia_open", ia_open_safe,
	(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia), (name, qlen, async, ia))
LOGGED(ia_query,
	(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *attr,
		DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider),
	(ia, async, ia_mask, attr, provider_mask, provider))
LOGGED(ia_close, (DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags), (ia, flags))
LOGGED(set_consumer_context, (DAT_HANDLE h, DAT_CONTEXT context), (h, context))
LOGGED(get_consumer_context, (DAT_HANDLE h, DAT_CONTEXT *out), (h, out))
LOGGED(get_handle_type, (DAT_HANDLE h, DAT_HANDLE_TYPE *out), (h, out))
LOGGED(cno_create, (DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *out), (ia, agent, out))
LOGGED(cno_modify_agent, (DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent), (cno, agent))
LOGGED(cno_query, (DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *out), (cno, mask, out))
LOGGED(cno_free, (DAT_CNO_HANDLE cno), (cno))
LOGGED(cno_wait, (DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *out), (cno, timeout, out))
LOGGED(cno_fd_create, (DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *out), (ia, fd, out))
LOGGED(cno_trigger, (DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *out), (cno, out))
LOGGED(cr_query, (DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *out), (cr, mask, out))
LOGGED(cr_accept, (DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data), (cr, ep, size, data))
LOGGED(cr_reject, (DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data), (cr, size, data))
LOGGED(cr_handoff, (DAT_CR_HANDLE cr, DAT_CONN_QUAL qual), (cr, qual))
LOGGED(evd_create,
	(DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *out),
	(ia, qlen, cno, flags, out))
LOGGED(evd_query, (DAT_EVD_HANDLE evd, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM *out), (evd, mask, out))
LOGGED(evd_modify_cno, (DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno), (evd, cno))
LOGGED(evd_enable, (DAT_EVD_HANDLE evd), (evd))
LOGGED(evd_disable, (DAT_EVD_HANDLE evd), (evd))
LOGGED(evd_wait,
	(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT *out, DAT_COUNT *nmore),
	(evd, timeout, threshold, out, nmore))
LOGGED(evd_resize, (DAT_EVD_HANDLE evd, DAT_COUNT qlen), (evd, qlen))
LOGGED(evd_post_se, (DAT_EVD_HANDLE evd, const DAT_EVENT *event), (evd, event))
LOGGED(evd_dequeue, (DAT_EVD_HANDLE evd, DAT_EVENT *out), (evd, out))
LOGGED(evd_free, (DAT_EVD_HANDLE evd), (evd))
LOGGED(evd_set_unwaitable, (DAT_EVD_HANDLE evd), (evd))
LOGGED(evd_clear_unwaitable, (DAT_EVD_HANDLE evd), (evd))
LOGGED(ep_create,
	(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
		const DAT_EP_ATTR *attr, DAT_EP_HANDLE *out),
	(ia, pz, recv, request, connect, attr, out))
LOGGED(ep_query, (DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, DAT_EP_PARAM *out), (ep, mask, out))
LOGGED(ep_modify, (DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM *p), (ep, mask, p))
LOGGED(ep_connect,
	(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout, DAT_COUNT size,
		const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags),
	(ep, to, qual, timeout, size, data, qos, flags))
LOGGED(ep_dup_connect,
	(DAT_EP_HANDLE ep, DAT_EP_HANDLE dup, DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos),
	(ep, dup, timeout, size, data, qos))
LOGGED(ep_disconnect, (DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags), (ep, flags))
LOGGED(ep_post_send,
	(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags),
	(ep, n, iov, cookie, flags))
LOGGED(ep_post_recv,
	(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags),
	(ep, n, iov, cookie, flags))
LOGGED(ep_post_rdma_read,
	(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		DAT_COMPLETION_FLAGS flags),
	(ep, n, iov, cookie, remote, flags))
LOGGED(ep_post_rdma_write,
	(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		DAT_COMPLETION_FLAGS flags),
	(ep, n, iov, cookie, remote, flags))
LOGGED(ep_get_status,
	(DAT_EP_HANDLE ep, DAT_EP_STATE *state, DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle),
	(ep, state, recv_idle, request_idle))
LOGGED(ep_free, (DAT_EP_HANDLE ep), (ep))
LOGGED(ep_reset, (DAT_EP_HANDLE ep), (ep))
LOGGED(ep_create_with_srq,
	(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
		DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *out),
	(ia, pz, recv, request, connect, srq, attr, out))
LOGGED(ep_recv_query, (DAT_EP_HANDLE ep, DAT_COUNT *nbufs, DAT_COUNT *span), (ep, nbufs, span))
LOGGED(ep_set_watermark, (DAT_EP_HANDLE ep, DAT_COUNT soft, DAT_COUNT hard), (ep, soft, hard))
LOGGED(ep_common_connect,
	(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data),
	(ep, to, timeout, size, data))
LOGGED(ep_post_send_with_invalidate,
	(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
		DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context),
	(ep, n, iov, cookie, flags, invalidate, context))
LOGGED(ep_post_rdma_read_to_rmr,
	(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET *local, DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
		DAT_COMPLETION_FLAGS flags),
	(ep, local, cookie, remote, flags))
LOGGED(lmr_create,
	(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz,
		DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va, DAT_LMR_HANDLE *out, DAT_LMR_CONTEXT *lmr_context,
		DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *size, DAT_VADDR *address),
	(ia, type, region, length, pz, priv, va, out, lmr_context, rmr_context, size, address))
LOGGED(lmr_query, (DAT_LMR_HANDLE lmr, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM *out), (lmr, mask, out))
LOGGED(lmr_free, (DAT_LMR_HANDLE lmr), (lmr))
LOGGED(lmr_sync_rdma_read, (DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n), (ia, segments, n))
LOGGED(lmr_sync_rdma_write, (DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n), (ia, segments, n))
LOGGED(rmr_create, (DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out), (pz, out))
LOGGED(rmr_query, (DAT_RMR_HANDLE rmr, DAT_RMR_PARAM_MASK mask, DAT_RMR_PARAM *out), (rmr, mask, out))
LOGGED(rmr_bind,
	(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET *t, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va,
		DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT *context),
	(rmr, lmr, t, priv, va, ep, cookie, flags, context))
LOGGED(rmr_free, (DAT_RMR_HANDLE rmr), (rmr))
LOGGED(rmr_create_for_ep, (DAT_PZ_HANDLE pz, DAT_RMR_HANDLE *out), (pz, out))
LOGGED(psp_create,
	(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *out),
	(ia, qual, evd, flags, out))
LOGGED(psp_query, (DAT_PSP_HANDLE psp, DAT_PSP_PARAM_MASK mask, DAT_PSP_PARAM *out), (psp, mask, out))
LOGGED(psp_free, (DAT_PSP_HANDLE psp), (psp))
LOGGED(psp_create_any,
	(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *out),
	(ia, qual, evd, flags, out))
LOGGED(rsp_create,
	(DAT_IA_HANDLE ia, DAT_CONN_QUAL qual, DAT_EP_HANDLE ep, DAT_EVD_HANDLE evd, DAT_RSP_HANDLE *out),
	(ia, qual, ep, evd, out))
LOGGED(rsp_query, (DAT_RSP_HANDLE rsp, DAT_RSP_PARAM_MASK mask, DAT_RSP_PARAM *out), (rsp, mask, out))
LOGGED(rsp_free, (DAT_RSP_HANDLE rsp), (rsp))
LOGGED(csp_create,
	(DAT_IA_HANDLE ia, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd, DAT_CSP_HANDLE *out),
	(ia, comm, address, evd, out))
LOGGED(csp_query, (DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM *out), (csp, mask, out))
LOGGED(csp_free, (DAT_CSP_HANDLE csp), (csp))
LOGGED(pz_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE *out), (ia, out))
LOGGED(pz_query, (DAT_PZ_HANDLE pz, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *out), (pz, mask, out))
LOGGED(pz_free, (DAT_PZ_HANDLE pz), (pz))
LOGGED(srq_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *out), (ia, pz, attr, out))
LOGGED(srq_free, (DAT_SRQ_HANDLE srq), (srq))
LOGGED(srq_post_recv,
	(DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie),
	(srq, n, iov, cookie))
LOGGED(srq_query, (DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *out), (srq, mask, out))
LOGGED(srq_resize, (DAT_SRQ_HANDLE srq, DAT_COUNT size), (srq, size))
LOGGED(srq_set_lw, (DAT_SRQ_HANDLE srq, DAT_COUNT watermark), (srq, watermark))
LOGGED(ia_ha_related, (DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer), (ia, name, answer))
LOGGED_AS("dat_extension_op", handle_extendedop, (DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args), (h, op, args))

#define PLAIN(name) .name##_func = plain_##name,

const DAT_PROVIDER dx_entries[2] = {
	[DAT_FALSE] = {.ia_open_func = plain_ia_open_unsafe, DX_ENTRIES(PLAIN)},
	[DAT_TRUE] = {.ia_open_func = plain_ia_open_safe, DX_ENTRIES(PLAIN)},
};

#define SLOT(name) .name##_func = logged_##name,

const DAT_PROVIDER dx_logged_entries[2] = {
	[DAT_FALSE] = {.ia_open_func = logged_ia_open_unsafe, DX_ENTRIES(SLOT)},
	[DAT_TRUE] = {.ia_open_func = logged_ia_open_safe, DX_ENTRIES(SLOT)},
};
