// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/barrier_core.h: the minimum tree against a plain scan, and the states of a port: join,
 * late join, lanes, silence, death, return.
 *
 * The model of a whole switch at the end runs random frames, silences and scans against registers
 * that it keeps in the simplest possible way. It checks the promise of the outputs: what they are
 * given never decreases, and is never above the barrier of any live input at the time that it rose.
 */
#include "tests/unit/unit.h"

#include "core/order/barrier_core.h"
#include "tests/unit/core/order/expire.h"

#define NONE BL_LEAF_NONE

/* ---- the tree ---- */

static void expect_least(const struct bl_tree *t, uint64_t b, uint64_t c)
{
	struct bl_pair root = bl_tree_least(t);

	assert_int_equal(root.b, b);
	assert_int_equal(root.c, c);
}

static void bl_tree_set__the_example_of_the_header(void **state)
{
	static struct bl_tree t;

	(void)state;
	bl_tree_clear(&t);
	expect_least(&t, NONE, NONE);
	bl_tree_set(&t, 4, 0, 50, 5);
	bl_tree_set(&t, 4, 1, 40, 4);
	bl_tree_set(&t, 4, 2, 60, 6);
	assert_int_equal(t.b[2], 50);
	assert_int_equal(t.b[3], NONE);
	assert_int_equal(t.b[1], 60);
	assert_int_equal(t.b[7], NONE);
	expect_least(&t, 40, 4);
	bl_tree_set(&t, 4, 1, 70, 7);
	assert_int_equal(t.b[2], 70);
	assert_int_equal(t.b[1], 60);
	expect_least(&t, 50, 5);
	bl_tree_set(&t, 4, 2, 80, 8);
	assert_int_equal(t.b[3], NONE);
	assert_int_equal(t.b[1], 80);
	expect_least(&t, 50, 5);
	bl_tree_set(&t, 4, 0, NONE, NONE);
	expect_least(&t, 70, 7);
}

static void bl_tree_set__b_and_c_rise_apart(void **state)
{
	static struct bl_tree t;

	(void)state;
	bl_tree_clear(&t);
	bl_tree_set(&t, 8, 0, 10, 10);
	bl_tree_set(&t, 8, 1, 20, 20);
	assert_int_equal(t.two, 0);
	bl_tree_set(&t, 8, 7, 5, 50);
	expect_least(&t, 5, 10);
	bl_tree_set(&t, 8, 0, 10, 15);
	expect_least(&t, 5, 15);
	bl_tree_set(&t, 8, 7, 30, 50);
	expect_least(&t, 10, 15);
	/* One of the two values falls alone. */
	bl_tree_set(&t, 8, 7, 30, 12);
	expect_least(&t, 10, 12);
	bl_tree_set(&t, 8, 7, 8, 12);
	expect_least(&t, 8, 12);
}

/* Of two equal keys it does not matter which one was left at a pair. */
static void bl_tree_set__equal_keys(void **state)
{
	static struct bl_tree t;
	uint32_t i, k;

	(void)state;
	for (k = 0; k < 8; k++) {
		bl_tree_clear(&t);
		for (i = 0; i < 8; i++)
			bl_tree_set(&t, 8, i, 10, 10);
		for (i = 0; i < 8; i++) {
			expect_least(&t, 10, 10);
			bl_tree_set(&t, 8, (i * 5 + k) & 7, 20 + i, 20 + i);
		}
		expect_least(&t, 20, 20);
		bl_tree_set(&t, 8, k, 20, 20); /* The value does not change. */
		expect_least(&t, 20, 20);
	}
}

/*
 * A C that differs from its B needs two trees. One tree suffices again after BL_TREE_STAY changes
 * during which no C differed from its B.
 */
static void bl_tree_set__two_trees_and_one_again(void **state)
{
	static struct bl_tree t;
	uint64_t b = 1000;
	uint32_t i;

	(void)state;
	bl_tree_clear(&t);
	for (i = 0; i < 4; i++)
		bl_tree_set(&t, 4, i, b + i, b + i);
	assert_int_equal(t.two, 0);
	bl_tree_set(&t, 4, 1, b + 1, b - 1);
	assert_int_equal(t.apart, 1);
	bl_tree_set(&t, 4, 2, b + 2, b - 2);
	assert_int_equal(t.apart, 2);
	expect_least(&t, b, b - 2);
	bl_tree_set(&t, 4, 2, b + 2, b + 1);
	assert_int_equal(t.apart, 2);
	for (i = 0; i < 2 * BL_TREE_STAY; i++)
		bl_tree_set(&t, 4, 3, b + 3 + i, b + 3 + i);
	assert_int_equal(t.two, BL_TREE_STAY);
	bl_tree_set(&t, 4, 1, b + 1, b + 1);
	bl_tree_set(&t, 4, 2, b + 2, b + 2);
	assert_int_equal(t.apart, 0);
	assert_int_equal(t.two, BL_TREE_STAY - 1);
	for (i = 0; t.two; i++) {
		bl_tree_set(&t, 4, i & 3, b + 10 * BL_TREE_STAY + i, b + 10 * BL_TREE_STAY + i);
		assert_true(i < BL_TREE_STAY);
	}
	assert_int_equal(i, BL_TREE_STAY - 1);
	bl_tree_set(&t, 4, 0, b + 30 * BL_TREE_STAY, b + 30 * BL_TREE_STAY);
	/* Old values of the second tree are forgotten. */
	expect_least(&t, t.b[0], t.b[0]);
	bl_tree_set(&t, 4, 0, b + 31 * BL_TREE_STAY, b);
	expect_least(&t, t.b[0], b);
	assert_int_equal(t.apart, 1);
}

/*
 * Returns what moves up from the subtree of key @i. Every key above the leaves is the greater of
 * the two that met there.
 */
static uint64_t check_keys(const __u64 *key, uint32_t leaves, uint32_t i)
{
	uint64_t l, r;

	if (i >= leaves)
		return key[i];
	l = check_keys(key, leaves, 2 * i);
	r = check_keys(key, leaves, 2 * i + 1);
	assert_int_equal(key[i], bl_max64(l, r));
	return bl_min64(l, r);
}

static void bl_tree_set__random_against_scan(void **state)
{
	struct rnd r = rnd_seeded("tree");
	uint32_t leaves, apart_seen;

	(void)state;
	for (leaves = 1; leaves <= BL_TREE_LEAVES; leaves *= 2) {
		/* First with every C equal to its B, then with both chosen independently. */
		for (apart_seen = 0; apart_seen < 2; apart_seen++) {
			static struct bl_tree t;
			static struct bl_pair model[BL_TREE_LEAVES];
			uint32_t i;
			int op;

			bl_tree_clear(&t);
			for (i = 0; i < BL_TREE_LEAVES; i++)
				model[i] = (struct bl_pair){ NONE, NONE };
			for (op = 0; op < 6000; op++) {
				uint32_t leaf = rnd_below(&r, leaves);
				uint64_t range = 1 + (1ULL << rnd_below(&r, 40));
				struct bl_pair min = { NONE, NONE };

				/*
				 * A leaf gets any value, or rises as time does; sometimes it
				 * becomes none, or takes the value of another leaf.
				 */
				switch (rnd_below(&r, 8)) {
				case 0:
					model[leaf] = (struct bl_pair){
						NONE, rnd_below(&r, 2) ? NONE : rnd64(&r) % range
					};
					break;
				case 1:
					model[leaf] = model[rnd_below(&r, leaves)];
					break;
				case 2:
					model[leaf].b = rnd64(&r) % range;
					break;
				case 3:
					model[leaf] = (struct bl_pair){ rnd64(&r) % range,
									rnd64(&r) % range };
					break;
				default:
					model[leaf].b =
						bl_min64(model[leaf].b + rnd_below(&r, 3), NONE);
					model[leaf].c =
						bl_min64(model[leaf].c + rnd_below(&r, 3), NONE);
				}
				if (!apart_seen)
					model[leaf].c = model[leaf].b;
				bl_tree_set(&t, leaves, leaf, model[leaf].b, model[leaf].c);
				for (i = 0; i < leaves; i++) {
					min.b = bl_min64(min.b, model[i].b);
					min.c = bl_min64(min.c, model[i].c);
				}
				if (bl_tree_least(&t).b != min.b || bl_tree_least(&t).c != min.c)
					fail_msg("%u leaves, operation %d", leaves, op);
				if (op % 64 == 0) {
					assert_int_equal(check_keys(t.b, leaves, 1), min.b);
					if (t.two)
						assert_int_equal(check_keys(t.c, leaves, 1), min.c);
				}
			}
			assert_int_equal(!!t.two, apart_seen);
			/* No key outside the tree was touched. */
			for (i = 2 * leaves; i < 2 * BL_TREE_LEAVES; i++)
				assert_int_equal(t.b[i], NONE);
		}
	}
}

static void bl_out_advance__monotone(void **state)
{
	const struct {
		struct bl_pair out, root, want;
	} t[] = {
		{ { 0, 0 }, { NONE, NONE }, { 0, 0 } },
		{ { 7, 8 }, { NONE, NONE }, { 7, 8 } },
		{ { 7, 8 }, { 6, 7 }, { 7, 8 } },
		{ { 7, 8 }, { 7, 8 }, { 7, 8 } },
		{ { 7, 8 }, { 8, 9 }, { 8, 9 } },
		{ { 7, 8 }, { 8, 7 }, { 8, 8 } },
		{ { 7, 8 }, { 6, 9 }, { 7, 9 } },
		{ { 7, 8 }, { NONE, 9 }, { 7, 9 } },
		{ { 7, 8 }, { NONE - 1, NONE - 1 }, { NONE - 1, NONE - 1 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_pair out = t[i].out;

		bl_out_advance(&out, &t[i].root);
		assert_memory_equal(&out, &t[i].want, sizeof(out));
	}
}

/* Another lane is followed where this one has no input left, and had one. */
static void bl_out_follow__edges(void **state)
{
	const struct {
		struct bl_pair out, root, other, want;
	} t[] = {
		{ { 7, 6 }, { NONE, NONE }, { 9, 8 }, { 9, 8 } },
		{ { 7, 6 }, { NONE, NONE }, { 6, 5 }, { 7, 6 } },
		{ { 7, 6 }, { NONE, NONE }, { 0, 0 }, { 7, 6 } },
		/* C waits for an input that is dead. */
		{ { 7, 6 }, { NONE, 6 }, { 9, 8 }, { 9, 6 } },
		/* B waits for an input that is barred, and C does not. */
		{ { 7, 6 }, { 7, NONE }, { 9, 8 }, { 7, 8 } },
		{ { 7, 6 }, { NONE - 1, NONE - 1 }, { 9, 8 }, { 7, 6 } },
		/* No input has ever joined. */
		{ { 0, 0 }, { NONE, NONE }, { 9, 8 }, { 0, 0 } },
		{ { 1, 0 }, { NONE, NONE }, { 9, 8 }, { 9, 8 } },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_pair out = t[i].out;

		bl_out_follow(&out, &t[i].root, &t[i].other);
		assert_memory_equal(&out, &t[i].want, sizeof(out));
	}
}

/* ---- a port with one lane ---- */

static uint32_t frame_arrives(struct bl_port_regs *p, uint32_t lane, uint32_t lanes, uint64_t b,
			      uint64_t c, uint64_t watch, uint64_t above, struct bl_pair *leaf)
{
	*leaf = (struct bl_pair){ 0xdead, 0xdead };
	return bl_port_arrive(p, lane, lanes, b, c, watch, above, 0, leaf);
}

static void bl_port_arrive__first_frame_joins(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_pair leaf;

	(void)state;
	assert_int_equal(frame_arrives(&p, 0, 1, 100, 90, 1, 0, &leaf), BL_A_LEAF | BL_A_JOINED);
	assert_int_equal(leaf.b, 100);
	assert_int_equal(leaf.c, 90);
	assert_int_equal(p.lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(p.lane[0].heard_ns, 1);
	assert_int_equal(p.lane[0].lanes, 1);
}

static void bl_port_arrive__registers_only_rise(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_pair leaf;

	(void)state;
	frame_arrives(&p, 0, 1, 100, 90, 1, 0, &leaf);
	assert_int_equal(frame_arrives(&p, 0, 1, 99, 89, 2, 0, &leaf), BL_A_OLD);
	assert_int_equal(p.lane[0].b, 100);
	assert_int_equal(p.lane[0].c, 90);
	assert_int_equal(p.lane[0].heard_ns, 2); /* The frame still counts as a sign of life. */
	assert_int_equal(frame_arrives(&p, 0, 1, 100, 90, 3, 0, &leaf), 0);
	assert_int_equal(frame_arrives(&p, 0, 1, 101, 90, 4, 0, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.b, 101);
	assert_int_equal(leaf.c, 90);
	assert_int_equal(frame_arrives(&p, 0, 1, 101, 91, 5, 0, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.c, 91);
	assert_int_equal(frame_arrives(&p, 0, 1, 100, 92, 6, 0, &leaf), BL_A_LEAF | BL_A_OLD);
	assert_int_equal(leaf.b, 101);
	assert_int_equal(leaf.c, 92);
}

static void bl_port_arrive__joins_only_above_the_floor(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_pair leaf;

	(void)state;
	assert_false(frame_arrives(&p, 0, 1, 499, 1, 1, 500, &leaf) & BL_A_JOINED);
	assert_int_equal(p.lane[0].state, BL_REG_JOINING);
	assert_int_equal(leaf.b, NONE);
	assert_false(frame_arrives(&p, 0, 1, 500, 1, 2, 500, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, NONE);
	/* The outputs have advanced meanwhile. */
	assert_false(frame_arrives(&p, 0, 1, 501, 1, 3, 501, &leaf) & BL_A_JOINED);
	assert_int_equal(frame_arrives(&p, 0, 1, 502, 1, 4, 501, &leaf), BL_A_LEAF | BL_A_JOINED);
	assert_int_equal(leaf.b, 502);
	/* The floor does not matter once the lane is live. */
	assert_int_equal(frame_arrives(&p, 0, 1, 503, 1, 5, 999, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.b, 503);
}

static void bl_join_floor__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_join_floor(0, 0, 0), 0);
	assert_int_equal(bl_join_floor(77, 0, 0), 77);
	assert_int_equal(bl_join_floor(299999, 30000, 0), 0);
	assert_int_equal(bl_join_floor(300000, 30000, 0), 0);
	assert_int_equal(bl_join_floor(300001, 30000, 0), 1);
	assert_int_equal(bl_join_floor(1764000000000000000ULL, 30000, 0), 1763999999999700000ULL);
	/* An input that is about to be excluded for lagging does not join. */
	assert_int_equal(bl_join_floor(1000000, 30000, 600000), 700000);
	assert_int_equal(bl_join_floor(1000000, 30000, 599998), 700001);
}

/*
 * An input that is behind joins, and what the outputs were given does not change until the input
 * has caught up (1Pipe 4.2).
 */
static void bl_port_arrive__joins_behind_and_outputs_wait(void **state)
{
	static struct bl_tree t;
	struct bl_port_regs fast = { 0 }, slow = { 0 };
	struct bl_pair leaf, root, out = { 0, 0 };
	uint64_t b;

	(void)state;
	bl_tree_clear(&t);
	frame_arrives(&fast, 0, 1, 5000, 5000, 1, 0, &leaf);
	bl_tree_set(&t, 4, 0, leaf.b, leaf.c);
	root = bl_tree_least(&t);
	bl_out_advance(&out, &root);
	assert_int_equal(out.b, 5000);
	assert_false(
		frame_arrives(&slow, 0, 1, 4000, 4000, 1, bl_join_floor(out.b, 100, 0), &leaf) &
		BL_A_JOINED);
	assert_true(frame_arrives(&slow, 0, 1, 4001, 4001, 1, bl_join_floor(out.b, 100, 0), &leaf) &
		    BL_A_JOINED);
	for (b = 4001; b <= 5200; b += 100) {
		frame_arrives(&slow, 0, 1, b, b, 2, bl_join_floor(out.b, 100, 0), &leaf);
		bl_tree_set(&t, 4, 1, leaf.b, leaf.c);
		frame_arrives(&fast, 0, 1, b + 1000, b + 1000, 2, bl_join_floor(out.b, 100, 0),
			      &leaf);
		bl_tree_set(&t, 4, 0, leaf.b, leaf.c);
		root = bl_tree_least(&t);
		bl_out_advance(&out, &root);
		assert_int_equal(out.b, b > 5000 ? b : 5000);
	}
}

static void bl_port_arrive__joining_lane_does_not_hold_commit(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_pair leaf;

	(void)state;
	frame_arrives(&p, 0, 1, 10, 10, 1, 500, &leaf);
	assert_int_equal(leaf.c, NONE);
}

/* ---- several lanes ---- */

static void bl_port_arrive__waits_for_every_lane(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_pair leaf;

	(void)state;
	assert_false(frame_arrives(&p, 0, 3, 100, 100, 1, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, NONE);
	assert_false(frame_arrives(&p, 1, 3, 90, 90, 2, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, NONE);
	assert_true(frame_arrives(&p, 2, 3, 110, 110, 3, 0, &leaf) & BL_A_JOINED);
	/* The other lanes join with their next frames. */
	assert_true(frame_arrives(&p, 1, 3, 95, 95, 4, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, 95);
	assert_true(frame_arrives(&p, 0, 3, 100, 100, 5, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, 95);
	assert_int_equal(leaf.c, 95);
	assert_int_equal(frame_arrives(&p, 1, 3, 105, 105, 6, 0, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.b, 100);
	assert_int_equal(frame_arrives(&p, 0, 3, 200, 200, 7, 0, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.b, 105);
	assert_int_equal(leaf.c, 105);
}

static void bl_port_arrive__a_lane_that_is_never_heard_is_given_up(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_life life = { 0, 0 };
	struct bl_pair leaf;

	(void)state;
	frame_arrives(&p, 0, 2, 100, 100, 1000, 0, &leaf);
	assert_int_equal(p.lane[1].heard_ns, 1000); /* The wait for the other lane begins. */
	frame_arrives(&p, 0, 2, 200, 200, 1100, 0, &leaf);
	assert_int_equal(p.lane[1].heard_ns, 1000);
	assert_int_equal(expire_silent(&p, 1000, &life, &leaf), 0);
	assert_false(frame_arrives(&p, 0, 2, 300, 300, 1500, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(expire_silent(&p, 1001, &life, &leaf), 0);
	assert_int_equal(p.lane[1].state, BL_REG_DEAD);
	assert_true(frame_arrives(&p, 0, 2, 301, 301, 1501, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, 301);
	assert_int_equal(leaf.c, 301); /* A lane that has never announced a C holds none back. */
	/* If the lane is heard after all, it joins late like any other. */
	assert_false(frame_arrives(&p, 1, 2, 300, 300, 1502, 301, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, 301);
	assert_true(frame_arrives(&p, 1, 2, 302, 302, 1503, 301, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, 301);
}

static void bl_port_arrive__lanes_beyond_the_last_are_cut(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_pair leaf;

	(void)state;
	/* The parser refuses such frames, but memory must be safe without it. */
	frame_arrives(&p, 9, 1, 100, 100, 1, 0, &leaf);
	assert_int_equal(p.lane[1].b, 100);
}

/* ---- silence ---- */

static void bl_port_expire__edges(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_life life = { 0, 0 };
	struct bl_pair leaf;

	(void)state;
	leaf.b = 1;
	/* The port was never heard, so there is nothing to exclude. */
	assert_int_equal(expire_silent(&p, 999500, &life, &leaf), 0);
	assert_int_equal(p.lane[0].state, BL_REG_ABSENT);
	frame_arrives(&p, 0, 1, 100, 90, 1000, 0, &leaf);
	assert_int_equal(expire_silent(&p, 999, &life, &leaf), 0);
	assert_int_equal(expire_silent(&p, 1000, &life, &leaf), 0);
	assert_int_equal(p.lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(life.death, 0);
	assert_int_equal(expire_silent(&p, 1001, &life, &leaf), BL_A_LEAF | BL_A_EXCLUDED);
	assert_int_equal(p.lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(life.death, 1);
	assert_int_equal(leaf.b, NONE);
	assert_int_equal(leaf.c, 90); /* until the controller's RESUME */
	/* Exclusion happens once. */
	assert_int_equal(expire_silent(&p, 9499, &life, &leaf), 0);
	assert_int_equal(life.death, 1);
}

static void bl_time_before__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_time_before(500, 499), 1);
	assert_int_equal(bl_time_before(500, 500), 0);
	assert_int_equal(bl_time_before(500, 501), 0);
}

/* A lane that talks is excluded if it was last fresh before the given time, and only then. */
static void bl_port_expire__lagging(void **state)
{
	struct bl_expiry e = { .watch = 1200, .silent = 1000, .fresh = 100 };
	struct bl_port_regs p = { 0 };
	struct bl_life life = { 0, 0 };
	struct bl_pair leaf;

	(void)state;
	/* A lane is fresh when it joins, and at each scan at which its barrier is. */
	frame_arrives(&p, 0, 1, 100, 90, 1000, 0, &leaf);
	assert_int_equal(p.lane[0].fresh_ns, 1000);
	assert_int_equal(bl_port_expire(&p, &e, &life, &leaf), 0);
	assert_int_equal(p.lane[0].fresh_ns, 1200);
	/* one below the least barrier that is fresh */
	frame_arrives(&p, 0, 1, 120, 90, 1500, 0, &leaf);
	e = (struct bl_expiry){ .watch = 1500, .silent = 1400, .fresh = 121 };
	assert_int_equal(bl_port_expire(&p, &e, &life, &leaf), 0);
	e.lagging = 1200;
	assert_int_equal(bl_port_expire(&p, &e, &life, &leaf), 0);
	assert_int_equal(p.lane[0].fresh_ns, 1200);
	e.lagging = 1201;
	assert_int_equal(bl_port_expire(&p, &e, &life, &leaf),
			 BL_A_LEAF | BL_A_EXCLUDED | BL_A_LAGGING);
	assert_int_equal(p.lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(leaf.b, NONE);
	assert_int_equal(life.death, 1);
	/* A lane that is silent as well was excluded for its silence. */
	memset(&p, 0, sizeof(p));
	frame_arrives(&p, 0, 1, 100, 90, 1000, 0, &leaf);
	e = (struct bl_expiry){ .watch = 1500, .silent = 1001, .fresh = 121, .lagging = 1001 };
	assert_int_equal(bl_port_expire(&p, &e, &life, &leaf), BL_A_LEAF | BL_A_EXCLUDED);
}

/* The same for the commit barrier, but only of lanes that hold it back. */
static void bl_port_expire__lagging_commit(void **state)
{
	static const struct {
		__u32 state;
		__u64 c;
		__u32 res;
	} t[] = {
		{ BL_REG_LIVE | BL_REG_IN, 89, BL_A_LEAF | BL_A_EXCLUDED | BL_A_LAGGING },
		{ BL_REG_LIVE | BL_REG_IN, 90, 0 },
		{ BL_REG_LIVE | BL_REG_IN | BL_REG_HELD, 89, 0 },
		{ BL_REG_LIVE, 89, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_port_regs p = { 0 };
		struct bl_life life = { 0, 0 };
		struct bl_pair leaf;
		struct bl_expiry e = {
			.watch = 1500, .silent = 1400, .fresh_c = 90, .lagging_c = 1001
		};

		p.lane[0] = (struct bl_reg){ .b = 100,
					     .c = t[i].c,
					     .heard_ns = 1450,
					     .fresh_c_ns = 1001,
					     .state = t[i].state,
					     .lanes = 1 };
		assert_int_equal(bl_port_expire(&p, &e, &life, &leaf), 0);
		e.lagging_c = 1002;
		assert_int_equal(bl_port_expire(&p, &e, &life, &leaf), t[i].res);
		assert_int_equal(life.death, t[i].res != 0);
	}
}

static void bl_port_expire__one_lane_of_two(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_life life = { 0, 0 };
	struct bl_pair leaf;

	(void)state;
	frame_arrives(&p, 0, 2, 100, 100, 1, 0, &leaf);
	frame_arrives(&p, 1, 2, 50, 50, 1, 0, &leaf);
	frame_arrives(&p, 0, 2, 101, 101, 2, 0, &leaf);
	assert_int_equal(leaf.b, 50);
	frame_arrives(&p, 0, 2, 102, 102, 600, 0, &leaf);
	assert_int_equal(expire_silent(&p, 102, &life, &leaf), BL_A_LEAF | BL_A_EXCLUDED);
	assert_int_equal(leaf.b, 102);
	assert_int_equal(leaf.c, 50);
	/* The least C of both lanes was reported, so neither may rise. */
	assert_int_equal(p.lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(p.lane[1].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(life.death, 1);
	/* The other lane follows; this is the same death. */
	assert_int_equal(expire_silent(&p, 601, &life, &leaf), BL_A_LEAF | BL_A_EXCLUDED);
	assert_int_equal(life.death, 1);
}

static void bl_port_expire__a_joining_lane_stays(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_life life = { 0, 0 };
	struct bl_pair leaf;

	(void)state;
	frame_arrives(&p, 0, 1, 100, 100, 1, 500, &leaf);
	assert_int_equal(expire_silent(&p, 9499, &life, &leaf), 0);
	assert_int_equal(p.lane[0].state, BL_REG_JOINING);
}

static void bl_port_arrive__return_of_the_dead(void **state)
{
	struct bl_port_regs p = { 0 };
	struct bl_life life = { 0, 0 };
	struct bl_pair leaf;

	(void)state;
	frame_arrives(&p, 0, 1, 100, 90, 1, 0, &leaf);
	expire_silent(&p, 500, &life, &leaf);
	/*
	 * The outputs went on to 400 without the port. It returns with old barriers, is not taken
	 * in, and C stays at its value.
	 */
	assert_false(frame_arrives(&p, 0, 1, 200, 190, 1001, 400, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, NONE);
	assert_int_equal(leaf.c, 90);
	assert_int_equal(p.lane[0].state, BL_REG_DEAD | BL_REG_IN | BL_REG_HELD);
	assert_false(frame_arrives(&p, 0, 1, 400, 390, 1002, 400, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, NONE);
	assert_int_equal(leaf.c, 90);
	/* The lane joins B's minimum; its C stays at the value that was reported. */
	assert_true(frame_arrives(&p, 0, 1, 401, 391, 1003, 400, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.b, 401);
	assert_int_equal(leaf.c, 90);
	assert_int_equal(p.lane[0].state, BL_REG_LIVE | BL_REG_IN | BL_REG_HELD);
	assert_int_equal(frame_arrives(&p, 0, 1, 402, 402, 1003, 400, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.b, 402);
	assert_int_equal(leaf.c, 90);
	/*
	 * The lane can be excluded again. C counts it as dead already, so this is no further death.
	 */
	assert_int_equal(expire_silent(&p, 1004, &life, &leaf), BL_A_LEAF | BL_A_EXCLUDED);
	assert_int_equal(leaf.b, NONE);
	assert_int_equal(leaf.c, 90);
	assert_int_equal(life.death, 1);
}

/* ---- time ---- */

static void bl_watch_advance__edges(void **state)
{
	const struct {
		uint64_t watch, before, now, beacon, want;
	} t[] = {
		{ 0, 0, 0, 3000, 1 },
		{ 0, 5, 1000000, 3000, 1 }, /* 0 would mean never. */
		{ 1, 1000, 1000, 3000, 1 },
		{ 1, 1000, 1001, 3000, 2 },
		{ 1, 1000, 3999, 3000, 3000 },
		{ 1, 1000, 4000, 3000, 3001 },
		/* The CPU was stalled; that does not count as silence of any input. */
		{ 1, 1000, 4001, 3000, 3001 },
		{ 1, 1000, 1000000000, 3000, 3001 },
		{ 77, 1000, 999, 3000, 77 }, /* Another CPU read the clock earlier. */
		{ 77, 1000, 0, 3000, 77 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_watch_advance(t[i].watch, t[i].before, t[i].now, t[i].beacon),
				 t[i].want);
}

static void bl_relay_next__edges(void **state)
{
	/* The interval is 3200 and the slack 100, so ticks count from 3100, 6300 and 9500 on. */
	const struct {
		uint64_t out, beacon, want;
	} t[] = {
		{ 0, 3200, 3099 },
		{ 1, 3200, 3099 },
		/* The tick has not passed yet: the next frame above it is due. */
		{ 3099, 3200, 3099 },
		{ 3100, 3200, 6299 },
		{ 3200, 3200, 6299 },
		{ 6299, 3200, 6299 },
		{ 6300, 3200, 9499 },
		{ 31, 32, 62 },
		{ 30, 31, 30 }, /* The interval is so short that there is no slack. */
		{ 31, 31, 61 },
	};
	struct rnd r = rnd_seeded("relay");
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_relay_next(t[i].out, t[i].beacon), t[i].want);
	for (i = 0; i < 20000; i++) {
		uint64_t beacon = 1000 + rnd_below(&r, 1000000),
			 out = 1764000000000000000ULL + rnd_below(&r, 4000000000u), next;

		next = bl_relay_next(out, beacon);
		/*
		 * There is one relay per interval: it is never due at once, never more than an
		 * interval away, and always due at the next tick.
		 */
		assert_false(bl_time_above(out, next));
		assert_true(next - out < beacon);
		assert_int_equal((next + 1 + beacon / 32) % beacon, 0);
	}
}

static void bl_above__edges(void **state)
{
	const uint64_t now = 1764000000000000000ULL;

	(void)state;
	assert_int_equal(bl_time_above(0, 0), 0);
	assert_int_equal(bl_time_above(1, 0), 1);
	assert_int_equal(bl_time_above(0, 1), 0);
	assert_int_equal(bl_time_above(now, now), 0);
	assert_int_equal(bl_time_above(now + 1, now), 1);
	assert_int_equal(bl_time_above(now, now + 1), 0);
	assert_int_equal(bl_time_above(now, 0), 1); /* the first relay of all */
	assert_int_equal(bl_time_above(0, now), 0);
}

/* ---- a switch ---- */

#define PORTS      13
#define DEAD_AFTER 50

struct model_port {
	uint64_t b, c, heard;
	/* dead: the port holds C's minimum; only a RESUME would end that (test_order_core.c) */
	bool live, dead;
};

static void switch__random_frames_keep_the_promise(void **state)
{
	struct rnd r = rnd_seeded("switch");
	int round;

	(void)state;
	for (round = 0; round < 40; round++) {
		static struct bl_tree tree;
		struct bl_port_regs regs[PORTS] = { 0 };
		struct bl_life life[PORTS] = { 0 };
		struct model_port m[PORTS] = { 0 };
		struct bl_pair out = { 0, 0 };
		bool silent[PORTS] = { false };
		/*
		 * In half of the rounds ports join near what was given, in the others only above
		 * it.
		 */
		uint64_t watch = 1, clock = 10000, far = round & 1 ? 20 : 0;
		int op;

		bl_tree_clear(&tree);
		for (op = 0; op < 3000; op++) {
			uint32_t p = rnd_below(&r, PORTS), i, res;
			struct bl_pair leaf, root, was = out, min = { NONE, NONE };

			watch += rnd_below(&r, 3);
			clock += rnd_below(&r, 20);
			if (!rnd_below(&r, silent[p] ? 8 : 60))
				silent[p] = !silent[p];
			if (!rnd_below(&r, 10)) {
				/* the scan for silent inputs */
				for (i = 0; i < PORTS; i++) {
					bool dies = m[i].live && watch - m[i].heard > DEAD_AFTER;

					res = expire_silent(&regs[i],
							    bl_time_before(watch, DEAD_AFTER),
							    &life[i], &leaf);
					assert_int_equal(!!(res & BL_A_EXCLUDED), dies);
					if (res & BL_A_LEAF)
						bl_tree_set(&tree, 16, i, leaf.b, leaf.c);
					if (dies) {
						m[i].live = false;
						m[i].dead = true;
					}
				}
			} else if (!silent[p]) {
				uint64_t b = clock - rnd_below(&r, 600), c = b - rnd_below(&r, 50);
				bool joins;

				m[p].heard = watch;
				m[p].b = b > m[p].b ? b : m[p].b;
				m[p].c = c > m[p].c && !m[p].dead ? c : m[p].c;
				joins = !m[p].live &&
					m[p].b > (out.b > 10 * far ? out.b - 10 * far : 0);
				res = bl_port_arrive(&regs[p], 0, 1, b, c, watch,
						     bl_join_floor(out.b, far, 0), 0, &leaf);
				assert_int_equal(!!(res & BL_A_JOINED), joins);
				m[p].live |= joins;
				if (res & BL_A_LEAF)
					bl_tree_set(&tree, 16, p, leaf.b, leaf.c);
			}
			root = bl_tree_least(&tree);
			bl_out_advance(&out, &root);
			for (i = 0; i < PORTS; i++) {
				if (m[i].live)
					min.b = bl_min64(min.b, m[i].b);
				if (m[i].live || m[i].dead)
					min.c = bl_min64(min.c, m[i].c);
			}
			assert_int_equal(root.b, min.b);
			assert_int_equal(root.c, min.c);
			assert_true(out.b >= was.b && out.c >= was.c);
			/* Every live input vouches for what the outputs were newly given. */
			for (i = 0; i < PORTS; i++) {
				if (m[i].live && (out.b > was.b || !far))
					assert_true(m[i].b >= out.b);
				if (out.c > was.c && (m[i].live || m[i].dead))
					assert_true(m[i].c >= out.c);
			}
		}
	}
}

/*
 * Only the mark BL_RELAY_STILL makes every C news. The times next to it, no time and a time far
 * away do not.
 */
static void bl_commit_news__edges(void **state)
{
	static const struct {
		struct bl_pair out;
		uint64_t relay_at, above;
	} t[] = {
		{ { .b = 900, .c = 800 }, BL_RELAY_STILL, 0 },
		{ { .b = 900, .c = 900 }, BL_RELAY_STILL, 0 },
		{ { .b = 900, .c = 800 }, BL_RELAY_STILL - 1, 800 },
		{ { .b = 900, .c = 800 }, BL_RELAY_STILL + 1, 800 },
		{ { .b = 900, .c = 900 }, BL_RELAY_STILL + 1, BL_LEAF_NONE },
		{ { .b = 900, .c = 800 }, 1764000000000000000ULL, 800 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(bl_commit_news(&t[i].out, t[i].relay_at), t[i].above);
}

static void bl_stands_still__edges(void **state)
{
	static const struct {
		uint64_t now, b, dead_after;
		int still;
	} t[] = {
		{ 1000, 900, 400, 0 }, /* a quarter, to the nanosecond */
		{ 1001, 900, 400, 1 },  { 999, 900, 400, 0 },
		{ 800, 900, 400, 0 },                           /* ahead of the clock */
		{ 1001, 900, 403, 1 },                          /* The quarter is rounded down. */
		{ 1000, 900, 403, 0 },  { 1000000, 0, 400, 0 }, /* No input has joined. */
		{ 1000000, 1, 400, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(bl_stands_still(t[i].now, t[i].b, t[i].dead_after), t[i].still);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_commit_news__edges),
		cmocka_unit_test(bl_stands_still__edges),
		cmocka_unit_test(bl_tree_set__the_example_of_the_header),
		cmocka_unit_test(bl_tree_set__b_and_c_rise_apart),
		cmocka_unit_test(bl_tree_set__equal_keys),
		cmocka_unit_test(bl_tree_set__two_trees_and_one_again),
		cmocka_unit_test(bl_tree_set__random_against_scan),
		cmocka_unit_test(bl_out_advance__monotone),
		cmocka_unit_test(bl_out_follow__edges),
		cmocka_unit_test(bl_port_arrive__first_frame_joins),
		cmocka_unit_test(bl_port_arrive__registers_only_rise),
		cmocka_unit_test(bl_port_arrive__joins_only_above_the_floor),
		cmocka_unit_test(bl_join_floor__edges),
		cmocka_unit_test(bl_port_arrive__joins_behind_and_outputs_wait),
		cmocka_unit_test(bl_port_arrive__joining_lane_does_not_hold_commit),
		cmocka_unit_test(bl_port_arrive__waits_for_every_lane),
		cmocka_unit_test(bl_port_arrive__a_lane_that_is_never_heard_is_given_up),
		cmocka_unit_test(bl_port_arrive__lanes_beyond_the_last_are_cut),
		cmocka_unit_test(bl_port_expire__edges),
		cmocka_unit_test(bl_time_before__edges),
		cmocka_unit_test(bl_port_expire__lagging),
		cmocka_unit_test(bl_port_expire__lagging_commit),
		cmocka_unit_test(bl_port_expire__one_lane_of_two),
		cmocka_unit_test(bl_port_expire__a_joining_lane_stays),
		cmocka_unit_test(bl_port_arrive__return_of_the_dead),
		cmocka_unit_test(bl_watch_advance__edges),
		cmocka_unit_test(bl_relay_next__edges),
		cmocka_unit_test(bl_above__edges),
		cmocka_unit_test(switch__random_frames_keep_the_promise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
