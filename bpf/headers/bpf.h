/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The part of the kernel's BPF interface that steer.c uses, written out so that the program builds
 * with nothing but clang: no kernel headers, no libbpf. Numbers and layouts are the kernel's ABI
 * (linux/bpf.h); they never change.
 */
#ifndef DATXDP_BPF_H
#define DATXDP_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))

/* A map is described to the loader by the types of these members (BTF), never by their values. */
#define __uint(name, val) int(*name)[val]
#define __type(name, val) val *name

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_XSKMAP = 17,
};

enum xdp_action {
	XDP_ABORTED,
	XDP_DROP,
	XDP_PASS,
	XDP_TX,
	XDP_REDIRECT,
};

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

/* Helpers are called by number. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static __u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188; /* Linux 5.18 */

#endif
