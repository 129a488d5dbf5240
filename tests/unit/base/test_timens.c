// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Time namespaces (base/timens.h): the text of /proc/self/timens_offsets, and the test's own. */
#include "tests/unit/unit.h"

#include "base/timens.h"

static void bl_timens_is_shifted__texts(void **state)
{
	static const struct {
		const char *text;
		bool mono, boot;
	} t[] = {
		{ "monotonic           0         0\nboottime            0         0\n", 0, 0 },
		{ "monotonic           5         0\nboottime            0         0\n", 1, 0 },
		{ "monotonic           0         1\nboottime           -1         0\n", 1, 1 },
		{ "monotonic          -1 999999999\nboottime            0         0\n", 1, 0 },
		{ "monotonic           0         0\nboottime            0 999999999\n", 0, 1 },
		{ "monotonic           0         0\n", 0, 1 },
		{ "monotonic           0", 1, 1 },
		{ "", 1, 1 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(t); k++) {
		assert_int_equal(bl_timens_is_shifted(t[k].text, "monotonic"), t[k].mono);
		assert_int_equal(bl_timens_is_shifted(t[k].text, "boottime"), t[k].boot);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_timens_is_shifted__texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
