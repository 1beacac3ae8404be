//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause)
/*
 * Redirects the UDP ports of one adapter to AF_XDP sockets, one per receive queue. All other frames, and all unusual
 * ones, pass to the kernel. This program never drops a frame.
 */
#include "headers/bpf.h"
#include "headers/classify.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1); /* the loader sets the number of queues */
} xsks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, enum verdict);
	__type(value, __u64);
	__uint(max_entries, VERDICTS);
} counters SEC(".maps");

static __always_inline void count(enum verdict v)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &v);

	if (counter)
		++*counter;
}

SEC("xdp.frags")
int datxdp_steer(struct xdp_md *ctx)
{
	struct cursor c = {
		.ctx = ctx,
		.next = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	enum verdict v = classify(&c);
	long action = XDP_PASS;

	if (v == REDIRECTED) {
		/* The flags are the action for an empty slot, so no lookup is needed before. */
		action = bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
		if (action != XDP_REDIRECT)
			v = PASSED_NO_SOCKET;
	}
	count(v);
	return action;
}

char _license[] SEC("license") = "Dual BSD/GPL";
