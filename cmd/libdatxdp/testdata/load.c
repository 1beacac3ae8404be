/*
 * A load like that of an MPI library: several connections with 64 messages in flight in both directions, RDMA writes
 * ahead of messages, every byte checked; threads that poll and threads that wait. Meanwhile the program starts children of
 * all kinds, installs signal handlers with all flags, gets signals all the time, repairs faults of its own, and has
 * threads that come and go. "load IA SECONDS" is the server, "load IA SECONDS ADDRESS" the client. The program prints
 * "ok load" if nothing failed.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>

#include "traffic.h"
#include "guest_signals.c"
#include "guest_faults.c"
#include "guest_process.c"

enum { LINKS = 4, WINDOW = 64, SLOTS = 4 * WINDOW, SLOT = 4096, PATIENCE = 60, FIRST_QUAL = 5000 };

/* The beginning of a message. Words that depend on number follow, up to size. */
struct message {
	uint64_t number, size, last;
};

/* Private data of a connection: the memory that the peer may write. */
struct target {
	uint64_t address;
	DAT_RMR_CONTEXT context;
};

/* One side of a connection. The memory has slots of messages to send, of received ones, to write from, and to be written. */
struct link {
	struct point p;
	struct target peer;
	char *out, *in, *source, *target;
	uint64_t sent, completed, received, writes;
	int said_last, heard_last, waits;
	pthread_t thread;
};

static struct link links[LINKS];
static time_t end;
static uint64_t total;

static void fill(void *p, uint64_t number, size_t size)
{
	uint64_t *words = p;

	for (size_t i = 0; i < size / 8; i++)
		words[i] = (number + 1) * 0x9e3779b97f4a7c15 + i;
}

static int filled(const void *p, uint64_t number, size_t size)
{
	const uint64_t *words = p;

	for (size_t i = 0; i < size / 8; i++)
		if (words[i] != (number + 1) * 0x9e3779b97f4a7c15 + i)
			return 0;
	return 1;
}

static void give_up(struct link *l, const char *what)
{
	DAT_EP_STATE state = 0;

	dat_ep_get_status(l->p.ep, &state, NULL, NULL);
	printf("FAILED: %s: link %ld, state %d, sent %llu, completed %llu, received %llu\n", what, (long)(l - links), state,
		(unsigned long long)l->sent, (unsigned long long)l->completed, (unsigned long long)l->received);
	exit(1);
}

static DAT_LMR_TRIPLET segment(struct link *l, void *p, DAT_SEG_LENGTH n)
{
	return (DAT_LMR_TRIPLET){.virtual_address = (uintptr_t)p, .segment_length = n, .lmr_context = l->p.lmr_context};
}

static void post_recv(struct link *l, uint64_t n)
{
	DAT_LMR_TRIPLET t = segment(l, l->in + n % SLOTS * SLOT, SLOT);

	MUST(dat_ep_post_recv(l->p.ep, 1, &t, cookie(n), DAT_COMPLETION_DEFAULT_FLAG));
}

/* Writes a slot at the peer, and then sends a message: the peer has what was written when the message arrives. */
static void post_send(struct link *l)
{
	uint64_t n = l->sent++;
	struct message *m = (void *)(l->out + n % SLOTS * SLOT);
	char *source = l->source + n % SLOTS * SLOT;
	DAT_LMR_TRIPLET t, w = segment(l, source, SLOT);
	DAT_RMR_TRIPLET to = {.virtual_address = l->peer.address + n % SLOTS * SLOT, .segment_length = SLOT, .rmr_context = l->peer.context};

	l->said_last = time(NULL) >= end || l->heard_last || failures;
	*m = (struct message){n, sizeof *m + n * 8 % (SLOT - sizeof *m), l->said_last};
	fill(m + 1, n, m->size - sizeof *m);
	if (n % 4 == 0) {
		fill(source, n, SLOT);
		l->writes++;
		MUST(dat_ep_post_rdma_write(l->p.ep, 1, &w, cookie(n), &to, DAT_COMPLETION_DEFAULT_FLAG));
	}
	t = segment(l, m, m->size);
	MUST(dat_ep_post_send(l->p.ep, 1, &t, cookie(n), DAT_COMPLETION_DEFAULT_FLAG));
}

static void check_message(struct link *l, const DAT_DTO_COMPLETION_EVENT_DATA *d)
{
	uint64_t n = l->received++;
	const struct message *m = (void *)(l->in + n % SLOTS * SLOT);

	CHECK(d->user_cookie.as_64 == n && m->number == n && m->size == d->transfered_length, "message %llu is %llu of %llu bytes",
		(unsigned long long)n, (unsigned long long)m->number, (unsigned long long)d->transfered_length);
	CHECK(filled(m + 1, n, m->size - sizeof *m), "the bytes of message %llu", (unsigned long long)n);
	CHECK(n % 4 || filled(l->target + n % SLOTS * SLOT, n, SLOT), "the bytes that were written before message %llu", (unsigned long long)n);
	l->heard_last = m->last;
	if (!l->heard_last)
		post_recv(l, n + SLOTS);
}

/* Takes an event, at once or after a wait. Returns 0 if there is none. */
static int take(struct link *l, DAT_EVD_HANDLE evd, int wait, DAT_DTO_COMPLETION_EVENT_DATA *d)
{
	DAT_COUNT more;
	DAT_EVENT ev;
	DAT_RETURN r = wait ? dat_evd_wait(evd, 1000, 1, &ev, &more) : dat_evd_dequeue(evd, &ev);

	if (DAT_GET_TYPE(r) == DAT_QUEUE_EMPTY || DAT_GET_TYPE(r) == DAT_TIMEOUT_EXPIRED)
		return 0;
	if (r != DAT_SUCCESS || ev.event_number != DAT_DTO_COMPLETION_EVENT || ev.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
		printf("%s, event %#x, status %d\n", text(r), ev.event_number, ev.event_data.dto_completion_event_data.status);
		give_up(l, "a transfer failed");
	}
	*d = ev.event_data.dto_completion_event_data;
	return 1;
}

static int done(const struct link *l) { return l->said_last && l->heard_last && l->completed == l->sent + l->writes; }

static void *drive(void *v)
{
	struct link *l = v;
	DAT_DTO_COMPLETION_EVENT_DATA d;
	time_t idle = time(NULL);

	while (!done(l)) {
		int progress = 0;

		while (!l->said_last && l->sent < l->received + WINDOW && l->sent + l->writes < l->completed + WINDOW) {
			post_send(l);
			progress = 1;
		}
		while (!l->heard_last && take(l, l->p.recv, l->waits && !progress, &d)) {
			check_message(l, &d);
			progress = 1;
		}
		while (take(l, l->p.request, 0, &d)) {
			l->completed++;
			progress = 1;
		}
		if (progress)
			idle = time(NULL);
		else if (time(NULL) > idle + PATIENCE)
			give_up(l, "nothing moves");
	}
	__atomic_add_fetch(&total, l->received, __ATOMIC_RELAXED);
	return NULL;
}

static void make_link(struct link *l, int i)
{
	DAT_REGION_DESCRIPTION region;
	DAT_EP_ATTR attr;
	DAT_EP_PARAM p;
	size_t size = (size_t)4 * SLOTS * SLOT;
	DAT_VLEN granted;
	DAT_VADDR address;

	l->waits = i % 2;
	MUST(dat_pz_create(ia, &l->p.pz));
	MUST(dat_evd_create(ia, 2 * SLOTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &l->p.recv));
	MUST(dat_evd_create(ia, 2 * SLOTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &l->p.request));
	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &l->p.connect));
	region.for_va = l->out = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	l->in = l->out + SLOTS * SLOT;
	l->source = l->in + SLOTS * SLOT;
	l->target = l->source + SLOTS * SLOT;
	MUST(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, size, l->p.pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &l->p.lmr, &l->p.lmr_context,
		&l->p.rmr_context, &granted, &address));
	MUST(dat_ep_create(ia, l->p.pz, l->p.recv, l->p.request, l->p.connect, NULL, &l->p.ep));
	MUST(dat_ep_query(l->p.ep, DAT_EP_FIELD_ALL, &p));
	attr = p.ep_attr;
	CHECK(attr.max_recv_dtos >= SLOTS && attr.max_request_dtos >= WINDOW, "an endpoint takes %d receives", attr.max_recv_dtos);
	for (uint64_t n = 0; n < SLOTS; n++)
		post_recv(l, n);
}

static void serve(struct link *l, struct listener *at, struct target *own)
{
	DAT_CR_PARAM request;
	DAT_CR_HANDLE cr;

	cr = await(at->evd, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
	MUST(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request));
	memcpy(&l->peer, request.private_data, sizeof l->peer);
	MUST(dat_cr_accept(cr, l->p.ep, sizeof *own, own));
	await_connection(&l->p, DAT_CONNECTION_EVENT_ESTABLISHED);
	unlisten(at);
}

static void call(struct link *l, int i, const char *address, struct target *own)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address)};
	DAT_CONNECTION_EVENT_DATA d;

	MUST(dat_ep_connect(l->p.ep, (DAT_IA_ADDRESS_PTR)&to, FIRST_QUAL + i, 20 * SECOND, sizeof *own, own, DAT_QOS_BEST_EFFORT,
		DAT_CONNECT_DEFAULT_FLAG));
	d = await_connection(&l->p, DAT_CONNECTION_EVENT_ESTABLISHED);
	memcpy(&l->peer, d.private_data, sizeof l->peer);
}

static void connect_links(const char *address)
{
	struct listener at[LINKS];

	for (int i = 0; i < LINKS && !address; i++)
		at[i] = listen_on(FIRST_QUAL + i, DAT_PSP_CONSUMER_FLAG);
	printf("listening\n");
	for (int i = 0; i < LINKS; i++) {
		struct target own = {(uintptr_t)links[i].target, links[i].p.rmr_context};

		if (address)
			call(&links[i], i, address, &own);
		else
			serve(&links[i], &at[i], &own);
	}
}

/* A thread that uses the provider for a moment. */
static void *visit(void *v)
{
	DAT_EP_STATE state;

	MUST(dat_ep_get_status(links[0].p.ep, &state, NULL, NULL));
	return NULL;
}

static void load_handler(int sig)
{
	volatile char frame[8192];
	char line[128];
	int saved = errno;

	memset((char *)frame, 0x5a, sizeof frame);
	snprintf(line, sizeof line, "%d %f", sig, sig / 3.0);
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	errno = saved;
}

/* Installs a handler with the flags of turn n, and sends its signal to the process and to a thread. */
static void disturb(unsigned n)
{
	static const int flags[] = {SA_ONSTACK, SA_NODEFER, SA_SIGINFO, SA_RESTART, SA_RESETHAND};
	static const int signals[] = {SIGCHLD, SIGURG, SIGWINCH, SIGALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGPIPE};
	int i = n % 8, f = 0;

	for (int k = 0; k < (i < 3 ? 5 : 4); k++) /* the default action of the others ends the program */
		f |= n / 8 >> k & 1 ? flags[k] : 0;
	set_action(signals[i], load_handler, f);
	kill(getpid(), signals[i]);
	pthread_kill(links[n % LINKS].thread, signals[i]);
}

static void start_children(unsigned n)
{
	static void (*const kinds[])(void) = {fork_and_exit, fork_and_exec, fork_and_fall, vfork_and_exec, spawn, run_shell};

	kinds[n % 6]();
}

/* Does all that a program may do, until the end. */
static void disturb_until_end(void)
{
	struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	pthread_t visitor;
	unsigned n = 0;

	for (const int *s = (const int[]){SIGALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGPIPE, 0}; *s; s++)
		signal(*s, load_handler);
	setitimer(ITIMER_REAL, &every, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (; time(NULL) < end && !failures; n++) {
		disturb(n);
		if (n % 16 == 0)
			start_children(n / 16);
		mprotect(page, 4096, PROT_NONE);
		*(volatile char *)page = n;
		pthread_create(&visitor, NULL, visit, NULL);
		pthread_join(visitor, NULL);
		usleep(1000);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_PROF, &never, NULL);
	printf("%u turns, %ld signals, %d faults\n", n, handled, calls);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc < 3)
		return 2;
	ia_name = argv[1];
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set_action(SIGSEGV, repair, SA_SIGINFO);
	open_ia();
	for (int i = 0; i < LINKS; i++)
		make_link(&links[i], i);
	connect_links(argc > 3 ? argv[3] : NULL);
	end = time(NULL) + atoi(argv[2]);
	for (int i = 0; i < LINKS; i++)
		pthread_create(&links[i].thread, NULL, drive, &links[i]);
	disturb_until_end();
	for (int i = 0; i < LINKS; i++)
		pthread_join(links[i].thread, NULL);
	printf("%llu messages\n", (unsigned long long)total);
	if (!failures)
		printf("ok load\n");
	return failures != 0;
}
