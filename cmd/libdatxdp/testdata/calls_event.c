/* Tests of calls.c: event dispatchers and notification objects. */

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

	nanosleep(&t, NULL); /* the result is the same if the waiter begins after this */
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
