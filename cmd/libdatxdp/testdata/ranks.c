/*
 * Several processes of one host listen and connect. "ranks IA [BESIDE]" listens at a qualifier that the provider picks
 * and, unless another process does, at 4711. It connects to itself, prints "qualifier Q process P fixed F child C", and
 * answers requests with its process number. F is the result of dat_psp_create, and C the number of a child that it has
 * forked, which waits. With BESIDE it does so on a second adapter, while IA is open too. "ranks IA ADDRESS Q"
 * connects and prints "answer N", or "event E" if the connection fails.
 */

#include <arpa/inet.h>

#include "calls.h"

static DAT_EVD_HANDLE requests;

static void answer(DAT_EVENT *request)
{
	struct point p = make_point();
	pid_t own = getpid();

	MUST(dat_cr_accept(request->event_data.cr_arrival_event_data.cr_handle, p.ep, sizeof own, &own));
	await_connection(&p, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* Connects, and returns the answer of the other process, or 0. */
static pid_t ask(DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qual)
{
	struct point p = make_point();
	pid_t who = 0;
	DAT_COUNT more;
	DAT_EVENT ev;

	MUST(dat_ep_connect(p.ep, to, qual, 20 * SECOND, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	while (dat_evd_wait(p.connect, 1000, 1, &ev, &more) != DAT_SUCCESS)
		if (requests && dat_evd_dequeue(requests, &ev) == DAT_SUCCESS)
			answer(&ev);
	if (ev.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		printf("event %#x\n", ev.event_number);
	else
		memcpy(&who, ev.event_data.connect_event_data.private_data, sizeof who);
	return who;
}

/* Forks a child that waits until it is killed, at most 30 s. */
static pid_t fork_and_wait(void)
{
	pid_t child = fork();

	if (!child) {
		alarm(30);
		for (;;)
			pause();
	}
	return child;
}

static void serve(void)
{
	DAT_CONN_QUAL qual, fixed = 4711;
	DAT_RETURN taken;
	DAT_PSP_HANDLE psp;
	DAT_COUNT more;
	DAT_EVENT ev;

	MUST(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
	MUST(dat_psp_create_any(ia, &qual, requests, DAT_PSP_CONSUMER_FLAG, &psp));
	taken = dat_psp_create(ia, fixed, requests, DAT_PSP_CONSUMER_FLAG, &psp);
	CHECK(!taken || DAT_GET_TYPE(taken) == DAT_CONN_QUAL_IN_USE, "dat_psp_create returns %#x", taken);
	CHECK(ask((DAT_IA_ADDRESS_PTR)&self, qual) == getpid(), "the answer to a request to the own qualifier");
	CHECK(taken || ask((DAT_IA_ADDRESS_PTR)&self, fixed) == getpid(), "the answer to a request to the own fixed qualifier");
	printf("qualifier %llu process %d fixed %#x child %d\n", (unsigned long long)qual, getpid(), DAT_GET_TYPE(taken), fork_and_wait());
	for (;;)
		if (dat_evd_wait(requests, SECOND, 1, &ev, &more) == DAT_SUCCESS)
			answer(&ev);
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	pid_t who;

	setvbuf(stdout, NULL, _IONBF, 0);
	ia_name = argc > 1 ? argv[1] : "";
	open_ia();
	if (argc < 4) {
		if (argc == 3) {
			ia_name = argv[2];
			open_ia();
		}
		serve();
		return failures != 0;
	}
	to.sin_addr.s_addr = inet_addr(argv[2]);
	if ((who = ask((DAT_IA_ADDRESS_PTR)&to, strtoull(argv[3], NULL, 0))))
		printf("answer %d\n", who);
	return 0;
}
