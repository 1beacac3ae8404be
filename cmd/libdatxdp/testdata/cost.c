/*
 * Measures calls through libdat2. "cost IA" prints two times in nanoseconds: of posting a receive and of dequeuing a
 * completion. Each time is the minimum of several rounds. TestCost measures the same in Go.
 */

#include "calls.h"

enum { DEPTH = 8192, ROUNDS = 20 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Runs one round: posts DEPTH receives, ends the connection, which flushes them, and dequeues the completions. */
static void measure(double *post, double *dequeue)
{
	DAT_EP_ATTR attr = {.max_recv_dtos = DEPTH, .max_request_dtos = 1, .max_recv_iov = 1, .max_request_iov = 1};
	struct point a = make_base(), b = make_point();
	struct listener l = listen_on(9, DAT_PSP_CONSUMER_FLAG);
	DAT_LMR_TRIPLET t = piece(&a, 0, 64);
	DAT_EVD_HANDLE recv;
	DAT_EVENT ev;
	double start;
	int i;

	MUST(dat_evd_create(ia, DEPTH, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &recv));
	MUST(dat_ep_create(ia, a.pz, recv, a.request, a.connect, &attr, &a.ep));
	start = now();
	for (i = 0; i < DEPTH; i++)
		dat_ep_post_recv(a.ep, 1, &t, cookie(i), DAT_COMPLETION_DEFAULT_FLAG);
	*post = (now() - start) / DEPTH;
	MUST(connect_to(&b, l.qual, 0, NULL));
	MUST(dat_cr_accept(await_request(&l).cr_handle, a.ep, 0, NULL));
	await_connection(&a, DAT_CONNECTION_EVENT_ESTABLISHED);
	MUST(dat_ep_disconnect(a.ep, DAT_CLOSE_ABRUPT_FLAG));
	await_connection(&a, DAT_CONNECTION_EVENT_DISCONNECTED);
	start = now();
	for (i = 0; i < DEPTH; i++)
		dat_evd_dequeue(recv, &ev);
	*dequeue = (now() - start) / DEPTH;
	CHECK(ev.event_data.dto_completion_event_data.user_cookie.as_64 == DEPTH - 1, "the last is %llu",
		(unsigned long long)ev.event_data.dto_completion_event_data.user_cookie.as_64);
	MUST(dat_ep_free(a.ep));
	a.ep = NULL;
	MUST(dat_evd_free(recv));
	free_point(&b);
	free_point(&a);
	unlisten(&l);
}

int main(int argc, char **argv)
{
	double post = 1e9, dequeue = 1e9, p, d;

	ia_name = argc > 1 ? argv[1] : "";
	open_ia();
	for (int i = 0; i < ROUNDS; i++) {
		measure(&p, &d);
		post = p < post ? p : post;
		dequeue = d < dequeue ? d : dequeue;
	}
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	printf("post %.1f dequeue %.1f\n", post, dequeue);
	return failures != 0;
}
