/* Tests of guest.c: faults of the program belong to the program. */

#include <setjmp.h>
#include <sys/prctl.h>

static volatile int *volatile nowhere = (int *)16; /* volatile, so that the compiler does not warn */
static volatile int calls;
enum { NOT_REPAIRED = 3 };
static void *page; /* may not be read, until a handler repairs that */

static void repair(int sig, siginfo_t *info, void *context)
{
	calls++;
	if ((uintptr_t)info->si_addr - (uintptr_t)page >= 4096)
		_exit(NOT_REPAIRED);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void count_and_return(int sig)
{
	if (++calls > 100)
		_exit(4);
}

static void expect_sender(int sig, siginfo_t *info, void *context)
{
	_exit(info->si_code == SI_USER && info->si_pid == getpid() ? 42 : 43);
}

static void expect_fault(int sig, siginfo_t *info, void *context)
{
	stack_t st;

	sigaltstack(NULL, &st);
	_exit(info->si_code == SEGV_MAPERR && info->si_addr == (void *)nowhere && !(st.ss_flags & SS_ONSTACK) ? 42 : 43);
}

static void on_alternate(int sig)
{
	stack_t st;

	sigaltstack(NULL, &st);
	_exit(st.ss_flags & SS_ONSTACK ? 42 : 43);
}

static void set_action(int sig, void *handler, int flags)
{
	struct sigaction act;

	memset(&act, 0, sizeof act);
	act.sa_sigaction = handler;
	act.sa_flags = flags;
	sigaction(sig, &act, NULL);
}

static void fall(void) { *nowhere = 1; }
static void hit_end_of_file(void)
{
	FILE *f = tmpfile();
	volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);

	calls += *p;
}

static int __attribute__((noinline)) overflow(int n)
{
	volatile char frame[4096];

	frame[0] = n;
	return n < 0 ? 0 : overflow(n + 1) + frame[0];
}

static void overflow_stack(void) { calls = overflow(0); }
static void send_segv(void) { kill(getpid(), SIGSEGV); }
static void send_bus(void) { kill(getpid(), SIGBUS); }
static void send_stkflt(void) { kill(getpid(), SIGSTKFLT); }
static void raise_fpe(void) { raise(SIGFPE); }
static void broken_pipe(void)
{
	int fd[2];

	if (pipe(fd))
		exit(1);
	close(fd[0]);
	calls = write(fd[1], "x", 1);
}

static void close_at_exit(void) { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
static void exit_at_once(int sig) { exit(5); }

/* A handler exits while the thread is in a call, and functions of atexit close the adapter. */
static void exit_in_handler(int waits)
{
	struct itimerval soon = {.it_value = {0, 5000}};
	DAT_COUNT more;
	DAT_EVENT ev;

	atexit(close_at_exit);
	signal(SIGALRM, exit_at_once);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		if (waits)
			dat_evd_wait(async_evd, SECOND, 1, &ev, &more);
		else
			dat_evd_dequeue(async_evd, &ev);
}

static void exit_while_polling(void) { exit_in_handler(0); }
static void exit_while_waiting(void) { exit_in_handler(1); }

/* Runs in a child: open, then what ends the child. The action is set before or after the open. */
static void death(const char *what, void *handler, int sig, int flags, int alternate, void (*cause)(void), int want)
{
	for (int after = 0; after < 2; after++) {
		int status;
		pid_t child = fork();

		if (!child) {
			stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};
			struct rlimit none = {0, 0};
			struct point a, b;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			setrlimit(RLIMIT_CORE, &none);
			if (alternate)
				sigaltstack(&st, NULL);
			if (!after && sig)
				set_action(sig, handler, flags);
			open_ia();
			a = make_point();
			b = make_point();
			join(&a, &b);
			exchange(&a, &b, 2, 0);
			if (after && sig)
				set_action(sig, handler, flags);
			alarm(60);
			cause();
			_exit(failures ? 1 : 0);
		}
		waitpid(child, &status, 0);
		CHECK(status == want, "%s, set %s the open: status %#x, want %#x", what, after ? "after" : "before", status, want);
	}
}

static void test_deaths(void)
{
	death("a fault", NULL, 0, 0, 0, fall, SIGSEGV);
	death("a fault, SA_RESETHAND", count_and_return, SIGSEGV, SA_RESETHAND, 0, fall, SIGSEGV);
	death("a fault, ignored", SIG_IGN, SIGSEGV, 0, 0, fall, SIGSEGV);
	death("a fault, SA_SIGINFO", expect_fault, SIGSEGV, SA_SIGINFO, 0, fall, 42 << 8);
	death("a fault, SA_ONSTACK without a stack", expect_fault, SIGSEGV, SA_SIGINFO | SA_ONSTACK, 0, fall, 42 << 8);
	death("a fault, SA_ONSTACK", on_alternate, SIGSEGV, SA_ONSTACK, 1, fall, 42 << 8);
	death("a handler that returns", count_and_return, SIGSEGV, 0, 0, fall, 4 << 8);
	death("a sent SIGSEGV", NULL, 0, 0, 0, send_segv, SIGSEGV);
	death("a sent SIGSEGV, ignored", SIG_IGN, SIGSEGV, 0, 0, send_segv, 0);
	death("a sent SIGSEGV, SA_SIGINFO", expect_sender, SIGSEGV, SA_SIGINFO, 0, send_segv, 42 << 8);
	death("a sent SIGBUS", NULL, 0, 0, 0, send_bus, SIGBUS);
	death("a sent SIGSTKFLT", NULL, 0, 0, 0, send_stkflt, SIGSTKFLT);
	death("a sent SIGSTKFLT, SA_SIGINFO", expect_sender, SIGSTKFLT, SA_SIGINFO, 0, send_stkflt, 42 << 8);
	death("the end of a file", NULL, 0, 0, 0, hit_end_of_file, SIGBUS);
	death("SIGFPE", NULL, 0, 0, 0, raise_fpe, SIGFPE);
	death("a broken pipe", NULL, 0, 0, 0, broken_pipe, SIGPIPE);
	death("exit in a handler, polling", NULL, 0, 0, 0, exit_while_polling, 5 << 8);
	death("exit in a handler, waiting", NULL, 0, 0, 0, exit_while_waiting, 5 << 8);
	death("a stack overflow", NULL, 0, 0, 0, overflow_stack, SIGSEGV);
	death("a stack overflow, SA_ONSTACK", on_alternate, SIGSEGV, SA_ONSTACK, 1, overflow_stack, 42 << 8);
}

/* A program that repairs its faults, as a garbage collector does, in two threads. */
static void *fault_again(void *v)
{
	for (int i = 0; i < 2000; i++) {
		mprotect(page, 4096, PROT_NONE);
		*(volatile char *)page = i;
	}
	return NULL;
}

static void test_repair(void)
{
	pthread_t thread;
	struct point a, b;

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set_action(SIGSEGV, repair, SA_SIGINFO);
	open_ia();
	a = make_point();
	b = make_point();
	join(&a, &b);
	pthread_create(&thread, NULL, fault_again, NULL);
	exchange(&a, &b, 300, 0);
	pthread_join(thread, NULL);
	fault_again(NULL);
	exchange(&a, &b, 20, 1);
	CHECK(calls >= 2000, "%d faults", calls);
}

/* Go code survives faults on registered memory, also after the program had faults of its own. */
static void unmapped_once(void)
{
	struct point a = make_point(), b = make_point();
	DAT_LMR_TRIPLET in = piece(&a, 0, 4096), out = piece(&b, 0, 4096);
	DAT_EVENT ev;
	DAT_COUNT more;

	join(&a, &b);
	mprotect(b.mem, MEMORY, PROT_NONE);
	MUST(dat_ep_post_recv(a.ep, 1, &in, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
	MUST(dat_ep_post_send(b.ep, 1, &out, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
	MUST(dat_evd_wait(b.request, 20 * SECOND, 1, &ev, &more));
	CHECK(ev.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS, "sent memory that cannot be read");
	mprotect(b.mem, MEMORY, PROT_READ | PROT_WRITE);
}

static void test_unmapped(void)
{
	stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};

	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set_action(SIGSEGV, repair, SA_SIGINFO);
	open_ia();
	unmapped_once();
	*(volatile char *)page = 1;
	CHECK(calls == 1, "%d faults", calls);
	unmapped_once();
	sigaltstack(&st, NULL);
	unmapped_once();
	CHECK(calls == 1, "%d faults", calls);
}

static sigjmp_buf back;
static void jump(int sig) { siglongjmp(back, 1); }

static void test_jump(void)
{
	struct point a, b;

	set_action(SIGSEGV, jump, SA_NODEFER);
	open_ia();
	a = make_point();
	b = make_point();
	join(&a, &b);
	for (volatile int i = 0; i < 100; i++) {
		if (!sigsetjmp(back, 1))
			*nowhere = 1;
		exchange(&a, &b, 2, i & 1);
	}
}

/* A handler that is installed after the open may call the one that was there before. */
static struct sigaction previous;

static void call_previous(int sig, siginfo_t *info, void *context)
{
	if (++calls > 10)
		_exit(4);
	previous.sa_sigaction(sig, info, context);
}

static void chain_and_fall(void)
{
	sigaction(SIGSEGV, NULL, &previous);
	set_action(SIGSEGV, call_previous, SA_SIGINFO);
	fall();
}

static void test_chain(void)
{
	death("a chained handler", NULL, 0, 0, 0, chain_and_fall, SIGSEGV);
}
