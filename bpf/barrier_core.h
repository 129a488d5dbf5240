/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Barrier aggregation: 1Pipe sections 4.1 and 4.2. Registers per (port, lane), a minimum tree per input set, monotone outputs, exclusion of silent
 * inputs and late joining. Used by the switch (many ports) and by the host (one link).
 *
 * Example, 4 leaves: registers 50, 40, 60 and one input not joined. Nodes: leaves 4..7 = 50 40 60 NONE, 2 = 40, 3 = 60, root 1 = 40. The
 * input at 40 rises to 70: leaf 5 = 70, node 2 = 50, root = 50: two of three levels changed. An input at 60 that rises to 80 changes node 3 and
 * stops there, since the root stays. That is why the cost does not grow with the number of ports: most rises end after a level or two.
 *
 * All times are 64-bit here; bl_ext48() made them so. One writer per lane: no locks (DESIGN 3.3).
 */
#ifndef BARLINE_BARRIER_CORE_H
#define BARLINE_BARRIER_CORE_H

#include "../maps/switch_abi.h"
#include "core.h"

#define BL_TREE_LEVELS 4 /* log4(BL_TREE_LEAVES) */
_Static_assert(1 << 2 * BL_TREE_LEVELS == BL_TREE_LEAVES, "levels and leaves belong together");

/* The lesser of two times below 2^63, without a branch: which of four inputs is behind is nothing that a CPU can predict. */
BL_CORE __u64 bl_lesser(__u64 a, __u64 b)
{
	__u64 d = a - b, less = (__u64)((__s64)d >> 63);

	__asm__("" : "+r"(less)); /* the compiler knows a minimum when it sees one, and would branch */
	return b + (d & less);
}

/* Siblings are found by offsets instead of indices: a third of the instructions of a level are address arithmetic otherwise */
#define BL_TREE_AT(node, at) ((struct bl_pair *)((char *)(node) + (at)))
#define BL_TREE_UP(at)	     ((at) >> 2 & (BL_TREE_LEAVES / 2 - 1) * sizeof(struct bl_pair))

/* bl_tree_set() where a barrier and its commit barrier differ, or did so until now */
BL_CORE void bl_tree_set_apart(struct bl_pair *node, __u64 at, __u64 b, __u64 c)
{
	struct bl_pair *n = BL_TREE_AT(node, at);
	int k;

	node->c -= (__u64)(b != c) - (n->b != n->c);
	n->b = b;
	n->c = c;
#pragma GCC unroll 4
	for (k = 0; k < BL_TREE_LEVELS; k++) {
		const struct bl_pair *four;

		if (at <= sizeof(*node))
			break;
		__asm__ volatile("" : "+r"(at)); /* the compiler would compute all four before the first, and keep them on the stack */
		four = BL_TREE_AT(node, at & ~(4 * sizeof(*node) - 1));
		at = BL_TREE_UP(at);
		n = BL_TREE_AT(node, at);
		b = bl_lesser(bl_lesser(four[0].b, four[1].b), bl_lesser(four[2].b, four[3].b));
		c = bl_lesser(bl_lesser(four[0].c, four[1].c), bl_lesser(four[2].c, four[3].c));
		if (b == n->b && c == n->c)
			break;
		n->b = b;
		n->c = c;
	}
}

/** bl_tree_as_one - whether bl_tree_set_one() may be used for these values: where all leaves have their two values equal, so have all nodes. */
BL_CORE int bl_tree_as_one(const struct bl_pair *node, __u64 b, __u64 c)
{
	return b == c && node->c == BL_LEAF_NONE;
}

/** bl_tree_set_one - bl_tree_set() where bl_tree_as_one(). Returns the new root, or 0 if it did not change. */
BL_CORE __u64 bl_tree_set_one(struct bl_pair *node, __u32 leaves, __u32 leaf, __u64 b)
{
	__u64 at = ((leaves + leaf) & (2 * BL_TREE_LEAVES - 1)) * sizeof(*node), was;
	struct bl_pair *n = BL_TREE_AT(node, at);
	int k;

	was = n->b;
	n->b = b;
	n->c = b;
#pragma GCC unroll 4
	for (k = 0; k < BL_TREE_LEVELS; k++) {
		__u64 others, up;

		if (at <= sizeof(*node))
			break;
		__asm__ volatile("" : "+r"(at)); /* the compiler would compute all four before the first, and keep them on the stack */
		others = bl_lesser(bl_lesser(BL_TREE_AT(node, at ^ sizeof(*n))->b, BL_TREE_AT(node, at ^ 2 * sizeof(*n))->b), BL_TREE_AT(node, at ^ 3 * sizeof(*n))->b);
		at = BL_TREE_UP(at);
		n = BL_TREE_AT(node, at);
		up = n->b;
		if (was > up && b >= up)
			return 0; /* another one holds the minimum, and still does */
		if (others < b)
			b = others;
		if (b == up)
			return 0;
		n->b = b;
		n->c = b;
		was = up;
	}
	return b;
}

/**
 * bl_tree_set - give a leaf its values and carry the change up as far as it goes.
 * @node: struct bl_tree's nodes. @leaves: power of four, at most BL_TREE_LEAVES. @leaf: below @leaves. @b, @c: below 2^63, or BL_LEAF_NONE.
 */
BL_CORE void bl_tree_set(struct bl_pair *node, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	if (bl_tree_as_one(node, b, c))
		bl_tree_set_one(node, leaves, leaf, b);
	else
		bl_tree_set_apart(node, ((leaves + leaf) & (2 * BL_TREE_LEAVES - 1)) * sizeof(*node), b, c);
}

/**
 * bl_out_advance - what a set's outputs may be given now: the root, but never less than before (1Pipe 4.2), and nothing new while no input is there.
 */
BL_CORE void bl_out_advance(struct bl_pair *out, const struct bl_pair *root)
{
	if (root->b != BL_LEAF_NONE && root->b > out->b)
		out->b = root->b;
	if (root->c != BL_LEAF_NONE && root->c > out->c)
		out->c = root->c;
}

/* results of bl_port_arrive and bl_port_expire, or-ed */
#define BL_A_LEAF     1u /* the port's leaf changed */
#define BL_A_OLD      2u /* the barrier was below its register */
#define BL_A_JOINED   4u /* the lane was taken into the minimum */
#define BL_A_EXCLUDED 8u /* a lane was excluded */

/**
 * bl_join_floor - @join_above for an input of outputs that were given @given. A new input is taken in below that, and the outputs stand still until it has passed them
 * (1Pipe 4.2: the switch suspends updates to B_new): a path over one more hop is always behind those that are shorter, so waiting until
 * it is ahead would be waiting for ever. But who is further behind than ten times @dead_after has a wrong clock, and does not stop the others.
 */
BL_CORE __u64 bl_join_floor(__u64 given, __u64 dead_after)
{
	return given > 10 * dead_after ? given - 10 * dead_after : 0;
}

/** bl_port_leaf - what the port contributes: the least of its live lanes; C also waits for dead ones. */
BL_CORE void bl_port_leaf(const struct bl_port_regs *p, struct bl_pair *leaf)
{
	int l;

	leaf->b = BL_LEAF_NONE;
	leaf->c = BL_LEAF_NONE;
	for (l = 0; l < BL_LANES_MAX; l++) {
		const struct bl_reg *r = &p->lane[l];

		if (r->state == BL_REG_LIVE)
			leaf->b = bl_min64(leaf->b, r->b);
		if ((r->state == BL_REG_LIVE || r->state == BL_REG_DEAD) && r->c)
			leaf->c = bl_min64(leaf->c, r->c);
	}
}

/* The way of a frame whose lane is not LIVE yet, or whose link has several lanes; out of the fast path. */
BL_CORE __u32 bl_port_join(struct bl_port_regs *p, struct bl_reg *r, __u32 lanes, __u64 watch, __u64 join_above)
{
	__u32 l, waiting = 0;

	if (r->state == BL_REG_LIVE)
		return 0;
	/* one that comes back from the dead stays DEAD until it joins: its C is waited for all the time */
	if (r->state == BL_REG_ABSENT)
		r->state = BL_REG_JOINING;
	/* a link that announces n lanes joins when each was heard once, or was given up by bl_port_expire() */
	for (l = 0; l < BL_LANES_MAX; l++) {
		if (l >= lanes || p->lane[l].state != BL_REG_ABSENT)
			continue;
		waiting = 1;
		if (!p->lane[l].heard_ns)
			p->lane[l].heard_ns = watch;
	}
	if (waiting || r->b <= join_above)
		return 0;
	r->state = BL_REG_LIVE;
	return BL_A_JOINED;
}

/**
 * bl_reg_raise - R := max(R, B) and the same for C; a B below R is ordinary and changes nothing. @lanes, @b, @c, @watch: see bl_port_arrive().
 * Returns BL_A_LEAF if the register rose, BL_A_OLD.
 */
BL_CORE __u32 bl_reg_raise(struct bl_reg *r, __u32 lanes, __u64 b, __u64 c, __u64 watch)
{
	__u32 res = 0;

	r->heard_ns = watch;
	r->lanes = lanes;
	if (b > r->b) {
		r->b = b;
		res = BL_A_LEAF;
	} else if (b < r->b) {
		res = BL_A_OLD;
	}
	if (c > r->c) {
		r->c = c;
		res |= BL_A_LEAF;
	}
	return res;
}

/** bl_reg_alone - the register is all that its port contributes: in the minimum, and its link has no other lane. */
BL_CORE int bl_reg_alone(const struct bl_reg *r, __u32 lanes)
{
	return r->state == BL_REG_LIVE && lanes == 1;
}

/**
 * bl_port_arrive - a frame with barriers came in on a lane of a port.
 * @p: the port's registers. @lane, @lanes: from the header. @b, @c: its barriers, extended. @watch: struct bl_sw_lane's watch time; not 0.
 * @join_above: the lane joins only above it: bl_join_floor() of the greatest barrier that any output fed by this port was given.
 * @leaf: set to the port's new leaf if BL_A_LEAF is returned.
 */
BL_CORE __u32 bl_port_arrive(struct bl_port_regs *p, __u32 lane, __u32 lanes, __u64 b, __u64 c, __u64 watch, __u64 join_above,
			     struct bl_pair *leaf)
{
	struct bl_reg *r = &p->lane[lane & (BL_LANES_MAX - 1)];
	__u32 res = bl_reg_raise(r, lanes, b, c, watch);

	if (bl_reg_alone(r, lanes)) {
		leaf->b = r->b;
		leaf->c = r->c;
		return res;
	}
	if (bl_port_join(p, r, lanes, watch, join_above))
		res |= BL_A_JOINED | BL_A_LEAF;
	bl_port_leaf(p, leaf);
	return res;
}

/**
 * bl_port_expire - exclude lanes of a port that were silent for more than @dead_after of watch time.
 */
BL_CORE __u32 bl_port_expire(struct bl_port_regs *p, __u64 watch, __u64 dead_after, struct bl_pair *leaf)
{
	__u32 res = 0;
	int l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		struct bl_reg *r = &p->lane[l];

		if (!r->heard_ns || watch - r->heard_ns <= dead_after)
			continue;
		if (r->state == BL_REG_LIVE) {
			r->state = BL_REG_DEAD;
			res |= BL_A_LEAF | BL_A_EXCLUDED;
		} else if (r->state == BL_REG_ABSENT) {
			r->state = BL_REG_DEAD; /* announced by its neighbours but never heard: stop waiting for it */
		}
	}
	if (res & BL_A_LEAF)
		bl_port_leaf(p, leaf);
	return res;
}

/**
 * bl_watch_advance - watch time after the clock went from @before to @now: see struct bl_sw_lane. Starts at 1, since 0 means never.
 */
BL_CORE __u64 bl_watch_advance(__u64 watch, __u64 before, __u64 now, __u64 beacon_ns)
{
	__u64 d = now > before ? now - before : 0;

	if (!watch)
		return 1;
	return watch + bl_min64(d, beacon_ns);
}

/**
 * bl_relay_next - the barrier above which the next relay is due, after one of @out: that of the next common tick.
 *
 * A relay is due when the minimum has passed a tick (a multiple of the beacon interval), not when it has risen by some amount: data raises registers between
 * the ticks, and a relay for that would leave the rise to the tick itself too small to be worth one. With the rule "half an interval" a message sent in
 * the second half of an interval waited for the wave after the next (measured 2026-11: p50 133 us at an interval of 100). A 32nd of an interval is
 * forgiven to hosts whose clock reading comes just before the tick.
 */
BL_CORE __u64 bl_relay_next(__u64 out, __u64 beacon_ns)
{
	__u64 slack = beacon_ns / 32;

	return ((out + slack) / beacon_ns + 1) * beacon_ns - slack - 1;
}

/** bl_above - 1 if @a > @b, else 0, for times. By the sign bit: eight comparisons in a row would double the verifier's paths with every branch. */
BL_CORE __u64 bl_above(__u64 a, __u64 b)
{
	return (b - a) >> 63;
}

#endif
