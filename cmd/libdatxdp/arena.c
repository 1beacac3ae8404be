//go:build cgo && datprovider

/* Where handles live. Set-up calls only: nothing here is on the data path. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

enum {
	PAGE = 1024,       /* handles taken from malloc at a time */
	SLOTS = 1 << 22,   /* must not exceed the slots of handles.go */
	QUARANTINE = 65536 /* handles that lie dead before the oldest is used again */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dx_handle *fresh;     /* the rest of the newest page */
static uint32_t nfresh, used;       /* handles left there; slots given out */
static struct dx_handle *dead, **last_dead = &dead;
static uint32_t ndead;

/* take is an unused handle with a new generation, or NULL. The caller holds the lock. */
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

/* give puts a handle into quarantine. The caller holds the lock. */
static void give(struct dx_handle *h)
{
	h->younger = NULL;
	*last_dead = h;
	last_dead = &h->younger;
	ndead++;
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

/* The object exists: the handle is good from now on, unless its IA was closed meanwhile. */
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
		give(h);
	pthread_mutex_unlock(&lock);
	if (!ok)
		dxForget(h->id);
	return ok;
}

/* entomb takes a live handle out of use. The caller holds the lock. */
static int entomb(struct dx_handle *h)
{
	if (h->magic != DX_MAGIC)
		return 0;
	__atomic_store_n(&h->magic, 0, __ATOMIC_RELEASE);
	h->prev->next = h->next;
	h->next->prev = h->prev;
	return 1;
}

/* The object is gone. Of two threads that say so, one is late. */
void dx_bury(struct dx_handle *h)
{
	pthread_mutex_lock(&lock);
	if (entomb(h)) {
		dxForget(h->id);
		give(h);
	}
	pthread_mutex_unlock(&lock);
}

/* The IA was closed, and all its objects with it. */
void dx_bury_all(struct dx_handle *ia)
{
	struct dx_handle *h, *next;

	pthread_mutex_lock(&lock);
	for (h = ia->next; h != ia; h = next) {
		next = h->next;
		if (entomb(h)) {
			dxForget(h->id);
			give(h);
		}
	}
	if (entomb(ia)) {
		dxForget(ia->id);
		give(ia);
	}
	pthread_mutex_unlock(&lock);
}

/* The object was not made after all, or was gone before its handle was good. */
void dx_drop(struct dx_handle *h)
{
	dxForget(h->id);
	pthread_mutex_lock(&lock);
	give(h);
	pthread_mutex_unlock(&lock);
}

/* Memory that goes with a handle, zeroes at first; of one size for each type. NULL: there is none. */
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

/* For Go: handles are numbers there. */

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

void dx_call_agent(uint64_t function, uint64_t instance, uint64_t evd)
{
	((DAT_AGENT_FUNC)(uintptr_t)function)((DAT_PVOID)(uintptr_t)instance, (DAT_EVD_HANDLE)(uintptr_t)evd);
}
