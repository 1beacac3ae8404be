/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * The maps that the programs of a shared interface have in common, and the lookup of the lease that a packet is for.
 * Leases are found by engine number, the upper 8 bits of a connection ID: each engine belongs to one lease.
 */
#ifndef DATXDP_LEASE_H
#define DATXDP_LEASE_H

#include "bpf.h"
#include "packet.h"

#define ENGINES 256
#define ANY ENGINES /* the lease that answers packets that belong to no lease */
#define MAX_QUALIFIERS 65536

#define WIRE_VERSION 2
#define WIRE_CONNECT 3
#define WIRE_RESET 8

/* The beginning of a packet of package wire; numbers are in network byte order. */
struct wire_header {
	__u8 version_type;
	__u8 flags;
	__u16 ce;
	__u32 cid;
} __attribute__((packed));

/* A Connect up to the connection qualifier of its Hello. */
struct wire_connect {
	struct wire_header header;
	__u8 other[48];
	__u64 qualifier;
} __attribute__((packed));

_Static_assert(sizeof(struct wire_connect) == 64, "Connect");

/* Engine of the lease that listens on a connection qualifier, in network byte order. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, __u32);
	__uint(max_entries, MAX_QUALIFIERS);
	__uint(pinning, PIN_BY_NAME);
} qualifiers SEC(".maps");

/* TO_ALL is no engine: the packet goes to every lease. */
#define TO_ALL (ENGINES + 1)

/*
 * Returns the engine for the packet that begins at p, or ANY, or TO_ALL for a Reset, which has the connection ID of its
 * sender. owner is the lease of the UDP destination port: its first engine plus 1; 0 is none. The engine may have no
 * lease.
 */
static __always_inline __u32 engine_of(const struct wire_header *p, const void *end, __u32 owner)
{
	const struct wire_connect *connect = (const void *)p;
	__u32 *found;
	__u64 qualifier;

	if ((const void *)(p + 1) > end || p->version_type >> 4 != WIRE_VERSION)
		return ANY;
	switch (p->version_type & 15) {
	case WIRE_CONNECT:
		if ((const void *)(connect + 1) > end)
			return ANY;
		qualifier = connect->qualifier;
		found = bpf_map_lookup_elem(&qualifiers, &qualifier);
		return found ? *found : ANY;
	case WIRE_RESET:
		return owner ? owner - 1 : TO_ALL;
	}
	return NTOHL(p->cid) >> 24;
}

#endif
