/*
 * The interface between the C part and the Go part of the provider: the handle and the flat event. Arguments of Go
 * functions are integers and pointers only; unions, structures by value and va_list stay in C.
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
 * A DAT handle. Programs get its address, but for an IA they get a number, which libdat2 maps to the address. The
 * memory comes from an arena that is never freed, because libdat2 reads the first word of every handle that a program
 * passes, even if the handle was freed.
 */
struct dx_handle {
	const DAT_PROVIDER *table; /* the functions that libdat2 calls; always valid */
	uint32_t magic;            /* DX_MAGIC while the handle is valid */
	uint32_t type;             /* DAT_HANDLE_TYPE */
	uint64_t id;               /* of the Go object: generation (upper half) and slot (lower half) */
	DAT_CONTEXT context;       /* the consumer context */
	struct dx_handle *ia;      /* the IA of the object; in the handle of an IA, the handle itself */
	struct dx_handle *next, *prev; /* ring of the valid handles of an IA */
	struct dx_handle *younger;     /* in the list of handles given back: the next one */
	void *more;                /* struct dx_more or dx_ia_more, allocated at first use */
};

/* The memory of a CR or an EP to which pointers in query results and events point. */
struct dx_more {
	struct sockaddr_in6 local, remote; /* addresses */
	char private_data[DX_PRIVATE_MAX];
};

/* The memory of an IA to which pointers in query results and events point. */
struct dx_ia_more {
	struct sockaddr_in6 address;
	DAT_NAMED_ATTR transport[DX_NAMED_MAX], vendor[DX_NAMED_MAX], specific[DX_NAMED_MAX];
	char text[DX_TEXT_MAX]; /* the strings to which the attributes above point */
};

/* A DAT_EVENT without unions. Which fields are used depends on number. Handles are addresses as integers. */
struct dx_event {
	uint32_t number;
	uint32_t status;
	uint32_t operation;
	uint32_t rmr_context;
	/* The handle of the object of the event: the EP of a completion or connection event, the RMR of a bind, the PSP or
	 * RSP of a connection request, or the object whose change an asynchronous event reports. */
	uint64_t object;
	uint64_t cookie; /* completion and bind: the cookie; software event: the pointer */
	uint64_t length; /* completion: transferred bytes; connection event: bytes of private data */
	uint64_t private_data;
	uint64_t cr;
	uint64_t qual;
	int32_t reason;
	uint32_t extension; /* DAT_IB_EXT_TYPE */
	uint32_t immediate;
};

/* The handles of objects that have ended with a connection request; 0 is none. */
struct dx_ended {
	uint64_t cr;
	uint64_t ep; /* the endpoint that the provider had created for the request */
};

/* Functions that Go calls. A handle is its address as an integer. */

/* Creates a handle, not valid yet, in the IA of another handle (sibling). Returns 0 if memory is missing. */
uint64_t dx_new_handle(uint64_t sibling, uint32_t type);
uint64_t dx_id(uint64_t handle);
int dx_publish(uint64_t handle);  /* makes the handle valid, as dx_live */
void dx_discard(uint64_t handle); /* drops a handle that never became valid, as dx_drop */
void dx_give(uint64_t handle);    /* gives back a handle whose object was garbage-collected */
struct dx_more *dx_more(uint64_t handle);
struct dx_ia_more *dx_ia_more(uint64_t handle);
void dx_because(const char *text); /* stores the reason why the current call of this thread is refused, for the log */
void dx_call_agent(uint64_t function, uint64_t instance, uint64_t evd);

#endif
