/*
 * The interface between the C and the Go part of the provider: the handle, the flat event, and
 * compile-time checks of the headers of libdapl-dev. Go only gets integers and pointers; unions,
 * structures by value and va_list stay in C.
 */
#ifndef DATXDP_ABI_H
#define DATXDP_ABI_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>

enum { DX_PRIVATE_MAX = 512, DX_NAMED_MAX = 16, DX_TEXT_MAX = 2048 };

/*
 * A DAT handle. The handle of an IA is a number of libdat2, which libdat2 maps to this structure. The
 * memory comes from an arena that is never freed, because libdat2 reads the first word of any handle
 * that a program passes, also of a freed one.
 */
struct dx_handle {
	const DAT_PROVIDER *table; /* libdat2 calls through it; always valid */
	uint32_t magic;            /* DX_MAGIC while the object lives */
	uint32_t type;             /* DAT_HANDLE_TYPE */
	uint64_t id;               /* generation and slot of the Go object */
	DAT_CONTEXT context;       /* the consumer's */
	struct dx_handle *ia;      /* the IA of the object; an IA refers to itself */
	struct dx_handle *next, *prev; /* ring of the valid handles of an IA */
	struct dx_handle *younger;     /* list of the freed handles */
	void *more;                /* struct dx_more or dx_ia_more, allocated at first use */
};

/* The memory of a CR or an EP that pointers in query results and events refer to. */
struct dx_more {
	struct sockaddr_in6 local, remote; /* addresses */
	char private_data[DX_PRIVATE_MAX];
};

/* The same for an IA. */
struct dx_ia_more {
	struct sockaddr_in6 address;
	DAT_NAMED_ATTR transport[DX_NAMED_MAX], vendor[DX_NAMED_MAX], specific[DX_NAMED_MAX];
	char text[DX_TEXT_MAX]; /* text of the names and values above */
};

/* DAT_EVENT without unions. number says which fields are used; handles are addresses. */
struct dx_event {
	uint32_t number;
	uint32_t status;
	uint32_t operation;
	uint32_t rmr_context;
	uint64_t object; /* EP of a completion or connection event, RMR of a bind, SP of a request, otherwise the object of the error */
	uint64_t cookie; /* or the pointer of a software event */
	uint64_t length; /* of a completion, or of the private data */
	uint64_t private_data;
	uint64_t cr;
	uint64_t qual;
	int32_t reason;
	uint32_t extension; /* DAT_IB_EXT_TYPE */
	uint32_t immediate;
};

/* Creates a handle for an event, in the IA of the handle sibling. 0: no memory. */
uint64_t dx_new_handle(uint64_t sibling, uint32_t type);
uint64_t dx_id(uint64_t handle);
int dx_publish(uint64_t handle);
void dx_discard(uint64_t handle);
struct dx_more *dx_more(uint64_t handle);
struct dx_ia_more *dx_ia_more(uint64_t handle);
void dx_because(const char *text); /* sets the reason why the current call of this thread is refused */
void dx_call_agent(uint64_t function, uint64_t instance, uint64_t evd);

#endif
