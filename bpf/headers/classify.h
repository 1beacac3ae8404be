/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Decides which frames are for the UDP ports of datxdp on this host. A program that includes this file gets the
 * constants and the maps of addresses and ports, which its loader sets.
 */
#ifndef DATXDP_CLASSIFY_H
#define DATXDP_CLASSIFY_H

#include "bpf.h"
#include "packet.h"

/* The verdict on a frame, which is also the index of its counter. A test compares these names with Go's. */
enum verdict {
	REDIRECTED,       /* to the socket of its queue */
	PASSED_OTHER,     /* for another port, address or MAC, or in a VLAN */
	PASSED_NO_SOCKET, /* for us, but the queue has no socket */
	PASSED_FRAGMENT,  /* an IP fragment of a UDP packet, for any port */
	PASSED_OPTIONS,   /* IPv4 options or IPv6 extension headers before UDP, for any port */
	PASSED_MALFORMED, /* headers or lengths contradict each other or the frame */
	VERDICTS,
};

#define MAX_ADDRESSES 256

/* An address in network byte order. IPv4 addresses are mapped to IPv6 (RFC 4291 section 2.5.5.2). */
struct address {
	__u32 word[4];
};

/*
 * Constants that the loader sets. A mac of zeros stands for every unicast address. The address first needs no
 * lookup.
 */
const volatile __u16 port = 0;
const volatile __u8 any_address = 1;
const volatile __u8 multi_buffer = 0;
const volatile __u16 mac[3] = {};
const volatile struct address first = {};

/* The addresses of this host, which the loader keeps current. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct address);
	__type(value, __u8);
	__uint(max_entries, MAX_ADDRESSES);
} addresses SEC(".maps");

/*
 * The owner of each UDP port of this host but the service port, which comes first. 0: the port is not ours. The loader
 * enters the source ports that it has reserved in the kernel.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1 << 16);
} owners SEC(".maps");

/* A frame, the position of the parser in it, and what the parser has found. */
struct cursor {
	struct xdp_md *ctx;
	void *next;
	void *end; /* of the linear part, which holds all headers */
	__u32 taken;
	__u32 owner; /* of the destination port; 0: it is the service port */
};

/*
 * Sets *header to the next size bytes and moves past them. Returns 0 if the frame is too short. The
 * success is a separate return value because of the verifier: without CAP_PERFMON it allows a frame
 * pointer to be compared with the end of the frame, but not with null, and not to be subtracted.
 */
static __always_inline int take(struct cursor *c, void **header, __u32 size)
{
	*header = c->next;
	if (*header + size > c->end)
		return 0;
	c->next = *header + size;
	c->taken += size;
	return 1;
}

#define TAKE(c, header) take(c, (void **)&(header), sizeof(*(header)))

/*
 * Returns whether size more bytes of the frame follow. multi_buffer is a constant to the verifier, so a
 * kernel without the helper never sees the call. Kernels before 6.17 verify the second return even if
 * multi_buffer is set, as a speculative path. Without CAP_PERFMON they would reject a difference of
 * pointers on that path; they reject the sum only if multi_buffer is not set.
 */
static __always_inline int has(struct cursor *c, __u16 size)
{
	if (multi_buffer)
		return c->taken + size <= bpf_xdp_get_buff_len(c->ctx);
	return c->next + size <= c->end; /* needs CAP_PERFMON */
}

static __always_inline int is_local_mac(const __u16 *dst)
{
	if (!(mac[0] | mac[1] | mac[2]))
		return !(*(const __u8 *)dst & 1);
	return dst[0] == mac[0] && dst[1] == mac[1] && dst[2] == mac[2];
}

static __always_inline int is_local(const struct address *dst)
{
	if (any_address)
		return 1;
	if (first.word[0] == dst->word[0] && first.word[1] == dst->word[1] && first.word[2] == dst->word[2] &&
	    first.word[3] == dst->word[3])
		return 1;
	return bpf_map_lookup_elem(&addresses, dst) != 0;
}

static __always_inline int is_local4(__u32 dst)
{
	struct address a = { .word = { 0, 0, HTONL(0xffff), dst } };

	return is_local(&a);
}

static __always_inline int is_local6(const __u32 *dst)
{
	struct address a = { .word = { dst[0], dst[1], dst[2], dst[3] } };

	/* A packet to a mapped IPv4 address is not for a host. */
	return (any_address || dst[0] || dst[1]) && is_local(&a);
}

/* Returns whether a UDP port in host byte order is ours, and sets its owner. */
static __always_inline int is_ours(struct cursor *c, __u32 dst)
{
	const __u32 *owner;

	if (dst == port)
		return 1;
	owner = bpf_map_lookup_elem(&owners, &dst);
	if (!owner)
		return 0;
	c->owner = *owner;
	return c->owner != 0;
}

/* ip_payload is the payload length in bytes that the IP header gives. */
static __always_inline enum verdict classify_udp(struct cursor *c, __u32 ip_payload)
{
	struct udp_header *udp;
	__u32 len;

	if (!TAKE(c, udp))
		return PASSED_MALFORMED;
	if (!is_ours(c, NTOHS(udp->dst)))
		return PASSED_OTHER;
	len = NTOHS(udp->len);
	if (len < sizeof(*udp) || len > ip_payload || !has(c, ip_payload - sizeof(*udp)))
		return PASSED_MALFORMED;
	return REDIRECTED;
}

static __always_inline enum verdict classify_ipv4(struct cursor *c)
{
	struct ipv4_header *ip;

	if (!TAKE(c, ip) || ip->version_ihl >> 4 != 4 || (ip->version_ihl & 15) < 5)
		return PASSED_MALFORMED;
	if (ip->proto != PROTO_UDP || !is_local4(ip->dst))
		return PASSED_OTHER;
	if (ip->flags_offset & IPV4_FRAGMENTED)
		return PASSED_FRAGMENT;
	if ((ip->version_ihl & 15) > 5)
		return PASSED_OPTIONS;
	if (NTOHS(ip->total_len) < sizeof(*ip))
		return PASSED_MALFORMED;
	return classify_udp(c, NTOHS(ip->total_len) - sizeof(*ip));
}

static __always_inline enum verdict classify_ipv6(struct cursor *c)
{
	struct ipv6_header *ip;

	if (!TAKE(c, ip) || *(__u8 *)ip >> 4 != 6)
		return PASSED_MALFORMED;
	switch (ip->next) {
	case PROTO_UDP:
	case PROTO_FRAGMENT:
	case PROTO_HOPOPTS:
	case PROTO_ROUTING:
	case PROTO_DSTOPTS:
		break;
	default:
		return PASSED_OTHER;
	}
	if (!is_local6(ip->dst))
		return PASSED_OTHER;
	if (ip->next == PROTO_UDP)
		return classify_udp(c, NTOHS(ip->payload_len));
	return ip->next == PROTO_FRAGMENT ? PASSED_FRAGMENT : PASSED_OPTIONS;
}

static __always_inline enum verdict classify(struct cursor *c)
{
	struct eth_header *eth;
	struct vlan_header *vlan;
	__u16 type;

	if (!TAKE(c, eth))
		return PASSED_MALFORMED;
	if (!is_local_mac((const __u16 *)eth->dst))
		return PASSED_OTHER;
	type = eth->type;
	if (type == ETHERTYPE_8021Q || type == ETHERTYPE_8021AD) {
		if (!TAKE(c, vlan))
			return PASSED_MALFORMED;
		if (vlan->tci & HTONS(0x0fff)) /* a VLAN ID; a tag with ID 0 carries a priority only */
			return PASSED_OTHER;
		type = vlan->type; /* a second tag is "other" */
	}
	if (type == ETHERTYPE_IPV4)
		return classify_ipv4(c);
	if (type == ETHERTYPE_IPV6)
		return classify_ipv6(c);
	return PASSED_OTHER;
}

#endif
