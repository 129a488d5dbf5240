// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/hop_core.h: whose barriers a frame carries. Tried on whole networks, with every set of
 * consecutive switches that have lost their programs.
 */
#include "tests/unit/unit.h"

#include "core/order/barrier_core.h"
#include "core/order/hop_core.h"
#include "maps/wire_abi.h"
#include "tests/unit/core/order/expire.h"

/*
 * A network is reduced to the kinds of its nodes: one path from a host up to a switch and down to
 * another host. Hosts are tier 0, and above them are @tiers tiers of switches.
 */
#define WAY_MAX 9

/* Returns what node @k of the path that turns around at tier @top writes. */
static uint8_t written_hop(unsigned int tiers, unsigned int top, unsigned int k)
{
	unsigned int tier = k <= top ? k : 2 * top - k;

	if (!tier)
		return BL_HOP_HOST;
	return bl_hop_write(tier == 1, tier < tiers,
			    k < top     ? BL_PORT_UP
			    : tier == 1 ? BL_PORT_HOST
					: BL_PORT_DOWN);
}

/*
 * Returns the number of sets of @gone consecutive switches that let a frame pass as if the last of
 * them had written its hop.
 */
static unsigned int count_unnoticed(unsigned int tiers, unsigned int gone)
{
	unsigned int top, from, n = 0;

	for (top = 1; top <= tiers; top++)
		for (from = 0; from + gone + 1 <= 2 * top; from++)
			n += written_hop(tiers, top, from) == written_hop(tiers, top, from + gone);
	return n;
}

static void network__every_set_of_switches(void **state)
{
	unsigned int gone;

	(void)state;
	assert_int_equal(count_unnoticed(1, 1), 0);
	for (gone = 1; gone <= 3; gone++)
		assert_int_equal(count_unnoticed(2, gone), 0);
	assert_int_equal(count_unnoticed(3, 1), 0);
	/*
	 * The only set: a host's frame passes its leaf and the middle switch above unnoticed, on
	 * its way down to another leaf.
	 */
	assert_int_equal(count_unnoticed(3, 2), 1);
	assert_int_equal(written_hop(3, 2, 0), written_hop(3, 2, 2));
}

static void bl_hop_write__table(void **state)
{
	static const struct {
		int hosts, ups;
		uint32_t out;
		uint8_t hop;
	} v[] = {
		{ 1, 0, BL_PORT_HOST, BL_HOP_LEAF },  { 1, 1, BL_PORT_HOST, BL_HOP_LEAF },
		{ 1, 1, BL_PORT_UP, BL_HOP_LEAF_UP }, { 0, 0, BL_PORT_DOWN, BL_HOP_TOP },
		{ 0, 1, BL_PORT_DOWN, BL_HOP_HOST },  { 0, 1, BL_PORT_UP, BL_HOP_LEAF },
		{ 1, 1, BL_PORT_DOWN, BL_HOP_LEAF },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		assert_int_equal(bl_hop_write(v[i].hosts, v[i].ups, v[i].out), v[i].hop);
}

static void bl_hop_old__edges(void **state)
{
	const uint64_t now = 3 * BL_TS_OLD, edge = now - BL_TS_OLD / 2;

	(void)state;
	assert_true(bl_hop_old(edge - 1, edge - 1, now));
	assert_false(bl_hop_old(edge, edge - 1, now));
	assert_false(bl_hop_old(edge - 1, edge, now));
	assert_true(bl_hop_old(now - BL_TS_OLD, now - BL_TS_OLD, now));
}

static void bl_port_learn__all_lanes(void **state)
{
	struct bl_port_regs p = {};
	uint32_t l;

	(void)state;
	bl_port_learn_hop(&p, 3, BL_HOP_TOP);
	for (l = 0; l < BL_LANES_MAX; l++)
		assert_int_equal(p.lane[l].hop, BL_HOP_TOP);
}

/*
 * C stays at the value that was known until the port joins, whatever arrives before. Then C is that
 * of the input.
 */
static void bl_port_await__until_it_joins(void **state)
{
	struct bl_port_regs p = {};
	struct bl_pair leaf;

	(void)state;
	bl_port_await(&p, 900);
	bl_port_leaf(&p, &leaf);
	assert_true(leaf.b == BL_LEAF_NONE && leaf.c == 900);
	/* The link has two lanes: one has been heard, and the other is awaited. */
	assert_int_equal(bl_port_arrive(&p, 1, 2, 5000, 5000, 1, 0, 0, &leaf) & BL_A_JOINED, 0);
	assert_true(bl_port_awaited(&p) && leaf.c == 900);
	assert_true(bl_port_arrive(&p, 0, 2, 4000, 3000, 2, 0, 0, &leaf) & BL_A_JOINED);
	assert_false(bl_port_awaited(&p));
	assert_int_equal(p.lane[0].state, BL_REG_LIVE | BL_REG_IN);
	assert_int_equal(p.lane[0].c, 3000);
	assert_int_equal(leaf.c, 3000);
	bl_port_arrive(&p, 1, 2, 5100, 5100, 3, 0, 0, &leaf);
	bl_port_leaf(&p, &leaf);
	assert_true(leaf.b == 4000 && leaf.c == 3000);
}

/*
 * A lane that was announced but never heard is given up. That alone does not end the wait for the
 * port.
 */
static void bl_port_await__not_by_silence(void **state)
{
	struct bl_port_regs p = {};
	struct bl_life life = {};
	struct bl_pair leaf;

	(void)state;
	bl_port_await(&p, 900);
	bl_port_arrive(&p, 1, 2, 5000, 5000, 1, 0, 0, &leaf);
	expire_silent(&p, 1000, &life, &leaf);
	assert_true(bl_port_awaited(&p));
	bl_port_leaf(&p, &leaf);
	assert_int_equal(leaf.c, 900);
	assert_int_equal(life.death, 0);
	/* The next frame of the other lane joins the port. */
	assert_true(bl_port_arrive(&p, 1, 2, 5200, 5200, 2001, 0, 0, &leaf) & BL_A_JOINED);
	assert_false(bl_port_awaited(&p));
	assert_int_equal(leaf.c, 5200);
}

/*
 * The loader reports that nothing is behind the port. A second report changes nothing, and a
 * neighbour that appears later joins.
 */
static void bl_port_obey__empty(void **state)
{
	struct bl_fence_slot o = { .empty = 1 };
	struct bl_port_regs p = {};
	struct bl_life life = {};
	struct bl_pair leaf;

	(void)state;
	bl_port_await(&p, BL_C_UNKNOWN);
	assert_int_equal(bl_port_apply_fence(&p, &life, &o, &leaf), BL_A_LEAF);
	assert_int_equal(leaf.c, BL_LEAF_NONE);
	assert_int_equal(bl_port_apply_fence(&p, &life, &o, &leaf), 0);
	assert_true(bl_port_arrive(&p, 0, 1, 700, 600, 1, 0, 0, &leaf) & BL_A_JOINED);
	assert_int_equal(leaf.c, 600);
	/*
	 * A barred input ends the wait as well: the controller that bars it is responsible for it.
	 */
	p = (struct bl_port_regs){};
	bl_port_await(&p, 900);
	bl_port_arrive(&p, 0, 1, 700, 1600, 1, 0, 1, &leaf);
	assert_int_equal(leaf.c, BL_LEAF_NONE);
	assert_int_equal(p.lane[0].state, BL_REG_LIVE);
}

/* A lane that promises nothing joins no port that has others, and one that is alone does. */
static void bl_lane_promise__edges(void **state)
{
	const uint64_t now = 3 * BL_TS_OLD, edge = now - BL_TS_OLD / 2;
	struct bl_port_regs p = {};
	struct bl_pair leaf;

	(void)state;
	assert_true(bl_lane_promise(edge, 2, now) == edge);
	assert_true(bl_lane_promise(edge - 1, 2, now) == 0);
	assert_true(bl_lane_promise(edge - 1, 8, now) == 0);
	assert_true(bl_lane_promise(edge - 1, 1, now) == edge - 1);
	/* Lane 1 is heard, so lane 0 need not wait for it; it joins when it promises something. */
	assert_int_equal(bl_port_arrive(&p, 1, 2, 0, 0, 1, 0, 0, &leaf) & BL_A_JOINED, 0);
	assert_int_equal(p.lane[1].state, BL_REG_JOINING);
	assert_true(bl_port_arrive(&p, 0, 2, now, now, 2, 0, 0, &leaf) & BL_A_JOINED);
	assert_true(leaf.b == now);
	assert_int_equal(bl_port_arrive(&p, 1, 2, 0, 0, 3, 0, 0, &leaf) & BL_A_JOINED, 0);
	assert_int_equal(p.lane[1].heard_ns, 3);
	assert_true(leaf.b == now);
	assert_true(bl_port_arrive(&p, 1, 2, edge, edge, 4, 0, 0, &leaf) & BL_A_JOINED);
	assert_true(leaf.b == edge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_hop_write__table),
		cmocka_unit_test(bl_hop_old__edges),
		cmocka_unit_test(network__every_set_of_switches),
		cmocka_unit_test(bl_port_learn__all_lanes),
		cmocka_unit_test(bl_port_await__until_it_joins),
		cmocka_unit_test(bl_port_await__not_by_silence),
		cmocka_unit_test(bl_port_obey__empty),
		cmocka_unit_test(bl_lane_promise__edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
