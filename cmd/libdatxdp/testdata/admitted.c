/*
 * A server and a client that tell how a connect ends. "admitted IA" accepts all requests on the connection qualifiers 1 and
 * 2, until it is killed. "admitted IA ADDRESS QUALIFIER SECONDS" connects, with that timeout, and prints the event, or the
 * result of the call that failed.
 */

#include <arpa/inet.h>

#include "calls.h"

static void serve(void)
{
	DAT_EVD_HANDLE evd;
	DAT_PSP_HANDLE psp;
	DAT_EVENT ev;
	DAT_COUNT more;

	MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
	for (DAT_CONN_QUAL qual = 1; qual <= 2; qual++)
		MUST(dat_psp_create(ia, qual, evd, DAT_PSP_CONSUMER_FLAG, &psp));
	printf("listening\n");
	for (;;) {
		struct point p = make_point();

		MUST(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &ev, &more));
		MUST(dat_cr_accept(ev.event_data.cr_arrival_event_data.cr_handle, p.ep, 0, NULL));
	}
}

static const char *event_name(DAT_EVENT_NUMBER n)
{
	switch (n) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		return "DAT_CONNECTION_EVENT_ESTABLISHED";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		return "DAT_CONNECTION_EVENT_NON_PEER_REJECTED";
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return "DAT_CONNECTION_EVENT_TIMED_OUT";
	default:
		return "another event";
	}
}

static void request(const char *address, DAT_CONN_QUAL qual, int seconds)
{
	struct point p = make_point();
	DAT_EVENT ev;
	DAT_COUNT more;
	DAT_RETURN r;

	inet_pton(AF_INET, address, &((struct sockaddr_in *)&self)->sin_addr);
	r = dat_ep_connect(p.ep, (DAT_IA_ADDRESS_PTR)&self, qual, seconds * SECOND, 0, NULL, DAT_QOS_BEST_EFFORT,
		DAT_CONNECT_DEFAULT_FLAG);
	if (r) {
		printf("dat_ep_connect: %s\n", text(r));
		return;
	}
	MUST(dat_evd_wait(p.connect, 20 * SECOND, 1, &ev, &more));
	printf("event: %s\n", event_name(ev.event_number));
}

int main(int argc, char **argv)
{
	DAT_IA_ATTR attr;
	DAT_RETURN r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ia_name = argv[1];
	async_evd = DAT_HANDLE_NULL;
	r = dat_ia_open(argv[1], 8, &async_evd, &ia);
	if (r) {
		printf("dat_ia_open: %s\n", text(r));
		return 0;
	}
	MUST(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	memcpy(&self, attr.ia_address_ptr, sizeof self);
	if (argc < 5)
		serve();
	request(argv[2], atoi(argv[3]), atoi(argv[4]));
	MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
