//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause)
/*
 * The program on an interface that several leases share. It sends the packets of their UDP ports to the veth of the
 * lease that they are for. All other frames pass to the kernel.
 */
#include "headers/bpf.h"
#include "headers/classify.h"
#include "headers/lease.h"

/* The host ends of the veths, by engine and ANY. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENGINES + 1);
	__uint(pinning, PIN_BY_NAME);
} ends SEC(".maps");

/* The host ends of the veths once each, by the first engine of each lease. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENGINES);
	__uint(pinning, PIN_BY_NAME);
} everyone SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, enum verdict);
	__type(value, __u64);
	__uint(max_entries, VERDICTS);
	__uint(pinning, PIN_BY_NAME);
} counters SEC(".maps");

static __always_inline void count(enum verdict v)
{
	__u64 *counter = bpf_map_lookup_elem(&counters, &v);

	if (counter)
		++*counter;
}

/* A token bucket of each processor for packets that go to every lease. */
struct bucket {
	__u64 filled; /* ns */
	__u64 tokens;
};

#define BROADCASTS 64               /* at once */
#define BROADCAST_PAUSE 1000000ULL /* ns between two */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct bucket);
	__uint(max_entries, 1);
} budget SEC(".maps");

static __always_inline int may_broadcast(void)
{
	__u32 zero = 0;
	struct bucket *b = bpf_map_lookup_elem(&budget, &zero);
	__u64 now = bpf_ktime_get_ns(), more;

	if (!b)
		return 0;
	more = (now - b->filled) / BROADCAST_PAUSE;
	if (more) {
		b->filled = now;
		b->tokens = b->tokens + more > BROADCASTS ? BROADCASTS : b->tokens + more;
	}
	if (!b->tokens)
		return 0;
	b->tokens--;
	return 1;
}

SEC("xdp.frags")
int datxdp_share(struct xdp_md *ctx)
{
	struct cursor c = {
		.ctx = ctx,
		.next = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	enum verdict v = classify(&c);
	long action = XDP_PASS;
	__u32 engine;

	if (v == REDIRECTED) {
		engine = engine_of(c.next, c.end, c.owner);
		if (engine == TO_ALL)
			action = may_broadcast() ? bpf_redirect_map(&everyone, 0, BPF_F_BROADCAST) : XDP_DROP;
		else
			action = bpf_redirect_map(&ends, engine, XDP_ABORTED);
		if (action == XDP_ABORTED) /* no lease has the engine */
			action = bpf_redirect_map(&ends, ANY, XDP_PASS);
		if (action != XDP_REDIRECT)
			v = PASSED_NO_SOCKET;
	}
	count(v);
	return action;
}

char _license[] SEC("license") = "Dual BSD/GPL";
