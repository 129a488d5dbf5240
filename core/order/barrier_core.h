/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Barrier aggregation: 1Pipe sections 4.1 and 4.2. Registers per (port, lane), a minimum tree per
 * input set, monotone outputs, exclusion of silent inputs and late joining. Used by the switch
 * (many ports) and by the host (one link).
 *
 * Example, 4 leaves: registers 50, 40, 60 and one input not joined. Leaves are keys 4..7 = 50 40 60
 * NONE. Of 50 and 40 the greater stays in key 2, of 60 and NONE in key 3 = NONE; 40 and 60 went up,
 * 60 stays in key 1, and 40 is the minimum, key 0. The input at 40 rises to 70: it leaves 70 in key
 * 2 and takes the 50 from there up, finds 60 in key 1, which is greater, and ends in key 0 = 50. An
 * input at 60 that rises to 80 finds itself, 60, in key 1: the 80 stays there and the minimum is
 * what it was. Most rises end so, after a level or two, and those that do not take a comparison or
 * two per level: that is why the cost hardly grows with the number of ports.
 *
 * An input that dies, example: port 3, C = 900, is silent: B goes on without it, C does not: its
 * register is HELD at 900, death 8 of this port. It comes back with C = 2000: it is in B's minimum
 * at once, and C stands at 900 still. RESUME of death 8: its register is not HELD any more and
 * rises with the next frame. Had it stayed silent, it would have left C's minimum with that.
 *
 * All times are 64-bit here; bl_ext48() made them so. One writer per lane: no locks (DESIGN 3.3).
 */
#ifndef BARLINE_BARRIER_CORE_H
#define BARLINE_BARRIER_CORE_H

#include "maps/fence_abi.h"
#include "maps/switch_abi.h"
#include "core/core.h"

#define BL_TREE_LEVELS 8 /* log2(BL_TREE_LEAVES) */
_Static_assert(1 << BL_TREE_LEVELS == BL_TREE_LEAVES, "levels and leaves belong together");
/*
 * changes of a set for which its two trees are kept after the last C that was not its B: to copy
 * one is to write 4 KiB
 */
#define BL_TREE_STAY 4096

/*
 * Offsets instead of indices: a third of the instructions of a level are address arithmetic
 * otherwise.
 */
#define BL_TREE_AT(key, at)   ((__u64 *)((char *)(key) + (at)))
#define BL_TREE_LEAF(n, leaf) ((((n) + (leaf)) & (2 * BL_TREE_LEAVES - 1)) * sizeof(__u64))

/**
 * bl_tree_rise - a leaf rises to @to, which is not below what it is. @key: struct bl_tree's keys.
 * @leaves: power of two, at most BL_TREE_LEAVES. @leaf: below @leaves.
 *
 * Up to where the old value was left as the greater of two: what comes from below takes its place
 * there, and what is above never knew of it. Of two that are equal it does not matter which one was
 * left. Key 0 is above the last pair and ends every way.
 */
BL_CORE void bl_tree_rise(__u64 *key, __u32 leaves, __u32 leaf, __u64 to)
{
	__u64 at = BL_TREE_LEAF(leaves, leaf), *n = BL_TREE_AT(key, at), was = *n;
	int k;

	*n = to;
#pragma GCC unroll 9
	for (k = 0; k <= BL_TREE_LEVELS; k++) {
		__u64 left, d, less;

		/*
		 * the compiler would compute all nine before the first, and keep them on the stack
		 */
		__asm__ volatile("" : "+r"(at));
		at = at >> 1 & (BL_TREE_LEAVES - 1) * sizeof(*key);
		n = BL_TREE_AT(key, at);
		left = *n;
		if (left == was) {
			*n = to;
			return;
		}
		/*
		 * the greater stays, the lesser goes on: by masks as bl_mask_below() has them,
		 * since which is which is nothing that a CPU can predict
		 */
		d = left - to;
		less = (__u64)((__s64)d >> 63);
		BL_OPAQUE(less);
		less &= d;
		*n = left - less;
		to += less;
	}
}

/*
 * All pairs anew from the leaves: least of all first, then what each pair leaves behind. For a leaf
 * that falls, as one does when its input joins: once in a port's life. Always as many rounds, since
 * the verifier would follow each number of leaves on its own.
 */
BL_CORE void bl_tree_pair(__u64 *key, __u32 leaves)
{
	__u64 i, used;

	for (i = BL_TREE_LEAVES - 1; i; i--) {
		used = bl_mask_below(i, leaves);
		BL_OPAQUE(used);
		key[i] = (bl_min64(key[2 * i], key[2 * i + 1]) & used) | (key[i] & ~used);
	}
	key[0] = key[1];
	for (i = 1; i < BL_TREE_LEAVES; i++) {
		used = bl_mask_below(i, leaves);
		BL_OPAQUE(used);
		key[i] = (bl_max64(key[2 * i], key[2 * i + 1]) & used) | (key[i] & ~used);
	}
}

/** bl_tree_clear - no input has joined. */
BL_CORE void bl_tree_clear(struct bl_tree *t)
{
	__u32 i;

	for (i = 0; i < 2 * BL_TREE_LEAVES; i++)
		t->b[i] = t->c[i] = BL_LEAF_NONE;
	t->apart = t->two = 0;
}

/**
 * bl_tree_rises - whether bl_tree_climb() will do: no key falls, and @c needs no tree of its own
 * that is not kept.
 */
BL_CORE int bl_tree_rises(const struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	__u64 at = BL_TREE_LEAF(leaves, leaf);

	return b >= *BL_TREE_AT(t->b, at) && (t->two ? c >= *BL_TREE_AT(t->c, at) : b == c);
}

/* While @two: count who is apart, and one tree is enough again some time after nobody is. */
BL_CORE void bl_tree_apart(struct bl_tree *t, __u64 at, __u64 b, __u64 c)
{
	t->apart += (__u32)(b != c) - (__u32)(*BL_TREE_AT(t->b, at) != *BL_TREE_AT(t->c, at));
	t->two = t->apart ? BL_TREE_STAY : t->two - 1;
}

/** bl_tree_climb - bl_tree_set() where bl_tree_rises(). */
BL_CORE void bl_tree_climb(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	if (t->two) {
		bl_tree_apart(t, BL_TREE_LEAF(leaves, leaf), b, c);
		bl_tree_rise(t->c, leaves, leaf, c);
	}
	bl_tree_rise(t->b, leaves, leaf, b);
}

/** bl_tree_anew - bl_tree_set() in every case, at the price of looking at all leaves. */
BL_CORE void bl_tree_anew(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	__u64 at = BL_TREE_LEAF(leaves, leaf);
	__u32 i;

	if (b != c && !t->two) {
		for (i = 0; i < 2 * BL_TREE_LEAVES; i++)
			BL_WRITE_ONCE(t->c[i], t->b[i]); /* a call of memcpy() otherwise, which a
							    BPF program has not */
		t->apart = 0;
		t->two = BL_TREE_STAY;
	}
	if (t->two)
		bl_tree_apart(t, at, b, c);
	*BL_TREE_AT(t->b, at) = b;
	*BL_TREE_AT(t->c, at) = c;
	bl_tree_pair(t->b, leaves);
	bl_tree_pair(t->c, leaves);
}

/**
 * bl_tree_set - give a leaf its values and carry the change up as far as it goes. @leaves: power of
 * two, at most BL_TREE_LEAVES. @leaf: below @leaves.
 *
 * While nobody sends reliably, every C is its B, and one tree says both.
 */
BL_CORE void bl_tree_set(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	if (bl_tree_rises(t, leaves, leaf, b, c))
		bl_tree_climb(t, leaves, leaf, b, c);
	else
		bl_tree_anew(t, leaves, leaf, b, c);
}

/** bl_tree_least - the least B and the least C of all leaves. */
BL_CORE struct bl_pair bl_tree_least(const struct bl_tree *t)
{
	struct bl_pair root = { .b = t->b[0], .c = t->two ? t->c[0] : t->b[0] };

	return root;
}

/**
 * bl_out_advance - what a set's outputs may be given now: the root, but never less than before
 * (1Pipe 4.2), and nothing new while no input is there.
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
 * bl_join_floor - @join_above for an input of outputs that were given @given. A new input is taken
 * in below that, and the outputs stand still until it has passed them (1Pipe 4.2: the switch
 * suspends updates to B_new): a path over one more hop is always behind those that are shorter, so
 * waiting until it is ahead would be waiting for ever. But who is further behind than ten times
 * @dead_after has a wrong clock, and does not stop the others.
 */
BL_CORE __u64 bl_join_floor(__u64 given, __u64 dead_after)
{
	return given > 10 * dead_after ? given - 10 * dead_after : 0;
}

/** bl_reg_live - the register holds B's minimum back. */
BL_CORE int bl_reg_live(const struct bl_reg *r)
{
	return (__u8)r->state == BL_REG_LIVE;
}

/**
 * bl_port_leaf - what the port contributes: the least B of its live lanes, the least C of those
 * that are IN, or awaited.
 */
BL_CORE void bl_port_leaf(const struct bl_port_regs *p, struct bl_pair *leaf)
{
	int l;

	leaf->b = BL_LEAF_NONE;
	leaf->c = BL_LEAF_NONE;
	for (l = 0; l < BL_LANES_MAX; l++) {
		const struct bl_reg *r = &p->lane[l];

		if (bl_reg_live(r))
			leaf->b = bl_min64(leaf->b, r->b);
		if (r->state & (BL_REG_IN | BL_REG_AWAITED) && r->c)
			leaf->c = bl_min64(leaf->c, r->c);
	}
}

/** bl_port_flags - BL_REG_IN if any lane is IN; BL_REG_HELD if those that are stand still. */
BL_CORE __u32 bl_port_flags(const struct bl_port_regs *p)
{
	__u32 l, any = 0;

	for (l = 0; l < BL_LANES_MAX; l++)
		any |= p->lane[l].state;
	return any & (BL_REG_IN | BL_REG_HELD);
}

/**
 * bl_port_await - C waits for the port at @c before anybody was heard there; a register that is
 * new.
 */
BL_CORE void bl_port_await(struct bl_port_regs *p, __u64 c)
{
	p->lane[0].state |= BL_REG_AWAITED;
	p->lane[0].c = c;
}

/** bl_port_awaited - whether C waits for somebody who was not heard yet. */
BL_CORE int bl_port_awaited(const struct bl_port_regs *p)
{
	return (p->lane[0].state & BL_REG_AWAITED) != 0;
}

/* Nobody is awaited any more: one of the lanes has joined, or nobody is there. */
BL_CORE void bl_port_await_end(struct bl_port_regs *p)
{
	struct bl_reg *r = &p->lane[0];

	r->state &= ~BL_REG_AWAITED;
	if (!(r->state & BL_REG_IN) && !bl_reg_live(r))
		r->c = 0;
}

/**
 * bl_port_learn_hop - a beacon came: what the neighbour writes as the hop. One comparison but for
 * the first time.
 */
BL_CORE void bl_port_learn_hop(struct bl_port_regs *p, __u32 lane, __u8 hop)
{
	__u32 l;

	if (p->lane[lane & (BL_LANES_MAX - 1)].hop == hop)
		return;
	for (l = 0; l < BL_LANES_MAX; l++)
		p->lane[l].hop = hop;
}

/*
 * Begin to stand still: death number @death of this port. The number first: who sees HELD from
 * outside, and reads the number then, must not find that of the death before. Pairs with
 * bl_fence_inputs().
 */
BL_CORE void bl_port_freeze(struct bl_port_regs *p, struct bl_life *life, __u32 death)
{
	__u32 l;

	BL_WRITE_ONCE(life->death, death);
	BL_BARRIER();
	for (l = 0; l < BL_LANES_MAX; l++)
		if (p->lane[l].state & BL_REG_IN)
			p->lane[l].state |= BL_REG_HELD;
}

/*
 * Stand still no more. Lanes that are not heard, and those of a port that may not (@drop), leave
 * C's minimum; the others take what comes next.
 */
BL_CORE void bl_port_resume(struct bl_port_regs *p, __u32 drop)
{
	__u32 l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		struct bl_reg *r = &p->lane[l];

		if (r->state & BL_REG_HELD)
			r->state &= drop || !bl_reg_live(r) ? ~(BL_REG_HELD | BL_REG_IN)
							    : ~BL_REG_HELD;
	}
}

/* Live lanes are in C's minimum, and stand still with the others. */
BL_CORE void bl_port_enter_commit(struct bl_port_regs *p)
{
	__u32 l, held = bl_port_flags(p) & BL_REG_HELD;

	for (l = 0; l < BL_LANES_MAX; l++)
		if (bl_reg_live(&p->lane[l]))
			p->lane[l].state |= BL_REG_IN | held;
}

/** bl_slot_death - the last death that the port has had or is to have. */
BL_CORE __u32 bl_slot_death(const struct bl_fence_slot *o, const struct bl_life *life)
{
	__u32 death = BL_READ_ONCE(life->death);

	return (__s32)(o->freeze - death) > 0 ? o->freeze : death;
}

/**
 * bl_slot_freeze - order that the port have died @death times. Returns 1, or 0 if it has, or was
 * ordered to.
 */
BL_CORE int bl_slot_freeze(struct bl_fence_slot *o, const struct bl_life *life, __u32 death)
{
	if ((__s32)(death - bl_slot_death(o, life)) <= 0)
		return 0;
	o->freeze = death;
	o->shut = o->barred;
	return 1;
}

/**
 * bl_slot_resume - order that what stands still since @death does so no more. Returns 1, 0 if that
 * was ordered before, or -1: it is not the port's last death.
 */
BL_CORE int bl_slot_resume(struct bl_fence_slot *o, const struct bl_life *life, __u32 death)
{
	if (death != bl_slot_death(o, life))
		return -1;
	if (o->resume == death)
		return 0;
	o->resume = death;
	o->drop = o->barred;
	return 1;
}

/* Have the port die until it has died @death times. */
BL_CORE void bl_port_reach_death(struct bl_port_regs *p, struct bl_life *life,
				 const struct bl_fence_slot *o, __u32 death)
{
	if ((__s32)(death - life->death) <= 0)
		return;
	if (!o->shut)
		bl_port_enter_commit(p);
	bl_port_freeze(p, life, death);
}

/**
 * bl_port_apply_fence - make the port as its slot wants it to be. The slot may be what several
 * orders made of it since the last time: it is resumed from the last death for which that was said,
 * though it has not had it yet, and then stands still since the last that was ordered. Nothing
 * happens the second time. Returns BL_A_LEAF and the new leaf, or 0.
 */
BL_CORE __u32 bl_port_apply_fence(struct bl_port_regs *p, struct bl_life *life,
				  const struct bl_fence_slot *o, struct bl_pair *leaf)
{
	struct bl_pair was;

	bl_port_leaf(p, &was);
	bl_port_reach_death(p, life, o, o->resume);
	if (o->resume == life->death)
		bl_port_resume(p, o->drop);
	bl_port_reach_death(p, life, o, o->freeze);
	if (!o->barred)
		bl_port_enter_commit(p);
	if (o->empty && bl_port_awaited(p))
		bl_port_await_end(p);
	bl_port_leaf(p, leaf);
	return leaf->b != was.b || leaf->c != was.c ? BL_A_LEAF : 0;
}

/*
 * The way of a frame whose lane is not LIVE yet, or whose link has several lanes; out of the fast
 * path.
 */
BL_CORE __u32 bl_port_join(struct bl_port_regs *p, struct bl_reg *r, __u32 lanes, __u64 watch,
			   __u64 join_above, __u32 barred)
{
	__u32 l, waiting = 0;

	if (bl_reg_live(r))
		return 0;
	/*
	 * one that comes back from the dead stays DEAD until it joins: its C is waited for all the
	 * time
	 */
	if ((__u8)r->state == BL_REG_ABSENT)
		r->state |= BL_REG_JOINING;
	/*
	 * a link that announces n lanes joins when each was heard once, or was given up by
	 * bl_port_expire()
	 */
	for (l = 0; l < BL_LANES_MAX; l++) {
		if (l >= lanes || (__u8)p->lane[l].state != BL_REG_ABSENT)
			continue;
		waiting = 1;
		if (!p->lane[l].heard_ns)
			p->lane[l].heard_ns = watch;
	}
	if (waiting || r->b <= join_above)
		return 0;
	r->state = (r->state & ~0xffu) | BL_REG_LIVE;
	if (bl_port_awaited(p))
		bl_port_await_end(p);
	if (!barred)
		r->state |= BL_REG_IN | (bl_port_flags(p) & BL_REG_HELD);
	return BL_A_JOINED;
}

/**
 * bl_reg_raise - R := max(R, B) and the same for C; a B below R is ordinary and changes nothing.
 * @lanes, @b, @c, @watch: see bl_port_arrive(). Returns BL_A_LEAF if the register rose, BL_A_OLD.
 */
BL_CORE __u32 bl_reg_raise(struct bl_reg *r, __u32 lanes, __u64 b, __u64 c, __u64 watch)
{
	__u32 res = 0;

	r->heard_ns = watch;
	r->lanes = (__u16)lanes;
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

/**
 * bl_stands_still - a set's B has stood still for so long that its outputs are to be told so: a
 * quarter of @dead_after, of which the next search for silent inputs is at most another quarter
 * away. Somebody is silent and not excluded yet; neighbours that hear nothing from here for that
 * time would take this switch, and all behind it, for dead as well. @b 0: no input has joined,
 * nothing is to be told.
 */
BL_CORE int bl_stands_still(__u64 now, __u64 b, __u64 dead_after)
{
	return b && now > b + dead_after / 4;
}

/**
 * bl_reg_alone - the register is all that its port contributes: in both minima, free to rise, and
 * its link has no other lane. One comparison: most frames come this way.
 */
BL_CORE int bl_reg_alone(const struct bl_reg *r, __u32 lanes)
{
	return r->state == (BL_REG_LIVE | BL_REG_IN) && lanes == 1;
}

/**
 * bl_port_arrive - a frame with barriers came in on a lane of a port.
 * @p: the port's registers. @lane, @lanes: from the header. @b, @c: its barriers, extended. @watch:
 * struct bl_sw_lane's watch time; not 0.
 * @join_above: the lane joins only above it: bl_join_floor() of the greatest barrier that any
 * output fed by this port was given.
 * @barred: it does not join C.
 * @leaf: set to the port's new leaf if BL_A_LEAF is returned.
 */
BL_CORE __u32 bl_port_arrive(struct bl_port_regs *p, __u32 lane, __u32 lanes, __u64 b, __u64 c,
			     __u64 watch, __u64 join_above, __u32 barred, struct bl_pair *leaf)
{
	struct bl_reg *r = &p->lane[lane & (BL_LANES_MAX - 1)];
	__u32 res = bl_reg_raise(r, lanes, b, r->state & BL_REG_HELD ? 0 : c, watch);

	if (bl_reg_alone(r, lanes)) {
		leaf->b = r->b;
		leaf->c = r->c;
		return res;
	}
	if (bl_port_join(p, r, lanes, watch, join_above, barred))
		res |= BL_A_JOINED | BL_A_LEAF;
	bl_port_leaf(p, leaf);
	return res;
}

/**
 * bl_port_expire - exclude lanes of a port that were silent for more than @dead_after of watch
 * time. If one of them is in C's minimum the port begins to stand still, all lanes of it: a death,
 * unless it does already.
 */
BL_CORE __u32 bl_port_expire(struct bl_port_regs *p, __u64 watch, __u64 dead_after,
			     struct bl_life *life, struct bl_pair *leaf)
{
	__u32 res = 0, flags = 0;
	int l;

	for (l = 0; l < BL_LANES_MAX; l++) {
		struct bl_reg *r = &p->lane[l];

		if (!r->heard_ns || watch - r->heard_ns <= dead_after)
			continue;
		if (bl_reg_live(r)) {
			flags |= r->state;
			r->state = (r->state & ~0xffu) | BL_REG_DEAD;
			res |= BL_A_LEAF | BL_A_EXCLUDED;
		} else if ((__u8)r->state == BL_REG_ABSENT) {
			/* announced by its neighbours but never heard: stop waiting for it */
			r->state |= BL_REG_DEAD;
		}
	}
	if ((flags & (BL_REG_IN | BL_REG_HELD)) == BL_REG_IN)
		bl_port_freeze(p, life, life->death + 1);
	if (res & BL_A_LEAF)
		bl_port_leaf(p, leaf);
	return res;
}

/**
 * bl_watch_advance - watch time after the clock went from @before to @now: see struct bl_sw_lane.
 * Starts at 1, since 0 means never.
 */
BL_CORE __u64 bl_watch_advance(__u64 watch, __u64 before, __u64 now, __u64 beacon_ns)
{
	__u64 d = now > before ? now - before : 0;

	if (!watch)
		return 1;
	return watch + bl_min64(d, beacon_ns);
}

/**
 * bl_relay_next - the barrier above which the next relay is due, after one of @out: that of the
 * next common tick.
 *
 * A relay is due when the minimum has passed a tick (a multiple of the beacon interval), not when
 * it has risen by some amount: data raises registers between the ticks, and a relay for that would
 * leave the rise to the tick itself too small to be worth one. With the rule "half an interval" a
 * message sent in the second half of an interval waited for the wave after the next (measured
 * 2026-11: p50 133 us at an interval of 100). A 32nd of an interval is forgiven to hosts whose
 * clock reading comes just before the tick.
 */
BL_CORE __u64 bl_relay_next(__u64 out, __u64 beacon_ns)
{
	__u64 slack = beacon_ns / 32;

	return ((out + slack) / beacon_ns + 1) * beacon_ns - slack - 1;
}

/**
 * bl_commit_behind - the C above which a beacon has to be relayed at once: that of @out where it is
 * behind its B, because somebody has not committed yet; else BL_LEAF_NONE. Where nobody sends
 * reliably, C is B, and waits for the tick with it.
 */
BL_CORE __u64 bl_commit_behind(const struct bl_pair *out)
{
	__u64 not = (__u64)((__s64)(out->c - out->b) >> 63); /* all ones if it is behind */

	BL_OPAQUE(not );
	return (out->c & not ) | (BL_LEAF_NONE & ~not );
}

/**
 * bl_time_above - 1 if @a > @b, else 0, for times. By the sign bit: eight comparisons in a row
 * would double the verifier's paths with every branch.
 */
BL_CORE __u64 bl_time_above(__u64 a, __u64 b)
{
	return (b - a) >> 63;
}

/**
 * bl_commit_news - bl_commit_behind(), or 0, which any C is above, where @relay_at (struct
 * bl_sw_lane) says that the next beacon is relayed, news or not.
 */
BL_CORE __u64 bl_commit_news(const struct bl_pair *out, __u64 relay_at)
{
	/* 1 only for BL_RELAY_STILL: again no comparison, and little stack */
	return bl_commit_behind(out) & ((bl_time_above(BL_RELAY_STILL + 1, relay_at) ^
					 bl_time_above(BL_RELAY_STILL, relay_at)) -
					1);
}

#endif
