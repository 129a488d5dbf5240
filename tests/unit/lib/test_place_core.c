// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* lib/place_core.h: which numbers a receiver of best-effort frames accepts, and how it recovers. */
#include "tests/unit/unit.h"

#include "lib/place_core.h"

static void bl_place_classify__edges(void **state)
{
	static const struct {
		int32_t ahead;
		bool probe;
		enum bl_place want;
	} t[] = {
		{ 0, false, BL_PLACE_FITS },
		{ BL_AHEAD_MAX - 1, false, BL_PLACE_FITS },
		{ BL_AHEAD_MAX, false, BL_PLACE_ODD },
		{ BL_AHEAD_MAX, true, BL_PLACE_FITS },
		{ BL_AHEAD_MAX + 1, true, BL_PLACE_ODD },
		{ -1, false, BL_PLACE_OLD },
		{ -1, true, BL_PLACE_OLD },
		{ -BL_OLD_MAX, false, BL_PLACE_OLD },
		{ -BL_OLD_MAX - 1, false, BL_PLACE_ODD },
		{ -BL_OLD_MAX - 1, true, BL_PLACE_ODD },
		{ 1 << 30, false, BL_PLACE_ODD },
		{ INT32_MIN, false, BL_PLACE_ODD },
		{ INT32_MAX, true, BL_PLACE_ODD },
	};
	static const uint32_t expected[] = { 0, 5, 0x7fffff00, 0xffffff80, 0xffffffff };
	size_t i, k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(expected); k++) {
		for (i = 0; i < ARRAY_SIZE(t); i++) {
			uint32_t psn = expected[k] + (uint32_t)t[i].ahead;
			struct bl_odd odd = { 0 };

			assert_int_equal(bl_place_classify(&odd, expected[k], psn,
							   psn + !t[i].probe),
					 t[i].want);
			assert_int_equal(odd.known, t[i].want == BL_PLACE_ODD);
		}
	}
}

static void bl_place_classify__two_that_fit_each_other(void **state)
{
	static const struct {
		uint32_t first, second;
		bool probe; /* both frames */
		enum bl_place want;
	} t[] = {
		{ 5000, 5001, false, BL_PLACE_ANEW },
		{ 5000, 5000 + BL_AHEAD_MAX, false, BL_PLACE_ANEW },
		{ 5000, 5001 + BL_AHEAD_MAX, false, BL_PLACE_ODD },
		{ 5000, 5000, false, BL_PLACE_ODD }, /* a copy of it proves nothing */
		{ 5000, 4999, false, BL_PLACE_ODD },
		{ 5000, 5000, true, BL_PLACE_ANEW }, /* a repeated PROBE does */
		{ 5000, 100, false, BL_PLACE_FITS },
		{ 5000, 99, false, BL_PLACE_OLD },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_odd odd = { 0 };

		assert_int_equal(bl_place_classify(&odd, 100, t[i].first, t[i].first + !t[i].probe),
				 BL_PLACE_ODD);
		assert_int_equal(bl_place_classify(&odd, 100, t[i].second,
						   t[i].second + !t[i].probe),
				 t[i].want);
		/*
		 * A frame that fits shows that the receiver is where it should be; a duplicate
		 * shows nothing.
		 */
		assert_int_equal(odd.known, t[i].want == BL_PLACE_ODD || t[i].want == BL_PLACE_OLD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_place_classify__edges),
		cmocka_unit_test(bl_place_classify__two_that_fit_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
