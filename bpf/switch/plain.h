/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that are not barline's, on a switch where admission is on. They share output queues with
 * ordered frames, so the kernel must not send them past those. What this program cannot forward as
 * well as the kernel does is still left to the kernel: broadcast and multicast, unknown
 * destinations, what a router answers itself (TTL used up, too big, options), and what is for the
 * switch.
 *
 * Example: with the static table, a TCP segment for a host on port 3 goes into port 3's DATA queue
 * if that port is metered, else out of port 3; an ARP reply goes into CONTROL.
 *
 * Not here: ordered frames (switch.bpf.c). BPF side only.
 */
#ifndef BARLINE_SWITCH_PLAIN_H
#define BARLINE_SWITCH_PLAIN_H

#include "bpf/role.h"
#include "core/queue/classify_core.h"
#include "bpf/switch/pl2.h"
#include "bpf/switch/queue.h"
#include "bpf/switch/route.h"
#include "bpf/switch/run.h"
#include "bpf/switch/top.h"

/*
 * Sets the output port by Linux's routing tables. On success the frame has its new addresses and
 * one TTL less. Returns BL_R_NONE, or the reason; BL_R_NOT_OURS: the frame is the kernel's.
 */
static __always_inline enum bl_reason route_plain_l3(struct xdp_md *ctx, struct run *r,
						     const struct bl_frame_class *l)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct bl_sw_port *port = port_at(r->in);
	struct ethhdr *eth = data;
	__u32 l3 = l->l3_off;
	void *ip;

	if (!port || l3 > sizeof(*eth) + 4 || (void *)(eth + 1) > end ||
	    bl_mac48(eth->h_dest) != bl_mac48(port->mac))
		return BL_R_NOT_OURS; /* not for the router */
	ip = data + l3;
	BL_SEEN(ip);
	if (l->kind == BL_FRAME_IP4) {
		if (ip + sizeof(struct iphdr) > end || ((struct iphdr *)ip)->ihl != 5)
			return BL_R_NOT_OURS;
	} else if (l->kind == BL_FRAME_IP6) {
		struct ipv6hdr *ip6 = ip;

		/*
		 * Hop-by-hop options, and what a neighbour sends from its link-local address, are
		 * the router's own.
		 */
		if ((void *)(ip6 + 1) > end || !l->proto ||
		    (ip6->saddr.s6_addr[0] == 0xfe && (ip6->saddr.s6_addr[1] & 0xc0) == 0x80))
			return BL_R_NOT_OURS;
		r->f.v6 = 1;
	} else {
		return BL_R_NOT_OURS;
	}
	r->f.sport = l->sport;
	r->f.dport = l->dport;
	return route_l3(ctx, r, l3, l->proto);
}

/* Fills in what a route depends on, from the IP header @l3. */
static __always_inline void fill_fib_params(struct bpf_fib_lookup *fib, const struct run *r,
					    void *l3)
{
	struct ipv6hdr *ip6 = l3;
	struct iphdr *ip = l3;

	if (r->f.v6) {
		fib->family = BL_AF_INET6;
		fib->tot_len = BL_BE16(ip6->payload_len) + sizeof(*ip6);
		fib->flowinfo = *(__be32 *)ip6 & BL_BE32(0x0fffffff);
		__builtin_memcpy(fib->ipv6_src, &ip6->saddr, 16);
		__builtin_memcpy(fib->ipv6_dst, &ip6->daddr, 16);
	} else {
		fib->family = BL_AF_INET;
		fib->tos = ip->tos;
		fib->tot_len = BL_BE16(ip->tot_len);
		fib->ipv4_src = ip->saddr;
		fib->ipv4_dst = ip->daddr;
	}
}

/*
 * Redirects the frame that @r has routed to @path if it goes up. The same route is looked up again,
 * by the interface that the path leaves by. If there is no such route, the switch's own choice
 * stands.
 * @mac0: first byte of the source address as it arrived; under Fastpass it keeps the path for the
 *     next switch
 */
static __always_inline void apply_path(struct xdp_md *ctx, struct run *r, struct ethhdr *eth,
				       void *l3, __u32 path, __u8 mac0)
{
	const struct bl_sw_port *from = port_at(r->in), *to = port_at(r->out);
	struct bpf_fib_lookup fib = {};

	BL_SEEN(path); /* Otherwise clang drops a check that Linux 6.1's verifier needs. */
	if (path >= r->cfg->paths || path >= sizeof(r->cfg->path_port) || !from || !to ||
	    from->role == BL_PORT_UP || to->role != BL_PORT_UP) {
		/*
		 * The frame goes down, or its path is not for this switch. The receiver wants to
		 * know which path it took.
		 */
		if (r->cfg->path_keep)
			eth->h_source[0] = (eth->h_source[0] & ~BL_PATH_MAC0) |
					   (mac0 & BL_PATH_MAC0);
		return;
	}
	BL_SEEN(path);
	path = r->cfg->path_port[path];
	to = port_at(path);
	fib.ifindex = to ? to->ifindex : 0;
	fill_fib_params(&fib, r, l3);
	if (!to ||
	    bpf_fib_lookup(ctx, &fib, sizeof(fib), BPF_FIB_LOOKUP_OUTPUT) !=
		    BPF_FIB_LKUP_RET_SUCCESS ||
	    fib.ifindex != to->ifindex) {
		bl_count(r->in, BL_R_PATH_LOST);
		return;
	}
	bl_count(r->in, BL_R_PATH_TAKEN);
	r->out = path;
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	if (r->cfg->path_by == BL_PATH_BY_FRAME)
		eth->h_source[0] = (eth->h_source[0] & ~BL_PATH_MAC0) | (mac0 & BL_PATH_MAC0);
}

/* Returns TOP's path of a frame with IP header @l3. */
static __always_inline __u32 top_frame_path(const struct run *r, const struct bl_frame_class *l,
					    const void *l3)
{
	const struct ipv6hdr *ip6 = l3;
	const struct iphdr *ip = l3;
	struct bl_token_port *from;
	__u64 a, b;

	if (r->cfg->path_by == BL_PATH_BY_TURN) {
		from = bl_token_port_at(r->in);
		/*
		 * Written by the input's CPU; two CPUs at once may give two frames the same path.
		 */
		return from ? from->turn++ % r->cfg->paths : 0;
	}
	if (bl_class_is_top(l))
		return bl_top_path(l->sport, r->cfg->paths);
	a = r->f.v6 ? bl_top_addr6(&ip6->saddr) : bl_top_addr4(ip->saddr);
	b = r->f.v6 ? bl_top_addr6(&ip6->daddr) : bl_top_addr4(ip->daddr);
	return bl_top_path(bl_top_flow_port(a, b, l->sport, l->dport), r->cfg->paths);
}

/**
 * bl_path - routes a frame from port @in that carries a path, or gets one. Called before
 * bl_plain(), where paths are in use. A function of its own, because two lookups and what
 * bl_plain() calls do not fit on the stack together. Returns 1 + the output port; 0: the frame has
 * no path or is not routed here, and is unchanged.
 */
__attribute__((noinline)) int bl_path(struct xdp_md *ctx, __u32 in)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct run r = { .in = in };
	struct ethhdr *eth = data;
	__u32 zero = 0, l3;
	struct bl_frame_class l;
	__u8 mac0;
	void *ip;

	r.cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (!r.cfg || r.cfg->forward != BL_FWD_L3 || (void *)(eth + 1) > end ||
	    bl_frame_class(data, end, &l) || l.multi)
		return 0;
	if (r.cfg->path_by == BL_PATH_BY_FRAME && !(eth->h_source[0] & BL_PATH_MAC0))
		return 0;
	mac0 = eth->h_source[0];
	if (route_plain_l3(ctx, &r, &l) != BL_R_NONE)
		return 0;
	l3 = l.l3_off;
	if (l3 > sizeof(*eth) + 4)
		return 0;
	ip = data + l3;
	BL_SEEN(ip);
	if (ip + (r.f.v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) > end)
		return 0;
	apply_path(ctx, &r, eth, ip,
		   r.cfg->path_by == BL_PATH_BY_FRAME ? BL_PATH_OF_MAC0((__u32)mac0)
						      : top_frame_path(&r, &l, ip),
		   mac0);
	if (r.cfg->path_by != BL_PATH_BY_FRAME)
		eth->h_source[0] = (eth->h_source[0] & ~BL_EARLY_MAC0) |
				   (mac0 & BL_EARLY_MAC0); /* for bl_plain() */
	return (int)r.out + 1;
}

/*
 * Keeps the bit of unscheduled frames until the last switch. A switch that routes has written its
 * own address, which may have the bit.
 */
static __always_inline void keep_early_bit(struct ethhdr *eth, const struct bl_sw_port *to,
					   int early)
{
	eth->h_source[0] = (eth->h_source[0] & ~BL_EARLY_MAC0) |
			   (early && to->role != BL_PORT_HOST ? BL_EARLY_MAC0 : 0);
}

/**
 * bl_plain - forwards a frame from port @in that bl_parse() called not ours. A global function,
 * checked once by the verifier.
 * @routed: what bl_path() returned
 * Returns the reason.
 */
__attribute__((noinline)) int bl_plain(struct xdp_md *ctx, __u32 in, __u32 routed)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, len = (__u32)bpf_xdp_get_buff_len(ctx), cls = BL_CL_DATA;
	const struct bl_token_port *from;
	struct run r = { .in = in };
	struct ethhdr *eth = data;
	const struct bl_sw_port *to;
	const struct bl_rsv_cfg *rsv_on;
	const struct bl_token_cfg *top;
	struct bl_frame_class l;
	int l2, why, early, sent = BL_R_PASSED_ON, token = -1;

	r.cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (!r.cfg || (void *)(eth + 1) > end || bl_frame_class(data, end, &l) || l.multi)
		return BL_R_NOT_OURS;
	top = bl_token_on();
	if (top && bl_class_is_top(&l)) {
		token = bl_token_in(ctx, in,
				    l.l3_off + (l.kind == BL_FRAME_IP4 ? sizeof(struct iphdr)
								       : sizeof(struct ipv6hdr)),
				    len);
		if (token < 0)
			return -token;
	}
	rsv_on = bpf_map_lookup_elem(&rsv_cfg, &zero);
	/*
	 * bl0's own address never has the bit. An address from outside the rack may be any, and
	 * half of all vendors' addresses have it.
	 */
	early = rsv_on && rsv_on->on && !bl_rsv_outside(in) ? eth->h_source[0] & BL_EARLY_MAC0 : 0;
	from = bl_token_port_at(in);
	if (token < 0 && top && top->unscheduled && eth->h_source[0] & BL_EARLY_MAC0 && from &&
	    !from->outside && !bl_class_is_control(&l))
		cls = BL_CL_UNSCHED;
	l2 = r.cfg->forward == BL_FWD_L2;
	if (routed) {
		r.out = routed - 1;
	} else {
		why = l2 ? route_l2(&r, eth) : route_plain_l3(ctx, &r, &l);
		if (why != BL_R_NONE)
			return BL_R_NOT_OURS;
	}
	to = port_at(r.out);
	if (!to || !to->ifindex)
		return BL_R_UNKNOWN_PORT;
	if (l2 && len > to->mtu + sizeof(*eth) + 4)
		return BL_R_TOO_BIG;
	if (bl_class_is_control(&l) || bl_class_is_fcp(&l) || token == BL_TOKEN_SIGNAL)
		cls = BL_CL_CONTROL;
	if (!bl_class_is_control(&l)) {
		why = bl_rsv_on_data(in, r.out, len, early);
		if (why != BL_R_NONE)
			return why;
		if (early && l2)
			eth->h_source[0] &=
				~BL_EARLY_MAC0; /* delivered byte for byte as it was sent to bl0 */
	}
	if (token >= 0) {
		why = bl_token_out(in, r.out, (__u32)token, len, to->metered);
		if (why != BL_R_TOKEN_PASSED)
			return why;
		if (token != BL_TOKEN_SIGNAL) {
			cls = BL_CL_TOKEN0 + (__u32)token;
			sent = why;
		}
	} else if (top && top->unscheduled) {
		if (cls == BL_CL_UNSCHED || !l2)
			keep_early_bit(eth, to, cls == BL_CL_UNSCHED);
		if (cls == BL_CL_UNSCHED && to->metered && !bl_unsched_room(r.out, len))
			return BL_R_QUEUE_FULL;
	}
	if (to->metered)
		return bl_port_put(ctx, r.out, cls);
	return bpf_redirect_map(&sw_tx, r.out, XDP_ABORTED) == XDP_REDIRECT ? sent
									    : BL_R_REDIRECT_FAILED;
}

#endif
