/*
 * Tests of calls that Debian's test programs do not make. calls IA TEST runs one; it says "ok TEST", or a
 * line with FAILED for each check that failed. The adapter talks to itself.
 */

#include "calls.h"

/* --- remote memory regions: bound to a part of memory with fewer rights than that has --- */

static DAT_RMR_CONTEXT bind_to(struct point *p, DAT_RMR_HANDLE rmr, size_t at, DAT_SEG_LENGTH n, DAT_MEM_PRIV_FLAGS priv)
{
	DAT_LMR_TRIPLET t = piece(p, at, n);
	DAT_RMR_CONTEXT context = 0;
	DAT_EVENT ev;

	MUST(dat_rmr_bind(rmr, p->lmr, &t, priv, DAT_VA_TYPE_VA, p->ep, cookie(99), DAT_COMPLETION_DEFAULT_FLAG, &context));
	ev = await(p->request, DAT_RMR_BIND_COMPLETION_EVENT);
	CHECK(ev.event_data.rmr_completion_event_data.rmr_handle == rmr, "bind of another region");
	CHECK(ev.event_data.rmr_completion_event_data.user_cookie.as_64 == 99, "cookie");
	CHECK(ev.event_data.rmr_completion_event_data.status == DAT_RMR_BIND_SUCCESS, "status");
	return context;
}

static void test_rmr(void)
{
	struct point a = make_point(), b = make_point();
	DAT_RMR_CONTEXT context, second;
	DAT_RMR_TRIPLET remote;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET to = piece(&b, 0, 100);

	MUST(dat_rmr_create(a.pz, &rmr));
	WANT(dat_pz_free(a.pz), DAT_INVALID_STATE | DAT_INVALID_STATE_PZ_IN_USE);
	join(&a, &b);
	strcpy(a.mem + 1000, "shown to the peer");
	context = bind_to(&a, rmr, 1000, 100, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	MUST(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	CHECK(param.pz_handle == a.pz && param.rmr_context == context && param.lmr_triplet.segment_length == 100 &&
		param.mem_priv == DAT_MEM_PRIV_REMOTE_READ_FLAG, "query of a bound region");
	WANT(dat_lmr_free(a.lmr), DAT_INVALID_STATE);

	remote = remote_piece(&a, context, 1000, 100);
	MUST(dat_ep_post_rdma_read(b.ep, 1, &to, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
	await_dto(b.request, DAT_DTO_SUCCESS);
	CHECK(!strcmp(b.mem, "shown to the peer"), "read %.20s", b.mem);

	second = bind_to(&a, rmr, 0, 64, DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	CHECK(second != context, "a bind has to give a new context");
	remote = remote_piece(&a, second, 0, 64);
	to.segment_length = 64;
	strcpy(b.mem, "written by the peer");
	MUST(dat_ep_post_rdma_write(b.ep, 1, &to, cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG));
	await_dto(b.request, DAT_DTO_SUCCESS);
	CHECK(!strcmp(a.mem, "written by the peer"), "%.20s was written", a.mem);

	context = bind_to(&a, rmr, 0, 64, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	remote.rmr_context = context; /* may be read only: the write breaks the connection */
	MUST(dat_ep_post_rdma_write(b.ep, 1, &to, cookie(3), &remote, DAT_COMPLETION_DEFAULT_FLAG));
	await_dto(b.request, DAT_DTO_ERR_REMOTE_ACCESS);
	await_connection(&b, DAT_CONNECTION_EVENT_BROKEN);
	await_connection(&a, DAT_CONNECTION_EVENT_BROKEN);
	MUST(dat_rmr_free(rmr));
	WANT(dat_rmr_free(rmr), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_RMR);
	free_point(&a);
	free_point(&b);
}

/* What libdat2 does not export is reached through the table that every handle begins with. */
static void test_table(void)
{
	struct point a = make_point(), b = make_point();
	DAT_LMR_TRIPLET from = piece(&b, 0, 16), into = piece(&a, 64, 16);
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr;
	DAT_DTO_COMPLETION_EVENT_DATA d;
	DAT_BOOLEAN answer;
	DAT_HANDLE h;
	DAT_FD fd;

	MUST(DAT_RMR_CREATE_FOR_EP(a.pz, &rmr));
	join(&a, &b);
	context = bind_to(&a, rmr, 0, 64, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	MUST(dat_ep_post_recv(a.ep, 1, &into, cookie(5), DAT_COMPLETION_DEFAULT_FLAG));
	MUST(DAT_EP_POST_SEND_WITH_INVALIDATE(b.ep, 1, &from, cookie(6), DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, context));
	d = await_dto(a.recv, DAT_DTO_SUCCESS);
	CHECK(d.operation == DAT_DTO_RECEIVE_WITH_INVALIDATE && d.rmr_context == context, "operation %d, context %#x", d.operation, d.rmr_context);
	await_dto(b.request, DAT_DTO_SUCCESS);
	WANT(((DAT_PROVIDER *)*(void **)a.ep)->cno_fd_create_func(a.ep, &fd, &h), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
	WANT(((DAT_PROVIDER *)*(void **)a.ep)->csp_free_func(a.ep), DAT_MODEL_NOT_SUPPORTED);
	WANT(((DAT_PROVIDER *)*(void **)a.ep)->ia_ha_related_func(a.ep, "x", &answer), DAT_MODEL_NOT_SUPPORTED);
	MUST(dat_rmr_free(rmr));
	free_point(&a);
	free_point(&b);
}

/* --- shared receive queues --- */

static void test_srq(void)
{
	struct point a = make_base(), b = make_point();
	DAT_SRQ_ATTR attr = {.max_recv_dtos = 16, .max_recv_iov = 2, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_EP_ATTR ep_attr = {.max_recv_dtos = 8, .max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1};
	DAT_LMR_TRIPLET t, from = piece(&b, 0, 64);
	DAT_DTO_COMPLETION_EVENT_DATA d;
	DAT_SRQ_PARAM param;
	DAT_COUNT held, span;
	DAT_SRQ_HANDLE srq;
	DAT_EVENT ev;
	int i;

	MUST(dat_srq_create(ia, a.pz, &attr, &srq));
	WANT(dat_ep_create_with_srq(ia, a.pz, a.recv, a.request, a.connect, a.pz, &ep_attr, &a.ep), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_SRQ);
	MUST(dat_ep_create_with_srq(ia, a.pz, a.recv, a.request, a.connect, srq, &ep_attr, &a.ep));
	WANT(dat_srq_free(srq), DAT_INVALID_STATE | DAT_INVALID_STATE_SRQ_IN_USE);
	for (i = 0; i < 4; i++) {
		t = piece(&a, i * 64, 64);
		MUST(dat_srq_post_recv(srq, 1, &t, cookie(i)));
	}
	WANT(dat_ep_post_recv(a.ep, 1, &t, cookie(9), DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE);
	MUST(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	CHECK(param.srq_state == DAT_SRQ_STATE_OPERATIONAL && param.pz_handle == a.pz && param.max_recv_dtos >= 16 &&
		param.available_dto_count == 4 && param.outstanding_dto_count == 4, "state %d, %d available, %d outstanding",
		param.srq_state, param.available_dto_count, param.outstanding_dto_count);
	WANT(dat_srq_resize(srq, 2), DAT_INVALID_STATE);
	MUST(dat_srq_resize(srq, 32));
	MUST(dat_srq_set_lw(srq, 3));
	MUST(dat_ep_recv_query(a.ep, &held, &span));
	CHECK(held == 0 && span == 0, "%d held, span %d", held, span);
	join(&a, &b);
	for (i = 0; i < 2; i++) {
		MUST(dat_ep_post_send(b.ep, 1, &from, cookie(100 + i), DAT_COMPLETION_DEFAULT_FLAG));
		d = await_dto(a.recv, DAT_DTO_SUCCESS);
		CHECK(d.ep_handle == a.ep && d.user_cookie.as_64 == (uint64_t)i && d.transfered_length == 64, "cookie %llu",
			(unsigned long long)d.user_cookie.as_64);
		await_dto(b.request, DAT_DTO_SUCCESS);
	}
	MUST(dat_evd_dequeue(async_evd, &ev)); /* two are left, which is fewer than three */
	CHECK(ev.event_data.asynch_error_event_data.dat_handle == srq, "event of %p, want %p", ev.event_data.asynch_error_event_data.dat_handle, srq);
	CHECK(ev.event_data.asynch_error_event_data.reason == DAT_SRQ_LOW_WATERMARK_EVENT, "reason %d", ev.event_data.asynch_error_event_data.reason);
	MUST(dat_ep_free(a.ep));
	a.ep = NULL;
	MUST(dat_srq_free(srq));
	free_point(&a);
	free_point(&b);
}

/* --- notification objects --- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int calls;
	void *instance, *evd;
} seen = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, NULL};

static void agent(DAT_PVOID instance, DAT_EVD_HANDLE evd)
{
	pthread_mutex_lock(&seen.lock);
	seen.calls++;
	seen.instance = instance;
	seen.evd = evd;
	pthread_cond_signal(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static void post_se(DAT_EVD_HANDLE evd, void *pointer)
{
	DAT_EVENT ev = {.event_number = DAT_SOFTWARE_EVENT, .event_data.software_event_data.pointer = pointer};

	MUST(dat_evd_post_se(evd, &ev));
}

static void test_cno(void)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = {.instance_data = &failures, .proxy_agent_func = agent};
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd, got = &failures;
	DAT_CNO_PARAM param;
	DAT_EVD_PARAM evd_param;
	DAT_EVENT ev;

	MUST(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	MUST(dat_evd_create(ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &evd_param));
	CHECK(evd_param.cno_handle == cno && evd_param.evd_flags == DAT_EVD_SOFTWARE_FLAG && evd_param.evd_qlen >= 8, "query");
	WANT(dat_cno_free(cno), DAT_INVALID_STATE);
	WANT(dat_cno_wait(cno, 1000, &got), DAT_QUEUE_EMPTY);
	CHECK(got == NULL, "a time-out has no dispatcher");
	post_se(evd, &got);
	MUST(dat_cno_wait(cno, 20 * SECOND, &got));
	CHECK(got == evd, "triggered by %p, want %p", got, evd);
	ev = await(evd, DAT_SOFTWARE_EVENT);
	CHECK(ev.event_data.software_event_data.pointer == &got && ev.evd_handle == evd, "software event");

	MUST(dat_cno_modify_agent(cno, proxy));
	MUST(dat_cno_query(cno, 7, &param));
	CHECK(param.proxy_type == DAT_PROXY_TYPE_AGENT && param.proxy.agent.proxy_agent_func == agent &&
		param.proxy.agent.instance_data == &failures, "query of a proxy agent");
	post_se(evd, NULL);
	pthread_mutex_lock(&seen.lock);
	while (!seen.calls)
		pthread_cond_wait(&seen.changed, &seen.lock);
	CHECK(seen.calls == 1 && seen.instance == &failures && seen.evd == evd, "call of the agent");
	pthread_mutex_unlock(&seen.lock);
	MUST(dat_cno_query(cno, 7, &param));
	CHECK(param.proxy_type == DAT_PROXY_TYPE_NONE, "an agent is called once");
	MUST(dat_evd_modify_cno(evd, DAT_HANDLE_NULL));
	MUST(dat_cno_free(cno));
	WANT(dat_cno_wait(cno, 0, &got), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CNO);
	MUST(dat_evd_free(evd));
}

/* --- event dispatchers --- */

static void *set_unwaitable(void *evd)
{
	struct timespec t = {.tv_nsec = 20000000};

	nanosleep(&t, NULL); /* if the waiter is not there yet, it comes too late: the same */
	MUST(dat_evd_set_unwaitable(evd));
	return NULL;
}

static void test_evd(void)
{
	DAT_EVENT ev = {.event_number = DAT_SOFTWARE_EVENT};
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	pthread_t thread;
	DAT_COUNT more;
	intptr_t i;

	WANT(dat_evd_create(ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd), DAT_INVALID_PARAMETER);
	MUST(dat_evd_create(ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	WANT(dat_evd_dequeue(evd, &ev), DAT_QUEUE_EMPTY);
	CHECK(dat_evd_dequeue(evd, &ev) == DAT_QUEUE_EMPTY, "an empty queue is told without a class");
	ev.event_number = DAT_DTO_COMPLETION_EVENT;
	WANT(dat_evd_post_se(evd, &ev), DAT_INVALID_PARAMETER);
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	for (i = 0; i < param.evd_qlen; i++)
		post_se(evd, (void *)i);
	ev.event_number = DAT_SOFTWARE_EVENT;
	WANT(dat_evd_post_se(evd, &ev), DAT_QUEUE_FULL);
	WANT(dat_evd_resize(evd, 1), DAT_INVALID_STATE);
	WANT(dat_evd_resize(evd, 0), DAT_INVALID_PARAMETER);
	MUST(dat_evd_resize(evd, 100));
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.evd_qlen >= 100, "%d events fit", param.evd_qlen);
	for (; i < 100; i++)
		post_se(evd, (void *)i);
	WANT(dat_evd_wait(evd, 1000, 101, &ev, &more), param.evd_qlen > 100 ? DAT_TIMEOUT_EXPIRED : DAT_INVALID_PARAMETER);
	MUST(dat_evd_wait(evd, 0, 100, &ev, &more));
	CHECK(more == 99 && ev.event_data.software_event_data.pointer == NULL, "%d more", more);
	for (i = 1; i < 100; i++) {
		MUST(dat_evd_dequeue(evd, &ev));
		CHECK(ev.event_data.software_event_data.pointer == (void *)i, "events out of order at %ld", (long)i);
	}
	pthread_create(&thread, NULL, set_unwaitable, evd);
	WANT(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &ev, &more), DAT_INVALID_STATE);
	pthread_join(thread, NULL);
	WANT(dat_evd_wait(evd, 0, 1, &ev, &more), DAT_INVALID_STATE);
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.evd_state & DAT_EVD_STATE_UNWAITABLE, "state %#x", param.evd_state);
	MUST(dat_evd_clear_unwaitable(evd));
	WANT(dat_evd_wait(evd, 1000, 1, &ev, &more), DAT_TIMEOUT_EXPIRED);
	MUST(dat_evd_disable(evd));
	MUST(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	CHECK(param.evd_state & DAT_EVD_STATE_DISABLED, "state %#x", param.evd_state);
	MUST(dat_evd_enable(evd));
	WANT(dat_evd_query(evd, 0x20, &param), DAT_INVALID_PARAMETER);
	WANT(dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
	MUST(dat_evd_free(evd));
}

/* --- private data --- */

static void fill(char *p, int n, int seed)
{
	while (n-- > 0)
		*p++ = seed++ * 7;
}

static void check_private(DAT_COUNT n, const void *got, int want, int seed)
{
	char expected[512];

	fill(expected, want, seed);
	CHECK(n == want, "%d bytes of private data, want %d", n, want);
	CHECK(n < want || !memcmp(got, expected, want), "private data differ");
}

static void test_private(void)
{
	struct listener l = listen_on(0xAffab1e0001, DAT_PSP_CONSUMER_FLAG);
	DAT_CONNECTION_EVENT_DATA d;
	DAT_CR_HANDLE cr;
	DAT_CR_PARAM param;
	DAT_PROVIDER_ATTR attr;
	char data[512];
	int sizes[] = {0, 1, 48, 0}, i, n;

	MUST(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
	sizes[3] = attr.max_private_data_size;
	for (i = 0; i < 4; i++) {
		struct point a = make_point(), b = make_point();

		n = sizes[i];
		fill(data, n, i);
		MUST(connect_to(&b, l.qual, n, data));
		cr = await_request(&l).cr_handle;
		MUST(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		check_private(param.private_data_size, param.private_data, n, i);
		CHECK(param.remote_ia_address_ptr->sa_family == self.sin6_family, "address of the peer");
		CHECK(param.local_ep_handle == NULL, "an endpoint that nobody made");
		fill(param.private_data, n, i + 10); /* the consumer's to write, and to pass back */
		MUST(dat_cr_accept(cr, a.ep, n, param.private_data));
		WANT(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR);
		d = await_connection(&b, DAT_CONNECTION_EVENT_ESTABLISHED);
		check_private(d.private_data_size, d.private_data, n, i + 10);
		d = await_connection(&a, DAT_CONNECTION_EVENT_ESTABLISHED);
		CHECK(d.private_data_size == 0, "private data where there is none");
		MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
		await_connection(&a, DAT_CONNECTION_EVENT_DISCONNECTED);
		await_connection(&b, DAT_CONNECTION_EVENT_DISCONNECTED);

		MUST(dat_ep_reset(b.ep));
		MUST(connect_to(&b, l.qual, 0, NULL));
		cr = await_request(&l).cr_handle;
		fill(data, n, i + 20);
		MUST(dat_cr_reject(cr, n, data));
		d = await_connection(&b, DAT_CONNECTION_EVENT_PEER_REJECTED);
		check_private(d.private_data_size, d.private_data, n, i + 20);
		MUST(dat_ep_reset(b.ep));
		WANT(connect_to(&b, l.qual, attr.max_private_data_size + 1, data), DAT_INVALID_PARAMETER);
		WANT(connect_to(&b, l.qual, 5, NULL), DAT_INVALID_PARAMETER);
		free_point(&a);
		free_point(&b);
	}
	unlisten(&l);
}

/* --- service points whose endpoints the provider or the consumer has beforehand --- */

static void test_service(void)
{
	struct point a = make_base(), b = make_point(), c = make_point();
	struct listener l = listen_on(77, DAT_PSP_PROVIDER_FLAG), m;
	DAT_CR_ARRIVAL_EVENT_DATA d;
	DAT_EP_PARAM param;
	DAT_CR_PARAM cr;
	DAT_PSP_PARAM psp_param;
	DAT_RSP_PARAM rsp_param;
	DAT_PSP_HANDLE any;
	DAT_CONN_QUAL qual;
	DAT_RSP_HANDLE rsp;

	MUST(dat_psp_query(l.psp, DAT_PSP_FIELD_ALL, &psp_param));
	CHECK(psp_param.conn_qual == 77 && psp_param.evd_handle == l.evd && psp_param.psp_flags == DAT_PSP_PROVIDER_FLAG, "query");
	WANT(dat_psp_create(ia, 77, l.evd, DAT_PSP_CONSUMER_FLAG, &any), DAT_CONN_QUAL_IN_USE);
	MUST(dat_psp_create_any(ia, &qual, l.evd, DAT_PSP_CONSUMER_FLAG, &any));
	CHECK(qual != 0, "no qualifier");
	MUST(dat_psp_free(any));

	MUST(connect_to(&b, 77, 0, NULL)); /* the provider makes the endpoint */
	d = await_request(&l);
	MUST(dat_cr_query(d.cr_handle, DAT_CR_FIELD_ALL, &cr));
	a.ep = cr.local_ep_handle;
	MUST(dat_ep_query(a.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING && !param.pz_handle, "state %d", param.ep_state);
	param.pz_handle = a.pz;
	param.recv_evd_handle = a.recv;
	param.request_evd_handle = a.request;
	param.connect_evd_handle = a.connect;
	MUST(dat_ep_modify(a.ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
		DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	MUST(dat_cr_accept(d.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	await_connection(&a, DAT_CONNECTION_EVENT_ESTABLISHED);
	await_connection(&b, DAT_CONNECTION_EVENT_ESTABLISHED);
	MUST(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &param));
	CHECK(param.ep_state == DAT_EP_STATE_CONNECTED && param.pz_handle == b.pz && param.recv_evd_handle == b.recv &&
		param.remote_port_qual == 77 && param.remote_ia_address_ptr->sa_family == self.sin6_family &&
		param.local_ia_address_ptr->sa_family == self.sin6_family, "query of a connected endpoint");

	MUST(connect_to(&c, 77, 0, NULL)); /* turned down, the endpoint goes with the request */
	d = await_request(&l);
	MUST(dat_cr_query(d.cr_handle, DAT_CR_FIELD_ALL, &cr));
	MUST(dat_cr_reject(d.cr_handle, 0, NULL));
	await_connection(&c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	WANT(dat_ep_free(cr.local_ep_handle), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);

	MUST(dat_ep_reset(c.ep)); /* handed on to another service point */
	m = listen_on(78, DAT_PSP_CONSUMER_FLAG);
	MUST(connect_to(&c, 77, 0, NULL));
	MUST(dat_cr_handoff(await_request(&l).cr_handle, 78));
	d = await_request(&m);
	MUST(dat_cr_reject(d.cr_handle, 0, NULL));
	await_connection(&c, DAT_CONNECTION_EVENT_PEER_REJECTED);

	MUST(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG)); /* an endpoint that waits for one request */
	await_connection(&a, DAT_CONNECTION_EVENT_DISCONNECTED);
	await_connection(&b, DAT_CONNECTION_EVENT_DISCONNECTED);
	MUST(dat_ep_reset(a.ep));
	MUST(dat_ep_reset(c.ep));
	MUST(dat_rsp_create(ia, 79, a.ep, l.evd, &rsp));
	MUST(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &rsp_param));
	CHECK(rsp_param.conn_qual == 79 && rsp_param.ep_handle == a.ep && rsp_param.evd_handle == l.evd, "query");
	MUST(connect_to(&c, 79, 0, NULL));
	d = await(l.evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data;
	CHECK(d.sp_handle.rsp_handle == rsp && d.conn_qual == 79, "request at %p, want %p", d.sp_handle.rsp_handle, rsp);
	MUST(dat_cr_accept(d.cr_handle, DAT_HANDLE_NULL, 0, NULL));
	await_connection(&a, DAT_CONNECTION_EVENT_ESTABLISHED);
	await_connection(&c, DAT_CONNECTION_EVENT_ESTABLISHED);
	MUST(dat_rsp_free(rsp));
	free_point(&c);
	await_connection(&a, DAT_CONNECTION_EVENT_DISCONNECTED);
	free_point(&b);
	free_point(&a);
	unlisten(&m);
	unlisten(&l);
}

/* --- closing under the feet of others --- */

static void *wait_for_ever(void *evd)
{
	DAT_COUNT more;
	DAT_EVENT ev;

	WANT(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &ev, &more), DAT_ABORT);
	return NULL;
}

static void *wait_for_cno(void *cno)
{
	DAT_EVD_HANDLE evd = cno;

	WANT(dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &evd), DAT_SUCCESS);
	CHECK(evd == NULL, "a dispatcher of a closed adapter");
	return NULL;
}

static void test_close(void)
{
	struct timespec nap = {.tv_nsec = 50000000};
	struct point a = make_point(), b = make_point();
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
	pthread_t waiters[3];
	DAT_EVENT ev;

	join(&a, &b);
	MUST(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	MUST(dat_evd_create(ia, 4, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	WANT(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE);
	WANT(dat_ia_close(ia, 5), DAT_INVALID_PARAMETER);
	pthread_create(&waiters[0], NULL, wait_for_ever, a.recv);
	pthread_create(&waiters[1], NULL, wait_for_ever, async_evd);
	pthread_create(&waiters[2], NULL, wait_for_cno, cno);
	nanosleep(&nap, NULL); /* they shall be asleep */
	MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (int i = 0; i < 3; i++)
		pthread_join(waiters[i], NULL);
	WANT(dat_evd_dequeue(a.recv, &ev), DAT_INVALID_HANDLE);
	WANT(dat_ep_free(a.ep), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	WANT(dat_pz_free(a.pz), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	WANT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	open_ia();
}

/* --- stale handles, and those of another kind --- */

static void test_stale(void)
{
	struct point a = make_point(), b = a;
	struct listener l = listen_on(1, DAT_PSP_CONSUMER_FLAG);
	DAT_REGION_DESCRIPTION region = {.for_va = &region};
	DAT_CONTEXT context = {.as_64 = 42};
	DAT_LMR_PARAM lmr;
	DAT_EP_PARAM ep;
	DAT_PSP_PARAM psp;
	DAT_EVENT ev;
	DAT_HANDLE h;
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);
	int i;

	WANT(dat_psp_query(l.evd, DAT_PSP_FIELD_ALL, &psp), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PSP);
	WANT(dat_ep_post_send(a.pz, 1, &t, cookie(0), 0), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	WANT(dat_lmr_free(a.ep), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_LMR);
	WANT(dat_evd_dequeue(a.lmr, &ev), DAT_INVALID_HANDLE);
	WANT(dat_ep_create(ia, a.ep, a.recv, a.request, a.connect, NULL, &h), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	WANT(dat_ep_create(ia, a.pz, a.connect, a.request, a.connect, NULL, &h), DAT_INVALID_HANDLE);
	unlisten(&l);
	free_point(&a);
	WANT(dat_ep_query(b.ep, DAT_EP_FIELD_ALL, &ep), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	WANT(dat_ep_post_recv(b.ep, 1, &t, cookie(0), 0), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	WANT(dat_ep_free(b.ep), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	WANT(dat_lmr_query(b.lmr, DAT_LMR_FIELD_ALL, &lmr), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_LMR);
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, 8, b.pz, 0, DAT_VA_TYPE_VA, &h, NULL, NULL, NULL, NULL),
		DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	WANT(dat_evd_dequeue(b.recv, &ev), DAT_INVALID_HANDLE);
	WANT(dat_psp_free(l.psp), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PSP);
	WANT(dat_set_consumer_context(b.pz, context), DAT_INVALID_HANDLE);
	for (i = 0; i < 10000; i++) { /* what was freed is not met again soon */
		MUST(dat_pz_create(ia, &h));
		CHECK(h != b.pz, "a handle was used again after %d others", i);
		MUST(dat_pz_free(h));
		WANT(dat_pz_free(h), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	}
}

/* --- events that outlive what they are about --- */

static void test_late(void)
{
	struct point a = make_point(), b = make_point();
	struct listener l = listen_on(5, DAT_PSP_CONSUMER_FLAG);
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);
	DAT_CR_ARRIVAL_EVENT_DATA request;
	DAT_EP_HANDLE ep = a.ep;
	DAT_EVENT ev;

	MUST(dat_ep_post_recv(a.ep, 1, &t, cookie(1), 0));
	join(&a, &b);
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	await_connection(&a, DAT_CONNECTION_EVENT_DISCONNECTED);
	await_connection(&b, DAT_CONNECTION_EVENT_DISCONNECTED);
	MUST(dat_ep_free(a.ep));
	a.ep = NULL;
	if (dat_evd_dequeue(a.recv, &ev) == DAT_SUCCESS)
		CHECK(ev.event_data.dto_completion_event_data.ep_handle == ep, "a completion of %p, want %p",
			ev.event_data.dto_completion_event_data.ep_handle, ep);

	MUST(dat_ep_reset(b.ep));
	MUST(connect_to(&b, l.qual, 0, NULL));
	nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* the request shall be there: it takes microseconds */
	MUST(dat_psp_free(l.psp));
	request = await_request(&l);
	MUST(dat_cr_reject(request.cr_handle, 0, NULL));
	await_connection(&b, DAT_CONNECTION_EVENT_PEER_REJECTED);
	MUST(dat_evd_free(l.evd));
	free_point(&a);
	free_point(&b);
}

/* --- contexts and types --- */

static void test_context(void)
{
	struct point a = make_point();
	struct {
		DAT_HANDLE h;
		DAT_HANDLE_TYPE type;
	} of[] = {{a.ep, DAT_HANDLE_TYPE_EP}, {a.recv, DAT_HANDLE_TYPE_EVD}, {a.lmr, DAT_HANDLE_TYPE_LMR}, {a.pz, DAT_HANDLE_TYPE_PZ},
		{async_evd, DAT_HANDLE_TYPE_EVD}};
	DAT_CONTEXT c;
	DAT_HANDLE_TYPE type;

	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		MUST(dat_get_consumer_context(of[i].h, &c));
		CHECK(c.as_64 == 0, "a context from the beginning");
		c.as_64 = 0xfeedfacecafebeefull + i;
		MUST(dat_set_consumer_context(of[i].h, c));
		MUST(dat_get_consumer_context(of[i].h, &c));
		CHECK(c.as_64 == 0xfeedfacecafebeefull + i, "context %llx", (unsigned long long)c.as_64);
		MUST(dat_get_handle_type(of[i].h, &type));
		CHECK(type == of[i].type, "type %d", type);
		WANT(dat_get_handle_type(of[i].h, NULL), DAT_INVALID_PARAMETER);
	}
	free_point(&a);
}

/* --- memory --- */

static void test_memory(void)
{
	struct point a = make_base();
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_PARAM param;
	char id[DAT_LMR_COOKIE_SIZE] = "a name of memory that processes share";
	DAT_LMR_HANDLE h, g;
	DAT_LMR_CONTEXT context;
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);
	void *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	MUST(dat_lmr_query(a.lmr, DAT_LMR_FIELD_ALL, &param));
	CHECK(param.mem_type == DAT_MEM_TYPE_VIRTUAL && param.region_desc.for_va == a.mem && param.length == MEMORY &&
		param.pz_handle == a.pz && param.mem_priv == DAT_MEM_PRIV_ALL_FLAG && param.lmr_context == a.lmr_context &&
		param.rmr_context == a.rmr_context, "query");
	MUST(dat_lmr_sync_rdma_read(ia, &t, 1));
	MUST(dat_lmr_sync_rdma_write(ia, &t, 1));
	t.segment_length = MEMORY + 1;
	WANT(dat_lmr_sync_rdma_read(ia, &t, 1), DAT_INVALID_PARAMETER);
	r.for_va = NULL;
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 8, a.pz, 0, 0, &h, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER);
	r.for_va = a.mem;
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 0, a.pz, 0, 0, &h, NULL, NULL, NULL, NULL), DAT_LENGTH_ERROR);
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, ~0ull, a.pz, 0, 0, &h, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER);
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 8, a.pz, 0x8000, 0, &h, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER);
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 8, a.pz, 0, DAT_VA_TYPE_ZB, &h, NULL, NULL, NULL, NULL), DAT_MODEL_NOT_SUPPORTED);
	WANT(dat_lmr_create(ia, 9, r, 8, a.pz, 0, 0, &h, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER);
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 8, a.pz, 0, 0, NULL, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER);
	r.for_lmr_handle = a.lmr;
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_LMR, r, 0, a.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, &h, &context, NULL, NULL, NULL));
	CHECK(context != a.lmr_context, "two regions, one context");
	MUST(dat_lmr_query(h, DAT_LMR_FIELD_ALL, &param));
	CHECK(param.mem_type == DAT_MEM_TYPE_LMR && param.registered_size == MEMORY && param.rmr_context == 0, "query");
	MUST(dat_lmr_free(h));
	r.for_shared_memory.virtual_address = shared;
	r.for_shared_memory.shared_memory_id = &id;
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_SHARED_VIRTUAL, r, 8192, a.pz, DAT_MEM_PRIV_ALL_FLAG, 0, &h, NULL, NULL, NULL, NULL));
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_SHARED_VIRTUAL, r, 8192, a.pz, DAT_MEM_PRIV_ALL_FLAG, 0, &g, NULL, NULL, NULL, NULL));
	WANT(dat_lmr_create(ia, DAT_MEM_TYPE_SHARED_VIRTUAL, r, 4096, a.pz, 0, 0, &h, NULL, NULL, NULL, NULL), DAT_INVALID_PARAMETER);
	MUST(dat_lmr_free(h));
	MUST(dat_lmr_free(g));
	free_point(&a);
}

/* --- opening --- */

static void test_open(void)
{
	DAT_EVD_HANDLE shared = async_evd, none = DAT_EVD_ASYNC_EXISTS, got, fresh;
	DAT_IA_HANDLE second, third;
	DAT_IA_ATTR attr;
	int i;

	MUST(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &shared, &second));
	CHECK(shared == async_evd, "a shared dispatcher is another one");
	MUST(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &none, &third));
	MUST(dat_ia_query(third, &got, 0, NULL, 0, NULL));
	CHECK(got == DAT_EVD_OUT_OF_SCOPE, "dispatcher %p of an open without", got);
	MUST(dat_ia_query(second, &got, 0, NULL, 0, NULL));
	CHECK(got == async_evd, "dispatcher %p, want %p", got, async_evd);
	WANT(dat_ia_query(second, &got, DAT_IA_FIELD_ALL, NULL, 0, NULL), DAT_INVALID_PARAMETER);
	WANT(dat_ia_query(second, &got, 1ull << 60, &attr, 0, NULL), DAT_INVALID_PARAMETER);
	MUST(dat_ia_close(third, DAT_CLOSE_GRACEFUL_FLAG));
	MUST(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < 20; i++) { /* the last close unloads the provider, as far as libdat2 knows */
		fresh = DAT_HANDLE_NULL;
		MUST(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &fresh, &second));
		MUST(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	}
	fresh = DAT_HANDLE_NULL; /* a line for programs that say they have threads */
	MUST(dat_ia_openv((DAT_NAME_PTR)ia_name, 8, &fresh, &second, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
	MUST(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
	fresh = DAT_HANDLE_NULL;
	WANT(dat_ia_open("bad", 8, &fresh, &second), DAT_INVALID_PARAMETER); /* an option that there is not */
	WANT(dat_ia_open((DAT_NAME_PTR)ia_name, 0, &fresh, &second), DAT_INVALID_PARAMETER);
	WANT(dat_ia_open("no such adapter", 8, &fresh, &second), DAT_PROVIDER_NOT_FOUND);
	open_ia();
}

/* --- fork: the child is told so and does not hang --- */

static void test_fork(void)
{
	struct point a = make_point();
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);
	DAT_EVD_HANDLE fresh = DAT_HANDLE_NULL;
	DAT_IA_HANDLE again;
	DAT_PZ_HANDLE pz;
	DAT_COUNT more;
	DAT_EVENT ev;
	int status;
	pid_t child;

	fflush(stdout);
	if (!(child = fork())) {
		alarm(20);
		WANT(dat_evd_wait(a.recv, DAT_TIMEOUT_INFINITE, 1, &ev, &more), DAT_INVALID_STATE);
		WANT(dat_evd_dequeue(a.recv, &ev), DAT_INVALID_STATE);
		WANT(dat_ep_post_recv(a.ep, 1, &t, cookie(0), 0), DAT_INVALID_STATE);
		WANT(dat_pz_create(ia, &pz), DAT_INVALID_STATE);
		WANT(dat_ep_free(a.ep), DAT_INVALID_STATE);
		WANT(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &fresh, &again), DAT_INVALID_STATE);
		WANT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_STATE);
		fflush(stdout);
		_exit(failures != 0);
	}
	waitpid(child, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x of the child", status);
	free_point(&a); /* the parent goes on */
}

/* --- threads: many post to one endpoint, and many take from one dispatcher --- */

enum { POSTERS = 4, EACH = 2000 };

static struct point ta, tb;
static int taken;

static void *poster(void *arg)
{
	DAT_LMR_TRIPLET t = piece(&tb, 0, 32);
	DAT_RETURN r;

	for (int i = 0; i < EACH; i++) {
		while (DAT_GET_TYPE(r = dat_ep_post_send(tb.ep, 1, &t, cookie(i), DAT_COMPLETION_SUPPRESS_FLAG)) == DAT_INSUFFICIENT_RESOURCES)
			sched_yield();
		MUST(r);
	}
	return NULL;
}

static void *taker(void *arg)
{
	DAT_LMR_TRIPLET t;
	DAT_EVENT ev;

	while (__atomic_load_n(&taken, __ATOMIC_SEQ_CST) < POSTERS * EACH) {
		if (DAT_GET_TYPE(dat_evd_dequeue(ta.recv, &ev)) == DAT_QUEUE_EMPTY) {
			sched_yield();
			continue;
		}
		CHECK(ev.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS, "status");
		t = piece(&ta, ev.event_data.dto_completion_event_data.user_cookie.as_64, 32);
		MUST(dat_ep_post_recv(ta.ep, 1, &t, ev.event_data.dto_completion_event_data.user_cookie, 0));
		__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[POSTERS + 2];
	DAT_LMR_TRIPLET t;
	int i;

	ta = make_point();
	tb = make_point();
	for (i = 0; i < 64; i++) {
		t = piece(&ta, i * 32, 32);
		MUST(dat_ep_post_recv(ta.ep, 1, &t, cookie(i * 32), 0));
	}
	join(&ta, &tb);
	for (i = 0; i < POSTERS + 2; i++)
		pthread_create(&threads[i], NULL, i < POSTERS ? poster : taker, NULL);
	for (i = 0; i < POSTERS + 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(taken == POSTERS * EACH, "%d taken", taken);
	free_point(&tb);
	await_connection(&ta, DAT_CONNECTION_EVENT_DISCONNECTED);
	free_point(&ta);
}

/* --- atomics and writes with immediate data at their limits; dtestx does the rest --- */

static void test_extension(void)
{
	struct point a = make_point(), b = make_point();
	DAT_LMR_TRIPLET local = piece(&b, 0, 4), whole = piece(&a, 0, 64);
	DAT_RMR_TRIPLET remote = remote_piece(&a, a.rmr_context, 0, 8);
	const DAT_IB_EXTENSION_EVENT_DATA *x;
	DAT_EVENT ev;

	MUST(dat_ep_post_recv(a.ep, 1, &whole, cookie(8), 0));
	join(&a, &b);
	WANT(dat_ib_post_fetch_and_add(b.ep, 1, &local, cookie(1), &remote, 0), DAT_LENGTH_ERROR);
	WANT(dat_ib_post_fetch_and_add(a.pz, 1ull, &local, cookie(1), &remote, 0), DAT_INVALID_HANDLE);
	WANT(dat_ib_post_rdma_write_immed(b.ep, -1, &local, cookie(1), &remote, 7, 0), DAT_INVALID_PARAMETER);
	WANT(dat_extension_op(b.ep, 0x7f), DAT_NOT_IMPLEMENTED);
	MUST(dat_ib_post_rdma_write_immed(b.ep, 1, &local, cookie(3), &remote, 0x12345678, 0));
	ev = await(a.recv, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	x = (const DAT_IB_EXTENSION_EVENT_DATA *)ev.event_extension_data;
	CHECK(x->type == DAT_IB_RDMA_WRITE_IMMED_DATA && x->val.immed.data == 0x12345678 && x->status == DAT_OP_SUCCESS,
		"type %d, data %#x", x->type, x->val.immed.data);
	CHECK(ev.event_data.dto_completion_event_data.user_cookie.as_64 == 8, "cookie");
	ev = await(b.request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
	CHECK(x->type == DAT_IB_RDMA_WRITE_IMMED, "type %d", x->type); /* of the event just taken */
	CHECK((int)ev.event_data.dto_completion_event_data.operation == DAT_IB_DTO_RDMA_WRITE_IMMED, "operation %d",
		ev.event_data.dto_completion_event_data.operation);
	free_point(&a);
	await_connection(&b, DAT_CONNECTION_EVENT_DISCONNECTED);
	free_point(&b);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"rmr", test_rmr}, {"table", test_table}, {"srq", test_srq}, {"cno", test_cno}, {"evd", test_evd},
	{"private", test_private}, {"service", test_service}, {"close", test_close}, {"stale", test_stale}, {"late", test_late}, {"context", test_context},
	{"memory", test_memory}, {"open", test_open}, {"fork", test_fork}, {"threads", test_threads}, {"extension", test_extension}};

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[2] : "";

	ia_name = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
		if (strcmp(name, tests[i].name))
			continue;
		open_ia();
		tests[i].run();
		MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); /* nothing is left */
		if (!failures)
			printf("ok %s\n", name);
		return failures != 0;
	}
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		printf("%s\n", tests[i].name);
	return 2;
}
