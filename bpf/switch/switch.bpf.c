// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The switch role: one XDP program on every port, one that runs in the device map, one in a CPU map
 * for frames that came in on the wrong CPU (bpf/switch/steer.h), and a tc program for what the
 * kernel would send (bpf/switch/guard.h).
 *
 * An ordered frame from port i: parse, refuse what lies, find the output o (Linux's routes, or the
 * static table), raise R_i, write the barrier of o's input set and this CPU's lane into it,
 * redirect. A beacon raises R_i too; if that lifts a set's minimum over the next common tick, or a
 * commit barrier that was behind, it is cloned to all ports, and the devmap program gives each
 * clone its port's barrier or drops it. Everything else goes to the kernel.
 *
 * Frames that are refused change no register. Everything that this CPU writes belongs to its lane
 * alone (DESIGN 3.3).
 *
 * A port may be metered: what would leave by it goes into its output queues (bpf/switch/queue.h),
 * and bl_port_pace, run by the pacer, sends it. Then frames that are not barline's are forwarded
 * here as well (bpf/switch/plain.h).
 *
 * Not here: switches that run no XDP.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "maps/switch_maps.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/order/hop_core.h"
#include "core/policy_core.h"
#include "bpf/bpf_util.h"
#include "fdb.h"
#include "queue.h"
#include "pl2.h"

#define BL_AF_INET  2
#define BL_AF_INET6 10

/* What one run of the program knows. */
struct run {
	struct bl_frame f;
	const struct bl_sw_cfg *cfg;
	struct bl_sw_lane *lane;
	__u32 in;  /* input port */
	__u32 out; /* output port */
	__u32 lane_no;
	__u64 ts, b, c; /* extended */
};

static __always_inline struct bl_sw_port *port_at(__u32 p)
{
	return bpf_map_lookup_elem(&sw_ports, &p);
}

/* port number of an interface, or -1 */
static __always_inline int port_of(__u32 ifindex)
{
	__u32 *p = bpf_map_lookup_elem(&sw_ifindex, &ifindex);

	return p ? (int)*p - 1 : -1;
}

/* A global function for the same reason as the next, which calls it once for each set. */
__attribute__((noinline)) int bl_tree_put(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b,
					  __u64 c)
{
	if (t)
		bl_tree_set(t, leaves, leaf, b, c);
	return 0;
}

/*
 * One raise or fall of port @p's leaf in every set that it feeds. A global function: the verifier
 * looks at it once, not once for each way that leads here (2026-11, Linux 6.18: 850 thousand of the
 * million instructions that it is willing to follow, and 1.6 s; this way 108 thousand and 0.1 s).
 */
__attribute__((noinline)) int bl_leaf_changed(__u32 lane_no, __u32 in_sets, __u32 p, __u64 b,
					      __u64 c)
{
	__u32 s, zero = 0;
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);

	if (!lane || !cfg)
		return 0;
	for (s = 0; s < BL_SETS_MAX && in_sets; s++, in_sets >>= 1) {
		__u32 key = BL_TREE_KEY(lane_no, s);
		struct bl_pair root;
		struct bl_tree *t;

		if (!(in_sets & 1))
			continue;
		t = bpf_map_lookup_elem(&sw_trees, &key);
		if (!t)
			continue;
		bl_tree_put(t, cfg->tree_leaves, p, b, c);
		root = bl_tree_least(t);
		bl_out_advance(&lane->out[s], &root);
	}
	return 0;
}

/*
 * bl_leaf_changed(), but in the first set at once where one tree is enough: a rack's only switch
 * has no other.
 */
static __always_inline void leaf_changed(const struct run *r, __u32 in_sets, __u64 b, __u64 c,
					 int at_once)
{
	__u32 key = BL_TREE_KEY(r->lane_no, 0);
	struct bl_pair root;
	struct bl_tree *t;

	if (at_once && in_sets & 1) {
		t = bpf_map_lookup_elem(&sw_trees, &key);
		if (t && !t->two && bl_tree_rises(t, r->cfg->tree_leaves, r->in, b, c)) {
			bl_tree_rise(t->b, r->cfg->tree_leaves, r->in, b);
			root.b = root.c = t->b[0];
			bl_out_advance(&r->lane->out[0], &root);
			in_sets &= ~1u;
		}
	}
	if (in_sets)
		bl_leaf_changed(r->lane_no, in_sets, r->in, b, c);
}

#include "fence.h"

/*
 * greatest barrier that outputs fed by these sets were given on this lane: who joins must be near
 * it
 */
static __always_inline __u64 given(const struct bl_sw_lane *lane, __u32 in_sets)
{
	__u64 b = 0;
	__u32 s;

	for (s = 0; s < BL_SETS_MAX && in_sets; s++, in_sets >>= 1)
		if (in_sets & 1)
			b = bl_max64(b, lane->out[s].b);
	return b;
}

/* Not struct run: whose address goes to a function lives in memory, every field of it. */
struct scan {
	const struct bl_sw_cfg *cfg;
	struct bl_sw_lane *lane;
	__u32 lane_no;
};

static long scan_port(__u32 p, struct scan *s)
{
	struct bl_sw_port *port = port_at(p);
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &p);
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	struct bl_pair leaf;

	if (!port || !regs || !life || p >= s->cfg->nports)
		return 1;
	if (!port->ifindex || (s->cfg->single_writer && BL_HOME_LANE(port) != s->lane_no))
		return 0;
	if (bl_port_expire(regs, s->lane->watch_ns, s->cfg->dead_after_ns, life, &leaf) &
	    BL_A_LEAF) {
		bl_leaf_changed(s->lane_no, port->in_sets, p, leaf.b, leaf.c);
		bl_count(p, BL_R_EXCLUDED);
	}
	return 0;
}

static long obey_port(__u32 p, struct scan *s)
{
	struct bl_sw_port *port = port_at(p);
	const struct bl_port_regs *regs;
	struct bl_pair leaf;

	if (!port || p >= s->cfg->nports)
		return 1;
	if (!port->ifindex || (s->cfg->single_writer && BL_HOME_LANE(port) != s->lane_no) ||
	    !bl_obey(p))
		return 0;
	regs = bpf_map_lookup_elem(&sw_regs, &p);
	if (!regs)
		return 1;
	bl_port_leaf(regs, &leaf);
	bl_leaf_changed(s->lane_no, port->in_sets, p, leaf.b, leaf.c);
	return 0;
}

/*
 * Orders that this lane has not obeyed yet. Generation first, then the slots; registers first, then
 * @orders: pairs with bl_fence and with loader/order.c.
 */
static __always_inline void obey(struct scan *s)
{
	__u32 zero = 0;
	const struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);
	__u64 generation;

	if (!e)
		return;
	generation = BL_READ_ONCE(e->generation);
	if (__builtin_expect(s->lane->orders == generation, 1))
		return;
	bpf_loop(BL_SW_PORTS_MAX, obey_port, s, 0);
	BL_BARRIER();
	BL_WRITE_ONCE(s->lane->orders, generation);
}

/*
 * Read the clock for this lane, and look for silent inputs four times in dead_after. Returns 0, or
 * -1 if the clock cannot be used.
 *
 * This one and bl_raise_slowly() are global functions for the same reason again.
 */
__attribute__((noinline)) int bl_tick(__u32 lane_no)
{
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct scan s = { .cfg = cfg, .lane = lane, .lane_no = lane_no };
	struct bl_now now;
	__u32 set;

	if (!lane || !cfg)
		return -1;
	obey(&s); /* also without a clock */
	bl_read_clock(&now);
	if (!now.ok)
		return -1;
	lane->watch_ns = bl_watch_advance(lane->watch_ns, lane->now_ns, now.bus, cfg->beacon_ns);
	lane->now_ns = now.bus;
	lane->limit_ns = now.limit + cfg->ahead_ns;
	if (lane->watch_ns - lane->scan_ns > cfg->dead_after_ns / 4) {
		lane->scan_ns = lane->watch_ns;
		/*
		 * without it a host's death took its ToR and all on it with it, in a leaf-spine
		 * without traffic (6 of 8 times, 2026-11-21)
		 */
		for (set = 0; set < BL_SETS_MAX; set++)
			if (bl_stands_still(now.bus, lane->out[set].b, cfg->dead_after_ns))
				lane->relay_at[set] = BL_RELAY_STILL;
		bpf_loop(BL_SW_PORTS_MAX, scan_port, &s, 0);
	}
	return 0;
}

/*
 * raise() of a lane that is not alone on its link, or not in the minimum yet. @lanes: the
 * neighbour's lane in the low 8 bits, how many it has above.
 */
__attribute__((noinline)) int bl_raise_slowly(__u32 in, __u32 lane_no, __u32 lanes, __u64 b,
					      __u64 c)
{
	__u32 zero = 0, res;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &in);
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	const struct bl_sw_port *port = port_at(in);
	struct bl_pair leaf;
	__u64 floor = 0;

	if (!cfg || !regs || !lane || !port)
		return 0;
	if (!bl_reg_live(&regs->lane[lanes & (BL_LANES_MAX - 1)]))
		floor = bl_join_floor(given(lane, port->in_sets), cfg->dead_after_ns);
	if (!lane->watch_ns)
		lane->watch_ns = 1;
	res = bl_port_arrive(regs, lanes & 0xff, lanes >> 8, b, c, lane->watch_ns, floor,
			     port->barred, &leaf);
	if (res & BL_A_LEAF)
		bl_leaf_changed(lane_no, port->in_sets, in, leaf.b, leaf.c);
	if (res & BL_A_OLD)
		bl_count(in, BL_R_BARRIER_OLD);
	if (res & BL_A_JOINED)
		bl_count(in, BL_R_JOINED);
	return 0;
}

/*
 * Extend the wire's times and refuse those that are ahead of what this node's clock can vouch for
 * (DESIGN 5).
 */
static __always_inline enum bl_reason validate_times(struct run *r)
{
	struct bl_sw_lane *lane = r->lane;

	/*
	 * Beacons read the clock, so that a lane's reference is never old (bl_ext48); data only
	 * when it is beyond the last limit.
	 */
	if (r->f.opcode == BL_OP_BEACON && bl_tick(r->lane_no))
		return BL_R_CLOCK_VOID;
	r->b = bl_ext48(r->f.b, lane->now_ns);
	r->c = bl_ext48(r->f.c, lane->now_ns);
	r->ts = bl_ext48(r->f.ts, lane->now_ns);
	if (r->b <= lane->limit_ns && r->c <= lane->limit_ns &&
	    (!bl_op_timed(r->f.opcode) || r->ts <= lane->limit_ns))
		return BL_R_NONE;
	if (r->f.opcode != BL_OP_BEACON) {
		if (bl_tick(r->lane_no))
			return BL_R_CLOCK_VOID;
		r->b = bl_ext48(r->f.b, lane->now_ns);
		r->c = bl_ext48(r->f.c, lane->now_ns);
		r->ts = bl_ext48(r->f.ts, lane->now_ns);
	}
	if (r->b > lane->limit_ns || r->c > lane->limit_ns)
		return BL_R_BARRIER_AHEAD;
	if (bl_op_timed(r->f.opcode) && r->ts > lane->limit_ns)
		return BL_R_TS_AHEAD;
	return BL_R_NONE;
}

/*
 * R_i := max(R_i, B), and what follows from it. A frame whose barriers are not the neighbour's
 * raises nothing, and is dropped unless they promise nothing.
 */
static __always_inline enum bl_reason raise(struct run *r, const struct bl_sw_port *port,
					    int at_once)
{
	__u32 key = r->in, res;
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &key);
	struct bl_reg *reg;

	if (!regs)
		return BL_R_NONE;
	reg = &regs->lane[r->f.lane & (BL_LANES_MAX - 1)];
	if (r->f.opcode == BL_OP_BEACON)
		bl_port_learn_hop(regs, r->f.lane, r->f.flags & BL_F_HOP);
	else if (__builtin_expect((r->f.flags & BL_F_HOP) != reg->hop, 0))
		return bl_hop_old(r->b, r->c, r->lane->now_ns) ? BL_R_NONE : BL_R_UNSWITCHED;
	if (bl_reg_live(reg) && r->f.opcode == BL_OP_DATA && r->ts < reg->b)
		bl_count(r->in, BL_R_PROMISE_BROKEN);
	if (!bl_reg_alone(reg, r->f.lanes)) {
		bl_raise_slowly(r->in, r->lane_no, (__u32)r->f.lane | (__u32)r->f.lanes << 8, r->b,
				r->c);
		return BL_R_NONE;
	}
	res = bl_reg_raise(reg, 1, r->b, r->c, r->lane->watch_ns);
	if (res & BL_A_LEAF)
		leaf_changed(r, port->in_sets, reg->b, reg->c, at_once);
	if (res & BL_A_OLD)
		bl_count(r->in, BL_R_BARRIER_OLD);
	return BL_R_NONE;
}

/* Whether C waits for the lane that the frame came in on. */
static __always_inline int waited_for(const struct run *r)
{
	const struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &r->in);

	return regs && regs->lane[r->f.lane & (BL_LANES_MAX - 1)].state & BL_REG_IN;
}

/* What an output writes as the hop, as it stands in the flags. */
static __always_inline __u32 hop_of(const struct bl_sw_port *to)
{
	return (__u32)to->hop << 6;
}

/*
 * Write the output's barriers and this lane into the header; keeps a UDP checksum right where there
 * is one. Before any input has joined there is nothing to promise, and C stands still while it
 * waits for the dead: then the barrier is one that is old to everybody (one that is more than 39 h
 * back would lie ahead). @hop: of the output.
 */
static __always_inline void rewrite(struct run *r, struct bl_hdr *h, struct udphdr *u,
				    const struct bl_pair *out, __u32 hop)
{
	__u64 old = r->lane->now_ns - BL_TS_OLD;
	__u32 flags = hop | BL_F_LANES(r->cfg->lanes) | r->lane_no;
	__u64 b = bl_max64(out->b, old), c = bl_max64(out->c, old);

	if (u->check) {
		struct bl_hdr before = *h;

		bl_hdr_send(h, b, c, flags);
		u->check = bl_csum_replace(u->check, (const __u8 *)&before, (const __u8 *)h,
					   sizeof(before));
		if (!u->check)
			u->check = 0xffff;
		return;
	}
	bl_hdr_send(h, b, c, flags);
}

/* Output port by the static table. */
static __always_inline enum bl_reason route_l2(struct run *r, struct ethhdr *eth)
{
	int port = bl_fdb_port(eth->h_dest);

	if (port < 0)
		return BL_R_NO_ROUTE;
	r->out = (__u32)port;
	return r->out == r->in ? BL_R_LOOPED : BL_R_NONE;
}

static __always_inline void ttl_v4(struct iphdr *ip)
{
	__u32 sum = ip->check;

	/* RFC 1141, as the kernel's ip_decrease_ttl() */
	sum += BL_BE16(0x0100);
	ip->check = (__u16)(sum + (sum >= 0xffff));
	ip->ttl--;
}

#define BL_ROUTE_V6 0x100u
/*
 * Port that a frame from port @in leaves by, as Linux's routing tables have it, or -(reason). @l3:
 * offset of the IP header, at most one tag behind the start. @ports: source and destination as the
 * wire has them, the source in the low 16 bits. @l4: IP protocol, and BL_ROUTE_V6 if it is IPv6. On
 * success TTL and addresses are rewritten. BL_R_TO_KERNEL: the neighbour is not resolved. A global
 * function, so that what the helper is told is on no caller's stack: 512 bytes are all that a
 * caller and those it calls have, and Linux 6.1 rounds each of them up to 32.
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
	port = port_of(fib.ifindex);
	if (port < 0)
		return -BL_R_UNKNOWN_PORT;
	if (port == (int)in)
		return -BL_R_LOOPED;
	if (v6)
		ip6->hop_limit--;
	else
		ttl_v4(ip);
	__builtin_memcpy(eth->h_dest, fib.dmac, 6);
	__builtin_memcpy(eth->h_source, fib.smac, 6);
	return port;
}

static __always_inline enum bl_reason route_l3(struct xdp_md *ctx, struct run *r, __u32 l3, __u8 l4)
{
	int port = bl_route(ctx, r->in, l3, BL_BE16(r->f.sport) | (__u32)BL_BE16(r->f.dport) << 16,
			    l4 | (r->f.v6 ? BL_ROUTE_V6 : 0));

	if (port < 0)
		return (enum bl_reason) - port;
	r->out = (__u32)port;
	return BL_R_NONE;
}

static __always_inline enum bl_reason on_data(struct xdp_md *ctx, struct run *r,
					      const struct bl_sw_port *port, int plain)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	const struct bl_sw_port *to = NULL;
	struct bl_carried *carried;
	enum bl_reason why;
	struct udphdr *u;
	struct bl_hdr *h;
	int metered = 0;
	__u32 l3 = r->f.l3_off, off = r->f.hdr_off - (__u32)sizeof(*u);

	/* the offsets are known constants in truth; the verifier needs to be told */
	if (l3 > sizeof(*eth) + 4 || off > sizeof(*eth) + 4 + sizeof(struct ipv6hdr))
		return BL_R_SHORT;
	u = data + off;
	BL_SEEN(u);
	h = (void *)(u + 1);
	if ((void *)(eth + 1) > end || (void *)(h + 1) > end)
		return BL_R_SHORT;
	if (r->cfg->forward == BL_FWD_L2)
		why = route_l2(r, eth);
	else
		why = route_l3(ctx, r, l3, BL_UDP);
	if (why == BL_R_NONE) {
		to = port_at(r->out);
		if (!to || !to->ifindex)
			return BL_R_UNKNOWN_PORT;
		if (r->f.hdr_off - l3 + sizeof(*h) + r->f.body_len > to->mtu)
			return BL_R_TOO_BIG;
		metered = __builtin_expect(to->metered, 0);
		if (!metered && bpf_redirect_map(&sw_tx, r->out, XDP_ABORTED) != XDP_REDIRECT)
			return BL_R_REDIRECT_FAILED; /* first, since what follows cannot be undone
						      */
	} else if (why != BL_R_TO_KERNEL) {
		return why;
	}
	why = raise(r, port, plain);
	if (__builtin_expect(why != BL_R_NONE, 0))
		return why;
	if (__builtin_expect(bl_op_covered(r->f.opcode), 0) && !waited_for(r))
		return BL_R_NOT_IN; /* what it promised holds all the same */
	if (!to) {
		/*
		 * The kernel resolves the neighbour and sends it later, past this program: it must
		 * not promise anything.
		 */
		struct bl_pair none = { 0, 0 };

		rewrite(r, h, u, &none, BL_HOP_HOST);
		return BL_R_TO_KERNEL;
	}
	if (__builtin_expect(to->barred, 0)) {
		struct bl_pair no_c = { r->lane->out[to->out_set & (BL_SETS_MAX - 1)].b, 0 };

		rewrite(r, h, u, &no_c, hop_of(to));
	} else {
		rewrite(r, h, u, &r->lane->out[to->out_set & (BL_SETS_MAX - 1)], hop_of(to));
	}
	why = BL_R_FORWARDED;
	if (__builtin_expect(metered, 0)) {
		why = bl_port_put(ctx, r->out, BL_CL_DATA);
		if (why != BL_R_QUEUED)
			return why; /* lost on the way out: what it promised as it came in holds */
	}
	carried = bpf_map_lookup_elem(&sw_carried, &r->out);
	if (carried)
		carried->b[r->lane_no & (BL_LANES_MAX - 1)] =
			r->lane->out[to->out_set & (BL_SETS_MAX - 1)].b;
	return why;
}

/* Who is at the other end of port @p. */
static __always_inline void met(__u32 p, __u32 node, __u32 policy)
{
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);

	if (!life)
		return;
	if (life->neighbour != node)
		life->neighbour = node;
	if (life->policy != policy)
		life->policy = policy;
}

/* How this switch admits traffic, for its beacons; 0: it was started without admission. */
static __always_inline __u8 own_policy(void)
{
	__u32 zero = 0;
	const struct bl_rsv_cfg *cfg = bpf_map_lookup_elem(&rsv_cfg, &zero);

	if (!cfg || !cfg->pair_shift)
		return 0;
	return bl_policy_say(cfg->on         ? BL_POLICY_PL2
			     : bl_token_on() ? BL_POLICY_TOP
					     : BL_POLICY_NONE);
}

static __always_inline enum bl_reason on_beacon(struct xdp_md *ctx, struct run *r,
						const struct bl_sw_port *port)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bl_sw_lane *lane = r->lane;
	__u32 off = r->f.hdr_off, s;
	__u64 due = 0, commits = 0;
	struct bl_beacon *body;
	struct bl_relay *relay;
	struct bl_hdr *h;

	if (off > sizeof(struct ethhdr) + 4)
		return BL_R_SHORT;
	h = data + off;
	BL_SEEN(h);
	body = (void *)(h + 1);
	relay = (void *)(body + 1);
	if ((void *)(relay + 1) > end)
		return BL_R_SHORT;
	if (body->node_id == BL_BE32(r->cfg->node_id))
		return BL_R_LOOPED;
	if ((__s16)BL_BE16(body->tai_offset_s) != r->cfg->tai_offset_s)
		return BL_R_TAI_MISMATCH;
	met(r->in, BL_BE32(body->node_id), body->policy);
	for (s = 0; s < BL_SETS_MAX; s++)
		lane->behind[s] = bl_commit_news(&lane->out[s], lane->relay_at[s]);
	raise(r, port, 1);
	for (s = 0; s < BL_SETS_MAX; s++) {
		due |= bl_time_above(lane->out[s].b, lane->relay_at[s]);
		commits |= bl_time_above(lane->out[s].c, lane->behind[s]) << s;
	}
	if (!(due | commits))
		return BL_R_BEACON;
	for (s = 0; s < BL_SETS_MAX; s++) {
		lane->relayed[s] = lane->out[s].b;
		lane->relay_at[s] = bl_relay_next(lane->out[s].b, r->cfg->beacon_ns);
		bl_put48(relay->set[s].barrier, lane->out[s].b);
		bl_put48(relay->set[s].commit, bl_max64(lane->out[s].c, lane->now_ns - BL_TS_OLD));
	}
	bl_hdr_set_lane(h, r->lane_no, r->cfg->lanes);
	body->node_id = BL_BE32(r->cfg->node_id);
	/* for on_output(): sets whose clones are sent even where their B is no news */
	body->port = (__u8)commits;
	return bpf_redirect_map(&sw_tx, 0, BPF_F_BROADCAST) == XDP_REDIRECT ? BL_R_RELAYED
									    : BL_R_REDIRECT_FAILED;
}

#include "steer.h"

/* @home: whether it came by the CPU map; then this is the home of its lane. */
static __always_inline enum bl_reason on_ordered(struct xdp_md *ctx, struct run *r, int plain,
						 int home)
{
	const struct bl_sw_port *port = port_at(r->in);
	__u32 cpu = bpf_get_smp_processor_id(), key;
	enum bl_reason why;

	if (!port)
		return BL_R_UNKNOWN_PORT;
	r->lane_no = r->cfg->single_writer ? BL_HOME_LANE(port) : 0;
	if (!home && r->cfg->single_writer &&
	    __builtin_expect(r->cfg->lane_of_cpu[cpu & (BL_SW_CPUS_MAX - 1)] != port->home_lane,
			     0)) {
		why = (enum bl_reason)bl_steer_frame(r->in, cpu);
		if (why != BL_R_NONE)
			return why;
	}
	key = r->lane_no;
	r->lane = bpf_map_lookup_elem(&sw_lanes, &key);
	if (!r->lane)
		return BL_R_UNKNOWN_PORT;
	why = validate_times(r);
	if (why != BL_R_NONE)
		return why;
	if (r->f.opcode == BL_OP_BEACON)
		return on_beacon(ctx, r, port);
	return on_data(ctx, r, port, plain);
}

#include "plain.h"

static __always_inline int on_port(struct xdp_md *ctx, int in)
{
	struct run r;
	enum bl_reason why;
	__u32 zero = 0;

	r.cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (in < 0 || !r.cfg)
		return bl_done(BL_COUNTS_UNKNOWN, BL_R_NOT_OURS);
	r.in = (__u32)in;
	/*
	 * The same twice: the compiler makes another program of it where it knows offsets, opcode
	 * and lane.
	 */
	if (bl_parse_plain((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.cfg->port_base,
			   r.cfg->port_count, &r.f))
		return bl_done(r.in, on_ordered(ctx, &r, 1, 0));
	why = bl_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.cfg->port_base,
		       r.cfg->port_count, &r.f);
	if (why == BL_R_NONE && bl_op_link(r.f.opcode) && r.f.opcode != BL_OP_BEACON)
		return bl_rsv_link(ctx, r.in, r.f.hdr_off, r.f.opcode, r.f.psn);
	if (why == BL_R_NONE)
		why = on_ordered(ctx, &r, 0, 0);
	else if (why == BL_R_NOT_OURS && __builtin_expect(r.cfg->admission, 0))
		why = bl_plain(ctx, r.in,
			       r.cfg->paths | r.cfg->path_keep ? (__u32)bl_path(ctx, r.in) : 0);
	return bl_done(r.in, why);
}

SEC("xdp")
int bl_switch_xdp(struct xdp_md *ctx)
{
	return on_port(ctx, port_of(ctx->ingress_ifindex));
}

/*
 * In the CPU map: ordered frames that came in elsewhere. Parsed once more; what was read of them
 * before is on another CPU's stack.
 */
SEC("xdp/cpumap")
int bl_switch_steered(struct xdp_md *ctx)
{
	int in = port_of(ctx->ingress_ifindex);
	enum bl_reason why;
	__u32 zero = 0;
	struct run r;

	r.cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	if (in < 0 || !r.cfg)
		return bl_done(BL_COUNTS_UNKNOWN, BL_R_NOT_OURS);
	r.in = (__u32)in;
	was_steered(r.in);
	why = bl_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end, r.cfg->port_base,
		       r.cfg->port_count, &r.f);
	if (why == BL_R_NONE)
		why = on_ordered(ctx, &r, 0, 1);
	return bl_done(r.in, why);
}

/*
 * In the device map: every frame that leaves. Data was rewritten at ingress; a relayed beacon gets
 * what ingress put down for this port's set. Nothing is computed from the registers here: at the
 * flush they may be ahead of frames that are queued behind this one.
 */
static __always_inline int on_output(struct xdp_md *ctx, __u32 ifindex)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	const struct bl_sw_port *port;
	struct bl_carried *carried;
	struct bl_beacon *body;
	struct bl_relay *relay;
	enum bl_reason why = BL_R_CLONE_SENT;
	__u32 p, set, lane;
	const __u8 *mine;
	struct bl_hdr *h;
	__u64 b, last;
	__u32 key;
	int out;

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (eth->h_proto == BL_BE16(BL_ETHERTYPE)) {
		h = (void *)(eth + 1);
	} else if (eth->h_proto == BL_BE16(BL_ETH_8021Q) ||
		   eth->h_proto == BL_BE16(BL_ETH_8021AD)) {
		struct bl_vlan *v = (void *)(eth + 1);

		if ((void *)(v + 1) > end || v->proto != BL_BE16(BL_ETHERTYPE))
			return XDP_PASS;
		h = (void *)(v + 1);
	} else {
		return XDP_PASS; /* counted as forwarded at ingress */
	}
	if ((void *)(h + 1) > end)
		return XDP_PASS;
	if (h->opcode != BL_OPCODE_BYTE(BL_OP_BEACON))
		return XDP_PASS; /* a reservation's answer, complete since ingress */
	out = port_of(ifindex);
	p = (__u32)out;
	port = port_at(p);
	carried = bpf_map_lookup_elem(&sw_carried, &p);
	if (out < 0 || !port || !carried)
		return bl_done(BL_COUNTS_UNKNOWN, BL_R_UNKNOWN_PORT);
	body = (void *)(h + 1);
	relay = (void *)(body + 1);
	if ((void *)(relay + 1) > end)
		return bl_done(p, BL_R_SHORT);
	set = port->out_set & (BL_SETS_MAX - 1);
	lane = BL_FLAGS_LANE(h->flags);
	last = carried->b[lane];
	mine = relay->set[set].barrier;
	BL_SEEN(mine);
	if ((void *)(mine + sizeof(relay->set[0])) > end)
		return bl_done(p, BL_R_SHORT);
	b = bl_get48(mine);
	if (!b)
		return bl_done(p, BL_R_CLONE_STALE); /* no input of this set has joined */
	if (last) {
		b = bl_ext48(b, last);
		if (b <= last && !(body->port >> set & 1))
			return bl_done(p, BL_R_CLONE_STALE);
		b = bl_max64(b, last);
	}
	__builtin_memcpy(h->barrier, mine, 6);
	__builtin_memcpy(h->commit, mine + 6, 6);
	h->flags = (__u8)((h->flags & ~BL_F_HOP) | hop_of(port));
	if (__builtin_expect(port->barred, 0)) {
		const struct bl_sw_lane *from;

		key = lane;
		from = bpf_map_lookup_elem(&sw_lanes, &key);
		bl_put48(h->commit, (from ? from->now_ns : b) - BL_TS_OLD);
	}
	__builtin_memcpy(eth->h_source, port->mac, 6);
	body->policy = own_policy();
	body->port = (__u8)p;
	if (__builtin_expect(port->metered, 0)) {
		/* behind the data that it makes promises about */
		why = bl_port_put(ctx, p, BL_CL_DATA);
		if (why != BL_R_QUEUED)
			return bl_done(p, why);
	}
	carried->b[lane] = b;
	return bl_done(p, why);
}

SEC("xdp/devmap")
int bl_switch_devmap(struct xdp_md *ctx)
{
	return on_output(ctx, ctx->egress_ifindex);
}

#include "guard.h"

SEC("tc")
int bl_switch_egress(struct __sk_buff *skb)
{
	return guard(skb);
}

/* The pacer's turn on this node (bpf/pacer.bpf.c). */
SEC("xdp")
int bl_port_pace(struct xdp_md *ctx)
{
	return bl_port_turn(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
