/*
 * What C and Go of the provider share: the handle, the flat event, and what is asserted of the
 * headers of libdapl-dev. Go sees integers and pointers only; unions, structures by value and
 * va_list stay in C.
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
 * Every DAT handle but an IA's, and what libdat2 takes an IA's number for. The memory comes from an
 * arena that is never given back: libdat2 looks at the first word of whatever a program passes.
 */
struct dx_handle {
	const DAT_PROVIDER *table; /* libdat2 calls through it; valid for ever */
	uint32_t magic;            /* DX_MAGIC while the object lives */
	uint32_t type;             /* DAT_HANDLE_TYPE */
	uint64_t id;               /* generation and slot of the Go object */
	DAT_CONTEXT context;       /* the consumer's */
	struct dx_handle *ia;      /* the open that it belongs to; of an IA, itself */
	struct dx_handle *next, *prev; /* the live objects of an IA in a ring */
	struct dx_handle *younger;     /* of the dead */
	void *more;                /* struct dx_more or dx_ia_more, made when wanted */
};

/* Memory that pointers of query results and events lead to: of a CR and of an EP. */
struct dx_more {
	struct sockaddr_in6 local, remote; /* addresses */
	char private_data[DX_PRIVATE_MAX];
};

/* The same of an IA. */
struct dx_ia_more {
	struct sockaddr_in6 address;
	DAT_NAMED_ATTR transport[DX_NAMED_MAX], vendor[DX_NAMED_MAX], specific[DX_NAMED_MAX];
	char text[DX_TEXT_MAX]; /* names and values of the above */
};

/* DAT_EVENT without unions. Which fields count depends on number; handles are addresses. */
struct dx_event {
	uint32_t number;
	uint32_t status;
	uint32_t operation;
	uint32_t rmr_context;
	uint64_t object; /* EP of a completion or connection event, RMR of a bind, SP of a request, else what went wrong */
	uint64_t cookie; /* or the pointer of a software event */
	uint64_t length; /* of a completion, or of the private data */
	uint64_t private_data;
	uint64_t cr;
	uint64_t qual;
	int32_t reason;
	uint32_t extension; /* DAT_IB_EXT_TYPE */
	uint32_t immediate;
};

/* An event for which a handle has to be made needs one of the same IA as a sibling. 0: no memory. */
uint64_t dx_new_handle(uint64_t sibling, uint32_t type);
uint64_t dx_id(uint64_t handle);
int dx_publish(uint64_t handle);
void dx_discard(uint64_t handle);
struct dx_more *dx_more(uint64_t handle);
struct dx_ia_more *dx_ia_more(uint64_t handle);
void dx_because(const char *text); /* why the call of this thread is refused */
void dx_call_agent(uint64_t function, uint64_t instance, uint64_t evd);

#endif
