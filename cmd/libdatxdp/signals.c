//go:build cgo && datprovider

/*
 * Signals of faults. The runtime would handle nine signals. The provider handles two of them, SIGSEGV and SIGBUS, because
 * package dat survives faults in Go code on registered memory that the program has unmapped. All other faults, and
 * signals that a process has sent, belong to the program. For them the provider sets the action of the program again,
 * and the kernel delivers the signal once more: with the mask, the flags and the stack that the program has chosen. The
 * next call of an entry installs the handler of the provider again.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "shim.h"
#include "runtime.h"

typedef void handler(int, siginfo_t *, void *);

static handler on_fault;

/* A signal that the provider handles. */
static struct taken {
	int sig;
	handler *runtime;         /* the handler of the Go runtime */
	struct sigaction program; /* the action of the program */
	int given;                /* 1 while the action of the program is set */
} taken[] = {{SIGSEGV, .given = 1}, {SIGBUS, .given = 1}};

enum { TAKEN = sizeof taken / sizeof *taken };

__thread stack_t dx_go_stack;
int dx_signals_given;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int __real_sigaction(int sig, const struct sigaction *act, struct sigaction *old);

static struct taken *find(int sig)
{
	for (int i = 0; i < TAKEN; i++)
		if (taken[i].sig == sig)
			return &taken[i];
	return NULL;
}

/* Reports whether the handler of the provider is installed. The program may have replaced it since. */
static int installed(const struct taken *t)
{
	struct sigaction now;

	return !__real_sigaction(t->sig, NULL, &now) && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault;
}

static void take(struct taken *t)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

	if (!t->given || installed(t))
		return;
	__real_sigaction(t->sig, NULL, &t->program);
	t->given = 0;
	sigfillset(&act.sa_mask);
	__real_sigaction(t->sig, &act, NULL);
}

void dx_take_signals(void)
{
	pthread_mutex_lock(&lock);
	dx_signals_given = 0;
	for (int i = 0; i < TAKEN; i++)
		take(&taken[i]);
	pthread_mutex_unlock(&lock);
}

static void give(struct taken *t)
{
	__real_sigaction(t->sig, &t->program, NULL);
	t->given = 1;
}

void dx_give_signals(void)
{
	for (int i = 0; i < TAKEN; i++)
		if (!taken[i].given && installed(&taken[i]))
			give(&taken[i]);
}

/* Lets the kernel deliver a signal to the program: a fault happens again when the handler returns, others are queued. */
static void pass(int sig, siginfo_t *info, void *context)
{
	struct taken *t = find(sig);

	if (!t)
		return;
	give(t);
	dx_signals_given = 1;
	if (info->si_code <= 0 || (sig == SIGBUS && info->si_code == BUS_MCEERR_AO))
		syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), sig, info);
}

/*
 * The runtime's calls of sigaction. It reads pass as the action of the program, so its handler passes on what is not
 * of Go, and it installs nothing, but for the default action before it ends the process.
 */
int __wrap_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct taken *t = find(sig);

	if (!dx_is_library() || (act && act->sa_handler == SIG_DFL))
		return __real_sigaction(sig, act, old);
	if (old)
		*old = (struct sigaction){.sa_sigaction = pass, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	if (act && t)
		t->runtime = act->sa_sigaction;
	return 0;
}

/* The arguments of a handler that runs on another stack. */
static __thread struct {
	int sig;
	siginfo_t *info;
	void *context;
} fault __attribute__((tls_model("initial-exec")));

static void call_runtime(void) { find(fault.sig)->runtime(fault.sig, fault.info, fault.context); }

/* Calls the handler of the runtime on the runtime's signal stack: it refuses to run on the stack of a goroutine. */
static void switch_stack(int sig, siginfo_t *info, void *context)
{
	ucontext_t here, there;

	fault.sig = sig;
	fault.info = info;
	fault.context = context;
	getcontext(&there);
	there.uc_stack = dx_go_stack;
	there.uc_link = &here;
	makecontext(&there, call_runtime, 0);
	swapcontext(&here, &there);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	stack_t now;

	sigaltstack(NULL, &now);
	if (info->si_code <= 0 || dx_forked)
		pass(sig, info, context);
	else if (dx_go_stack.ss_sp && !(now.ss_flags & SS_ONSTACK))
		switch_stack(sig, info, context);
	else
		find(sig)->runtime(sig, info, context);
}
