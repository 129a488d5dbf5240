// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of rack.h itself: a case that does not reach its end has failed, whatever its exit status.
 */
#include "tests/net/rack.h"

static void ends(void)
{
}

static void exits(void)
{
	exit(0);
}

static void fails(void)
{
	FAIL("as it should");
}

static void dies(void)
{
	abort();
}

static void rack_outcome__only_the_end_is_good(void **state)
{
	(void)state;
	assert_null(rack_outcome(ends));
	assert_string_equal(rack_outcome(exits), "the case called exit(0) before its end");
	assert_string_equal(rack_outcome(fails), "the case ended with status 1");
	assert_string_equal(rack_outcome(dies), "the case died of signal 6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack_outcome__only_the_end_is_good),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
