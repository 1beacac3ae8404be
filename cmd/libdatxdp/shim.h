/* Declarations that only the C files of the provider use. */
#ifndef DATXDP_SHIM_H
#define DATXDP_SHIM_H

#include "_cgo_export.h"

enum { DX_MAGIC = 0x44415458 };

/* One line of dat.conf. */
struct dx_line {
	DAT_PROVIDER table;
	DAT_PROVIDER_INFO info;
	char *params; /* field 7: the description of the device, with options */
	struct dx_line *next;
};

/* 1 if this thread may call Go: it is prepared for it, and this is not the child of a fork */
extern __thread int dx_ready __attribute__((tls_model("initial-exec")));
extern int dx_signals_given __attribute__((visibility("hidden"))); /* 1 if a handler of the provider is not installed */
extern int dx_forked; /* 1 in the child of a fork */
DAT_RETURN dx_prepare(void); /* prepares this thread, and starts the Go runtime in the first call */
void dx_report(const char *text); /* logs that the Go runtime cannot start */
extern const DAT_PROVIDER dx_entries[2]; /* the tables of functions; the index is the thread safety */
extern const DAT_PROVIDER dx_logged_entries[2]; /* tables of functions that also log each refused call */
int dx_logging(void); /* 1 if refused calls are logged */

/* All functions of the table except ia_open_func. The implementation of NAME_func is dx_NAME. */
#define DX_ENTRIES(X) \
	X(ia_query) X(ia_close) X(set_consumer_context) X(get_consumer_context) X(get_handle_type) \
	X(cno_create) X(cno_modify_agent) X(cno_query) X(cno_free) X(cno_wait) X(cno_fd_create) X(cno_trigger) \
	X(cr_query) X(cr_accept) X(cr_reject) X(cr_handoff) X(evd_create) X(evd_query) X(evd_modify_cno) \
	X(evd_enable) X(evd_disable) X(evd_wait) X(evd_resize) X(evd_post_se) X(evd_dequeue) X(evd_free) \
	X(evd_set_unwaitable) X(evd_clear_unwaitable) X(ep_create) X(ep_query) X(ep_modify) X(ep_connect) \
	X(ep_dup_connect) X(ep_disconnect) X(ep_post_send) X(ep_post_recv) X(ep_post_rdma_read) \
	X(ep_post_rdma_write) X(ep_get_status) X(ep_free) X(ep_reset) X(ep_create_with_srq) X(ep_recv_query) \
	X(ep_set_watermark) X(ep_common_connect) X(ep_post_send_with_invalidate) X(ep_post_rdma_read_to_rmr) \
	X(lmr_create) X(lmr_query) X(lmr_free) X(lmr_sync_rdma_read) X(lmr_sync_rdma_write) X(rmr_create) \
	X(rmr_query) X(rmr_bind) X(rmr_free) X(rmr_create_for_ep) X(psp_create) X(psp_query) X(psp_free) \
	X(psp_create_any) X(rsp_create) X(rsp_query) X(rsp_free) X(csp_create) X(csp_query) X(csp_free) \
	X(pz_create) X(pz_query) X(pz_free) X(srq_create) X(srq_free) X(srq_post_recv) X(srq_query) \
	X(srq_resize) X(srq_set_lw) X(ia_ha_related) X(handle_extendedop)

#define DX_DECLARE(name) __typeof__(*((DAT_PROVIDER *)0)->name##_func) dx_##name;
DX_ENTRIES(DX_DECLARE)
#undef DX_DECLARE

/*
 * libdat2 passes the name of the line that it opens. Two lines may have the same name if they differ in thread safety,
 * so there is one function for lines that are thread safe and one for lines that are not.
 */
__typeof__(*((DAT_PROVIDER *)0)->ia_open_func) dx_ia_open_unsafe, dx_ia_open_safe;

struct dx_line *dx_find_line(const char *name, DAT_BOOLEAN thread_safe);
DAT_RETURN dx_open(struct dx_line *line, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *out);
DAT_RETURN dx_open_query(const char *name, va_list args);

struct dx_handle *dx_make(const DAT_PROVIDER *table, struct dx_handle *ia, DAT_HANDLE_TYPE type);
int dx_live(struct dx_handle *h);
void dx_bury(struct dx_handle *h);
void dx_bury_all(struct dx_handle *ia);
void *dx_memory(struct dx_handle *h, size_t size);
void dx_drop(struct dx_handle *h);

#endif
