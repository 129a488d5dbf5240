// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lib/place_core.h: which numbers a receiver of best-effort frames accepts, and how it recovers. */
#include "tests/unit/unit.h"

#include "lib/place_core.h"

static void bl_place_classify__edges(void **state)
{
	static const struct {
		int32_t ahead;   /* of the expected number */
		uint32_t behind; /* how far the last CREDIT is behind it */
		bool probe;
		enum bl_place want;
	} t[] = {
		{ 0, 0, false, BL_PLACE_FITS },
		{ BL_AHEAD_MAX - 1, 0, false, BL_PLACE_FITS },
		{ BL_AHEAD_MAX, 0, false, BL_PLACE_ODD },
		{ BL_AHEAD_MAX, 0, true, BL_PLACE_FITS },
		{ BL_AHEAD_MAX + 1, 0, true, BL_PLACE_ODD },
		{ -1, 0, false, BL_PLACE_OLD },
		{ -1, 0, true, BL_PLACE_OLD },
		{ -1, 10, false, BL_PLACE_OLD },
		{ -10, 10, true, BL_PLACE_OLD },
		{ -11, 10, false, BL_PLACE_OLD },
		{ -BL_OLD_MAX, 0, false, BL_PLACE_OLD },
		{ -BL_OLD_MAX - 1, 0, false, BL_PLACE_ODD },
		{ -BL_OLD_MAX - 1, 0, true, BL_PLACE_ODD },
		{ 1 << 30, 0, false, BL_PLACE_ODD },
		{ INT32_MIN, 0, false, BL_PLACE_ODD },
		{ INT32_MAX, 0, true, BL_PLACE_ODD },
		/* What was not credited counts: a sender that ignores its window gets no further.
		 */
		{ 0, BL_AHEAD_MAX - 1, false, BL_PLACE_FITS },
		{ 0, BL_AHEAD_MAX, false, BL_PLACE_ODD },
		{ 0, BL_AHEAD_MAX, true, BL_PLACE_FITS },
		{ 1, BL_AHEAD_MAX, true, BL_PLACE_ODD },
		{ 155, 100, false, BL_PLACE_FITS },
		{ 156, 100, false, BL_PLACE_ODD },
		{ 156, 100, true, BL_PLACE_FITS },
	};
	static const uint32_t expected[] = { 0, 5, 0x7fffff00, 0xffffff80, 0xffffffff };
	size_t i, k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(expected); k++) {
		for (i = 0; i < ARRAY_SIZE(t); i++) {
			uint32_t psn = expected[k] + (uint32_t)t[i].ahead;

			assert_int_equal(bl_place_classify(expected[k], expected[k] - t[i].behind,
							   psn, psn + !t[i].probe),
					 t[i].want);
		}
	}
}

/* Frames that follow each other move the receiver, but only when the first came long ago. */
static void bl_place_follow__edges(void **state)
{
	static const struct {
		uint32_t first, second;
		bool probe; /* both frames */
		uint64_t after_ns;
		int want;
	} t[] = {
		{ 5000, 5001, false, BL_ODD_NS, 1 },
		{ 5000, 5001, false, BL_ODD_NS - 1, 0 },
		{ 5000, 5000 + BL_AHEAD_MAX, false, BL_ODD_NS, 1 },
		{ 5000, 5001 + BL_AHEAD_MAX, false, BL_ODD_NS, 0 },
		{ 5000, 5000, false, BL_ODD_NS, 0 }, /* a copy of it proves nothing */
		{ 5000, 4999, false, BL_ODD_NS, 0 },
		{ 5000, 5000, true, BL_ODD_NS, 1 }, /* a repeated PROBE does */
		{ 0xffffffff, 0, false, BL_ODD_NS, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_odd odd = { 0 };

		assert_int_equal(bl_place_follow(&odd, t[i].first, t[i].first + !t[i].probe, 7), 0);
		assert_int_equal(bl_place_follow(&odd, t[i].second, t[i].second + !t[i].probe,
						 7 + t[i].after_ns),
				 t[i].want);
	}
}

/* The time is that of the first of them all, and begins anew with a frame that does not follow. */
static void bl_place_follow__a_chain(void **state)
{
	struct bl_odd odd = { 0 };
	uint64_t now;
	uint32_t psn = 5000;

	(void)state;
	for (now = 1; now < 1 + BL_ODD_NS; now += BL_ODD_NS / 10)
		assert_int_equal(bl_place_follow(&odd, psn, psn + 1, now), 0), psn++;
	assert_int_equal(bl_place_follow(&odd, 70000, 70001, now), 0);
	assert_int_equal(bl_place_follow(&odd, 70001, 70002, now + BL_ODD_NS - 1), 0);
	assert_int_equal(bl_place_follow(&odd, 70002, 70003, now + BL_ODD_NS), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_place_classify__edges),
		cmocka_unit_test(bl_place_follow__edges),
		cmocka_unit_test(bl_place_follow__a_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
