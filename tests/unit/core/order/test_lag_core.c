// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Inputs that lag (core/order/lag_core.h): edges, and a switch with an input that tries to hold it.
 */
#include "tests/unit/unit.h"
#include "core/order/barrier_core.h"
#include "core/order/lag_core.h"

#define MS         1000000ULL
#define LAG_MAX    (50 * MS)
#define DEAD_AFTER (1 * MS)
#define BEACON     (MS / 10)

static void bl_lag_limit__by_role(void **state)
{
	(void)state;
	assert_int_equal(bl_lag_limit(7, BL_PORT_HOST), 7);
	assert_int_equal(bl_lag_limit(7, BL_PORT_UP), 28);
	assert_int_equal(bl_lag_limit(7, BL_PORT_DOWN), 28);
	assert_int_equal(bl_lag_limit(0, BL_PORT_HOST), 0);
	assert_int_equal(bl_lag_limit(0, BL_PORT_UP), 0);
}

static void bl_fresh_above__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_fresh_above(100, 0), 0);
	assert_int_equal(bl_fresh_above(100, 99), 1);
	assert_int_equal(bl_fresh_above(100, 100), 0);
	assert_int_equal(bl_fresh_above(100, 101), 0);
	assert_int_equal(bl_lag_before(100, 0), 0);
	assert_int_equal(bl_lag_before(100, 99), 1);
	assert_int_equal(bl_lag_before(100, 100), 0);
}

/* Only the last search counts, and only if the other lane has read its clock at about this time. */
static void bl_lane_vouches__edges(void **state)
{
	(void)state;
	assert_true(bl_lane_vouches(40, 40, 1000, 1000, 100));
	assert_false(bl_lane_vouches(40, 39, 1000, 1000, 100));
	assert_false(bl_lane_vouches(40, 0, 1000, 1000, 100)); /* a search that has just begun */
	assert_false(bl_lane_vouches(0, 0, 1000, 1000, 100));  /* no search yet */
	assert_true(bl_lane_vouches(40, 40, 1000, 1100, 100));
	assert_false(bl_lane_vouches(40, 40, 1000, 1101, 100));
	assert_true(bl_lane_vouches(40, 40, 1100, 1000, 100));
	assert_false(bl_lane_vouches(40, 40, 1101, 1000, 100));
}

/* The wait doubles with each exclusion up to its limit, and minutes without one take it back. */
static void bl_lag_out__wait(void **state)
{
	struct bl_lag l = { 0 };
	uint64_t watch = 1, want = LAG_MAX;
	int k;

	(void)state;
	assert_int_equal(bl_lag_wait(&l, LAG_MAX), 0);
	for (k = 0; k < 12; k++) {
		watch += 100 * MS;
		bl_lag_out(&l, watch, LAG_MAX);
		assert_int_equal(bl_lag_wait(&l, LAG_MAX), want);
		if (k < BL_LAG_TIMES - 1)
			want *= 2;
	}
	assert_int_equal(want, 12800 * MS);
	/* just before a minute: nothing is forgiven; three minutes: three are, and one is added */
	watch += BL_LAG_FORGIVE * LAG_MAX - 1;
	bl_lag_out(&l, watch, LAG_MAX);
	assert_int_equal(bl_lag_wait(&l, LAG_MAX), want);
	watch += 3 * BL_LAG_FORGIVE * LAG_MAX;
	bl_lag_out(&l, watch, LAG_MAX);
	assert_int_equal(bl_lag_wait(&l, LAG_MAX), want / 4);
	watch += 100 * BL_LAG_FORGIVE * LAG_MAX;
	bl_lag_out(&l, watch, LAG_MAX);
	assert_int_equal(bl_lag_wait(&l, LAG_MAX), LAG_MAX);
}

static void bl_lag_may_join__edges(void **state)
{
	struct bl_lag l = { 0 };

	(void)state;
	/* An input that never lagged may join at once, fresh or not. */
	assert_true(bl_lag_may_join(&l, 0, 1, 100));
	bl_lag_out(&l, 1000, 100);
	assert_false(bl_lag_may_join(&l, 1, 2000, 100));
	assert_false(bl_lag_may_join(&l, 1, 2099, 100));
	/* A frame that is not fresh begins the wait anew. */
	assert_false(bl_lag_may_join(&l, 0, 2099, 100));
	assert_false(bl_lag_may_join(&l, 1, 2100, 100));
	assert_false(bl_lag_may_join(&l, 1, 2199, 100));
	assert_true(bl_lag_may_join(&l, 1, 2200, 100));
	/* a second exclusion: twice as long */
	bl_lag_out(&l, 2300, 100);
	assert_false(bl_lag_may_join(&l, 1, 2400, 100));
	assert_false(bl_lag_may_join(&l, 1, 2599, 100));
	assert_true(bl_lag_may_join(&l, 1, 2600, 100));
}

/** struct sim - a switch with one honest and one hostile input, in the code that switches run. */
struct sim {
	struct bl_port_regs regs[2];
	struct bl_life life[2];
	struct bl_lag lag[2];
	uint64_t now, watch, fresh, scan;
	struct bl_pair out;
	unsigned int lagged[2]; /* exclusions for lagging */
};

static void sim_frame(struct sim *s, int p, uint64_t b)
{
	struct bl_pair leaf;
	uint64_t floor = 0;

	if (!bl_reg_live(&s->regs[p].lane[0]))
		floor = !bl_lag_may_join(&s->lag[p], b >= bl_fresh_above(s->now, LAG_MAX / 2),
					 s->watch, LAG_MAX)
				? BL_TIME_NONE
				: bl_join_floor(s->out.b, DEAD_AFTER, LAG_MAX);
	bl_port_arrive(&s->regs[p], 0, 1, b, b, s->watch, floor, 0, &leaf);
}

static void sim_scan(struct sim *s)
{
	const struct bl_expiry e = { .watch = s->watch,
				     .silent = bl_time_before(s->watch, DEAD_AFTER),
				     .freshest = s->fresh,
				     .fresh = bl_fresh_above(s->now, LAG_MAX),
				     .lagging = bl_lag_before(s->fresh, LAG_MAX) };
	struct bl_pair leaf;
	uint64_t freshest = 0;
	int p;

	for (p = 0; p < 2; p++) {
		if (bl_port_expire(&s->regs[p], &e, &s->life[p], &leaf) & BL_A_LAGGING) {
			bl_lag_out(&s->lag[p], s->watch, LAG_MAX);
			s->lagged[p]++;
		}
		if (bl_reg_live(&s->regs[p].lane[0]) && s->regs[p].lane[0].fresh_ns > freshest)
			freshest = s->regs[p].lane[0].fresh_ns;
	}
	s->fresh = freshest;
}

/* One beacon interval: the honest input sends the clock, the other one sends @hostile if not 0. */
static void sim_step(struct sim *s, uint64_t hostile)
{
	struct bl_pair leaf[2], root = { BL_LEAF_NONE, BL_LEAF_NONE };
	int p;

	s->now += BEACON;
	s->watch += BEACON;
	sim_frame(s, 0, s->now);
	if (hostile)
		sim_frame(s, 1, hostile);
	if (s->watch - s->scan > DEAD_AFTER / 4) {
		s->scan = s->watch;
		sim_scan(s);
	}
	for (p = 0; p < 2; p++) {
		bl_port_leaf(&s->regs[p], &leaf[p]);
		root.b = bl_min64(root.b, leaf[p].b);
	}
	bl_out_advance(&s->out, &root);
}

static struct sim sim_new(void)
{
	return (struct sim){ .now = 1000000 * MS, .watch = 1 };
}

/* The worked example of the header: a barrier that stands still holds the rack twice lag_max. */
static void switch__standing_barrier(void **state)
{
	struct sim s = sim_new();
	uint64_t stuck, t;

	(void)state;
	for (t = 0; t < 100; t++)
		sim_step(&s, s.now + BEACON);
	stuck = s.now;
	for (t = 0; t < 10000 && !s.lagged[1]; t++) {
		sim_step(&s, stuck);
		if (!s.lagged[1])
			assert_true(s.out.b <= stuck);
	}
	assert_in_range(t * BEACON, 2 * LAG_MAX - 2 * MS, 2 * LAG_MAX + 2 * MS);
	for (t = 0; t < 10000; t++) {
		sim_step(&s, stuck);
		assert_int_equal(s.out.b, s.now);
	}
	assert_int_equal(s.lagged[0], 0);
	assert_int_equal(s.lagged[1], 1);
	/* It is fresh again, and joins after lag_max of that. */
	for (t = 0; t < 10000 && !bl_reg_live(&s.regs[1].lane[0]); t++)
		sim_step(&s, s.now + BEACON);
	assert_in_range(t * BEACON, LAG_MAX, LAG_MAX + 2 * MS);
}

/* A barrier that lags by a constant that is allowed is allowed for ever. */
static void switch__constant_lag(void **state)
{
	struct sim s = sim_new();
	uint64_t t;

	(void)state;
	for (t = 0; t < 100; t++)
		sim_step(&s, s.now + BEACON);
	for (t = 0; t < 50000; t++)
		sim_step(&s, s.now + BEACON - LAG_MAX);
	assert_int_equal(s.lagged[1], 0);
	for (t = 0; t < 2000; t++)
		sim_step(&s, s.now + BEACON - LAG_MAX - 1);
	assert_int_equal(s.lagged[1], 1);
	assert_int_equal(s.out.b, s.now);
}

/*
 * An input that stands still and falls silent before it would be excluded for lagging has lagged
 * all the same: otherwise it could come back at once, and hold the rack for twice lag_max again.
 */
static void switch__silent_before_it_is_found(void **state)
{
	struct sim s = sim_new();
	uint64_t t, held = 0, stuck = 0, steps = 1000000, cycle = 2 * LAG_MAX / BEACON - 40;

	(void)state;
	for (t = 0; t < steps; t++) {
		uint64_t at = t % cycle;

		if (!at)
			stuck = s.now;
		sim_step(&s, at < 10 ? s.now + BEACON : at < cycle - 15 ? stuck : 0);
		held += s.now - s.out.b > LAG_MAX + MS;
	}
	assert_int_equal(s.lagged[0], 0);
	assert_true(s.lagged[1] >= 1);
	assert_true(held * BEACON <= BL_LAG_TIMES * (2 * LAG_MAX + 3 * MS) + steps * BEACON / 100);
}

/* A switch whose own clock is wrong finds nobody fresh, and blames nobody who falls silent. */
static void switch__own_clock_is_wrong(void **state)
{
	struct sim s = sim_new();
	uint64_t t;

	(void)state;
	for (t = 0; t < 20000; t++) {
		uint64_t old = s.now - 3 * LAG_MAX;

		s.now += BEACON;
		s.watch += BEACON;
		sim_frame(&s, 0, old);
		if (t < 1000)
			sim_frame(&s, 1, old);
		sim_scan(&s);
	}
	assert_false(bl_reg_live(&s.regs[1].lane[0]));
	assert_int_equal(s.lagged[0] + s.lagged[1], 0);
}

/* A switch that stood still finds all its inputs behind, and excludes none of them. */
static void switch__own_standstill(void **state)
{
	struct sim s = sim_new();
	uint64_t t;

	(void)state;
	for (t = 0; t < 100; t++)
		sim_step(&s, s.now + BEACON);
	for (t = 0; t < 5000; t++) {
		uint64_t old = s.now - 3 * LAG_MAX;

		s.now += BEACON;
		s.watch += BEACON;
		sim_frame(&s, 0, old);
		sim_frame(&s, 1, old);
		sim_scan(&s);
	}
	assert_int_equal(s.lagged[0] + s.lagged[1], 0);
	assert_true(bl_reg_live(&s.regs[0].lane[0]) && bl_reg_live(&s.regs[1].lane[0]));
}

/*
 * Whatever an input sends, in phases of any length in which it is fresh, silent, stands still, or
 * lags: the output is at most twice lag_max behind, and it is behind by more than lag_max, which
 * an input may be for ever, for a small share of the time. The honest input is never excluded.
 */
static void switch__hostile_input_holds_little(void **state)
{
	struct rnd r = rnd_seeded("lag");
	int round;

	(void)state;
	for (round = 0; round < 8; round++) {
		struct sim s = sim_new();
		uint64_t t, held = 0, stuck = 0, until = 0, steps = 3000000, kind = 0;

		for (t = 0; t < steps; t++) {
			uint64_t b;

			if (s.watch >= until) {
				kind = round < 2 ? (kind + 1) % 2 : rnd_below(&r, 4);
				stuck = s.now;
				/* the first two rounds: as short as it may be to join again */
				until = s.watch +
					(round < 2 && !kind
						 ? bl_lag_wait(&s.lag[1], LAG_MAX) + 2 * MS
					 : round < 2 ? 2 * LAG_MAX + 3 * MS
						     : rnd_below(&r, 400 * MS));
			}
			b = kind == 0   ? s.now + BEACON
			    : kind == 1 ? stuck
			    : kind == 2 ? 0
					: s.now - rnd_below(&r, 3 * LAG_MAX);
			sim_step(&s, b);
			if (t < 100)
				continue;
			assert_true(s.now - s.out.b <= 2 * LAG_MAX + 2 * MS);
			held += s.now - s.out.b > LAG_MAX + MS;
		}
		assert_int_equal(s.lagged[0], 0);
		assert_true(s.lagged[1] > 5);
		/* nine exclusions while the wait grows, and then a hundredth */
		assert_true(held * BEACON <=
			    BL_LAG_TIMES * (2 * LAG_MAX + 3 * MS) + steps * BEACON / 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_lag_limit__by_role),
		cmocka_unit_test(bl_fresh_above__edges),
		cmocka_unit_test(bl_lane_vouches__edges),
		cmocka_unit_test(bl_lag_out__wait),
		cmocka_unit_test(bl_lag_may_join__edges),
		cmocka_unit_test(switch__standing_barrier),
		cmocka_unit_test(switch__constant_lag),
		cmocka_unit_test(switch__silent_before_it_is_found),
		cmocka_unit_test(switch__own_clock_is_wrong),
		cmocka_unit_test(switch__own_standstill),
		cmocka_unit_test(switch__hostile_input_holds_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
