//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause)
/* The program on a lease's end of its veth. Every packet goes to the lease's socket. */
#include "headers/bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} socket SEC(".maps");

SEC("xdp.frags")
int datxdp_deliver(struct xdp_md *ctx)
{
	return bpf_redirect_map(&socket, ctx->rx_queue_index, XDP_DROP);
}

char _license[] SEC("license") = "Dual BSD/GPL";
