/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Headers as they lie in a frame; numbers are in network byte order unless a name says otherwise.
 */
#ifndef DATXDP_PACKET_H
#define DATXDP_PACKET_H

#include "bpf.h"

#define HTONL(x) __builtin_bswap32(x)
#define HTONS(x) ((__u16)(((x) & 0xff) << 8 | ((x) >> 8 & 0xff)))
#define NTOHL(x) __builtin_bswap32(x)
#define NTOHS(x) __builtin_bswap16(x)

#define ETHERTYPE_IPV4 HTONS(0x0800)
#define ETHERTYPE_IPV6 HTONS(0x86dd)
#define ETHERTYPE_8021Q HTONS(0x8100)
#define ETHERTYPE_8021AD HTONS(0x88a8)

#define PROTO_HOPOPTS 0
#define PROTO_UDP 17
#define PROTO_ROUTING 43
#define PROTO_FRAGMENT 44
#define PROTO_DSTOPTS 60

struct eth_header {
	__u8 dst[6];
	__u8 src[6];
	__u16 type;
} __attribute__((packed));

struct vlan_header {
	__u16 tci;
	__u16 type;
} __attribute__((packed));

struct ipv4_header {
	__u8 version_ihl;
	__u8 tos;
	__u16 total_len;
	__u16 id;
	__u16 flags_offset;
	__u8 ttl;
	__u8 proto;
	__u16 check;
	__u32 src;
	__u32 dst;
} __attribute__((packed));

/* More-fragments, and the 13 bits of the offset. */
#define IPV4_FRAGMENTED HTONS(0x3fff)

struct ipv6_header {
	__u32 version_class_flow;
	__u16 payload_len;
	__u8 next;
	__u8 hop_limit;
	__u32 src[4];
	__u32 dst[4];
} __attribute__((packed));

struct udp_header {
	__u16 src;
	__u16 dst;
	__u16 len;
	__u16 check;
} __attribute__((packed));

_Static_assert(sizeof(struct eth_header) == 14, "Ethernet header");
_Static_assert(sizeof(struct vlan_header) == 4, "VLAN tag");
_Static_assert(sizeof(struct ipv4_header) == 20, "IPv4 header");
_Static_assert(sizeof(struct ipv6_header) == 40, "IPv6 header");
_Static_assert(sizeof(struct udp_header) == 8, "UDP header");

#endif
