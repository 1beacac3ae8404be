//go:build cgo && datprovider

/*
 * Threads in reserve for the Go runtime. The runtime creates a thread when a goroutine can run and no thread is free. If
 * it cannot, it ends the process. So each open sees to it that some threads wait here. The runtime gets one of them when
 * the process may create no more: because of RLIMIT_NPROC, of a control group, or of a filter of system calls.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "runtime.h"

struct spare {
	pthread_t thread;
	void *(*f)(void *); /* NULL while the thread waits */
	void *arg;
	struct spare *next;
};

static struct spare *spares;
static int count; /* of spares */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all */
static pthread_cond_t given = PTHREAD_COND_INITIALIZER;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *), void *arg);

static void *await_work(void *p)
{
	struct spare *s = p, work;

	pthread_mutex_lock(&lock);
	while (!s->f)
		pthread_cond_wait(&given, &lock);
	work = *s;
	pthread_mutex_unlock(&lock);
	free(s);
	return work.f(work.arg);
}

static void *end(void *unused) { return NULL; }

/* Takes a thread out of the reserve and gives it a function. Returns 0 if there is none. */
static int take(pthread_t *thread, void *(*f)(void *), void *arg)
{
	struct spare *s;

	pthread_mutex_lock(&lock);
	if ((s = spares)) {
		spares = s->next;
		count--;
		*thread = s->thread;
		s->arg = arg;
		s->f = f;
		pthread_cond_broadcast(&given);
	}
	pthread_mutex_unlock(&lock);
	return s != NULL;
}

/* Adds a thread to the reserve, with the caller's mask. The caller holds the lock. Returns 0 if it cannot be created. */
static int add(void)
{
	struct spare *s = calloc(1, sizeof *s);

	if (!s || __real_pthread_create(&s->thread, NULL, await_work, s)) {
		free(s);
		return 0;
	}
	s->next = spares;
	spares = s;
	count++;
	return 1;
}

int dx_reserve_threads(void)
{
	sigset_t old;
	int full;

	dx_block_signals(&old);
	pthread_mutex_lock(&lock);
	while (count < RESERVE && add())
		;
	full = count >= RESERVE;
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return full;
}

void dx_release_threads(void)
{
	pthread_t thread;

	while (take(&thread, end, NULL))
		pthread_join(thread, NULL);
}

int dx_create_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
	int err = __real_pthread_create(thread, attr, f, arg), detached = PTHREAD_CREATE_JOINABLE;

	if (!err || !take(thread, f, arg))
		return err;
	if (attr)
		pthread_attr_getdetachstate(attr, &detached);
	if (detached == PTHREAD_CREATE_DETACHED)
		pthread_detach(*thread);
	return 0;
}
