//go:build cgo && datprovider

/* The memory of handles. Posts and dequeues of completions do not use it. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum {
	PAGE = 1024,       /* number of handles that one calloc allocates */
	SLOTS = 1 << 22,   /* maximum number of handles; must not exceed the slots of handles.go */
	QUARANTINE = 65536 /* number of handles given back above which the oldest is reused */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dx_handle *fresh; /* the first never used handle, in the newest page */
static uint32_t nfresh;         /* number of handles from fresh to the end of the page */
static uint32_t used;           /* number of slots that were ever used */
static struct dx_handle *dead, **last_dead = &dead; /* list of handles given back, the oldest first */
static uint32_t ndead;          /* length of that list */

/* Returns an unused handle with a new generation, or NULL. The caller holds the lock. */
static struct dx_handle *take(void)
{
	struct dx_handle *h;

	if (ndead > QUARANTINE || (used == SLOTS && ndead > 0)) {
		h = dead;
		if (!(dead = h->younger))
			last_dead = &dead;
		ndead--;
		free(h->more);
		h->more = NULL;
		h->id += 1ull << 32;
		return h;
	}
	if (used == SLOTS)
		return NULL;
	if (nfresh == 0) {
		if (!(fresh = calloc(PAGE, sizeof *fresh)))
			return NULL;
		nfresh = PAGE;
	}
	h = fresh++;
	nfresh--;
	h->id = 1ull << 32 | used++;
	return h;
}

/* Adds a handle to the list of handles given back. The caller holds the lock. */
static void give(struct dx_handle *h)
{
	h->younger = NULL;
	*last_dead = h;
	last_dead = &h->younger;
	ndead++;
}

/*
 * Separates an invalid handle from its object. A queued event may refer to a freed object, so Go gives the handle back
 * with dx_give when it has collected the object. A handle that never had an object is given back at once. The caller
 * holds the lock.
 */
static void part(struct dx_handle *h)
{
	if (!dxRetire(h->id))
		give(h);
}

struct dx_handle *dx_make(const DAT_PROVIDER *table, struct dx_handle *ia, DAT_HANDLE_TYPE type)
{
	struct dx_handle *h;

	pthread_mutex_lock(&lock);
	if ((h = take())) {
		h->table = table;
		h->type = type;
		memset(&h->context, 0, sizeof h->context);
		h->ia = ia ? ia : h;
		h->next = h->prev = h;
	}
	pthread_mutex_unlock(&lock);
	return h;
}

/*
 * Makes a handle valid, after its object was created. If the IA was closed in the meantime, drops the handle and
 * returns 0.
 */
int dx_live(struct dx_handle *h)
{
	int ok = 1;

	pthread_mutex_lock(&lock);
	if (h->ia != h) {
		ok = h->ia->magic == DX_MAGIC;
		if (ok) {
			h->next = h->ia->next;
			h->prev = h->ia;
			h->next->prev = h->prev->next = h;
		}
	}
	if (ok)
		__atomic_store_n(&h->magic, DX_MAGIC, __ATOMIC_RELEASE);
	else
		part(h);
	pthread_mutex_unlock(&lock);
	return ok;
}

/* Makes a handle invalid. Returns 0 if it was not valid. The caller holds the lock. */
static int entomb(struct dx_handle *h)
{
	if (h->magic != DX_MAGIC)
		return 0;
	__atomic_store_n(&h->magic, 0, __ATOMIC_RELEASE);
	h->prev->next = h->next;
	h->next->prev = h->prev;
	return 1;
}

/* Removes the handle of a freed object. If two threads free the object, the second call does nothing. */
void dx_bury(struct dx_handle *h)
{
	pthread_mutex_lock(&lock);
	if (entomb(h))
		part(h);
	pthread_mutex_unlock(&lock);
}

/* Removes the handles of a closed IA and of all its objects. */
void dx_bury_all(struct dx_handle *ia)
{
	struct dx_handle *h, *next;

	pthread_mutex_lock(&lock);
	for (h = ia->next; h != ia; h = next) {
		next = h->next;
		if (entomb(h))
			part(h);
	}
	if (entomb(ia))
		part(ia);
	pthread_mutex_unlock(&lock);
}

/* Drops a handle that never became valid, because its object was not created or was freed before that. */
void dx_drop(struct dx_handle *h)
{
	pthread_mutex_lock(&lock);
	part(h);
	pthread_mutex_unlock(&lock);
}

/*
 * Returns the additional memory of a handle. The first call allocates size bytes of zeros; the size depends on the type
 * of the handle. Returns NULL if memory is missing.
 */
void *dx_memory(struct dx_handle *h, size_t size)
{
	void *m;

	if (!h)
		return NULL;
	pthread_mutex_lock(&lock);
	if (!h->more)
		h->more = calloc(1, size);
	m = h->more;
	pthread_mutex_unlock(&lock);
	return m;
}

/* Functions that Go calls, with addresses of handles as integers. */

struct dx_more *dx_more(uint64_t handle)
{
	return dx_memory((struct dx_handle *)(uintptr_t)handle, sizeof(struct dx_more));
}

struct dx_ia_more *dx_ia_more(uint64_t handle)
{
	return dx_memory((struct dx_handle *)(uintptr_t)handle, sizeof(struct dx_ia_more));
}

uint64_t dx_new_handle(uint64_t sibling, uint32_t type)
{
	struct dx_handle *s = (struct dx_handle *)(uintptr_t)sibling;

	return (uintptr_t)dx_make(s->table, s->ia, type);
}

uint64_t dx_id(uint64_t handle) { return ((struct dx_handle *)(uintptr_t)handle)->id; }

int dx_publish(uint64_t handle) { return dx_live((struct dx_handle *)(uintptr_t)handle); }

void dx_discard(uint64_t handle) { dx_drop((struct dx_handle *)(uintptr_t)handle); }

void dx_give(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	give((struct dx_handle *)(uintptr_t)handle);
	pthread_mutex_unlock(&lock);
}

void dx_call_agent(uint64_t function, uint64_t instance, uint64_t evd)
{
	((DAT_AGENT_FUNC)(uintptr_t)function)((DAT_PVOID)(uintptr_t)instance, (DAT_EVD_HANDLE)(uintptr_t)evd);
}
