/* What the C files of the provider share, and Go does not see. */
#ifndef DATXDP_SHIM_H
#define DATXDP_SHIM_H

#include "_cgo_export.h"

enum { DX_MAGIC = 0x44415458 };

/* One line of dat.conf. */
struct dx_line {
	DAT_PROVIDER table;
	DAT_PROVIDER_INFO info;
	char *params; /* field 7: the link and its options */
	struct dx_line *next;
};

extern int dx_forked;
extern const DAT_PROVIDER dx_entries[2]; /* by thread safety */

struct dx_line *dx_find_line(const char *name, DAT_BOOLEAN thread_safe);
DAT_RETURN dx_open(struct dx_line *line, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *out);
DAT_RETURN dx_open_query(const char *name, va_list args);
DAT_RETURN dx_extended(DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args);
DAT_RETURN dx_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);
DAT_RETURN dx_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *attr,
	DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider);

struct dx_handle *dx_make(const DAT_PROVIDER *table, struct dx_handle *ia, DAT_HANDLE_TYPE type);
int dx_live(struct dx_handle *h);
void dx_bury(struct dx_handle *h);
void dx_bury_all(struct dx_handle *ia);
void *dx_memory(struct dx_handle *h, size_t size);
void dx_drop(struct dx_handle *h);

#endif
