/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The barriers of a switch: checking those of a frame against the clock, raising registers, the
 * minimum of each set of inputs, and writing the result into a frame. BPF side only; the arithmetic
 * is in core/order/barrier_core.h.
 *
 * Every CPU writes the entries of its own lane only, and limit_ns of any. A global function
 * (bl_...) is checked once by the verifier, and not once per path that leads to it.
 *
 * Example: ports 0, 1 and 2 feed set 0, with registers 1000, 1030 and 1040, so the set's barrier is
 * 1000. A frame with B = 1035 arrives on port 0. raise_register() raises port 0's register, the
 * minimum tree of the set gets root 1030, and rewrite_header() writes B = 1030 into the frame.
 *
 * Not here: finding the output (route.h), and relaying a minimum that rose (switch.bpf.c).
 */
#ifndef BARLINE_SWITCH_BARRIER_H
#define BARLINE_SWITCH_BARRIER_H

#include "bpf/role.h"
#include "core/wire_core.h"
#include "core/order/barrier_core.h"
#include "core/order/hop_core.h"
#include "core/order/lag_core.h"
#include "bpf/auth.h"
#include "bpf/bpf_util.h"
#include "bpf/switch/fence.h"
#include "bpf/switch/run.h"

/**
 * bl_tree_put - writes a leaf into a tree. A global function for the same reason as
 * bl_leaf_changed(), which calls it once for each set.
 */
__attribute__((noinline)) int bl_tree_put(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b,
					  __u64 c)
{
	if (t)
		bl_tree_set(t, leaves, leaf, b, c);
	return 0;
}

/**
 * bl_leaf_changed - applies a rise or fall of port @p's leaf to every set that the port feeds. A
 * global function: checked once per path it took 850 thousand of the million instructions that the
 * verifier is willing to follow, and 1.6 s; this way 108 thousand and 0.1 s (2026-11, Linux 6.18).
 * @in_sets: bit per set
 * @b, @c: the leaf, bus time, ns
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
 * As bl_leaf_changed() for the input port, but updates the first set inline where one tree is
 * enough: a rack's only switch has no other. @at_once: constant; 1: do so.
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
 * Returns the greatest barrier that this lane has given to outputs fed by @in_sets, bus time, ns.
 * An input that joins must be near it.
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

/**
 * struct lane_scan - argument of the callbacks that visit all ports. Not a part of struct run:
 * passing its address to a callback would force all of struct run onto the stack.
 */
struct lane_scan {
	__u32 lane_no; /* the scanning lane */
	__u16 nports;
	__u16 own; /* 1: only ports whose home this lane is */
};

/** bl_input_lags - notes that port @p was excluded because it lags. Rare, and so a function. */
__attribute__((noinline)) int bl_input_lags(__u32 p, __u32 lane_no)
{
	const struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct bl_lag *lag = bpf_map_lookup_elem(&sw_lags, &p);
	const struct bl_sw_port *port = port_at(p);

	if (!lane || !cfg || !lag || !port)
		return 0;
	bl_lag_out(lag, lane->watch_ns, bl_lag_limit(cfg->lag_max_ns, port->role));
	bl_count(p, BL_R_LAGGING);
	return 0;
}

/**
 * bl_lag_forbids - returns 1 if an input that is not in B may not join since it lagged before, and
 * has not been fresh for long enough. @b: barrier of its frame, bus time, ns
 */
__attribute__((noinline)) int bl_lag_forbids(__u32 in, __u32 lane_no, __u64 b)
{
	const struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct bl_lag *lag = bpf_map_lookup_elem(&sw_lags, &in);
	const struct bl_sw_port *port = port_at(in);
	__u64 limit;

	if (!lane || !cfg || !lag || !port)
		return 0;
	limit = bl_lag_limit(cfg->lag_max_ns, port->role);
	return !bl_lag_may_join(lag, b >= bl_fresh_above(lane->now_ns, limit / 2), lane->watch_ns,
				limit);
}

/**
 * bl_expire_port - excludes the lanes of port @p that were silent for dead_after, or that lag.
 * Returns a set of BL_A_*. A function of its own, because its loop and what follows an exclusion do
 * not fit on the stack together.
 */
__attribute__((noinline)) int bl_expire_port(__u32 p, __u32 lane_no)
{
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &p);
	struct bl_life *life = bpf_map_lookup_elem(&sw_lives, &p);
	const struct bl_sw_port *port = port_at(p);
	struct bl_pair leaf;
	__u32 res, l;

	if (!lane || !regs || !life || !port)
		return 0;
	res = bl_port_expire(regs, &lane->scan[port->role != BL_PORT_HOST], life, &leaf);
	for (l = 0; l < BL_LANES_MAX; l++)
		if (bl_reg_live(&regs->lane[l]))
			lane->freshest = bl_max64(lane->freshest, regs->lane[l].fresh_ns);
	return (int)res;
}

/* As bl_expire_port(), and passes on what changed. Returns 1 behind the last port. */
static long expire_lanes(__u32 p, struct lane_scan *s)
{
	struct bl_sw_port *port = port_at(p);
	const struct bl_port_regs *regs;
	struct bl_pair leaf;
	int res;

	if (!port || p >= s->nports)
		return 1;
	if (!port->ifindex || (s->own && BL_HOME_LANE(port) != s->lane_no))
		return 0;
	res = bl_expire_port(p, s->lane_no);
	regs = bpf_map_lookup_elem(&sw_regs, &p);
	if (!(res & BL_A_LEAF) || !regs)
		return 0;
	bl_port_leaf(regs, &leaf);
	bl_leaf_changed(s->lane_no, port->in_sets, p, leaf.b, leaf.c);
	bl_count(p, BL_R_EXCLUDED);
	if (res & BL_A_LAGGING)
		bl_input_lags(p, s->lane_no);
	return 0;
}

/* Applies the fence slot of port @p. Returns 1 behind the last port. */
static long obey_port_fence(__u32 p, struct lane_scan *s)
{
	struct bl_sw_port *port = port_at(p);
	const struct bl_port_regs *regs;
	struct bl_pair leaf;

	if (!port || p >= s->nports)
		return 1;
	if (!port->ifindex || (s->own && BL_HOME_LANE(port) != s->lane_no) || !bl_obey_fence(p))
		return 0;
	regs = bpf_map_lookup_elem(&sw_regs, &p);
	if (!regs)
		return 1;
	bl_port_leaf(regs, &leaf);
	bl_leaf_changed(s->lane_no, port->in_sets, p, leaf.b, leaf.c);
	return 0;
}

/*
 * Applies the fences that this lane has not applied yet. Reads the generation and then the slots;
 * writes the registers and then @orders. Pairs with bl_fence and with loader/order/fence.c.
 */
static __always_inline void obey_fences(struct bl_sw_lane *lane, struct lane_scan *s)
{
	__u32 zero = 0;
	const struct bl_epoch *e = bpf_map_lookup_elem(&epoch, &zero);
	__u64 generation;

	if (!e)
		return;
	generation = BL_READ_ONCE(e->generation);
	if (__builtin_expect(lane->orders == generation, 1))
		return;
	BL_LOOP(BL_SW_PORTS_MAX, obey_port_fence, s);
	BL_BARRIER();
	BL_WRITE_ONCE(lane->orders, generation);
}

/* Fills in what the scan of inputs of this role compares with. */
static __always_inline void prepare_scan(const struct bl_sw_lane *lane, const struct bl_sw_cfg *cfg,
					 __u32 role, struct bl_expiry *e)
{
	__u64 limit = bl_lag_limit(cfg->lag_max_ns, role);

	e->watch = lane->watch_ns;
	e->silent = bl_time_before(lane->watch_ns, cfg->dead_after_ns);
	e->freshest = lane->fresh_ns;
	e->fresh = bl_fresh_above(lane->now_ns, limit);
	e->lagging = bl_lag_before(lane->fresh_ns, limit);
	limit = bl_lag_limit(cfg->commit_lag_max_ns, role);
	e->fresh_c = bl_fresh_above(lane->now_ns, limit);
	e->lagging_c = bl_lag_before(lane->fresh_ns, limit);
}

/**
 * bl_follow_lane - raises the outputs of lane @lane_no whose sets have no input in it any more to
 * what lane @from has given them. A function, because of its loop.
 */
__attribute__((noinline)) int bl_follow_lane(__u32 lane_no, __u32 from)
{
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	const struct bl_sw_lane *other = bpf_map_lookup_elem(&sw_lanes, &from);
	__u32 s;

	if (!lane || !other)
		return 0;
	for (s = 0; s < BL_SETS_MAX; s++) {
		__u32 key = BL_TREE_KEY(lane_no, s);
		const struct bl_tree *t = bpf_map_lookup_elem(&sw_trees, &key);
		struct bl_pair root, given;

		if (!t)
			return 0;
		root = bl_tree_least(t);
		/* Pairs with bl_out_advance() on the other CPU. Each never falls; any is good. */
		given.b = BL_READ_ONCE(other->out[s].b);
		given.c = BL_READ_ONCE(other->out[s].c);
		bl_out_follow(&lane->out[s], &root, &given);
	}
	return 0;
}

/**
 * bl_ask_lanes - after a search of lane @lane_no for silent inputs: takes from the other lanes what
 * it cannot know by itself, and has them do the same.
 *
 * An input may be alone in its lane, and would have nobody to be compared with; and when it is
 * excluded, nobody would raise the lane's barrier any more. The other lanes' CPUs write while this
 * one reads, one word at a time.
 */
__attribute__((noinline)) int bl_ask_lanes(__u32 lane_no)
{
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	__u32 zero = 0, l;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	__u64 scan, then;

	if (!lane || !cfg)
		return 0;
	for (l = 0; l < BL_LANES_MAX; l++) {
		__u32 key = l;
		struct bl_sw_lane *other = bpf_map_lookup_elem(&sw_lanes, &key);

		if (!other || l >= cfg->lanes)
			return 0;
		if (l == lane_no)
			continue;
		/*
		 * Pairs with bl_tick() and bl_expire_port() there. In whatever order these words
		 * are seen, scan_ns and freshest are equal only if both are of the same search.
		 */
		scan = BL_READ_ONCE(other->scan_ns);
		then = BL_READ_ONCE(other->now_ns);
		if (bl_lane_vouches(scan, BL_READ_ONCE(other->freshest), then, lane->now_ns,
				    cfg->dead_after_ns))
			lane->fresh_ns = lane->watch_ns;
		bl_follow_lane(lane_no, l);
		/*
		 * Beacons alone make a lane search, and its only input may send none. As bl_fence
		 * does; a limit that the other CPU writes at the same moment is as good, because it
		 * has read the clock for that.
		 */
		BL_WRITE_ONCE(other->limit_ns, 0);
	}
	return 0;
}

/**
 * bl_tick - reads the clock for this lane, and looks for silent inputs four times per dead_after. A
 * global function, as bl_raise_slowly(), for the same reason as bl_leaf_changed(). Returns the
 * lane's new limit_ns, or 0 if the clock cannot be used. Callers use that, since a command may set
 * limit_ns to 0 at any moment (bl_fence).
 */
__attribute__((noinline)) __u64 bl_tick(__u32 lane_no)
{
	struct bl_sw_lane *lane = bpf_map_lookup_elem(&sw_lanes, &lane_no);
	__u32 zero = 0;
	const struct bl_sw_cfg *cfg = bpf_map_lookup_elem(&sw_cfg, &zero);
	struct lane_scan s = { .lane_no = lane_no };
	struct bl_now now;
	__u64 limit;
	__u32 set;

	if (!lane || !cfg)
		return 0;
	s.nports = (__u16)cfg->nports;
	s.own = cfg->single_writer;
	obey_fences(lane, &s); /* Fences are applied even without a clock. */
	bl_read_clock(&now);
	if (!now.ok)
		return 0;
	lane->watch_ns = bl_watch_advance(lane->watch_ns, lane->now_ns, now.bus, cfg->beacon_ns);
	lane->now_ns = now.bus;
	limit = now.limit + cfg->ahead_ns;
	lane->limit_ns = limit;
	if (lane->watch_ns - lane->scan_ns > cfg->dead_after_ns / 4) {
		lane->scan_ns = lane->watch_ns;
		/*
		 * A set whose barrier stands still has its next beacon relayed at once. Without
		 * this, in a leaf-spine without traffic, a host's death took its ToR and every host
		 * on it along (6 of 8 times, 2026-11-21).
		 */
		for (set = 0; set < BL_SETS_MAX; set++)
			if (bl_stands_still(now.bus, lane->out[set].b, cfg->dead_after_ns))
				lane->relay_at[set] = BL_RELAY_STILL;
		prepare_scan(lane, cfg, BL_PORT_HOST, &lane->scan[0]);
		prepare_scan(lane, cfg, BL_PORT_UP, &lane->scan[1]);
		lane->freshest = 0;
		BL_LOOP(BL_SW_PORTS_MAX, expire_lanes, &s);
		lane->fresh_ns = lane->freshest;
		if (s.own && cfg->lanes > 1)
			bl_ask_lanes(lane_no);
	}
	return limit;
}

/**
 * bl_raise_slowly - raises the register of a lane that is not alone on its link, or not yet in the
 * minimum.
 * @lanes: the neighbour's lane in the low 8 bits, its number of lanes above them
 * @b, @c: the frame's barriers, bus time, ns
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
	if (!lane->watch_ns)
		lane->watch_ns = 1;
	if (!bl_reg_live(&regs->lane[lanes & (BL_LANES_MAX - 1)])) {
		floor = bl_lag_forbids(in, lane_no, b)
				? BL_TIME_NONE
				: bl_join_floor(greatest_given_barrier(lane, port->in_sets),
						cfg->dead_after_ns,
						bl_lag_limit(cfg->lag_max_ns, port->role));
	}
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

/**
 * bl_input_leaves - the host behind port @in has sent its last beacon, and is excluded. Since
 * everything that it has sent is acknowledged, C does not wait for it either, and that is no death
 * of the input. A host that is heard again joins as ever.
 */
__attribute__((noinline)) int bl_input_leaves(__u32 in, __u32 lane_no)
{
	struct bl_port_regs *regs = bpf_map_lookup_elem(&sw_regs, &in);
	const struct bl_sw_port *port = port_at(in);
	struct bl_pair leaf;
	int l;

	if (!regs || !port)
		return 0;
	for (l = 0; l < BL_LANES_MAX; l++)
		bl_reg_bye(&regs->lane[l]);
	bl_port_leaf(regs, &leaf);
	bl_leaf_changed(lane_no, port->in_sets, in, leaf.b, leaf.c);
	bl_count(in, BL_R_EXCLUDED);
	return 0;
}

/*
 * Extends the times of the header to 64 bits and refuses those that are further ahead than this
 * node's clock can vouch for. Returns BL_R_NONE, or the reason to drop the frame.
 */
static __always_inline enum bl_reason validate_times(struct run *r)
{
	struct bl_sw_lane *lane = r->lane;
	__u64 limit = BL_READ_ONCE(lane->limit_ns);

	/*
	 * Beacons read the clock, so that a lane's reference for bl_ext48() is never old; other
	 * frames only if a time is beyond the last limit.
	 */
	if (r->f.opcode == BL_OP_BEACON) {
		limit = bl_tick(r->lane_no);
		if (!limit)
			return BL_R_CLOCK_VOID;
	}
	r->b = bl_ext48(r->f.b, lane->now_ns);
	r->c = bl_ext48(r->f.c, lane->now_ns);
	r->ts = bl_ext48(r->f.ts, lane->now_ns);
	if (r->b <= limit && r->c <= limit && (!bl_op_timed(r->f.opcode) || r->ts <= limit))
		return BL_R_NONE;
	if (r->f.opcode != BL_OP_BEACON) {
		limit = bl_tick(r->lane_no);
		if (!limit)
			return BL_R_CLOCK_VOID;
		r->b = bl_ext48(r->f.b, lane->now_ns);
		r->c = bl_ext48(r->f.c, lane->now_ns);
		r->ts = bl_ext48(r->f.ts, lane->now_ns);
	}
	if (r->b > limit || r->c > limit)
		return BL_R_BARRIER_AHEAD;
	if (bl_op_timed(r->f.opcode) && r->ts > limit)
		return BL_R_TS_AHEAD;
	return BL_R_NONE;
}

/*
 * Raises the input's register, R_i := max(R_i, B), and what depends on it. A frame whose barriers
 * are not the neighbour's raises nothing, and is dropped unless they promise nothing. @at_once: see
 * update_leaf(). Returns BL_R_NONE, or the reason to drop the frame.
 */
static __always_inline enum bl_reason raise_register(struct run *r, const struct bl_sw_port *port,
						     int at_once)
{
	struct bl_port_regs *regs = regs_of(r->in);
	struct bl_reg *reg;
	__u32 res;

	if (!regs)
		return BL_R_NONE;
	reg = &regs->lane[r->f.lane & (BL_LANES_MAX - 1)];
	if (r->f.opcode == BL_OP_BEACON)
		bl_port_learn_hop(regs, r->f.lane, r->f.flags & BL_F_HOP);
	else if (__builtin_expect((r->f.flags & BL_F_HOP) != reg->hop, 0))
		return bl_hop_old(r->b, r->c, r->lane->now_ns) ? BL_R_NONE : BL_R_UNSWITCHED;
	if (auth_ignores(r->f.opcode))
		return BL_R_NONE;
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

/* Returns whether C waits for the lane that the frame came in on. */
static __always_inline int commit_waits_for_lane(const struct run *r)
{
	const struct bl_port_regs *regs = regs_of(r->in);

	return regs && regs->lane[r->f.lane & (BL_LANES_MAX - 1)].state & BL_REG_IN;
}

/*
 * Writes the output's barriers and this lane into header @h, and adjusts the UDP checksum if there
 * is one. If no input has joined yet, there is nothing to promise, and C stands still while it
 * waits for a failed input: then an old barrier is written, which promises nothing to anybody. It
 * must not be older than 39 h, or it would lie ahead after bl_ext48(). @hop: of the output, see
 * output_hop_flag().
 */
static __always_inline void rewrite_header(struct run *r, struct bl_hdr *h, struct udphdr *u,
					   __u64 out_b, __u64 out_c, __u32 hop)
{
	__u64 old = r->lane->now_ns - BL_TS_OLD;
	__u32 flags = hop | BL_F_LANES(r->cfg->lanes) | r->lane_no;
	__u64 b = bl_max64(out_b, old), c = bl_max64(out_c, old);

	if (u->check) {
		__u16 sum = bl_hdr_send_sum(h, b, c, flags, u->check);

		u->check = sum ? sum : 0xffff;
		return;
	}
	bl_hdr_send(h, b, c, flags);
}

#endif
