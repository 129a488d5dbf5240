// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The models of controller/model, searched by spin: the promises of reliable 1Pipe hold in all
 * states of the small configurations, and each defect that is put in is refuted. `make model` also
 * searches the larger ones. What went wrong is printed with the case; the cases are in
 * controller/model/run.sh.
 */
#include <sys/wait.h>

#include "tests/unit/unit.h"

static void run(const char *command, int want)
{
	int status = system(command);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want);
}

static void model__holds(void **state)
{
	(void)state;
	run("exec controller/model/run.sh quick holds", 0);
}

static void model__defects_are_refuted(void **state)
{
	(void)state;
	run("exec controller/model/run.sh quick refuted", 0);
}

/*
 * A case that does not come out as it should fails: a copy of the script expects a defect to hold,
 * and the other way round.
 */
static void model__the_script_can_fail(void **state)
{
	(void)state;
	run("d=$(mktemp -d) && cp controller/model/resume.pml \"$d\" && "
	    "sed '/^\\(quick\\|full\\) /{/ resume\\b/!d;s/ holds / x /;s/ refuted / holds /;s/ x / "
	    "refuted /}' controller/model/run.sh >\"$d\"/run.sh && "
	    "bash \"$d\"/run.sh quick >\"$d\"/out 2>&1; status=$?; grep -q '^2 cases, 2 not' "
	    "\"$d\"/out || status=9; rm -rf \"$d\"; exit $status",
	    1);
	run("exec controller/model/run.sh slow 2>/dev/null", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model__holds),
		cmocka_unit_test(model__defects_are_refuted),
		cmocka_unit_test(model__the_script_can_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
