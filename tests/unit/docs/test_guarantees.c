// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Checks that docs/guarantees.md and docs/security.md name tests that exist (citations.h).
 */
#include "tests/unit/docs/citations.h"

static void guarantees__names_are_tests(void **state)
{
	(void)state;
	check_file("docs/guarantees.md", 201);
	assert_true(names > 300);
}

/* A test that does not exist, a file that does not exist, part of a name, and no proof at all. */
static void guarantees__wrong_names_are_found(void **state)
{
	(void)state;
	check_page("a page", "- **A.** x *Proved by* tests/unit/docs/test_guarantees.c: "
			     "check_proof,\n"
			     "  guarantees__names_are_tests.\n");
	assert_int_equal(promises, 1);
	assert_int_equal(names, 3);
	assert_int_equal(missing, 0);
	check_page("a page", "- **A.** x *Proved\n  by*\n  tests/unit/core/queue/test_hist.c: "
			     "bin__every.\n");
	assert_int_equal(names, 2);
	assert_int_equal(missing, 1);
	check_page("a page", "- **A.** x *Proved by* tests/unit/core/queue/test_hist.c: "
			     "nothing__of_that_name.\n");
	assert_int_equal(missing, 1);
	check_page("a page", "- **A.** x *Proved by* tests/unit/core/queue/test_hist.c:\n  "
			     "nothing.\n");
	assert_int_equal(missing, 1);
	check_page("a page", "- **A.** x *Proved by* tests/unit/test_nothing_of_it.c: a__b "
			     "(c__d).\n");
	assert_int_equal(missing, 1);
	check_page("a page", "- **A.** x *Proved by* nothing__of_that_name.\n");
	assert_int_equal(missing, 1);
	check_page("a page", "- **A.** x\n- **B.** y *Proved by* "
			     "tests/unit/docs/test_guarantees.c.\n");
	assert_int_equal(promises, 2);
	assert_int_equal(missing, 1);
	check_page("a page", "- no promise: tests/unit/test_nothing_of_it.c\n");
	assert_int_equal(promises, 0);
	assert_int_equal(names, 0);
}

static void security__names_are_tests(void **state)
{
	(void)state;
	check_file("docs/security.md", 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guarantees__names_are_tests),
		cmocka_unit_test(guarantees__wrong_names_are_found),
		cmocka_unit_test(security__names_are_tests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
