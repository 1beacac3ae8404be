//go:build cgo && datprovider

/* Notification objects. */

#include "entry.h"

/*
 * Returns the memory in which a CNO keeps its agent for dx_cno_query, because Go cannot return the agent. Returns NULL
 * if memory is missing.
 */
static DAT_OS_WAIT_PROXY_AGENT *kept_agent(struct dx_handle *cno)
{
	return dx_memory(cno, sizeof(DAT_OS_WAIT_PROXY_AGENT));
}

DAT_RETURN dx_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *out)
{
	DAT_OS_WAIT_PROXY_AGENT *kept;

	ENTRY();
	LIVE(ia, IA, IA);
	NEED(out, 3);
	MAKE(h, ia, CNO);
	if (!(kept = kept_agent(h))) {
		dx_drop(h);
		return NO_MEMORY;
	}
	*kept = agent;
	return made(h, dxCreateCNO(id(ia), (uintptr_t)agent.proxy_agent_func, (uintptr_t)agent.instance_data, (uintptr_t)h), out);
}

DAT_RETURN dx_cno_modify_agent(DAT_CNO_HANDLE cno, DAT_OS_WAIT_PROXY_AGENT agent)
{
	DAT_OS_WAIT_PROXY_AGENT *kept;
	DAT_RETURN r;

	ENTRY();
	LIVE(cno, CNO, CNO);
	if (!(kept = kept_agent(cno)))
		return NO_MEMORY;
	r = dxModifyAgent(id(cno), (uintptr_t)agent.proxy_agent_func, (uintptr_t)agent.instance_data);
	if (r == DAT_SUCCESS)
		*kept = agent;
	return r;
}

DAT_RETURN dx_cno_query(DAT_CNO_HANDLE cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *out)
{
	const DAT_OS_WAIT_PROXY_AGENT *kept;
	GoUint32 agent = 0;
	DAT_RETURN r;

	ENTRY();
	LIVE(cno, CNO, CNO);
	NEED(!(mask & ~0x7), 2); /* 0x7 has all fields; the header has 4 as DAT_CNO_FIELD_ALL */
	NEED(out, 3);
	if (!(kept = kept_agent(cno)))
		return NO_MEMORY;
	if ((r = dxQueryCNO(id(cno), &agent)) != DAT_SUCCESS)
		return r;
	memset(out, 0, sizeof *out);
	out->ia_handle = H(cno)->ia;
	if (agent) {
		out->proxy_type = DAT_PROXY_TYPE_AGENT;
		out->proxy.agent = *kept;
	}
	return DAT_SUCCESS;
}

DAT_RETURN dx_cno_free(DAT_CNO_HANDLE cno)
{
	ENTRY();
	LIVE(cno, CNO, CNO);
	return freed(cno, dxFreeCNO(id(cno)));
}

DAT_RETURN dx_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *out)
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

DAT_RETURN dx_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *out)
{
	ENTRY();
	LIVE(ia, IA, IA);
	return UNSUPPORTED;
}

DAT_RETURN dx_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *out)
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
