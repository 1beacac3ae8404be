/* Tests of guest.c: the program's limits of memory, descriptors and threads. */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

/* Sets a limit, tries to open the adapter, and sets the limit back. Returns what the open returned. */
static DAT_RETURN open_with(int resource, rlim_t n)
{
	struct rlimit limit, old;
	DAT_RETURN r;

	getrlimit(resource, &old);
	limit = old;
	limit.rlim_cur = n;
	setrlimit(resource, &limit);
	async_evd = DAT_HANDLE_NULL;
	r = dat_ia_open((DAT_NAME_PTR)ia_name, 8, &async_evd, &ia);
	setrlimit(resource, &old);
	return r;
}

/* Opens the adapter without a limit, and checks it. */
static void open_and_exchange(void)
{
	struct point a, b;

	open_ia();
	a = make_point();
	b = make_point();
	join(&a, &b);
	exchange(&a, &b, 3, 0);
	exchange(&a, &b, 3, 1);
}

/* With too little memory the open returns an error, and it succeeds when there is more. */
static void test_memory(void)
{
	for (rlim_t mb = 200; mb < 1900; mb += 200)
		WANT(open_with(RLIMIT_AS, mb << 20), DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY);
	for (rlim_t mb = 40; mb < 250; mb += 30)
		WANT(open_with(RLIMIT_DATA, mb << 20), DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY);
	open_and_exchange();
}

/* The same with few descriptors. With the fewest, libdat2 cannot read dat.conf or load the library. */
static void test_descriptors(void)
{
	int first = dup(0);
	DAT_RETURN r;

	close(first);
	for (int n = 1; n < 10; n++) {
		r = open_with(RLIMIT_NOFILE, first + n);
		CHECK(!r || DAT_GET_TYPE(r) == DAT_INSUFFICIENT_RESOURCES || (n < 4 && DAT_GET_TYPE(r) == DAT_PROVIDER_NOT_FOUND),
			"%#x with %d descriptors", r, n);
		if (!r)
			MUST(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	open_and_exchange();
}

/* Lets no thread of the process create threads any more, as a limit of threads does for a program that is not root. */
static void forbid_threads(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	CHECK(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), "seccomp: %s", strerror(errno));
}

/* A program that can create no threads opens no adapter. */
static void test_no_threads(void)
{
	forbid_threads();
	async_evd = DAT_HANDLE_NULL;
	CHECK(DAT_GET_TYPE(dat_ia_open((DAT_NAME_PTR)ia_name, 8, &async_evd, &ia)) == DAT_INSUFFICIENT_RESOURCES, "an open without threads");
}

/* If no thread can be created later, an open adapter works on. */
static void test_last_threads(void)
{
	struct exchanger x[6];

	open_ia();
	start_traffic(x, 6);
	forbid_threads();
	sleep(2);
	stop_traffic(x, 6);
}
