/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Barriers as they come in and as they are written. BPF side only. */
#ifndef BARLINE_SWITCH_BARRIER_H
#define BARLINE_SWITCH_BARRIER_H

#include "bpf/role.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/order/hop_core.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/fence.h"
#include "bpf/switch/run.h"

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
static __always_inline void update_leaf(const struct run *r, __u32 in_sets, __u64 b, __u64 c,
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

/*
 * greatest barrier that outputs fed by these sets were given on this lane: who joins must be near
 * it
 */
static __always_inline __u64 greatest_given_barrier(const struct bl_sw_lane *lane, __u32 in_sets)
{
	__u64 b = 0;
	__u32 s;

	for (s = 0; s < BL_SETS_MAX && in_sets; s++, in_sets >>= 1)
		if (in_sets & 1)
			b = bl_max64(b, lane->out[s].b);
	return b;
}

/* Not struct run: whose address goes to a function lives in memory, every field of it. */
struct lane_scan {
	const struct bl_sw_cfg *cfg;
	struct bl_sw_lane *lane;
	__u32 lane_no;
};

static long expire_silent_lanes(__u32 p, struct lane_scan *s)
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

static long obey_port_fence(__u32 p, struct lane_scan *s)
{
	struct bl_sw_port *port = port_at(p);
	const struct bl_port_regs *regs;
	struct bl_pair leaf;

	if (!port || p >= s->cfg->nports)
		return 1;
	if (!port->ifindex || (s->cfg->single_writer && BL_HOME_LANE(port) != s->lane_no) ||
	    !bl_obey_fence(p))
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
static __always_inline void obey_fences(struct lane_scan *s)
{
	__u32 zero = 0;
	const struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);
	__u64 generation;

	if (!e)
		return;
	generation = BL_READ_ONCE(e->generation);
	if (__builtin_expect(s->lane->orders == generation, 1))
		return;
	bpf_loop(BL_SW_PORTS_MAX, obey_port_fence, s, 0);
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
	struct lane_scan s = { .cfg = cfg, .lane = lane, .lane_no = lane_no };
	struct bl_now now;
	__u32 set;

	if (!lane || !cfg)
		return -1;
	obey_fences(&s); /* also without a clock */
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
		bpf_loop(BL_SW_PORTS_MAX, expire_silent_lanes, &s, 0);
	}
	return 0;
}

/*
 * raise_register() of a lane that is not alone on its link, or not in the minimum yet. @lanes: the
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
		floor = bl_join_floor(greatest_given_barrier(lane, port->in_sets),
				      cfg->dead_after_ns);
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
static __always_inline enum bl_reason raise_register(struct run *r, const struct bl_sw_port *port,
						     int at_once)
{
	__u32 key = r->in, res;
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &key);
	struct bl_reg *reg;

	if (!regs)
		return BL_R_NONE;
	reg = &regs->lane[r->f.lane & (BL_LANES_MAX - 1)];
	if (r->f.opcode == BL_OP_BEACON)
		bl_port_learn(regs, r->f.lane, r->f.flags & BL_F_HOP);
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
		update_leaf(r, port->in_sets, reg->b, reg->c, at_once);
	if (res & BL_A_OLD)
		bl_count(r->in, BL_R_BARRIER_OLD);
	return BL_R_NONE;
}

/* Whether C waits for the lane that the frame came in on. */
static __always_inline int commit_waits_for_lane(const struct run *r)
{
	const struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &r->in);

	return regs && regs->lane[r->f.lane & (BL_LANES_MAX - 1)].state & BL_REG_IN;
}

/*
 * Write the output's barriers and this lane into the header; keeps a UDP checksum right where there
 * is one. Before any input has joined there is nothing to promise, and C stands still while it
 * waits for the dead: then the barrier is one that is old to everybody (one that is more than 39 h
 * back would lie ahead). @hop: of the output.
 */
static __always_inline void rewrite_header(struct run *r, struct bl_hdr *h, struct udphdr *u,
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

#endif
