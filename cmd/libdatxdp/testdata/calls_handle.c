/* Tests of calls.c: the lifetime of handles and adapters, fork, and threads. */

/* --- closing an adapter while other threads wait --- */

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
	nanosleep(&nap, NULL); /* let the threads fall asleep */
	MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	for (int i = 0; i < 3; i++)
		pthread_join(waiters[i], NULL);
	WANT(dat_evd_dequeue(a.recv, &ev), DAT_INVALID_HANDLE);
	WANT(dat_ep_free(a.ep), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP);
	WANT(dat_pz_free(a.pz), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	WANT(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
	open_ia();
}

/* --- freed handles, and handles of another type --- */

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
	for (i = 0; i < 10000; i++) { /* freed handles are not reused soon */
		MUST(dat_pz_create(ia, &h));
		CHECK(h != b.pz, "a handle was used again after %d others", i);
		MUST(dat_pz_free(h));
		WANT(dat_pz_free(h), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_PZ);
	}
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
	for (i = 0; i < 20; i++) { /* after the last close, libdat2 calls dlclose on the provider */
		fresh = DAT_HANDLE_NULL;
		MUST(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &fresh, &second));
		MUST(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
	}
	fresh = DAT_HANDLE_NULL; /* a line of dat.conf for thread-safe programs */
	MUST(dat_ia_openv((DAT_NAME_PTR)ia_name, 8, &fresh, &second, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
	MUST(dat_ia_close(second, DAT_CLOSE_GRACEFUL_FLAG));
	fresh = DAT_HANDLE_NULL;
	WANT(dat_ia_open("bad", 8, &fresh, &second), DAT_INVALID_PARAMETER); /* the line has an unknown option */
	WANT(dat_ia_open((DAT_NAME_PTR)ia_name, 0, &fresh, &second), DAT_INVALID_PARAMETER);
	WANT(dat_ia_open("no such adapter", 8, &fresh, &second), DAT_PROVIDER_NOT_FOUND);
	open_ia();
}

/* --- fork: calls in the child return an error and do not hang --- */

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
	free_point(&a); /* the parent continues to work */
}

/* --- threads: several post on one endpoint, and several dequeue from one dispatcher --- */

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
