// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/throttle_core.h: whoever keeps to the times that he is told gets his rate and his burst, and
 * never more, whatever the times of his events are.
 */
#include "tests/unit/unit.h"

#include "core/throttle_core.h"

#define MS 1000000ULL

static void bl_throttle_take__example(void **state)
{
	struct bl_throttle q = { 0 };
	unsigned int k;

	(void)state;
	for (k = 0; k < 8; k++)
		assert_int_equal(bl_throttle_take(&q, 1000 * MS, 5 * MS, 40 * MS), 1000 * MS);
	assert_int_equal(bl_throttle_take(&q, 1000 * MS, 5 * MS, 40 * MS), 1005 * MS);
	for (k = 0; k < 8; k++)
		assert_int_equal(bl_throttle_take(&q, 2000 * MS, 5 * MS, 40 * MS), 2000 * MS);
	assert_int_equal(bl_throttle_take(&q, 2000 * MS, 5 * MS, 40 * MS), 2005 * MS);
}

static void bl_throttle_take__rate(void **state)
{
	struct rnd r = rnd_seeded("quota");
	unsigned int round;

	(void)state;
	for (round = 0; round < 200; round++) {
		const uint64_t cost = 1 + rnd_below(&r, 10 * MS), owed = rnd_below(&r, 1000 * MS);
		const uint64_t begin = rnd64(&r) >> 4;
		uint64_t now = begin, n = 0;
		struct bl_throttle q = { 0 };

		for (n = 1; n < 2000; n++) {
			uint64_t next = bl_throttle_take(&q, now, cost, owed);

			assert_true(next >= now && next - now <= cost);
			/* what came, but for the last event, is within the rate and the burst */
			assert_true((n - 1) * cost <= now - begin + owed);
			now = next + (rnd_below(&r, 4) ? 0 : rnd_below(&r, 2 * MS));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_throttle_take__example),
		cmocka_unit_test(bl_throttle_take__rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
