// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/epoch_core.h: what a node obeys never falls, and whatever a false controller says, no
 * single message takes the node further than one step from its real leaders.
 */
#include "tests/unit/unit.h"

#include "core/order/epoch_core.h"

static void judge__limits(void **state)
{
	static const struct {
		uint64_t highest, said;
		enum bl_epoch_verdict verdict;
	} t[] = {
		{ 0, 1, BL_EPOCH_OBEY },
		{ 0, BL_EPOCH_FIRST, BL_EPOCH_OBEY },
		{ 0, BL_EPOCH_FIRST + 1, BL_EPOCH_FAR },
		{ 0, UINT64_MAX, BL_EPOCH_FAR },
		{ 41, 41, BL_EPOCH_OBEY },
		{ 41, 42, BL_EPOCH_OBEY },
		{ 41, 40, BL_EPOCH_OLD },
		{ 41, 0, BL_EPOCH_OLD },
		{ 41, 41 + BL_EPOCH_STEP, BL_EPOCH_OBEY },
		{ 41, 42 + BL_EPOCH_STEP, BL_EPOCH_FAR },
		{ 41, 1ULL << 63, BL_EPOCH_FAR },
		{ 41, UINT64_MAX, BL_EPOCH_FAR },
		{ BL_EPOCH_FIRST, BL_EPOCH_FIRST + BL_EPOCH_STEP, BL_EPOCH_OBEY },
		/* A node that obeys the last epochs already, from a version without the limit. */
		{ UINT64_MAX - 1, UINT64_MAX, BL_EPOCH_OBEY },
		{ UINT64_MAX, UINT64_MAX, BL_EPOCH_OBEY },
		{ UINT64_MAX, UINT64_MAX - 1, BL_EPOCH_OLD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		if (bl_epoch_judge(t[i].highest, t[i].said) != t[i].verdict)
			fail_msg("row %zu", i);
}

/*
 * A node hears epochs of honest leaders and of a false controller in any order. After each message,
 * its highest epoch has not fallen and has risen by at most a step, and a leader that continues
 * from it is obeyed.
 */
static void judge__steps(void **state)
{
	struct rnd r = rnd_seeded("epochs");
	unsigned int k;

	(void)state;
	for (k = 0; k < 200000; k++) {
		uint64_t highest = rnd64(&r) >> rnd_below(&r, 64), said, next;
		enum bl_epoch_verdict v;

		said = rnd_below(&r, 2) ? rnd64(&r) >> rnd_below(&r, 64)
					: highest + (rnd64(&r) >> rnd_below(&r, 64)) -
						  (rnd64(&r) >> rnd_below(&r, 64));
		v = bl_epoch_judge(highest, said);
		next = v == BL_EPOCH_OBEY ? said : highest;
		assert_true(next >= highest);
		assert_true(next - highest <= (highest ? BL_EPOCH_STEP : BL_EPOCH_FIRST));
		assert_true(v == BL_EPOCH_OLD ? said < highest : said >= highest);
		if (next && next < UINT64_MAX)
			assert_int_equal(bl_epoch_judge(next, next + 1), BL_EPOCH_OBEY);
		/* Obeying is transitive within a step: the way to an epoch does not matter. */
		if (v == BL_EPOCH_OBEY && highest && said > highest)
			assert_int_equal(bl_epoch_judge(highest + (said - highest) / 2, said),
					 BL_EPOCH_OBEY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judge__limits),
		cmocka_unit_test(judge__steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
