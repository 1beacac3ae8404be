/* Makes refused calls of every kind. It prints each call, so that TestLog can compare the output with the log. */

#include "calls.h"

/* REFUSED makes a call that must fail, and prints its name and result. */
#define REFUSED(name, call)                                                                       \
	do {                                                                                      \
		DAT_RETURN got_ = (call);                                                         \
		CHECK(got_ != DAT_SUCCESS, "%s succeeded", #call);                                \
		printf("refused: %s %s\n", name, text(got_));                                     \
		fflush(stdout);                                                                   \
	} while (0)

static void posts(struct point *a, struct point *b)
{
	DAT_LMR_TRIPLET one = piece(b, 0, 8), far = piece(b, MEMORY, 8), many[20] = {{0}};
	DAT_RMR_TRIPLET to = remote_piece(a, a->rmr_context, 0, 8);
	struct point other = make_base();
	DAT_LMR_TRIPLET foreign = piece(&other, 0, 8), wrong = {.lmr_context = 1, .segment_length = 8};

	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 1, &one, cookie(1), 0)); /* not connected */
	join(a, b);
	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 20, many, cookie(1), 0));
	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 1, NULL, cookie(1), 0));
	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 1, &far, cookie(1), 0));
	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 1, &foreign, cookie(1), 0));
	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 1, &wrong, cookie(1), 0));
	REFUSED("dat_ep_post_send", dat_ep_post_send(b->ep, 1, &one, cookie(1), 0x40));
	REFUSED("dat_ep_post_recv", dat_ep_post_recv(b->ep, 1, &one, cookie(1), DAT_COMPLETION_SUPPRESS_FLAG));
	to.segment_length = 4;
	REFUSED("dat_ep_post_rdma_write", dat_ep_post_rdma_write(b->ep, 1, &one, cookie(1), &to, 0));
	REFUSED("dat_extension_op", dat_extension_op(b->ep, 0x7f));
	free_point(&other);
}

static void objects(struct point *a)
{
	DAT_EP_ATTR attr;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_PZ_HANDLE pz;

	MUST(dat_ep_query(a->ep, DAT_EP_FIELD_ALL, &param));
	attr = param.ep_attr;
	attr.max_recv_dtos = 1 << 30;
	REFUSED("dat_ep_create", dat_ep_create(ia, a->pz, a->recv, a->request, a->connect, &attr, &ep));
	REFUSED("dat_ep_create", dat_ep_create(ia, a->pz, a->connect, a->request, a->connect, NULL, &ep));
	REFUSED("dat_ep_query", dat_ep_query(a->ep, DAT_EP_FIELD_ALL, NULL));
	REFUSED("dat_evd_create", dat_evd_create(ia, 1 << 30, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd));
	REFUSED("dat_pz_free", dat_pz_free(a->pz)); /* in use */
	MUST(dat_pz_create(ia, &pz));
	MUST(dat_pz_free(pz));
	REFUSED("dat_pz_free", dat_pz_free(pz));
}

/* Connects to a qualifier on which nothing listens. */
static void lonely(void)
{
	struct point p = make_point();

	MUST(connect_to(&p, 4712, 0, NULL));
	await_connection(&p, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	printf("not connected\n");
	free_point(&p);
}

static void answers(struct point *p)
{
	DAT_EVENT ev;
	DAT_COUNT more;

	WANT(dat_evd_dequeue(p->recv, &ev), DAT_QUEUE_EMPTY);
	WANT(dat_evd_wait(p->recv, 1000, 1, &ev, &more), DAT_TIMEOUT_EXPIRED);
}

static void forked(struct point *p)
{
	int status;

	fflush(stdout);
	if (fork() == 0) {
		REFUSED("dat_pz_free", dat_pz_free(p->pz));
		_exit(0);
	}
	wait(&status);
}

int main(int argc, char **argv)
{
	struct point a, b;
	DAT_EVD_HANDLE none = DAT_HANDLE_NULL;
	DAT_IA_HANDLE bad;

	(void)argc;
	ia_name = argv[1];
	REFUSED("dat_ia_open", dat_ia_open("bad", 8, &none, &bad));
	open_ia();
	a = make_point();
	b = make_point();
	posts(&a, &b);
	objects(&a);
	lonely();
	answers(&a);
	forked(&a);
	MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	printf(failures ? "" : "all refused\n");
	return failures > 0;
}
