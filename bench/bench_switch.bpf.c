// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The switch program's own code, wrapped so that bpf_prog_test_run can run it again and again on
 * one frame as if frames came from all ports. Each run gets another port, a barrier that has risen,
 * the address of another host, and a fresh TTL, so every run raises a register. If ports take
 * turns, the port whose turn it is always holds the minimum, and each rise climbs its trees up to
 * the root: the most work, but always the same branches. With random ports, as frames really
 * arrive, a rise climbs two levels on average, but how far cannot be predicted.
 *
 * A bare program does the same to the frame and then only what a switch cannot do without
 * (redirect; look the route up). The difference is barline's own cost. The ingress port is passed
 * instead of looked up, but the lookup is done all the same.
 */
#include "bpf/switch/switch.bpf.c"

/*
 * Shared with switch_cost.c. bench_b: barrier of the last run. bench_step_ns: by how much it rises
 * per run. bench_behind_ns: how far the commit barrier is behind it.
 */
__u64 bench_b, bench_step_ns, bench_behind_ns;
/*
 * bench_ports: ports in use, a power of two. bench_turn: whose turn it is, or the random state.
 * bench_random: 1: random ports instead of turns.
 */
__u32 bench_ports, bench_turn, bench_random;
/* of the frame before the first run; restored in each run */
__u16 bench_ip_check;
__u8 bench_ttl;
__u8 bench_routes; /* 1: the program writes the source address, which is restored, too */

/*
 * Prepares the frame for the next run. Returns its ingress port, or -1 if the frame is too short.
 * @hdr: offset of struct bl_hdr
 * @link: constant; 1: the frame is a beacon
 */
static __always_inline int next_frame(struct xdp_md *ctx, __u32 hdr, int link)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 turn = bench_turn, port, to;
	__u64 b = bench_b += bench_step_ns, c = b - bench_behind_ns;
	__u64 *w = data + hdr;

	if (data + hdr + sizeof(struct bl_hdr) + sizeof(struct bl_beacon) > end)
		return -1;
	bench_turn = bench_random ? turn * 1664525 + 1013904223 : turn + 1;
	port = (bench_random ? turn >> 16 : turn) & (bench_ports - 1);
	to = (port + 1) & (bench_ports - 1);
	if (link) {
		struct bl_beacon *body = data + hdr + sizeof(struct bl_hdr);

		body->node_id = BL_BE32(1 + port); /* each port keeps the id of its host */
	} else {
		struct iphdr *ip = data + sizeof(struct ethhdr);

		*(__u16 *)(data + 4) =
			BL_BE16(to); /* the last two bytes of the destination's address */
		ip->ttl = bench_ttl;
		ip->check = bench_ip_check;
		if (bench_routes) {
			*(__u32 *)(data + 6) = 0;
			*(__u16 *)(data + 10) = 0;
		}
	}
	/*
	 * Whole words: a load that spans a store just made would wait for it, as it never does for
	 * a frame that came from a wire.
	 */
	w[0] = BL_BE64(b << 16 | (b >> 32 & 0xffff));
	w[1] = BL_BE64(b << 32 | (c >> 16 & 0xffffffff));
	w[2] = BL_BE64(c << 48 | (link ? BL_OPCODE_BYTE(BL_OP_BEACON) << 8
				       : BL_OPCODE_BYTE(BL_OP_DATA) << 8));
	return (int)port;
}

/*
 * Turns the frame into the next RSV, of a random port for another random one, with another sequence
 * number. A promise from long ago lapses at the latest when its port asks again. The ports'
 * Ethernet addresses end in their numbers. Returns the ingress port, or -1.
 */
static __always_inline int next_rsv(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 turn = bench_turn, port = turn >> 24 & (bench_ports - 1),
	      to = turn >> 14 & (bench_ports - 1);
	struct ethhdr *eth = data;
	struct bl_hdr *h = (void *)(eth + 1);
	struct bl_rsv_body *body = (void *)(h + 1);

	if ((void *)(body + 1) > end)
		return -1;
	to = to == port ? (to + 1) & (bench_ports - 1) : to;
	bench_turn = turn * 1664525 + 1013904223;
	/* whole words, see next_frame() */
	bl_store64((__u8 *)h + 16, (__u64)turn << 16 | BL_OPCODE_BYTE(BL_OP_RSV) << 8);
	*(__u16 *)(body->mac + 4) = BL_BE16(to);
	*(__u32 *)eth->h_source = BL_BE32(0x02000000);
	*(__u16 *)(eth->h_source + 4) = BL_BE16(port);
	body->flags = 0;
	return (int)port;
}

/*
 * Turns the frame into the next token from a random port to another, of one of four classes. @port
 * is its UDP port: the one below TOP's makes it a frame like any other, which goes the same way
 * except for the decision. Returns the ingress port, or -1.
 */
static __always_inline int next_token(struct xdp_md *ctx, __u16 port)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 turn = bench_turn, in = turn >> 24 & (bench_ports - 1),
	      to = turn >> 14 & (bench_ports - 1);
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct udphdr *u = (void *)(ip + 1);
	struct bl_top_hdr *h = (void *)(u + 1);

	if ((void *)(h + 1) > end)
		return -1;
	to = to == in ? (to + 1) & (bench_ports - 1) : to;
	bench_turn = turn * 1664525 + 1013904223;
	*(__u16 *)(data + 4) = BL_BE16(to);
	*(__u16 *)(data + 10) = BL_BE16(in);
	*(__u16 *)((__u8 *)ip + 14) = BL_BE16(in); /* the last two bytes of the source */
	u->dest = BL_BE16(port);
	h->cls = turn >> 20 & 3;
	return (int)in;
}

#define DATA_HDR (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr))
#define LINK_HDR sizeof(struct ethhdr)

SEC("xdp")
int bare_redirect(struct xdp_md *ctx)
{
	int port = next_frame(ctx, DATA_HDR, 0);

	return bpf_redirect_map(&sw_tx, (port + 1) & (bench_ports - 1), XDP_ABORTED);
}

SEC("xdp")
int bare_drop(struct xdp_md *ctx)
{
	return next_frame(ctx, LINK_HDR, 1) < 0 ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp")
int bare_broadcast(struct xdp_md *ctx)
{
	if (next_frame(ctx, LINK_HDR, 1) < 0)
		return XDP_ABORTED;
	return bpf_redirect_map(&sw_tx, 0, BPF_F_BROADCAST);
}

SEC("xdp")
int bare_pass(struct xdp_md *ctx)
{
	return next_frame(ctx, DATA_HDR, 0) < 0 ? XDP_ABORTED : XDP_PASS;
}

/** bare_fib - the least that a router does: route lookup, TTL, two addresses, redirect. */
SEC("xdp")
int bare_fib(struct xdp_md *ctx)
{
	struct bpf_fib_lookup fib = { .family = BL_AF_INET,
				      .ifindex = ctx->ingress_ifindex,
				      .l4_protocol = BL_UDP };
	int port = next_frame(ctx, DATA_HDR, 0);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);

	if (port < 0 || (void *)(udp + 1) > end)
		return XDP_ABORTED;
	fib.tos = ip->tos;
	fib.tot_len = BL_BE16(ip->tot_len);
	fib.ipv4_src = ip->saddr;
	fib.ipv4_dst = ip->daddr;
	fib.sport = udp->source;
	fib.dport = udp->dest;
	if (bpf_fib_lookup(ctx, &fib, sizeof(fib), 0) != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_ABORTED;
	decrement_ttl_v4(ip);
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	port = port_of_ifindex(fib.ifindex);
	return port < 0 ? XDP_ABORTED : bpf_redirect_map(&sw_tx, (__u32)port, XDP_ABORTED);
}

/* Runs the whole switch program on the frame from port @port. */
static __always_inline int run_switch(struct xdp_md *ctx, int port)
{
	return port_of_ifindex(ctx->ingress_ifindex) < 0 ? XDP_ABORTED : on_port_frame(ctx, port);
}

SEC("xdp")
int switch_data(struct xdp_md *ctx)
{
	return run_switch(ctx, next_frame(ctx, DATA_HDR, 0));
}

SEC("xdp")
int switch_beacon(struct xdp_md *ctx)
{
	return run_switch(ctx, next_frame(ctx, LINK_HDR, 1));
}

/* ---- authentication of links ---- */

/*
 * Each link's two directions have the same key here, so bl_auth_seal() also makes what the
 * neighbour would send. Sealing is part of the bare program, too.
 */
static __always_inline int next_sealed(struct xdp_md *ctx)
{
	int port = next_frame(ctx, LINK_HDR, 1);

	if (port >= 0)
		bl_auth_seal(ctx, (__u32)port, LINK_HDR, 0, 0);
	return port;
}

SEC("xdp")
int bare_sealed(struct xdp_md *ctx)
{
	return next_sealed(ctx) < 0 ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp")
int switch_sealed(struct xdp_md *ctx)
{
	return run_switch(ctx, next_sealed(ctx));
}

/*
 * What a tag on every ordered frame would cost, which does not exist: over the header, the IPv4
 * addresses and the UDP ports and length, in the last 8 bytes of the body.
 */
#define BENCH_WRITE  0 /* as the neighbour: with the receive key */
#define BENCH_VERIFY 1
#define BENCH_SEND   2 /* for the next hop */
__attribute__((noinline)) int bench_data_tag(struct xdp_md *ctx, __u32 port, __u32 how)
{
	const struct bl_auth_link *link = bpf_map_lookup_elem(&auth_links, &port);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 *ip = data + sizeof(struct ethhdr), *udp = ip + sizeof(struct iphdr),
	     *h = udp + sizeof(struct udphdr), *at = h + sizeof(struct bl_hdr) + 56;
	__u64 w[BL_AUTH_WORDS], tag;
	int epoch;

	if (!link || (void *)(at + 8) > end)
		return 0;
	epoch = how == BENCH_SEND ? bl_auth_to_send(link, ~0ULL) : bl_auth_to_receive(link, 1, 0);
	if (epoch < 0)
		return 0;
	w[0] = bl_auth_le64(h);
	w[1] = bl_auth_le64(h + 8);
	w[2] = bl_auth_le64(h + 16);
	w[3] = bl_auth_le64(ip + 12);
	w[4] = bl_auth_le64(udp);
	w[5] = bl_auth_le64((__u8 *)data + 6);
	tag = bl_auth_tag(
		how == BENCH_SEND ? &link->at[epoch & 1].send : &link->at[epoch & 1].receive, w);
	if (how == BENCH_VERIFY)
		return *(__u64 *)at == tag;
	*(__u64 *)at = tag;
	return 1;
}

SEC("xdp")
int bare_tagged(struct xdp_md *ctx)
{
	int port = next_frame(ctx, DATA_HDR, 0);

	if (port < 0 || !bench_data_tag(ctx, (__u32)port, BENCH_WRITE))
		return XDP_ABORTED;
	return bpf_redirect_map(&sw_tx, (port + 1) & (bench_ports - 1), XDP_ABORTED);
}

SEC("xdp")
int switch_tagged(struct xdp_md *ctx)
{
	int port = next_frame(ctx, DATA_HDR, 0), verdict;

	if (port < 0 || !bench_data_tag(ctx, (__u32)port, BENCH_WRITE) ||
	    !bench_data_tag(ctx, (__u32)port, BENCH_VERIFY))
		return XDP_ABORTED;
	verdict = run_switch(ctx, port);
	bench_data_tag(ctx, ((__u32)port + 1) & (bench_ports - 1), BENCH_SEND);
	return verdict;
}

SEC("xdp")
int devmap_data(struct xdp_md *ctx)
{
	return next_frame(ctx, DATA_HDR, 0) < 0 ? XDP_ABORTED
						: on_output_frame(ctx, ctx->ingress_ifindex);
}

/*
 * A clone that is sent by a port of set 0, whose barrier has risen each time. @tick: that of its
 * relay; it says what its link does if the one before had another
 */
static __always_inline int send_clone(struct xdp_md *ctx, __u32 tick)
{
	int port = next_frame(ctx, LINK_HDR, 1);
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_relay *relay = data + LINK_HDR + sizeof(struct bl_hdr) + sizeof(struct bl_beacon);
	__u64 *w = data + LINK_HDR;

	if (port < 0 || (void *)(relay + 1) > end)
		return XDP_ABORTED;
	__builtin_memcpy(relay->set[0].barrier, data + LINK_HDR + 6, 6);
	/* put_mark(), in a whole word: see next_frame() */
	*w = (*w & BL_BE64(0xffff)) | BL_BE64((__u64)BL_BE16(tick & 0xffff) << 16);
	return on_output_frame(ctx, ctx->ingress_ifindex);
}

/** devmap_clone - a clone without a link body. */
SEC("xdp")
int devmap_clone(struct xdp_md *ctx)
{
	return send_clone(ctx, 0);
}

/** devmap_says - a clone with a link body. */
SEC("xdp")
int devmap_says(struct xdp_md *ctx)
{
	return send_clone(ctx, bench_turn);
}

SEC("xdp")
int bare_token(struct xdp_md *ctx)
{
	int port = next_token(ctx, BL_TOP_PORT);

	return bpf_redirect_map(&sw_tx, (port + 1) & (bench_ports - 1), XDP_ABORTED);
}

SEC("xdp")
int switch_token(struct xdp_md *ctx)
{
	return run_switch(ctx, next_token(ctx, BL_TOP_PORT));
}

SEC("xdp")
int switch_other(struct xdp_md *ctx)
{
	return run_switch(ctx, next_token(ctx, BL_TOP_PORT - 1));
}

SEC("xdp")
int bare_rsv(struct xdp_md *ctx)
{
	return next_rsv(ctx) < 0 ? XDP_ABORTED : XDP_DROP;
}

SEC("xdp")
int switch_rsv(struct xdp_md *ctx)
{
	return run_switch(ctx, next_rsv(ctx));
}
