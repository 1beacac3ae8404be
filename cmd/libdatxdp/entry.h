/*
 * Macros for the entries (the functions that libdat2 calls): checks of handles and arguments, and creation of objects.
 */
#ifndef DATXDP_ENTRY_H
#define DATXDP_ENTRY_H

#include <string.h>

#include "shim.h"

/* Returns DAT_RETURN r as an error, and stores the reason for the log. */
static inline __attribute__((cold)) DAT_RETURN refuse(DAT_RETURN r, const char *why)
{
	dx_because(why);
	return DAT_CLASS_ERROR | r;
}

#define ERROR(type, sub, why) refuse((DAT_RETURN)((type) | (sub)), why)
#define NO_MEMORY ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY, "there is no memory for a handle")
#define UNSUPPORTED ERROR(DAT_MODEL_NOT_SUPPORTED, 0, "this provider does not have the call: see docs/DAT.md")
#define NO_HANDLE(type, sub) \
	ERROR(DAT_INVALID_HANDLE, sub, "the " #type " handle was freed, or is of another kind, or none")

/* Begins every entry. */
#define ENTRY()                                                 \
	do {                                                    \
		if (__builtin_expect(!dx_ready || dx_signals_given, 0)) { \
			DAT_RETURN unready = dx_prepare();      \
			if (unready != DAT_SUCCESS)             \
				return unready;                 \
		}                                               \
	} while (0)

static inline int alive(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	const struct dx_handle *h = handle;

	return h && __atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) == DX_MAGIC && h->type == type;
}

/* Checks a handle that must be valid. */
#define LIVE(handle, type, sub)                                                    \
	do {                                                                       \
		if (__builtin_expect(!alive(handle, DAT_HANDLE_TYPE_##type), 0))   \
			return NO_HANDLE(type, DAT_INVALID_HANDLE_##sub);          \
	} while (0)

/*
 * Checks the EVD on which a function works. The error has no subtype, because the subtypes for EVDs name the roles of
 * EVDs in other objects.
 */
#define LIVE_EVD(evd)                                                              \
	do {                                                                       \
		if (__builtin_expect(!alive(evd, DAT_HANDLE_TYPE_EVD), 0))         \
			return NO_HANDLE(EVD, 0);                                  \
	} while (0)

/* Checks a handle that may be null. */
#define LIVE_OR_NULL(handle, type, sub)            \
	do {                                       \
		if (handle)                        \
			LIVE(handle, type, sub);   \
	} while (0)

/* Checks argument number arg of the entry. */
#define NEED(condition, arg)                                                     \
	do {                                                                     \
		if (__builtin_expect(!(condition), 0))                           \
			return ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##arg, \
				"argument " #arg " fails the check " #condition); \
	} while (0)

static inline struct dx_handle *H(DAT_HANDLE handle) { return handle; }

static inline uint64_t id(DAT_HANDLE handle) { return handle ? H(handle)->id : 0; }

/* Converts the address of a handle, as Go passes it, to a handle for the program. */
static inline DAT_HANDLE handle(uint64_t h) { return (DAT_HANDLE)(uintptr_t)h; }

/* Allocates the handle of a new object. It is called before Go creates the object: a later allocation could fail. */
static inline struct dx_handle *make(DAT_HANDLE sibling, DAT_HANDLE_TYPE type)
{
	return dx_make(H(sibling)->table, H(sibling)->ia, type);
}

/* Makes the handle of a new object valid. r is the result of creating the object; if it is an error, drops the handle. */
static inline DAT_RETURN made(struct dx_handle *h, DAT_RETURN r, DAT_HANDLE *out)
{
	if (r != DAT_SUCCESS) {
		dx_drop(h);
		return r;
	}
	if (!dx_live(h))
		return ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA, "the adapter was closed during the call");
	*out = h;
	return DAT_SUCCESS;
}

#define MAKE(h, sibling, type)                                                                 \
	struct dx_handle *h = make(sibling, DAT_HANDLE_TYPE_##type);                           \
	do {                                                                                   \
		if (!h)                                                                        \
			return NO_MEMORY;                                                      \
	} while (0)

/* Removes a handle if its object was freed. r is the result of freeing the object. */
static inline DAT_RETURN freed(DAT_HANDLE handle, DAT_RETURN r)
{
	if (r == DAT_SUCCESS)
		dx_bury(handle);
	return r;
}

/* Checks the arguments n and iov of a post. */
#define NEED_IOV()                     \
	do {                           \
		NEED(n >= 0, 2);       \
		NEED(iov || !n, 3);    \
	} while (0)

#endif
