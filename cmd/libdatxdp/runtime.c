//go:build cgo && datprovider

/*
 * The Go runtime in a C program. It starts when the program first opens an adapter. The program must not notice it:
 *
 *   - The threads of the runtime block all signals but SIGSEGV and SIGBUS (signals.c), so they never run a handler of
 *     the program: its frame would not fit on the stack of a goroutine.
 *   - A thread of the program may run handlers while it is in Go code, because its goroutine gets a large stack when the
 *     thread first calls Go (export_runtime.go). It keeps its signal mask and its alternate signal stack.
 *   - The limit of open files, which the Go library raises, is set back.
 *
 * The runtime calls pthread_create, pthread_key_create and sigaction. The linker directs these calls to __wrap_NAME
 * (option --wrap). In a test program, which is not loaded as a library, they have no effect.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime.h"
#include "entry.h"

/* Address space in bytes that the runtime reserves, with the stacks of its threads and the memory of an adapter (decision 0022). */
static const size_t reserved = (size_t)1900 << 20;

/* Writable memory in bytes that the runtime maps, with the stacks of its threads. Without a limit it maps 130 MB in the
 * first second. */
static const size_t writable = (size_t)256 << 20;

enum { DESCRIPTORS = 6 }; /* of the runtime: epoll, eventfd, up to two files of the control group, and one that it reads at its start */

__thread int dx_ready;
int dx_forked;

static int loading;                   /* 1 while the dynamic loader runs the constructors of this library */
static void *(*runtime_main)(void *); /* the thread that the constructor of the runtime asked for */
static int started;                   /* 1 when the runtime runs */
static const volatile int32_t *exclusive; /* descriptors of adapters that a child must not keep, each plus one; 0: no descriptor */
static uint32_t exclusive_size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of started */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *), void *arg);
int __real_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));

__attribute__((constructor(101))) static void begin_loading(void) { loading = 1; }

int dx_is_library(void) { return loading || runtime_main; }

void dx_block_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
}

struct thread {
	void *(*f)(void *);
	void *arg;
};

/* Begins a thread of the runtime. The runtime gives all its threads the mask of the first one. */
static void *begin(void *p)
{
	struct thread t = *(struct thread *)p;

	free(p);
	dx_ready = 1; /* for the calls of a proxy agent */
	dx_block_signals(NULL);
	return t.f(t.arg);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	struct thread *t;
	int err;

	if (loading) { /* the thread with the runtime is created by start_runtime */
		runtime_main = f;
		return 0;
	}
	if (!dx_is_library())
		return __real_pthread_create(thread, attr, f, arg);
	if (!(t = malloc(sizeof *t)))
		return EAGAIN;
	*t = (struct thread){f, arg};
	if ((err = dx_create_thread(thread, attr, begin, t)))
		free(t);
	return err;
}

static void (*drop_thread)(void *); /* the runtime's destructor for a thread of the program */

/* Ends the use of Go by a thread that exits. */
static void leave(void *g)
{
	stack_t alternate;
	sigset_t old;

	sigaltstack(NULL, &alternate);
	dx_block_signals(&old);
	drop_thread(g);
	sigaltstack(&alternate, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	dx_go_stack.ss_sp = NULL;
	dx_ready = 0;
}

int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	if (!dx_is_library() || drop_thread || !destructor)
		return __real_pthread_key_create(key, destructor);
	drop_thread = destructor;
	return __real_pthread_key_create(key, leave);
}

/*
 * Makes the lowest page of a goroutine's stack inaccessible, as that of a thread of C: a handler that needs more ends the
 * process. The page is in the frame of dxEnter, which ends above the given address and uses none of its memory.
 */
static void guard_stack(uintptr_t bottom)
{
	uintptr_t size = sysconf(_SC_PAGESIZE);

	mprotect((void *)((bottom + size) / size * size), size, PROT_NONE);
}

/*
 * The first call of Go by a thread of the program. The runtime gives the thread an alternate signal stack if it has
 * none. Handlers of the program must not run there, because it is small, so it is removed again and kept for signals.c.
 */
static void enter(void)
{
	stack_t before, after;
	sigset_t old;

	sigaltstack(NULL, &before);
	dx_block_signals(&old);
	guard_stack(dxEnter(0));
	sigaltstack(NULL, &after);
	if ((before.ss_flags & SS_DISABLE) && !(after.ss_flags & SS_DISABLE)) {
		sigaltstack(&before, NULL);
		dx_go_stack = after;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	dx_ready = 1;
}

/* Reports whether the process may map n bytes. */
static int may_map(size_t n, int protection)
{
	void *p = mmap(NULL, n, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	munmap(p, n);
	return 1;
}

/* Reports whether the process may open the descriptors of the runtime. */
static int may_open(void)
{
	int fds[DESCRIPTORS], n = 0;

	while (n < DESCRIPTORS && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < n; i++)
		close(fds[i]);
	return n == DESCRIPTORS;
}

static DAT_RETURN shortage(DAT_RETURN_SUBTYPE of, const char *format, size_t n)
{
	char text[160];

	snprintf(text, sizeof text, format, n);
	dx_report(text);
	return ERROR(DAT_INSUFFICIENT_RESOURCES, of, text);
}

/* Reports what the process has too little of: the runtime ends the process if it gets none. */
static DAT_RETURN check_limits(void)
{
	if (!may_map(reserved, PROT_NONE))
		return shortage(DAT_RESOURCE_MEMORY,
			"the limit of address space (ulimit -v) leaves less than the %zu MB that the Go runtime reserves", reserved >> 20);
	if (!may_map(writable, PROT_READ | PROT_WRITE))
		return shortage(DAT_RESOURCE_MEMORY,
			"the limit of data (ulimit -d) or of committed memory leaves less than the %zu MB that the Go runtime maps", writable >> 20);
	if (!may_open())
		return shortage(0, "the limit of open files (ulimit -n) leaves less than the %zu descriptors of the Go runtime", DESCRIPTORS);
	if (!dx_reserve_threads()) {
		dx_release_threads();
		return shortage(0, "the process may create less than %zu threads (ulimit -u, pids.max of a control group, seccomp)", RESERVE);
	}
	return DAT_SUCCESS;
}

static DAT_RETURN create_runtime(void)
{
	pthread_attr_t attr;
	struct rlimit files;
	pthread_t thread;
	DAT_RETURN r;
	int err;

	if ((r = check_limits()) != DAT_SUCCESS)
		return r;
	dx_keep_signals_blocked();
	dx_take_signals();
	getrlimit(RLIMIT_NOFILE, &files);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = __wrap_pthread_create(&thread, &attr, runtime_main, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return ERROR(DAT_INSUFFICIENT_RESOURCES, 0, "the process may create no more threads");
	enter(); /* waits for the initialization of the runtime */
	setrlimit(RLIMIT_NOFILE, &files);
	exclusive = (const volatile int32_t *)dxStarted(&exclusive_size);
	return DAT_SUCCESS;
}

static DAT_RETURN start_runtime(void)
{
	DAT_RETURN r = DAT_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!started && (r = create_runtime()) == DAT_SUCCESS)
		started = 1;
	pthread_mutex_unlock(&lock);
	return r;
}

DAT_RETURN dx_prepare(void)
{
	DAT_RETURN r;

	if (dx_forked)
		return ERROR(DAT_INVALID_STATE, 0, "this process was forked after the adapter was opened");
	if ((r = start_runtime()) != DAT_SUCCESS)
		return r;
	if (dx_signals_given)
		dx_take_signals();
	if (!dx_ready)
		enter();
	return DAT_SUCCESS;
}

/*
 * The child of a fork has the memory of the process, but not the threads of the runtime. So every entry fails in a child.
 * It keeps no queue, port or XDP program of an adapter, which its parent can close and open again.
 */
static void in_child(void)
{
	dx_forked = started;
	for (uint32_t i = 0; i < exclusive_size; i++)
		if (exclusive[i])
			close(exclusive[i] - 1);
	dx_ready = 0;
	dx_give_signals();
}

__attribute__((constructor)) static void end_loading(void)
{
	loading = 0;
	pthread_atfork(NULL, NULL, in_child);
}
