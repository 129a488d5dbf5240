// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Quotas of frames (core/quota_core.h): the worked example, edges, and the rate over any time. */
#include "tests/unit/unit.h"
#include "core/quota_core.h"

static void bl_quota_take__example(void **state)
{
	__u64 w = 0;
	int k;

	(void)state;
	for (k = 0; k < 5; k++)
		assert_true(bl_quota_take(&w, 1000000, 2000, 8000));
	assert_int_equal(w, 1010000);
	assert_false(bl_quota_take(&w, 1000000, 2000, 8000));
	assert_int_equal(w, 1010000);
	assert_false(bl_quota_take(&w, 1001999, 2000, 8000));
	assert_true(bl_quota_take(&w, 1002000, 2000, 8000));
	assert_false(bl_quota_take(&w, 1002000, 2000, 8000));
}

static void bl_quota_take__no_quota(void **state)
{
	__u64 w = 5;
	int k;

	(void)state;
	for (k = 0; k < 100; k++)
		assert_true(bl_quota_take(&w, 1, 0, 0));
	assert_int_equal(w, 5);
}

/* A clock that went back does not close the quota until it is where it was. */
static void bl_quota_take__clock_goes_back(void **state)
{
	__u64 w = 0;

	(void)state;
	assert_true(bl_quota_take(&w, 1000000000, 2000, 8000));
	assert_true(bl_quota_take(&w, 5000, 2000, 8000));
	assert_int_equal(w, 7000);
	/* 10001 ns ahead is more than any frame leaves behind; 10000 ns is not */
	w = 15001;
	assert_true(bl_quota_take(&w, 5000, 2000, 8000));
	w = 15000;
	assert_false(bl_quota_take(&w, 5000, 2000, 8000));
}

/* Over any span of time, at most the rate and one burst pass, and a sender within the rate loses
 * nothing. */
static void bl_quota_take__rate(void **state)
{
	struct rnd r = rnd_seeded("quota");
	int round;

	(void)state;
	for (round = 0; round < 200; round++) {
		uint64_t gap = 1 + rnd_below(&r, 5000), burst = gap * rnd_below(&r, 50),
			 now = 1 + rnd_below(&r, 1000000), first = now, passed = 0;
		__u64 good = 0, w = 0;
		int k;

		for (k = 0; k < 2000; k++) {
			now += rnd_below(&r, rnd_below(&r, 10) ? gap : 40 * gap);
			passed += (uint64_t)bl_quota_take(&w, now, gap, burst);
			assert_true(passed * gap <= now - first + burst + gap);
		}
		for (k = 0; k < 2000; k++) {
			now += gap + rnd_below(&r, 3);
			assert_true(bl_quota_take(&good, now, gap, burst));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_quota_take__example),
		cmocka_unit_test(bl_quota_take__no_quota),
		cmocka_unit_test(bl_quota_take__clock_goes_back),
		cmocka_unit_test(bl_quota_take__rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
