//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause)
/*
 * The program at the host end of a lease's veth. It checks each packet that the lease sends. A packet with a source that
 * the lease may not have, or of another form than the lease may send, is dropped and counted. The others leave by the
 * interface, or go to another lease of it.
 */
#include "headers/bpf.h"
#include "headers/packet.h"
#include "headers/lease.h"

/* The verdict on a packet of a lease, which is also the index of its counter. A test compares these names with Go's. */
enum send_verdict {
	SENT,             /* by the interface */
	SENT_LOCAL,       /* to a lease of the same interface */
	DROPPED_FORM,     /* not plain UDP over IP of the interface's MAC: ARP, VLAN, options, other protocols, bad lengths */
	DROPPED_FRAGMENT, /* an IP fragment */
	DROPPED_SOURCE,   /* another source address */
	DROPPED_PORT,     /* another source port */
	DROPPED_NOBODY,   /* to this host, but no lease has it */
	SEND_VERDICTS,
};

/* An address in network byte order. IPv4 addresses are mapped to IPv6 (RFC 4291 section 2.5.5.2). */
struct address {
	__u32 word[4];
};

/* Constants of a lease, which the loader sets. */
const volatile __u32 lease = 0;     /* its number: the first engine plus 1 */
const volatile __u32 interface = 0; /* index */
const volatile __u32 max_frame = 0; /* bytes */
const volatile __u16 port = 0;      /* of the service */
const volatile __u16 mac[3] = {};

/* The addresses of the interface, which the loader keeps current. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct address);
	__type(value, __u8);
	__uint(max_entries, 256);
	__uint(pinning, PIN_BY_NAME);
} addresses SEC(".maps");

/* The lease that has a UDP source port: its first engine plus 1; 0 is none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1 << 16);
	__uint(pinning, PIN_BY_NAME);
} owners SEC(".maps");

/* Indices of the host ends of the veths, by engine and ANY. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, ENGINES + 1);
	__uint(pinning, PIN_BY_NAME);
} indices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, enum send_verdict);
	__type(value, __u64);
	__uint(max_entries, SEND_VERDICTS);
} sent SEC(".maps");

static __always_inline int count(enum send_verdict v, int action)
{
	__u64 *counter = bpf_map_lookup_elem(&sent, &v);

	if (counter)
		++*counter;
	return action;
}

/* What the checks need of a packet. */
struct packet {
	struct address src, dst;
	struct udp_header *udp;
	__u32 payload; /* bytes that the IP header gives to UDP */
};

static __always_inline enum send_verdict parse4(struct packet *p, void *at, void *end, __u32 room)
{
	struct ipv4_header *ip = at;

	if ((void *)(ip + 1) > end || ip->version_ihl != 0x45 || ip->proto != PROTO_UDP || !ip->ttl)
		return DROPPED_FORM;
	if (ip->flags_offset & IPV4_FRAGMENTED)
		return DROPPED_FRAGMENT;
	if (NTOHS(ip->total_len) != room)
		return DROPPED_FORM;
	p->src = (struct address){ { 0, 0, HTONL(0xffff), ip->src } };
	p->dst = (struct address){ { 0, 0, HTONL(0xffff), ip->dst } };
	p->udp = (void *)(ip + 1);
	p->payload = room - sizeof(*ip);
	return SENT;
}

/* Returns whether an IPv6 address is a mapped IPv4 address, which stands for IPv4 in the map of addresses. */
static __always_inline int is_mapped(const __u32 *a) { return !a[0] && !a[1] && a[2] == HTONL(0xffff); }

static __always_inline enum send_verdict parse6(struct packet *p, void *at, void *end, __u32 room)
{
	struct ipv6_header *ip = at;

	if ((void *)(ip + 1) > end || *(__u8 *)ip >> 4 != 6 || !ip->hop_limit)
		return DROPPED_FORM;
	if (ip->next == PROTO_FRAGMENT)
		return DROPPED_FRAGMENT;
	if (ip->next != PROTO_UDP || NTOHS(ip->payload_len) + sizeof(*ip) != room)
		return DROPPED_FORM;
	if (is_mapped(ip->src))
		return DROPPED_SOURCE;
	if (is_mapped(ip->dst))
		return DROPPED_FORM;
	p->src = (struct address){ { ip->src[0], ip->src[1], ip->src[2], ip->src[3] } };
	p->dst = (struct address){ { ip->dst[0], ip->dst[1], ip->dst[2], ip->dst[3] } };
	p->udp = (void *)(ip + 1);
	p->payload = room - sizeof(*ip);
	return SENT;
}

/* Checks a packet. On success udp lies inside the linear part of the packet. */
static __always_inline enum send_verdict check(struct __sk_buff *skb, struct packet *p)
{
	void *end = (void *)(long)skb->data_end;
	struct eth_header *eth = (void *)(long)skb->data;
	const __u16 *src = (const __u16 *)eth->src;
	enum send_verdict v;
	__u32 from, *owner;

	if (skb->vlan_present || skb->len > max_frame || (void *)(eth + 1) > end)
		return DROPPED_FORM;
	if (src[0] != mac[0] || src[1] != mac[1] || src[2] != mac[2])
		return DROPPED_FORM;
	if (eth->type == ETHERTYPE_IPV4)
		v = parse4(p, eth + 1, end, skb->len - sizeof(*eth));
	else if (eth->type == ETHERTYPE_IPV6)
		v = parse6(p, eth + 1, end, skb->len - sizeof(*eth));
	else
		return DROPPED_FORM;
	if (v != SENT)
		return v;
	if ((void *)(p->udp + 1) > end || NTOHS(p->udp->len) != p->payload)
		return DROPPED_FORM;
	if (!bpf_map_lookup_elem(&addresses, &p->src))
		return DROPPED_SOURCE;
	from = NTOHS(p->udp->src);
	if (from == port)
		return SENT;
	owner = bpf_map_lookup_elem(&owners, &from);
	return owner && *owner == lease ? SENT : DROPPED_PORT;
}

/* Sends a copy of a packet to every lease, and drops the packet. */
static __always_inline int send_all(struct __sk_buff *skb)
{
	__u32 last = 0, *index, i;

	for (i = 0; i < ENGINES; i++) {
		__u32 key = i;

		index = bpf_map_lookup_elem(&indices, &key);
		if (!index || !*index || *index == last)
			continue;
		last = *index;
		bpf_clone_redirect(skb, last, 0);
	}
	return count(SENT_LOCAL, TC_ACT_SHOT);
}

/* Sends a packet to a lease of the same interface. */
static __always_inline int send_local(struct __sk_buff *skb, struct packet *p)
{
	__u32 to = NTOHS(p->udp->dst), any = ANY, engine, *owner, *index;

	owner = bpf_map_lookup_elem(&owners, &to);
	if (!owner || (to != port && !*owner))
		return count(DROPPED_NOBODY, TC_ACT_SHOT);
	engine = engine_of((void *)(p->udp + 1), (void *)(long)skb->data_end, to == port ? 0 : *owner);
	if (engine == TO_ALL)
		return send_all(skb);
	index = bpf_map_lookup_elem(&indices, &engine);
	if (!index || !*index)
		index = bpf_map_lookup_elem(&indices, &any);
	if (!index || !*index)
		return count(DROPPED_NOBODY, TC_ACT_SHOT);
	return count(SENT_LOCAL, bpf_redirect(*index, 0));
}

SEC("tcx/ingress")
int datxdp_send(struct __sk_buff *skb)
{
	struct packet p = {};
	enum send_verdict v = check(skb, &p);

	if (v != SENT)
		return count(v, TC_ACT_SHOT);
	skb->priority = 0;
	if (bpf_map_lookup_elem(&addresses, &p.dst))
		return send_local(skb, &p);
	return count(SENT, bpf_redirect_neigh(interface, 0, 0, 0));
}

char _license[] SEC("license") = "Dual BSD/GPL";
