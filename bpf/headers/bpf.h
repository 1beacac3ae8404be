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
	BPF_MAP_TYPE_DEVMAP = 14,
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

/* The beginning of the context of a program of traffic control. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
};

#define TC_ACT_SHOT 2 /* drop */

#define BPF_F_BROADCAST (1ULL << 3) /* redirect to every entry of the map */

/* The loader shares the map by a pin of its name. */
#define PIN_BY_NAME 1

/* Helpers are called by number. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_clone_redirect)(struct __sk_buff *skb, __u32 ifindex, __u64 flags) = (void *)13;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*const bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*const bpf_redirect_neigh)(__u32 ifindex, void *params, int len, __u64 flags) = (void *)152; /* Linux 5.10 */
static __u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188; /* Linux 5.18 */

#endif
