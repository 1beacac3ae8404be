//go:build cgo && datprovider

/* Dequeues events, and converts the flat events of Go to DAT_EVENT. */

#include "entry.h"

/* Fills in the part of an event that only events of extended operations have. */
static void fill_extension(DAT_EVENT *out, const struct dx_event *e)
{
	DAT_IB_EXTENSION_EVENT_DATA *x = (DAT_IB_EXTENSION_EVENT_DATA *)out->event_extension_data;

	memset(out->event_extension_data, 0, sizeof out->event_extension_data);
	x->type = e->extension;
	x->status = e->status;
	x->val.immed.data = e->immediate;
}

/* Returns the address of an IA. The memory already has it, because libdat2 queries each IA that it opens. */
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
	d->local_ia_address_ptr = d->cr_handle ? address(H(d->cr_handle)->ia) : NULL;
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

DAT_RETURN dx_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout, DAT_COUNT threshold, DAT_EVENT *out, DAT_COUNT *nmore)
{
	struct dx_event e;
	DAT_RETURN r;

	ENTRY();
	LIVE_EVD(evd);
	NEED(out, 4);
	NEED(nmore, 5);
	if ((r = dxWait(id(evd), timeout, threshold, &e, nmore)) == DAT_SUCCESS)
		fill(out, evd, &e);
	return r;
}

DAT_RETURN dx_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *out)
{
	struct dx_event e;
	DAT_RETURN r;

	ENTRY();
	LIVE_EVD(evd);
	NEED(out, 2);
	if ((r = dxDequeue(id(evd), &e)) == DAT_SUCCESS)
		fill(out, evd, &e);
	return r;
}
