/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output port of a frame: by the static table of an L2 switch, or by Linux's routing tables.
 * BPF side only.
 *
 * Example: a frame from port 1 to 10.0.3.7 is looked up by bpf_fib_lookup(). The answer names
 * interface 12 and a neighbour's address; interface 12 is port 4. TTL 64 becomes 63, both Ethernet
 * addresses are rewritten, and bl_route() returns 4.
 *
 * Not here: Fastpass's and TOP's choice among several paths (plain.h).
 */
#ifndef BARLINE_SWITCH_ROUTE_H
#define BARLINE_SWITCH_ROUTE_H

#include "bpf/role.h"
#include "core/wire_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/fdb.h"
#include "bpf/switch/run.h"

#define BL_AF_INET  2
#define BL_AF_INET6 10

/* Sets the output port by the static table. Returns BL_R_NONE, or the reason to drop the frame. */
static __always_inline enum bl_reason route_l2(struct run *r, struct ethhdr *eth)
{
	int port = bl_fdb_port(eth->h_dest);

	if (port < 0)
		return BL_R_NO_ROUTE;
	r->out = (__u32)port;
	return r->out == r->in ? BL_R_LOOPED : BL_R_NONE;
}

/* Decrements the TTL and adjusts the checksum. */
static __always_inline void decrement_ttl_v4(struct iphdr *ip)
{
	__u32 sum = ip->check;

	/* RFC 1141, as the kernel's ip_decrease_ttl() */
	sum += BL_BE16(0x0100);
	ip->check = (__u16)(sum + (sum >= 0xffff));
	ip->ttl--;
}

#define BL_ROUTE_V6 0x100u
/**
 * bl_route - looks up the port that a frame from port @in leaves by in Linux's routing tables, and
 * rewrites TTL and Ethernet addresses. A global function, so that the helper's argument is on no
 * caller's stack: a caller and the functions that it calls have 512 bytes together, and Linux 6.1
 * rounds each of them up to 32.
 * @l3: offset of the IP header, behind at most one tag
 * @ports: source and destination as on the wire, the source in the low 16 bits
 * @l4: IP protocol, or-ed with BL_ROUTE_V6 for IPv6
 * Returns the port, or -(reason); -BL_R_TO_KERNEL: the neighbour is not resolved.
 */
__attribute__((noinline)) int bl_route(struct xdp_md *ctx, __u32 in, __u32 l3, __u32 ports,
				       __u32 l4)
{
	struct bpf_fib_lookup fib = { .ifindex = ctx->ingress_ifindex, .l4_protocol = (__u8)l4 };
	__u32 v6 = l4 & BL_ROUTE_V6;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct ipv6hdr *ip6;
	struct iphdr *ip;
	int port;
	long rc;

	if (l3 > sizeof(*eth) + 4)
		return -BL_R_SHORT;
	ip = data + l3;
	BL_SEEN(ip);
	ip6 = (void *)ip;
	if ((void *)(eth + 1) > end || (void *)(ip + 1) > end)
		return -BL_R_SHORT;
	fib.sport = (__be16)ports;
	fib.dport = (__be16)(ports >> 16);
	if (v6) {
		if ((void *)(ip6 + 1) > end)
			return -BL_R_SHORT;
		if (ip6->hop_limit <= 1)
			return -BL_R_TTL;
		fib.family = BL_AF_INET6;
		fib.tot_len = BL_BE16(ip6->payload_len) + sizeof(*ip6);
		fib.flowinfo = *(__be32 *)ip6 & BL_BE32(0x0fffffff);
		__builtin_memcpy(fib.ipv6_src, &ip6->saddr, 16);
		__builtin_memcpy(fib.ipv6_dst, &ip6->daddr, 16);
	} else {
		if (ip->ttl <= 1)
			return -BL_R_TTL;
		fib.family = BL_AF_INET;
		fib.tos = ip->tos;
		fib.tot_len = BL_BE16(ip->tot_len);
		fib.ipv4_src = ip->saddr;
		fib.ipv4_dst = ip->daddr;
	}
	rc = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	if (rc == BPF_FIB_LKUP_RET_NO_NEIGH)
		return -BL_R_TO_KERNEL;
	if (rc == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return -BL_R_TOO_BIG;
	if (rc != BPF_FIB_LKUP_RET_SUCCESS)
		return -BL_R_NO_ROUTE;
	port = port_of_ifindex(fib.ifindex);
	if (port < 0)
		return -BL_R_UNKNOWN_PORT;
	if (port == (int)in)
		return -BL_R_LOOPED;
	if (v6)
		ip6->hop_limit--;
	else
		decrement_ttl_v4(ip);
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	return port;
}

/*
 * Sets the output port by Linux's routing tables. @l3, @l4: see bl_route(). Returns BL_R_NONE, or
 * the reason.
 */
static __always_inline enum bl_reason route_l3(struct xdp_md *ctx, struct run *r, __u32 l3, __u8 l4)
{
	int port = bl_route(ctx, r->in, l3, BL_BE16(r->f.sport) | (__u32)BL_BE16(r->f.dport) << 16,
			    l4 | (r->f.v6 ? BL_ROUTE_V6 : 0));

	if (port < 0)
		return (enum bl_reason) - port;
	r->out = (__u32)port;
	return BL_R_NONE;
}

#endif
