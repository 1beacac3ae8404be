/* Tests of calls.c: how connections are established and end; immediate data and atomics. */

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
		fill(param.private_data, n, i + 10); /* the program may write to it and pass it on */
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

/* --- service points with endpoints of the provider, or with an endpoint that is reserved --- */

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

	MUST(connect_to(&b, 77, 0, NULL)); /* the provider creates the endpoint */
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

	MUST(connect_to(&c, 77, 0, NULL)); /* the request is rejected, which frees its endpoint */
	d = await_request(&l);
	MUST(dat_cr_query(d.cr_handle, DAT_CR_FIELD_ALL, &cr));
	MUST(dat_cr_reject(d.cr_handle, 0, NULL));
	await_connection(&c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	WANT(dat_ep_free(cr.local_ep_handle), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);

	MUST(dat_ep_reset(c.ep)); /* the request is handed off to another service point */
	m = listen_on(78, DAT_PSP_CONSUMER_FLAG);
	MUST(connect_to(&c, 77, 0, NULL));
	MUST(dat_cr_handoff(await_request(&l).cr_handle, 78));
	d = await_request(&m);
	MUST(dat_cr_reject(d.cr_handle, 0, NULL));
	await_connection(&c, DAT_CONNECTION_EVENT_PEER_REJECTED);

	MUST(dat_ep_disconnect(b.ep, DAT_CLOSE_ABRUPT_FLAG)); /* a reserved service point */
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

/* --- events of objects that were freed --- */

static void test_late(void)
{
	struct point a = make_point(), b = make_point();
	struct listener l = listen_on(5, DAT_PSP_CONSUMER_FLAG);
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);
	DAT_CR_ARRIVAL_EVENT_DATA request;
	DAT_EP_HANDLE ep = a.ep;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;
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
	MUST(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	MUST(dat_evd_modify_cno(l.evd, cno));
	MUST(connect_to(&b, l.qual, 0, NULL));
	MUST(dat_cno_wait(cno, 20 * SECOND, &evd)); /* the request has arrived and is not taken */
	MUST(dat_psp_free(l.psp));
	request = await_request(&l);
	MUST(dat_cr_reject(request.cr_handle, 0, NULL));
	await_connection(&b, DAT_CONNECTION_EVENT_PEER_REJECTED);
	MUST(dat_evd_free(l.evd));
	MUST(dat_cno_free(cno));
	free_point(&a);
	free_point(&b);
}

/* --- limits of atomics and of writes with immediate data; dtestx tests the rest --- */

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
