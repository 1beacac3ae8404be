/*
 * Tests of when the memory of handles is used again. "handles IA" prints "ok handles" if no check fails.
 */

#include "calls.h"

enum {
	RESERVE = 65536, /* QUARANTINE of arena.c: the number of handles that are freed before one of them is used again */
	MANY = 5000000   /* more than SLOTS of arena.c, the maximum number of handles */
};

/* Creates and frees n handles. Returns 1 as soon as one of them is the given handle. */
static int appears(DAT_HANDLE wanted, int n)
{
	DAT_PZ_HANDLE pz;

	for (int i = 0; i < n; i++) {
		MUST(dat_pz_create(ia, &pz));
		MUST(dat_pz_free(pz));
		if (pz == wanted)
			return 1;
	}
	return 0;
}

/* The handle of a freed endpoint is not used again while a completion in a queue names it. It is used again afterwards. */
static void test_queued(void)
{
	struct point a = make_point(), b = make_point();
	DAT_EP_HANDLE ep = a.ep;
	DAT_HANDLE_TYPE type;
	DAT_LMR_TRIPLET t = piece(&a, 0, 8);

	MUST(dat_ep_post_recv(a.ep, 1, &t, cookie(7), 0));
	join(&a, &b);
	t = piece(&b, 0, 8);
	MUST(dat_ep_post_send(b.ep, 1, &t, cookie(8), 0));
	await_dto(b.request, DAT_DTO_SUCCESS); /* the message is at a, which has not taken its completion */
	MUST(dat_ep_free(a.ep));
	CHECK(!appears(ep, 2 * RESERVE), "the handle of an endpoint was used again while a completion named it");
	CHECK(await_dto(a.recv, DAT_DTO_SUCCESS).ep_handle == ep, "the completion names another endpoint");
	WANT(dat_get_handle_type(ep, &type), DAT_INVALID_HANDLE);
	a.ep = DAT_HANDLE_NULL;
	free_point(&a);
	free_point(&b);
	CHECK(appears(ep, MANY), "the handle of a collected endpoint is not used again");
}

/* The handles of objects that could not be created are used again. */
static void test_refused(void)
{
	DAT_EVD_HANDLE evd;

	for (int i = 0; i < MANY && !failures; i++)
		WANT(dat_evd_create(ia, 0, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd), DAT_INVALID_PARAMETER);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	ia_name = argv[1];
	open_ia();
	test_queued();
	test_refused();
	MUST(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG)); /* no object is left */
	if (!failures)
		printf("ok handles\n");
	return failures != 0;
}
