/* Tests of calls.c: local and remote memory regions, and shared receive queues. */

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

/* If a program unmaps, protects or truncates registered memory, an access ends the connection, but not the process. */

static int memory_file(size_t size)
{
	char name[] = "/dev/shm/calls.XXXXXX";
	int fd = mkstemp(name);

	if (fd < 0 || unlink(name) || ftruncate(fd, size))
		abort();
	return fd;
}

static void lose_memory(char *mem, size_t size, int fd, int how)
{
	if (how == 0 ? munmap(mem, size) : how == 1 ? mprotect(mem, size, PROT_NONE) : ftruncate(fd, 0))
		abort();
}

static void test_gone(void)
{
	const size_t size = 64 << 20; /* large, so that later mappings do not reuse its first pages */
	DAT_REGION_DESCRIPTION r;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT context;

	for (int how = 0; how < 3; how++) {
		for (int writes = 0; writes < 2; writes++) {
			struct point a = make_point(), b = make_point();
			int fd = memory_file(size);
			char *mem = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
			DAT_LMR_TRIPLET t = piece(&b, 0, 100);
			DAT_RMR_TRIPLET remote;

			r.for_va = mem;
			WANT(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 4096, a.pz, DAT_MEM_PRIV_ALL_FLAG, 0, &lmr, NULL, NULL, NULL, NULL),
				DAT_INVALID_PARAMETER);
			if (mprotect(mem, size, PROT_READ | PROT_WRITE))
				abort();
			MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, r, 4096, a.pz, DAT_MEM_PRIV_ALL_FLAG, 0, &lmr, &local, &context, NULL, NULL));
			join(&a, &b);
			lose_memory(mem, size, fd, how);
			if (writes) {
				remote = (DAT_RMR_TRIPLET){.virtual_address = (uintptr_t)mem, .segment_length = 100, .rmr_context = context};
				MUST(dat_ep_post_rdma_write(b.ep, 1, &t, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
				await_dto(b.request, DAT_DTO_ERR_REMOTE_RESPONDER);
			} else {
				t = (DAT_LMR_TRIPLET){.virtual_address = (uintptr_t)mem, .segment_length = 100, .lmr_context = local};
				remote = remote_piece(&b, b.rmr_context, 0, 100);
				MUST(dat_ep_post_rdma_write(a.ep, 1, &t, cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
				await_dto(a.request, DAT_DTO_ERR_LOCAL_PROTECTION);
			}
			await_connection(&b, DAT_CONNECTION_EVENT_BROKEN);
			await_connection(&a, DAT_CONNECTION_EVENT_BROKEN);
			MUST(dat_lmr_free(lmr));
			if (how)
				munmap(mem, size);
			close(fd);
			free_point(&a);
			free_point(&b);
		}
	}
}

/* --- remote memory regions: bound to part of an LMR, with fewer privileges than the LMR has --- */

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
	remote.rmr_context = context; /* the context allows only reads, so the write breaks the connection */
	MUST(dat_ep_post_rdma_write(b.ep, 1, &to, cookie(3), &remote, DAT_COMPLETION_DEFAULT_FLAG));
	await_dto(b.request, DAT_DTO_ERR_REMOTE_ACCESS);
	await_connection(&b, DAT_CONNECTION_EVENT_BROKEN);
	await_connection(&a, DAT_CONNECTION_EVENT_BROKEN);
	MUST(dat_rmr_free(rmr));
	WANT(dat_rmr_free(rmr), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_RMR);
	free_point(&a);
	free_point(&b);
}

/* Calls that libdat2 does not export are made through the table to which every handle points. */
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
	MUST(dat_evd_dequeue(async_evd, &ev)); /* two receives are available, fewer than the low watermark of three */
	CHECK(ev.event_data.asynch_error_event_data.dat_handle == srq, "event of %p, want %p", ev.event_data.asynch_error_event_data.dat_handle, srq);
	CHECK(ev.event_data.asynch_error_event_data.reason == DAT_SRQ_LOW_WATERMARK_EVENT, "reason %d", ev.event_data.asynch_error_event_data.reason);
	MUST(dat_ep_free(a.ep));
	a.ep = NULL;
	MUST(dat_srq_free(srq));
	free_point(&a);
	free_point(&b);
}
