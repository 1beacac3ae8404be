//go:build cgo && datprovider

/*
 * The runtime's table of signals. It has signals that the runtime unblocks in each of its threads, and in each thread
 * that calls Go for the first time: SIGCHLD, SIGPROF, SIGRTMIN, SIGILL and others. If a program blocks such a signal,
 * because it waits for it with sigwait, it would run a handler or end the process. No call of the runtime can be
 * intercepted for that, so this file changes the table. C cannot name a variable of the runtime, but finds it by its
 * contents. If a version of Go has another table, it stays as it is, and TestGuest fails.
 */

#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "runtime.h"

/* A signal in the table, sigTabT of the runtime: what it does with the signal, and the Go string that describes it. */
struct entry {
	int32_t flags;
	const char *text;
	intptr_t length;
};

enum { NOTIFY = 1, PANIC = 8, UNBLOCK = 128 };

static const char segv[] = "SIGSEGV: segmentation violation";
static const char prof[] = "SIGPROF: profiling alarm clock";

/* Reports whether some bytes belong to a loaded object. */
static int belongs(const struct dl_phdr_info *o, const void *p, size_t n)
{
	for (int i = 0; i < o->dlpi_phnum; i++) {
		uintptr_t start = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr, at = (uintptr_t)p;

		if (o->dlpi_phdr[i].p_type == PT_LOAD && at >= start && at + n <= start + o->dlpi_phdr[i].p_filesz)
			return 1;
	}
	return 0;
}

static int is(const struct dl_phdr_info *o, const struct entry *e, int32_t flags, const char *text)
{
	size_t n = strlen(text);

	return e->flags == flags && e->length == (intptr_t)n && belongs(o, e->text, n) && !memcmp(e->text, text, n);
}

/* Finds the table in the data from start to end. */
static struct entry *find(const struct dl_phdr_info *o, uintptr_t start, uintptr_t end)
{
	for (struct entry *e = (struct entry *)start; (uintptr_t)(e + SIGRTMAX + 1) <= end; e = (struct entry *)((uintptr_t)e + sizeof(void *)))
		if (is(o, e + SIGSEGV, PANIC | UNBLOCK, segv) && is(o, e + SIGPROF, NOTIFY | UNBLOCK, prof))
			return e;
	return NULL;
}

static void change(struct entry *table)
{
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sig != SIGSEGV && sig != SIGBUS)
			table[sig].flags &= ~UNBLOCK;
}

/* Is called for each loaded object, and works on the one with this code. */
static int search(struct dl_phdr_info *o, size_t size, void *unused)
{
	struct entry *table;

	if (!belongs(o, segv, sizeof segv))
		return 0;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t start = o->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && (table = find(o, (start + 7) & -8ul, start + p->p_filesz)))
			change(table);
	}
	return 1;
}

void dx_keep_signals_blocked(void) { dl_iterate_phdr(search, NULL); }
