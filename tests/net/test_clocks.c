// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Clocks that differ. Within the bound: one order, nothing lost. Beyond: the one that is wrong is refused and counted, the others go on.
 * And the day on which 48 bits of nanoseconds are full.
 */
#include "traffic.h"

#define BOUND_US 2000
#define WRAP	 (3ULL << 48)
#define WRAP_LEAD 12000000000ULL /* a rack is up long before, also on a machine that is slow */

static void skew_within(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	/* any two differ by less than the bound: a node believes what is at most its own bound ahead of its own clock */
	static const int64_t skew_us[] = { 900, -900, 400, 0, -300, 700 };

	cfg->clock_bound_us = BOUND_US;
	if (n->kind == LAB_HOST)
		cfg->skew_ns = skew_us[(n->index - 1) % 6] * 1000;
}

static uint64_t wrap_at; /* CLOCK_MONOTONIC; 0: no wrap comes */

static void all_to_some(unsigned int endpoints, unsigned int hosts, struct tr_cfg cfg)
{
	uint64_t now;
	unsigned int i;

	rack.lab.spec.hosts = hosts;
	rack_open();
	now = t_mono();
	if (wrap_at) /* run_ms after it, however long the rack took to come up */
		cfg.run_ms += wrap_at > now ? (uint32_t)((wrap_at - now) / 1000000) : 0;
	for (i = 0; i < endpoints; i++) {
		cfg.host = i % hosts;
		cfg.fn = tr_mix;
		cfg.ring_bytes = TR_RING_TIGHT(endpoints);
		tr_add(&cfg);
	}
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(~0ULL, ~0ULL);
	CHECK(TR_SUM(late_dropped) == 0, "late");
	CHECK(rack_count_all(BL_R_BARRIER_AHEAD) + rack_count_all(BL_R_TS_AHEAD) == 0, "a clock within the bound was refused");
}

RACK_TEST(skew__within_the_bound)
{
	rack.tweak = skew_within;
	all_to_some(8, 6, (struct tr_cfg){ .scatterings = 250, .len = 300, .fan = 5, .items = 2, .more = 50 });
}

RACK_TEST(skew__within_the_bound_leaf_spine)
{
	rack.lab.spec.leaf_spine = rack.lab.spec.l3 = true;
	rack.tweak = skew_within;
	all_to_some(6, 6, (struct tr_cfg){ .scatterings = 150, .len = 300, .fan = 4 });
}

static void h4_is_ahead(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind == LAB_HOST && n->index == 4)
		cfg->skew_ns = 10000000000;
}

static void h4_is_behind(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	if (n->kind == LAB_HOST && n->index == 4)
		cfg->skew_ns = -20000000;
}

/*
 * h4's clock is 10 s fast, the bound is 50 us: nothing of h4 is believed. Less would be true by the time
 * that it is looked at, if what reads it has not had a CPU for as long.
 */
RACK_TEST(skew__ahead_of_the_bound)
{
	uint64_t ahead;
	unsigned int i;
	uint32_t g;

	rack.lab.spec.hosts = 4;
	rack.tweak = h4_is_ahead;
	rack_open();
	for (i = 0; i < 3; i++)
		tr_add(&(struct tr_cfg){ .host = i, .fn = tr_mix, .to = 7, .scatterings = 400, .len = 200, .fan = 3, .quiet_ms = 5000, .ring_bytes = TR_RING_TIGHT(4) });
	tr_add(&(struct tr_cfg){ .host = 3, .fn = tr_mix, .to = 7, .scatterings = 20, .len = 200, .gap_us = 20000, .quiet_ms = 5000 });
	TR_STORE(tr_sh->go, 1); /* h4 never joins: nothing to wait for */
	tr_wait_done(60000);
	tr_stop();
	/* from h1 to h3 to each other: all of it; from h4: nothing */
	tr_judge(7, 7);
	for (i = 0; i < 3; i++)
		for (g = 0; g < tr_sh->node[i].ngot; g++)
			CHECK(tr_sh->node[i].got[g].sender != 3, "a message with a wrong timestamp was delivered");
	for (i = 0; !rack_is_switch(i); i++)
		;
	ahead = rack_count(i, BL_R_BARRIER_AHEAD);
	CHECK(ahead > 0, "the wrong clock was not counted");
	CHECK(rack_live_inputs(i) == 3, "%u inputs", rack_live_inputs(i));
	CHECK(tr_sh->node[3].fails[BL_FAIL_UNREACHABLE] + tr_sh->node[3].fails[BL_FAIL_UNKNOWN] > 0, "h4 was not told");
}

/* A clock that is 20 ms slow delays everybody by 20 ms, and breaks nothing. It takes the others for fast, so it hears nothing itself. */
RACK_TEST(skew__behind)
{
	unsigned int i;

	rack.lab.spec.hosts = 4;
	rack.tweak = h4_is_behind;
	rack_open();
	for (i = 0; i < 4; i++)
		tr_add(&(struct tr_cfg){ .host = i, .fn = tr_mix, .to = i < 3 ? 7 : 8, .scatterings = 60, .len = 200, .fan = 3, .gap_us = 2000, .quiet_ms = 4000, .ring_bytes = TR_RING_TIGHT(4) });
	tr_add(&(struct tr_cfg){ .host = 0, .fn = tr_mix, .to = 8, .scatterings = 10, .len = 200, .gap_us = 20000, .quiet_ms = 3000 });
	tr_go();
	tr_wait_done(60000);
	tr_stop();
	tr_judge(7, 7);
	CHECK(rack_count(rack_host(3), BL_R_BARRIER_AHEAD) + rack_count(rack_host(3), BL_R_TS_AHEAD) > 0, "the slow clock noticed nothing");
}

static void near_the_wrap(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	cfg->clock_base_ns = WRAP - WRAP_LEAD;
	if (!wrap_at)
		wrap_at = t_mono() + WRAP_LEAD; /* the clock of all nodes begins with the first one */
}

RACK_TEST(wrap__of_48_bits)
{
	uint64_t before = 0, after = 0;
	uint32_t i, g;

	rack.tweak = near_the_wrap;
	all_to_some(6, 4, (struct tr_cfg){ .run_ms = 2500, .len = 300, .fan = 4, .items = 2, .gap_us = 10000 });
	for (i = 0; i < 6; i++) {
		for (g = 0; g < tr_sh->node[i].ngot; g++) {
			before += tr_sh->node[i].got[g].ts < WRAP;
			after += tr_sh->node[i].got[g].ts >= WRAP;
		}
	}
	fprintf(stderr, "  %" PRIu64 " deliveries before the wrap, %" PRIu64 " after\n", before, after);
	CHECK(before > 100 && after > 100, "the clock did not wrap in the middle of the traffic");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skew__within_the_bound),
		cmocka_unit_test(skew__within_the_bound_leaf_spine),
		cmocka_unit_test(skew__ahead_of_the_bound),
		cmocka_unit_test(skew__behind),
		cmocka_unit_test(wrap__of_48_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
