/*
 * A requester to which no route leads. "noroute IA" takes two requests and removes the route to the requester, with an
 * unreachable route, before it accepts them. It prints "ok noroute" if both connections fail with an event, and no handle
 * outlives its object. "noroute IA ADDRESS" is the requester.
 */

#include <arpa/inet.h>

#include "calls.h"

enum { CONSUMER = 1, PROVIDER = 2, NOBODY = 3 }; /* connection qualifiers */

/* Changes the route to the requester with the program ip, in the namespace of this process. */
static void route(const char *change, const char *requester)
{
	char command[100];

	snprintf(command, sizeof command, "ip route %s unreachable %s/32", change, requester);
	CHECK(!system(command), "%s", command);
}

/* A connection request that ends soon if nothing answers. */
static DAT_RETURN request(struct point *p, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout)
{
	return dat_ep_connect(p->ep, (DAT_IA_ADDRESS_PTR)&self, qual, timeout, 0, NULL, DAT_QOS_BEST_EFFORT,
		DAT_CONNECT_DEFAULT_FLAG);
}

/* Connects to the requester, where nobody listens, until the adapter knows that no route leads there. */
static void await_refusal(DAT_IA_ADDRESS_PTR requester)
{
	struct point p = make_point();
	DAT_EVENT ev;
	DAT_COUNT more;
	DAT_RETURN r;

	memcpy(&self, requester, sizeof(struct sockaddr_in));
	while (!(r = request(&p, NOBODY, SECOND / 10))) {
		MUST(dat_evd_wait(p.connect, 20 * SECOND, 1, &ev, &more));
		MUST(dat_ep_reset(p.ep));
	}
	CHECK(DAT_GET_TYPE(r) == DAT_INVALID_ADDRESS, "connect without a route returns %#x", r);
	free_point(&p);
}

/* Checks that a handle is freed. This test needs no object below the handle. */
static void freed(const char *what, DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;

	CHECK(DAT_GET_TYPE(dat_get_handle_type(handle, &type)) == DAT_INVALID_HANDLE, "the handle of the %s is valid", what);
}

static void serve(void)
{
	struct point a = make_point(), b = make_base();
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);
	struct listener consumer = listen_on(CONSUMER, DAT_PSP_CONSUMER_FLAG), provider = listen_on(PROVIDER, DAT_PSP_PROVIDER_FLAG);
	DAT_CR_HANDLE first, second;
	DAT_CR_PARAM param;
	DAT_EP_PARAM ep = {.pz_handle = b.pz, .connect_evd_handle = b.connect};
	char requester[INET_ADDRSTRLEN];

	printf("listening\n");
	first = await_request(&consumer).cr_handle;
	second = await_request(&provider).cr_handle;
	MUST(dat_cr_query(second, DAT_CR_FIELD_ALL, &param));
	MUST(dat_ep_modify(param.local_ep_handle, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &ep));
	inet_ntop(AF_INET, &((struct sockaddr_in *)param.remote_ia_address_ptr)->sin_addr, requester, sizeof requester);
	unlisten(&consumer);
	unlisten(&provider);
	b.ep = param.local_ep_handle;
	MUST(dat_ep_post_recv(a.ep, 1, &t, cookie(1), 0));
	route("add", requester);
	await_refusal(param.remote_ia_address_ptr);
	MUST(dat_cr_accept(first, a.ep, 0, NULL));
	await_dto(a.recv, DAT_DTO_ERR_FLUSHED);
	await_connection(&a, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	MUST(dat_cr_accept(second, DAT_HANDLE_NULL, 0, NULL));
	await_connection(&b, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	freed("first request", first);
	freed("second request", second);
	WANT(dat_cr_reject(first, 0, NULL), DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CR);
	route("del", requester);
	free_point(&a);
	free_point(&b);
	freed("endpoint of the second request", param.local_ep_handle);
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); /* no object is left */
	if (!failures)
		printf("ok noroute\n");
}

static void ask(void)
{
	struct point a = make_point(), b = make_point();
	DAT_EVENT ev;
	DAT_COUNT more;

	MUST(request(&a, CONSUMER, 2 * SECOND));
	MUST(request(&b, PROVIDER, 2 * SECOND));
	MUST(dat_evd_wait(a.connect, 20 * SECOND, 1, &ev, &more)); /* nobody listens any more, or the server has ended */
	MUST(dat_evd_wait(b.connect, 20 * SECOND, 1, &ev, &more));
	MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	ia_name = argv[1];
	open_ia();
	if (argc == 2) {
		serve();
		return failures != 0;
	}
	inet_pton(AF_INET, argv[2], &((struct sockaddr_in *)&self)->sin_addr);
	ask();
	return 0;
}
