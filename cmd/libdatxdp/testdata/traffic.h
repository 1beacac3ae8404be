/* Verified traffic between two points of one adapter. */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "calls.h"

/* Polls for a completion, as MPI libraries do. */
static void poll_dto(DAT_EVD_HANDLE evd)
{
	DAT_DTO_COMPLETION_EVENT_DATA *d;
	DAT_EVENT ev;
	time_t end = time(NULL) + 60;

	while (dat_evd_dequeue(evd, &ev) != DAT_SUCCESS) {
		if (time(NULL) > end) {
			printf("FAILED: no completion in 60 s\n");
			exit(1);
		}
	}
	d = &ev.event_data.dto_completion_event_data;
	CHECK(ev.event_number == DAT_DTO_COMPLETION_EVENT && d->status == DAT_DTO_SUCCESS, "event %#x status %d", ev.event_number, d->status);
}

enum { HALF = MEMORY / 2, SENT = 8192, WRITTEN = 4096 };

/* Sends from b to a and writes into a, n times, and checks each byte. Sleeps for completions if waits is set. */
static void exchange(struct point *a, struct point *b, int n, int waits)
{
	DAT_LMR_TRIPLET in = piece(a, 0, SENT), out = piece(b, 0, SENT), source = piece(b, HALF, WRITTEN);
	DAT_RMR_TRIPLET target = remote_piece(a, a->rmr_context, HALF, WRITTEN);

	for (int i = 0; i < n && !failures; i++) {
		memset(b->mem, i, SENT);
		memset(b->mem + HALF, i * 3, WRITTEN);
		MUST(dat_ep_post_recv(a->ep, 1, &in, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
		MUST(dat_ep_post_rdma_write(b->ep, 1, &source, cookie(i), &target, DAT_COMPLETION_DEFAULT_FLAG));
		MUST(dat_ep_post_send(b->ep, 1, &out, cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
		if (waits) {
			await_dto(a->recv, DAT_DTO_SUCCESS);
			await_dto(b->request, DAT_DTO_SUCCESS);
			await_dto(b->request, DAT_DTO_SUCCESS);
		} else {
			poll_dto(a->recv);
			poll_dto(b->request);
			poll_dto(b->request);
		}
		CHECK(!memcmp(a->mem, b->mem, SENT), "what was sent in round %d", i);
		CHECK(!memcmp(a->mem + HALF, b->mem + HALF, WRITTEN), "what was written in round %d", i);
	}
}

/* A thread that exchanges until stop_traffic. */
struct exchanger {
	struct point a, b;
	pthread_t thread;
	int waits;
};

static volatile int traffic_ends;
static long traffic_rounds;

static void *exchange_until_end(void *v)
{
	struct exchanger *x = v;

	while (!traffic_ends && !failures) {
		exchange(&x->a, &x->b, 20, x->waits);
		__atomic_add_fetch(&traffic_rounds, 20, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Starts n threads; every second one sleeps for completions. */
static void start_traffic(struct exchanger *x, int n)
{
	traffic_ends = 0;
	for (int i = 0; i < n; i++) {
		x[i].a = make_point();
		x[i].b = make_point();
		x[i].waits = i % 2;
		join(&x[i].a, &x[i].b);
		pthread_create(&x[i].thread, NULL, exchange_until_end, &x[i]);
	}
}

static void stop_traffic(struct exchanger *x, int n)
{
	traffic_ends = 1;
	for (int i = 0; i < n; i++)
		pthread_join(x[i].thread, NULL);
}

#endif
