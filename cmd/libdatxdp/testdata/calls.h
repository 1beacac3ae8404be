/* Code that the test programs share: an adapter that connects to itself, and checks that print values. */
#ifndef CALLS_H
#define CALLS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dat2/udat.h>
#include <dat2/udat_redirection.h>
#include <dat2/dat_ib_extensions.h>

#define SECOND 1000000
#define MEMORY 65536

static int failures;

static const char *text(DAT_RETURN r)
{
	const char *major = "?", *minor = "";
	static char buf[2][160];
	static int turn;
	char *b = buf[turn ^= 1];

	dat_strerror(r, &major, &minor);
	snprintf(b, sizeof buf[0], "%s %s", major, minor);
	return b;
}

/* CHECK fails the test unless the condition holds. */
#define CHECK(cond, ...)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			failures++;                                            \
			printf("%s:%d: FAILED: %s: ", __FILE__, __LINE__, #cond); \
			printf(__VA_ARGS__);                                   \
			printf("\n");                                          \
		}                                                              \
	} while (0)

/* WANT fails the test unless a call returns the given type. If the given value has a subtype, the subtype must match too. */
#define WANT(call, want)                                                                              \
	do {                                                                                          \
		DAT_RETURN got_ = (call), want_ = (want);                                             \
		int same_ = DAT_GET_SUBTYPE(want_) ? (got_ & 0x3fffffff) == (want_ & 0x3fffffff)      \
						   : DAT_GET_TYPE(got_) == DAT_GET_TYPE(want_);       \
		CHECK(same_, "got %#x %s, want %#x %s", got_, text(got_), want_, text(want_));        \
	} while (0)

/* MUST ends the program unless a call succeeds. */
#define MUST(call)                                                                                    \
	do {                                                                                          \
		DAT_RETURN got_ = (call);                                                             \
		if (got_ != DAT_SUCCESS) {                                                            \
			printf("%s:%d: FAILED: %s: %#x %s\n", __FILE__, __LINE__, #call, got_, text(got_)); \
			exit(1);                                                                      \
		}                                                                                     \
	} while (0)

/* One side of a connection: the endpoint and its other objects. */
struct point {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE recv, request, connect;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	char *mem;
};

static const char *ia_name;
static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd;
static struct sockaddr_in6 self; /* the adapter's own address */

static void open_ia(void)
{
	DAT_IA_ATTR attr;

	async_evd = DAT_HANDLE_NULL;
	MUST(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &async_evd, &ia));
	MUST(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	memcpy(&self, attr.ia_address_ptr, sizeof self);
}

static DAT_EVENT await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER want)
{
	DAT_EVENT ev;
	DAT_COUNT more;

	memset(&ev, 0, sizeof ev);
	MUST(dat_evd_wait(evd, 20 * SECOND, 1, &ev, &more));
	CHECK(ev.event_number == want, "got event %#x, want %#x", ev.event_number, want);
	return ev;
}

static DAT_DTO_COMPLETION_EVENT_DATA await_dto(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS want)
{
	DAT_EVENT ev = await(evd, DAT_DTO_COMPLETION_EVENT);
	DAT_DTO_COMPLETION_EVENT_DATA d = ev.event_data.dto_completion_event_data;

	CHECK(d.status == want, "got status %d, want %d", d.status, want);
	return d;
}

static DAT_CONNECTION_EVENT_DATA await_connection(struct point *p, DAT_EVENT_NUMBER want)
{
	DAT_EVENT ev = await(p->connect, want);
	DAT_CONNECTION_EVENT_DATA d = ev.event_data.connect_event_data;

	CHECK(d.ep_handle == p->ep, "event of endpoint %p, want %p", d.ep_handle, p->ep);
	return d;
}

static void make_evds(struct point *p)
{
	MUST(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &p->recv));
	MUST(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &p->request));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &p->connect));
}

static void make_memory(struct point *p)
{
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN size;
	DAT_VADDR address;

	if (posix_memalign((void **)&p->mem, 4096, MEMORY))
		abort();
	memset(p->mem, 0, MEMORY);
	region.for_va = p->mem;
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, p->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &p->lmr,
		&p->lmr_context, &p->rmr_context, &size, &address));
	CHECK(size == MEMORY && address == (uintptr_t)p->mem, "registered %llu at %llx", (unsigned long long)size, (unsigned long long)address);
}

/* Makes a point without an endpoint. */
static struct point make_base(void)
{
	struct point p;

	memset(&p, 0, sizeof p);
	MUST(dat_pz_create(ia, &p.pz));
	make_evds(&p);
	make_memory(&p);
	return p;
}

static struct point make_point(void)
{
	struct point p = make_base();

	MUST(dat_ep_create(ia, p.pz, p.recv, p.request, p.connect, NULL, &p.ep));
	return p;
}

/* Frees all objects of a point. Each call must succeed. */
static void free_point(struct point *p)
{
	if (p->ep)
		MUST(dat_ep_free(p->ep));
	MUST(dat_lmr_free(p->lmr));
	MUST(dat_evd_free(p->recv));
	MUST(dat_evd_free(p->request));
	MUST(dat_evd_free(p->connect));
	MUST(dat_pz_free(p->pz));
	free(p->mem);
}

/* A service point that listens on a qualifier, with its dispatcher. */
struct listener {
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
};

static struct listener listen_on(DAT_CONN_QUAL qual, DAT_PSP_FLAGS flags)
{
	struct listener l = {.qual = qual};

	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &l.evd));
	MUST(dat_psp_create(ia, qual, l.evd, flags, &l.psp));
	return l;
}

static void unlisten(struct listener *l)
{
	MUST(dat_psp_free(l->psp));
	MUST(dat_evd_free(l->evd));
}

static DAT_CR_ARRIVAL_EVENT_DATA await_request(struct listener *l)
{
	DAT_EVENT ev = await(l->evd, DAT_CONNECTION_REQUEST_EVENT);
	DAT_CR_ARRIVAL_EVENT_DATA d = ev.event_data.cr_arrival_event_data;

	CHECK(d.sp_handle.psp_handle == l->psp, "request at %p, want %p", d.sp_handle.psp_handle, l->psp);
	CHECK(d.conn_qual == l->qual, "request for %llu", (unsigned long long)d.conn_qual);
	CHECK(d.local_ia_address_ptr && !memcmp(d.local_ia_address_ptr, &self, sizeof(struct sockaddr_in)), "local address");
	return d;
}

static DAT_RETURN connect_to(struct point *p, DAT_CONN_QUAL qual, DAT_COUNT n, void *data)
{
	return dat_ep_connect(p->ep, (DAT_IA_ADDRESS_PTR)&self, qual, 20 * SECOND, n, data, DAT_QOS_BEST_EFFORT,
		DAT_CONNECT_DEFAULT_FLAG);
}

/* Connects two points. */
static void join(struct point *a, struct point *b)
{
	struct listener l = listen_on(4711, DAT_PSP_CONSUMER_FLAG);

	MUST(connect_to(b, l.qual, 0, NULL));
	MUST(dat_cr_accept(await_request(&l).cr_handle, a->ep, 0, NULL));
	await_connection(b, DAT_CONNECTION_EVENT_ESTABLISHED);
	await_connection(a, DAT_CONNECTION_EVENT_ESTABLISHED);
	unlisten(&l);
}

static DAT_LMR_TRIPLET piece(struct point *p, size_t at, DAT_SEG_LENGTH n)
{
	DAT_LMR_TRIPLET t = {.virtual_address = (uintptr_t)p->mem + at, .segment_length = n, .lmr_context = p->lmr_context};

	return t;
}

static DAT_RMR_TRIPLET remote_piece(struct point *p, DAT_RMR_CONTEXT context, size_t at, DAT_SEG_LENGTH n)
{
	DAT_RMR_TRIPLET t = {.virtual_address = (uintptr_t)p->mem + at, .segment_length = n, .rmr_context = context};

	return t;
}

static DAT_DTO_COOKIE cookie(uint64_t n)
{
	DAT_DTO_COOKIE c = {.as_64 = n};

	return c;
}

#endif
