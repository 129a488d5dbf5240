/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Barrier aggregation (1Pipe sections 4.1 and 4.2): registers per (port, lane), one minimum tree
 * per input set, outputs that never decrease, exclusion of silent inputs, and late joining. The
 * switch uses it with many ports and the host with one link.
 *
 * Example, 4 leaves: registers 50, 40 and 60, and one input that has not joined. The leaves are
 * keys 4 to 7 = 50, 40, 60, NONE. Of 50 and 40 the greater stays in key 2, and of 60 and NONE the
 * greater, NONE, stays in key 3. 40 and 60 move up: 60 stays in key 1, and 40 is the minimum, key
 * 0. Now the input at 40 rises to 70. It leaves 70 in key 2 and moves up with the 50 from there,
 * finds 60 in key 1, which is greater, and ends in key 0 = 50. An input at 60 that rises to 80
 * finds its own old value, 60, in key 1: 80 stays there, and the minimum does not change. Most
 * rises end like this after a level or two, and the others take one or two comparisons per level,
 * so the cost hardly grows with the number of ports.
 *
 * Example, an input that dies: port 3 with C = 900 falls silent. B goes on without it, but C does
 * not: its register is HELD at 900, and this is death 8 of the port. The port comes back with C =
 * 2000: it joins B's minimum at once, and C stays at 900. RESUME of death 8 clears HELD, and the
 * register rises with the next frame. If the port had stayed silent, RESUME would have removed it
 * from C's minimum.
 *
 * All times are 64 bits wide here; bl_ext48() has extended them. Each lane has a single writer, so
 * there are no locks. This file reads no clock and no map.
 */
#ifndef BARLINE_BARRIER_CORE_H
#define BARLINE_BARRIER_CORE_H

#include "maps/fence_abi.h"
#include "maps/switch_abi.h"
#include "core/core.h"

#define BL_TREE_LEVELS 8 /* log2(BL_TREE_LEAVES) */
_Static_assert(1 << BL_TREE_LEVELS == BL_TREE_LEAVES, "levels and leaves belong together");
/*
 * Number of changes of a set for which its two trees are kept after the last C that differed from
 * its B, since copying a tree writes 4 KiB.
 */
#define BL_TREE_STAY 4096

/*
 * Offsets instead of indices: otherwise a third of the instructions of a level are address
 * arithmetic.
 */
#define BL_TREE_AT(key, at)   ((__u64 *)((char *)(key) + (at)))
#define BL_TREE_LEAF(n, leaf) ((((n) + (leaf)) & (2 * BL_TREE_LEAVES - 1)) * sizeof(__u64))

/**
 * bl_tree_rise - raise a leaf and carry the change up.
 * @key: keys of struct bl_tree.
 * @leaves: leaves in use; a power of two, at most BL_TREE_LEAVES.
 * @leaf: below @leaves.
 * @to: the new value, which is not below the old one.
 *
 * The walk ends where the old value was left behind as the greater of two: the value from below
 * takes its place there, and nothing above ever knew of it. Of two equal values it does not matter
 * which one was left. Key 0 lies above the last pair and ends every walk.
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
		 * Otherwise the compiler computes all nine offsets before the first use and keeps
		 * them on the stack.
		 */
		__asm__ volatile("" : "+r"(at));
		at = at >> 1 & (BL_TREE_LEAVES - 1) * sizeof(*key);
		n = BL_TREE_AT(key, at);
		left = *n;
		/*
		 * Unlikely, or the compiler takes the upper levels for code that seldom runs, and
		 * keeps their variables on the stack.
		 */
		if (__builtin_expect(left == was, 0)) {
			*n = to;
			return;
		}
		/*
		 * The greater stays and the lesser moves up. With masks as in bl_mask_below(),
		 * since a CPU cannot predict which one is greater.
		 */
		d = left - to;
		less = (__u64)((__s64)d >> 63);
		BL_OPAQUE(less);
		less &= d;
		*n = left - less;
		to += less;
	}
}

/** struct bl_tree_anew - the tree that bl_tree_anew() recomputes. */
struct bl_tree_anew {
	struct bl_tree *t;
	__u64 *key;   /* the tree that is being paired: t->b or t->c */
	__u32 leaves; /* leaves in use */
};

/* Round @k of making t->c a copy of t->b. */
static __attribute__((unused)) long bl_tree_copy_key(__u32 k, struct bl_tree_anew *a)
{
	k &= 2 * BL_TREE_LEAVES - 1;
	a->t->c[k] = a->t->b[k];
	return 0;
}

/* Round @k from the last pair to the first: key i becomes the lesser of the keys 2i and 2i + 1. */
static __attribute__((unused)) long bl_tree_pair_least(__u32 k, struct bl_tree_anew *a)
{
	__u32 i = (BL_TREE_LEAVES - 1 - k) & (BL_TREE_LEAVES - 1);
	__u64 used = bl_mask_below(i, a->leaves);

	BL_OPAQUE(used);
	a->key[i] = (bl_min64(a->key[2 * i], a->key[2 * i + 1]) & used) | (a->key[i] & ~used);
	return 0;
}

/* Round @k from the first pair to the last: key i becomes what the pair leaves behind. */
static __attribute__((unused)) long bl_tree_pair_greatest(__u32 k, struct bl_tree_anew *a)
{
	__u32 i = (k + 1) & (BL_TREE_LEAVES - 1);
	__u64 used = bl_mask_below(i, a->leaves);

	BL_OPAQUE(used);
	if (i)
		a->key[i] = (bl_max64(a->key[2 * i], a->key[2 * i + 1]) & used) |
			    (a->key[i] & ~used);
	return 0;
}

/*
 * Recomputes all pairs from the leaves: first the minima, then what each pair leaves behind. Used
 * for a leaf that falls, as one does when its input joins, once in a port's life: therefore a
 * BL_LOOP().
 */
BL_CORE void bl_tree_pair(struct bl_tree_anew *a)
{
	BL_LOOP(BL_TREE_LEAVES - 1, bl_tree_pair_least, a);
	a->key[0] = a->key[1];
	BL_LOOP(BL_TREE_LEAVES - 1, bl_tree_pair_greatest, a);
}

/** bl_tree_clear - set a tree to its initial state, in which no input has joined. */
BL_CORE void bl_tree_clear(struct bl_tree *t)
{
	__u32 i;

	for (i = 0; i < 2 * BL_TREE_LEAVES; i++)
		t->b[i] = t->c[i] = BL_LEAF_NONE;
	t->apart = t->two = 0;
}

/**
 * bl_tree_rises - whether bl_tree_climb() is sufficient: no key falls, and @c needs no tree of its
 * own that does not exist yet.
 */
BL_CORE int bl_tree_rises(const struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	__u64 at = BL_TREE_LEAF(leaves, leaf);

	return b >= *BL_TREE_AT(t->b, at) && (t->two ? c >= *BL_TREE_AT(t->c, at) : b == c);
}

/*
 * While @two is set: counts the leaves whose keys differ. Some time after the last one, a single
 * tree suffices again.
 */
BL_CORE void bl_tree_apart(struct bl_tree *t, __u64 at, __u64 b, __u64 c)
{
	t->apart += (__u32)(b != c) - (__u32)(*BL_TREE_AT(t->b, at) != *BL_TREE_AT(t->c, at));
	t->two = t->apart ? BL_TREE_STAY : t->two - 1;
}

/** bl_tree_climb - bl_tree_set() for the case of bl_tree_rises(). */
BL_CORE void bl_tree_climb(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	if (t->two) {
		bl_tree_apart(t, BL_TREE_LEAF(leaves, leaf), b, c);
		bl_tree_rise(t->c, leaves, leaf, c);
	}
	bl_tree_rise(t->b, leaves, leaf, b);
}

/** bl_tree_anew - bl_tree_set() for every case, at the cost of visiting all leaves. */
BL_CORE void bl_tree_anew(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	struct bl_tree_anew a = { .t = t, .leaves = leaves };
	__u64 at = BL_TREE_LEAF(leaves, leaf);

	if (b != c && !t->two) {
		BL_LOOP(2 * BL_TREE_LEAVES, bl_tree_copy_key, &a);
		t->apart = 0;
		t->two = BL_TREE_STAY;
	}
	if (t->two)
		bl_tree_apart(t, at, b, c);
	*BL_TREE_AT(t->b, at) = b;
	*BL_TREE_AT(t->c, at) = c;
	a.key = t->b;
	bl_tree_pair(&a);
	a.key = t->c;
	bl_tree_pair(&a);
}

/**
 * bl_tree_set - give a leaf its two values and carry the change up.
 * @leaves: leaves in use; a power of two, at most BL_TREE_LEAVES.
 * @leaf: below @leaves.
 *
 * While no host sends reliably, every C equals its B, and one tree holds both.
 */
BL_CORE void bl_tree_set(struct bl_tree *t, __u32 leaves, __u32 leaf, __u64 b, __u64 c)
{
	if (bl_tree_rises(t, leaves, leaf, b, c))
		bl_tree_climb(t, leaves, leaf, b, c);
	else
		bl_tree_anew(t, leaves, leaf, b, c);
}

/** bl_tree_least - the least B and the least C of all leaves; BL_LEAF_NONE without any. */
BL_CORE struct bl_pair bl_tree_least(const struct bl_tree *t)
{
	struct bl_pair root = { .b = t->b[0], .c = t->two ? t->c[0] : t->b[0] };

	return root;
}

/**
 * bl_out_advance - raise @out, what a set's outputs may be given, to the root of its tree: never
 * less than before (1Pipe section 4.2), and nothing new while no input has joined.
 */
BL_CORE void bl_out_advance(struct bl_pair *out, const struct bl_pair *root)
{
	if (root->b != BL_LEAF_NONE && root->b > out->b)
		out->b = root->b;
	if (root->c != BL_LEAF_NONE && root->c > out->c)
		out->c = root->c;
}

/**
 * bl_out_follow - raise @out, of a lane in which a set has no input any more, to what another lane
 * gives the same outputs. @root is the least of the set's tree in this lane.
 *
 * The lane has nothing to wait for, but what its excluded inputs send still carries its barrier,
 * and the receivers take the least of all lanes that they hear. A lane that never had an input of
 * the set (B of 0) stays as it is: nobody waits for it. B and C are each their own case, since C
 * may wait for an input that is dead, and does not wait for one that is barred.
 */
BL_CORE void bl_out_follow(struct bl_pair *out, const struct bl_pair *root,
			   const struct bl_pair *other)
{
	if (!out->b)
		return;
	if (root->b == BL_LEAF_NONE)
		out->b = bl_max64(out->b, other->b);
	if (root->c == BL_LEAF_NONE)
		out->c = bl_max64(out->c, other->c);
}

/* flags in the results of bl_port_arrive(), bl_port_expire() and bl_port_apply_fence() */
#define BL_A_LEAF     1u  /* the port's leaf changed */
#define BL_A_OLD      2u  /* the barrier was below its register */
#define BL_A_JOINED   4u  /* the lane was taken into the minimum */
#define BL_A_EXCLUDED 8u  /* a lane was excluded */
#define BL_A_LAGGING  16u /* a lane was excluded whose barrier lags, whether it talks or not */
_Static_assert(BL_REG_IN > BL_A_LAGGING, "bl_reg_expire() returns both");

/**
 * bl_join_floor - the barrier above which an input may join outputs that were given @given; see
 * @join_above of bl_port_arrive().
 *
 * A new input joins below what the outputs were given, and the outputs stand still until it has
 * passed that (1Pipe section 4.2: the switch suspends updates to B_new). A path with one more hop
 * is always behind the shorter ones, so an input that had to wait until it is ahead would wait for
 * ever. But an input that is further behind than ten times @dead_after has a wrong clock, and must
 * not stop the others. An input that is nearly so far behind that it would be excluded for lagging
 * does not join either: @lag_max, 0 if inputs may lag.
 */
BL_CORE __u64 bl_join_floor(__u64 given, __u64 dead_after, __u64 lag_max)
{
	__u64 far = 10 * dead_after;

	if (lag_max)
		far = bl_min64(far, lag_max / 2);
	return given > far ? given - far : 0;
}

/** bl_reg_live - whether the register holds B's minimum back. */
BL_CORE int bl_reg_live(const struct bl_reg *r)
{
	return (__u8)r->state == BL_REG_LIVE;
}

/**
 * bl_port_leaf - compute what the port contributes: the least B of its live lanes, and the least C
 * of the lanes that are IN or AWAITED. Returns 0.
 *
 * Inline it was 60 of the 136 thousand instructions that the verifier followed in bl_host_xdp. The
 * functions of the switch that call it become dearer where it is a function (2026-11, Linux 6.18).
 */
BL_CORE_GLOBAL int bl_port_leaf(const struct bl_port_regs *p, struct bl_pair *leaf)
{
	int l;

	if (!p || !leaf)
		return 0;
	leaf->b = BL_LEAF_NONE;
	leaf->c = BL_LEAF_NONE;
	for (l = 0; l < BL_LANES_MAX; l++) {
		const struct bl_reg *r = &p->lane[l];

		if (bl_reg_live(r))
			leaf->b = bl_min64(leaf->b, r->b);
		if (r->state & (BL_REG_IN | BL_REG_AWAITED) && r->c)
			leaf->c = bl_min64(leaf->c, r->c);
	}
	return 0;
}

/**
 * bl_port_flags - BL_REG_IN if any lane is IN, and BL_REG_HELD if the lanes that are IN are frozen.
 */
BL_CORE __u32 bl_port_flags(const struct bl_port_regs *p)
{
	__u32 l, any = 0;

	for (l = 0; l < BL_LANES_MAX; l++)
		any |= p->lane[l].state;
	return any & (BL_REG_IN | BL_REG_HELD);
}

/**
 * bl_reg_bye - the neighbour has left in order: neither B nor C waits for the register. One that is
 * frozen holds C until RESUME, as ever. What the register has risen to is forgotten: the programs
 * of the host still answer for its endpoints, with barriers that promise nothing, and must not join
 * it again by that.
 */
BL_CORE void bl_reg_bye(struct bl_reg *r)
{
	if (bl_reg_live(r))
		r->state = (r->state & ~0xffu) | BL_REG_DEAD;
	r->b = 0;
	if (r->state & BL_REG_HELD)
		return;
	r->state &= ~(BL_REG_IN | BL_REG_AWAITED);
	r->c = 0;
}

/**
 * bl_port_await - make C wait for a port with new registers at @c, before anything was heard there.
 */
BL_CORE void bl_port_await(struct bl_port_regs *p, __u64 c)
{
	p->lane[0].state |= BL_REG_AWAITED;
	p->lane[0].c = c;
}

/** bl_port_awaited - whether C waits for a port that has not been heard yet. */
BL_CORE int bl_port_awaited(const struct bl_port_regs *p)
{
	return (p->lane[0].state & BL_REG_AWAITED) != 0;
}

/* C no longer waits for the port: one of its lanes has joined, or nothing is there. */
BL_CORE void bl_port_await_end(struct bl_port_regs *p)
{
	struct bl_reg *r = &p->lane[0];

	r->state &= ~BL_REG_AWAITED;
	if (!(r->state & BL_REG_IN) && !bl_reg_live(r))
		r->c = 0;
}

/**
 * bl_port_learn_hop - store the hop in the neighbour's beacon in all lanes of the port. One
 * comparison, except for the first beacon.
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
 * Freezes the port: death number @death. The number is stored first, since a reader outside that
 * sees HELD and then reads the number must not find the number of the death before. Pairs with
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
 * Resumes the port. Lanes that are not live, and all lanes if @drop is set, leave C's minimum; the
 * others rise with the next frame.
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

/* Live lanes join C's minimum, and are frozen if the other lanes of the port are. */
BL_CORE void bl_port_enter_commit(struct bl_port_regs *p)
{
	__u32 l, held = bl_port_flags(p) & BL_REG_HELD;

	for (l = 0; l < BL_LANES_MAX; l++)
		if (bl_reg_live(&p->lane[l]))
			p->lane[l].state |= BL_REG_IN | held;
}

/** bl_slot_death - number of the last death that the port has had, or has been ordered to have. */
BL_CORE __u32 bl_slot_death(const struct bl_fence_slot *o, const struct bl_life *life)
{
	__u32 death = BL_READ_ONCE(life->death);

	return (__s32)(o->freeze - death) > 0 ? o->freeze : death;
}

/**
 * bl_slot_freeze - write into the slot that the port is to have died @death times. Returns 1, or 0
 * if it has, or if that was ordered before.
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
 * bl_slot_resume - write into the slot that the port is to be resumed if it has been frozen since
 * @death. Returns 1, 0 if that was ordered before, or -1 if @death is not the port's last death.
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

/* Freezes the port if it has died less than @death times. */
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
 * bl_port_apply_fence - bring the port into the state that its slot asks for.
 *
 * Several fences may have been written into the slot since the last call. The port is first resumed
 * from the last death that was to be resumed, even if it has not had that death yet, and then
 * frozen for the last death that was ordered. A second call changes nothing.
 * Returns BL_A_LEAF and the new @leaf, or 0.
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
 * Returns 1 if nothing was heard of the lane yet, which is given up from now on after a while. A
 * function, because the paths through all lanes of a port are many (see bl_port_leaf()).
 */
BL_CORE_CALLED int bl_reg_unheard(struct bl_reg *r, __u64 watch)
{
	if (!r || (__u8)r->state != BL_REG_ABSENT)
		return 0;
	if (!r->heard_ns)
		r->heard_ns = watch;
	return 1;
}

#define BL_JOIN_BARRED 0x10000u
/*
 * The slow path, for a frame whose lane is not LIVE yet or whose link has several lanes. A function
 * for the verifier, as bl_port_leaf(). @lanes: BL_JOIN_BARRED is or-ed to them if the port does not
 * join C. Returns a set of BL_A_*.
 */
BL_CORE_CALLED int bl_port_join(struct bl_port_regs *p, struct bl_reg *r, __u32 lanes, __u64 watch,
				__u64 join_above)
{
	__u32 l, waiting = 0;

	if (!p || !r || bl_reg_live(r))
		return 0;
	/*
	 * A lane that comes back from the dead stays DEAD until it joins: C has waited for it all
	 * the time.
	 */
	if ((__u8)r->state == BL_REG_ABSENT)
		r->state |= BL_REG_JOINING;
	/*
	 * A link that announces n lanes joins when each of them was heard once or was given up by
	 * bl_port_expire().
	 */
	for (l = 0; l < BL_LANES_MAX && l < (lanes & 0xffff); l++)
		waiting |= (__u32)bl_reg_unheard(&p->lane[l], watch);
	if (waiting || r->b <= join_above)
		return 0;
	r->state = (r->state & ~0xffu) | BL_REG_LIVE;
	r->fresh_ns = r->fresh_c_ns = watch;
	if (bl_port_awaited(p))
		bl_port_await_end(p);
	if (!(lanes & BL_JOIN_BARRED))
		r->state |= BL_REG_IN | (bl_port_flags(p) & BL_REG_HELD);
	return BL_A_JOINED | BL_A_LEAF;
}

/**
 * bl_reg_raise - R := max(R, B), and the same for C; a B below R is normal and changes nothing.
 * @lanes, @b, @c and @watch are those of bl_port_arrive().
 * Returns BL_A_LEAF if the register rose, and BL_A_OLD if the barrier was below it.
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
 * bl_stands_still - whether a set's B has stood still for so long that its outputs must be told:
 * for a quarter of @dead_after. The next scan for silent inputs is at most another quarter away.
 * Some input is silent and not excluded yet; neighbours that hear nothing from this switch for that
 * time would take it, and everything behind it, for dead as well. @b of 0 means that no input has
 * joined, so there is nothing to tell.
 */
BL_CORE int bl_stands_still(__u64 now, __u64 b, __u64 dead_after)
{
	return b && now > b + dead_after / 4;
}

/**
 * bl_reg_alone - whether the register is all that its port contributes: it is in both minima, not
 * frozen, and its link has no other lane. One comparison, since most frames take this path.
 */
BL_CORE int bl_reg_alone(const struct bl_reg *r, __u32 lanes)
{
	return r->state == (BL_REG_LIVE | BL_REG_IN) && lanes == 1;
}

/**
 * bl_port_arrive - update a port for a frame with barriers.
 * @p: registers of the input port.
 * @lane, @lanes: from the header.
 * @b, @c: barriers of the frame, extended to 64 bits.
 * @watch: watch time of struct bl_sw_lane; not 0.
 * @join_above: the lane joins only above this barrier: bl_join_floor() of the greatest barrier that
 * any output fed by this port was given.
 * @barred: 1: the port does not join C.
 * @leaf: set to the port's new leaf if BL_A_LEAF is returned.
 *
 * Returns a set of BL_A_*.
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
	res |= (__u32)bl_port_join(p, r, lanes | (barred ? BL_JOIN_BARRED : 0), watch, join_above);
	bl_port_leaf(p, leaf);
	return res;
}

/** bl_time_before - @watch less @span, or 0: the watch time that is @span ago. */
BL_CORE __u64 bl_time_before(__u64 watch, __u64 span)
{
	return watch > span ? watch - span : 0;
}

/*
 * Whether a lane that is silent now lagged already when it was heard last: no scan has found it
 * fresh since then, while others were. It must not come back at once, or an input could hold the
 * others for twice lag_max again and again, and fall silent each time just before it is excluded.
 */
BL_CORE int bl_reg_lagged(const struct bl_reg *r, const struct bl_expiry *e)
{
	return r->fresh_ns < r->heard_ns && e->freshest >= r->heard_ns;
}

/*
 * bl_port_expire() for one lane, a function as bl_reg_unheard(). Returns a set of BL_A_*, with the
 * flags BL_REG_IN and BL_REG_HELD that the lane had if it was excluded.
 */
BL_CORE_CALLED int bl_reg_expire(struct bl_reg *r, const struct bl_expiry *e)
{
	__u32 res = 0;
	int gone, lags;

	if (!r || !e)
		return 0;
	gone = r->heard_ns < e->silent;
	if (r->b >= e->fresh)
		r->fresh_ns = e->watch;
	if (r->c >= e->fresh_c || (r->state & (BL_REG_IN | BL_REG_HELD)) != BL_REG_IN)
		r->fresh_c_ns = e->watch;
	lags = r->fresh_ns < e->lagging || r->fresh_c_ns < e->lagging_c;
	if (!r->heard_ns || !(gone | lags))
		return 0;
	if (bl_reg_live(r)) {
		res = BL_A_LEAF | BL_A_EXCLUDED | (r->state & (BL_REG_IN | BL_REG_HELD));
		r->state = (r->state & ~0xffu) | BL_REG_DEAD;
		if (!gone || bl_reg_lagged(r, e))
			res |= BL_A_LAGGING;
	} else if ((__u8)r->state == BL_REG_ABSENT && gone) {
		/* announced by the other lanes but never heard: stop waiting for it */
		r->state |= BL_REG_DEAD;
	}
	return (int)res;
}

/**
 * bl_port_expire - exclude lanes of a port that are silent, or that lag. If one of them is in C's
 * minimum, the whole port is frozen, which counts as a death, unless it is frozen already. Also
 * notes which lanes are fresh.
 *
 * Returns a set of BL_A_*, and the new @leaf with BL_A_LEAF.
 */
BL_CORE __u32 bl_port_expire(struct bl_port_regs *p, const struct bl_expiry *e,
			     struct bl_life *life, struct bl_pair *leaf)
{
	__u32 l, res = 0;

	for (l = 0; l < BL_LANES_MAX; l++)
		res |= (__u32)bl_reg_expire(&p->lane[l], e);
	if ((res & (BL_REG_IN | BL_REG_HELD)) == BL_REG_IN)
		bl_port_freeze(p, life, life->death + 1);
	if (res & BL_A_LEAF)
		bl_port_leaf(p, leaf);
	return res & ~(BL_REG_IN | BL_REG_HELD);
}

/**
 * bl_watch_advance - the watch time (struct bl_sw_lane) after the clock went from @before to @now.
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
 * bl_relay_next - the barrier above which the next relay is due after a relay of @out: that of the
 * next common tick.
 *
 * A relay is due when the minimum has passed a tick, a multiple of the beacon interval, and not
 * when it has risen by some amount: data raises registers between the ticks, and a relay for that
 * would leave a rise to the tick itself that is too small for another one. With the rule "half an
 * interval", a message sent in the second half of an interval waited for the wave after the next
 * (measured 2026-11: p50 133 us at an interval of 100 us). Hosts whose clock reading lies just
 * before the tick are allowed a 32nd of an interval.
 */
BL_CORE __u64 bl_relay_next(__u64 out, __u64 beacon_ns)
{
	__u64 slack = beacon_ns / 32;

	return ((out + slack) / beacon_ns + 1) * beacon_ns - slack - 1;
}

/**
 * bl_commit_behind - the C above which a beacon must be relayed at once: the C of @out where it is
 * behind its B, since something is not committed yet; else BL_LEAF_NONE. Where no host sends
 * reliably, C equals B and waits for the tick with it.
 */
BL_CORE __u64 bl_commit_behind(const struct bl_pair *out)
{
	__u64 not = (__u64)((__s64)(out->c - out->b) >> 63); /* all ones if it is behind */

	BL_OPAQUE(not );
	return (out->c & not ) | (BL_LEAF_NONE & ~not );
}

/**
 * bl_time_above - 1 if time @a > @b, else 0. Computed from the sign bit, since eight comparisons in
 * a row would double the verifier's paths with every branch.
 */
BL_CORE __u64 bl_time_above(__u64 a, __u64 b)
{
	return (b - a) >> 63;
}

/**
 * bl_commit_news - bl_commit_behind(), or 0, which every C is above, where @relay_at of struct
 * bl_sw_lane says that the next beacon is relayed in any case.
 */
BL_CORE __u64 bl_commit_news(const struct bl_pair *out, __u64 relay_at)
{
	/* 1 only for BL_RELAY_STILL; again without a comparison, and with little stack */
	return bl_commit_behind(out) & ((bl_time_above(BL_RELAY_STILL + 1, relay_at) ^
					 bl_time_above(BL_RELAY_STILL, relay_at)) -
					1);
}

#endif
