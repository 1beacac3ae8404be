/* Tests of guest.c: signal handlers, masks and stacks. */

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

/* Signals, handlers and limits as the program sees them. */
struct state {
	struct sigaction actions[NSIG];
	sigset_t mask;
	stack_t alternate;
	struct rlimit limits[RLIM_NLIMITS];
};

static struct state see_state(void)
{
	struct state s;

	memset(&s, 0, sizeof s);
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, NULL, &s.actions[sig]);
	pthread_sigmask(SIG_SETMASK, NULL, &s.mask);
	sigaltstack(NULL, &s.alternate);
	for (int r = 0; r < RLIM_NLIMITS; r++)
		getrlimit(r, &s.limits[r]);
	return s;
}

/* The provider has these signals: their actions change. */
static int of_provider(int sig) { return sig == SIGSEGV || sig == SIGBUS; }

static void same_state(const struct state *a, const struct state *b)
{
	for (int sig = 1; sig < NSIG; sig++)
		CHECK(of_provider(sig) || (a->actions[sig].sa_handler == b->actions[sig].sa_handler && a->actions[sig].sa_flags == b->actions[sig].sa_flags),
			"the action of signal %d changed", sig);
	for (int sig = 1; sig < NSIG; sig++)
		CHECK(sigismember(&a->mask, sig) == sigismember(&b->mask, sig), "the mask of signal %d changed", sig);
	CHECK(a->alternate.ss_flags == b->alternate.ss_flags && a->alternate.ss_sp == b->alternate.ss_sp, "the alternate stack changed");
	for (int r = 0; r < RLIM_NLIMITS; r++)
		CHECK(!memcmp(&a->limits[r], &b->limits[r], sizeof a->limits[r]), "limit %d changed", r);
}

static void nothing(int sig) {}

static void *state_of_thread(void *v)
{
	struct state before = see_state(), after;

	exchange(&((struct exchanger *)v)->a, &((struct exchanger *)v)->b, 3, 0);
	after = see_state();
	same_state(&before, &after);
	return NULL;
}

static void test_state(void)
{
	struct state before, after;
	struct exchanger x;
	struct rlimit files = {100, 4096};
	sigset_t some;

	for (int sig = 1; sig < SIGRTMAX; sig += 3) /* of all kinds: also some that the Go runtime handles or unblocks */
		signal(sig, nothing);
	sigfillset(&some);
	sigdelset(&some, SIGTERM);
	sigprocmask(SIG_SETMASK, &some, NULL);
	setrlimit(RLIMIT_NOFILE, &files);
	before = see_state();
	open_ia();
	x.a = make_point();
	x.b = make_point();
	join(&x.a, &x.b);
	exchange(&x.a, &x.b, 3, 1);
	after = see_state();
	same_state(&before, &after);
	for (int i = 0; i < 3; i++) {
		pthread_create(&x.thread, NULL, state_of_thread, &x);
		pthread_join(x.thread, NULL);
	}
}

/* Returns the signals that a thread of this process blocks. */
static unsigned long long blocked_by(const char *task)
{
	char path[300], line[256];
	unsigned long long mask = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/self/task/%s/status", task);
	if (!(f = fopen(path, "r")))
		return ~0ull; /* the thread has ended */
	while (fgets(line, sizeof line, f))
		sscanf(line, "SigBlk: %llx", &mask);
	fclose(f);
	return mask;
}

/* The threads of the runtime block all signals but those that cannot be blocked, those of faults, and two of glibc. */
static void test_threads(void)
{
	unsigned long long want = ~0ull, blocked;
	struct exchanger x[4];
	struct dirent *task;
	int n = 0;
	DIR *tasks;

	for (const int *s = (const int[]){SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, 32, 33, 0}; *s; s++)
		want &= ~(1ull << (*s - 1));
	open_ia();
	for (int round = 0; round < 5; round++) {
		start_traffic(x, 4);
		usleep(100000);
		stop_traffic(x, 4); /* only this thread is left of the program's */
		tasks = opendir("/proc/self/task");
		while ((task = readdir(tasks))) {
			if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
				continue;
			n++;
			blocked = blocked_by(task->d_name); /* glibc blocks two more in threads that begin or end */
			CHECK((blocked & want) == want, "a thread blocks %llx, want %llx", blocked, want);
		}
		closedir(tasks);
	}
	CHECK(n > 5, "the runtime has %d threads", n);
}

/* --- handlers with all flags --- */

static volatile int handler_flags;   /* the flags of the installed handler */
static volatile long handled, nested, wrong;
static __thread int depth;
static __thread int has_alternate;

static void check_handler(int sig)
{
	volatile char frame[2048];
	sigset_t mask;
	stack_t st;

	memset((char *)frame, 0x5a, sizeof frame);
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	sigaltstack(NULL, &st);
	if (!!(st.ss_flags & SS_ONSTACK) != (has_alternate && (handler_flags & SA_ONSTACK)))
		wrong |= 1;
	if (sigismember(&mask, sig) != !(handler_flags & SA_NODEFER))
		wrong |= 2;
	if (sigismember(&mask, SIGUSR2) != 1 || sigismember(&mask, SIGTERM))
		wrong |= 4;
	if (depth++ == 0 && !(handler_flags & SA_RESETHAND)) {
		raise(sig); /* at once with SA_NODEFER, otherwise when this handler returns */
		if (handler_flags & SA_NODEFER)
			nested++;
	}
	if (depth > 1 && !(handler_flags & SA_NODEFER))
		wrong |= 8;
	if (--depth == 0 && frame[100] != 0x5a)
		wrong |= 16;
}

static volatile int repeats;

static void plain_handler(int sig)
{
	if (depth == 0 && !(handler_flags & (SA_NODEFER | SA_RESETHAND)) && ++repeats % 2 == 0) { /* the signal that this handler raised */
		handled++;
		return;
	}
	check_handler(sig);
}

static void info_handler(int sig, siginfo_t *info, void *context)
{
	if (info->si_signo != sig || !context)
		wrong |= 32;
	plain_handler(sig);
}

static void install(int sig, int flags)
{
	struct sigaction act;

	memset(&act, 0, sizeof act);
	if (flags & SA_SIGINFO)
		act.sa_sigaction = info_handler;
	else
		act.sa_handler = plain_handler;
	act.sa_flags = flags;
	sigaddset(&act.sa_mask, SIGUSR2);
	handler_flags = flags;
	sigaction(sig, &act, NULL);
}

/* Sends one signal at a time to the process or to the thread, and to what runs in it, Go code or the program. */
static void test_handlers(void)
{
	static const int signals[] = {SIGCHLD, SIGURG, SIGWINCH}; /* the default action is to ignore them */
	static const int flags[] = {SA_ONSTACK, SA_NODEFER, SA_RESETHAND, SA_SIGINFO, SA_RESTART};
	struct sigaction now;
	struct point a, b;
	stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};

	open_ia();
	a = make_point();
	b = make_point();
	join(&a, &b);
	for (int alternate = 0; alternate < 2; alternate++) {
		if (alternate)
			sigaltstack(&st, NULL);
		has_alternate = alternate;
		for (int i = 0; i < 32 * 3; i++) {
			int sig = signals[i % 3], f = 0;

			for (int k = 0; k < 5; k++)
				f |= i / 3 >> k & 1 ? flags[k] : 0;
			handled = repeats = 0;
			install(sig, f);
			for (int k = 0; k < 4; k++) {
				kill(getpid(), sig);
				exchange(&a, &b, 1, k & 1);
			}
			CHECK(handled == (f & SA_RESETHAND ? 1 : 8), "signal %d with flags %x: handled %ld times", sig, f, handled);
			CHECK(!wrong, "signal %d with flags %x: %lx", sig, f, wrong);
			sigaction(sig, NULL, &now);
			CHECK((now.sa_handler == SIG_DFL) == !!(f & SA_RESETHAND), "the action of signal %d with flags %x", sig, f);
		}
	}
}

/* --- many signals, handlers installed again and again --- */

static void deep_handler(int sig)
{
	volatile char frame[64 << 10];
	int saved = errno;

	for (size_t i = 0; i < sizeof frame; i += 512)
		frame[i] = sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	errno = saved;
}

static volatile int storm_ends;

static void *storm(void *v)
{
	static const int flags[] = {0, SA_RESTART, SA_ONSTACK, SA_NODEFER, SA_SIGINFO | SA_RESTART};
	static const int signals[] = {SIGALRM, SIGCHLD, SIGPROF, SIGUSR1, SIGURG, SIGPIPE};
	struct exchanger *x = v;
	unsigned n = 0;

	while (!storm_ends) {
		struct sigaction act = {.sa_handler = deep_handler, .sa_flags = flags[n % 5]};
		int sig = signals[n % 6];

		sigaction(sig, &act, NULL);
		kill(getpid(), sig);
		pthread_kill(x[n % 3].thread, sig);
		n++;
		usleep(50);
	}
	return NULL;
}

static int storm_seconds = 3;

static void test_storm(void)
{
	struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
	struct exchanger x[3];
	pthread_t sender;
	struct point a, b;
	time_t end;

	open_ia();
	for (const int *s = (const int[]){SIGALRM, SIGCHLD, SIGPROF, SIGUSR1, SIGURG, SIGPIPE, 0}; *s; s++)
		signal(*s, deep_handler);
	a = make_point();
	b = make_point();
	join(&a, &b);
	start_traffic(x, 3);
	pthread_create(&sender, NULL, storm, x);
	setitimer(ITIMER_REAL, &every, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	for (end = time(NULL) + storm_seconds; time(NULL) < end && !failures;)
		exchange(&a, &b, 20, 0);
	storm_ends = 1;
	pthread_join(sender, NULL);
	stop_traffic(x, 3);
	setitimer(ITIMER_REAL, &never, NULL);
	setitimer(ITIMER_PROF, &never, NULL);
	CHECK(handled > 1000, "%ld signals", handled);
	printf("%ld rounds, %ld signals\n", traffic_rounds, handled);
}

/* --- sigwait: no thread of the runtime takes a signal that all threads of the program block --- */

static void test_sigwait(void)
{
	struct timespec limit = {.tv_sec = 20};
	struct exchanger x[3];
	sigset_t set;

	sigemptyset(&set);
	for (const int *s = (const int[]){SIGTERM, SIGCHLD, SIGPROF, SIGINT, 34, 35, 0}; *s; s++)
		sigaddset(&set, *s);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	open_ia();
	start_traffic(x, 3);
	for (int i = 0; i < 300; i++) {
		int sig = (const int[]){SIGTERM, SIGCHLD, SIGPROF, SIGINT, 34, 35}[i % 6];

		kill(getpid(), sig);
		CHECK(sigtimedwait(&set, NULL, &limit) == sig, "signal %d did not arrive", sig);
	}
	stop_traffic(x, 3);
}

/* --- threads that exit: the mask stays, and their destructors may call the provider --- */

static pthread_key_t key;
static int destroyed;

static void call_at_exit(void *evd)
{
	DAT_EVENT ev;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	CHECK(sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGINT), "the mask of a thread that exits");
	WANT(dat_evd_dequeue(evd, &ev), DAT_QUEUE_EMPTY);
	if (++destroyed % 3)
		pthread_setspecific(key, evd); /* again, after the destructor of the runtime */
}

static void *exits(void *evd)
{
	sigset_t set;
	DAT_EVENT ev;

	pthread_setspecific(key, evd);
	WANT(dat_evd_dequeue(evd, &ev), DAT_QUEUE_EMPTY);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGTERM); /* would end the process if the thread unblocked it */
	return NULL;
}

static void test_exits(void)
{
	pthread_t thread;
	DAT_EVD_HANDLE evd;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	open_ia();
	MUST(dat_evd_create(ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
	pthread_key_create(&key, call_at_exit);
	for (int i = 0; i < 200; i++) {
		pthread_create(&thread, NULL, exits, evd);
		pthread_join(thread, NULL);
	}
	CHECK(destroyed == 600, "%d destructors ran", destroyed);
}
