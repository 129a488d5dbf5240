/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lib/answers_core.h: how many answers strangers get. */
#include "tests/unit/unit.h"

#include "lib/answers_core.h"

static void bl_answers_take__a_burst_then_the_rate(void **state)
{
	static struct bl_answers q;
	uint64_t now = 5;
	int i, n = 0;

	(void)state;
	for (i = 0; i < 10000; i++)
		n += bl_answers_take(&q, 3, now);
	assert_int_equal(n, BL_ANSWERS_BURST);
	/* Not a nanosecond too early. */
	assert_int_equal(bl_answers_take(&q, 3, now + BL_ANSWERS_NS - 1), 0);
	assert_int_equal(bl_answers_take(&q, 3, now + BL_ANSWERS_NS), 1);
	assert_int_equal(bl_answers_take(&q, 3, now + BL_ANSWERS_NS), 0);
	/* Another bucket is full, and the same bucket by another hash is not. */
	assert_int_equal(bl_answers_take(&q, 4, now), 1);
	assert_int_equal(bl_answers_take(&q, 3 + BL_ANSWERS_BUCKETS, now + BL_ANSWERS_NS), 0);
	/* For a second of flood: the rate. */
	for (n = i = 0; i < 1000000; i++)
		n += bl_answers_take(&q, 3, now + BL_ANSWERS_NS + (uint64_t)i * 1000);
	assert_in_range(n, 1000000000 / BL_ANSWERS_NS - 1, 1000000000 / BL_ANSWERS_NS);
	/* After a long pause there is one burst, not more. */
	for (n = i = 0; i < 10000; i++)
		n += bl_answers_take(&q, 3, 1ULL << 62);
	assert_int_equal(n, BL_ANSWERS_BURST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_answers_take__a_burst_then_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
