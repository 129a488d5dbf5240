// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * base/privileges.c where a service manager has taken both the capabilities of a process and
 * capset(2), as the unit of the controller does.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/privileges.h"

#define NOBODY 65534

/*
 * Gives up all capabilities in a child to which capset(2) is refused. Returns what
 * bl_privileges_drop() returned. @nobody: the child has no capability to begin with.
 */
static int drop_without_capset(bool nobody)
{
	scmp_filter_ctx filter;
	struct bl_err err;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		filter = seccomp_init(SCMP_ACT_ALLOW);
		if ((nobody && setresuid(NOBODY, NOBODY, NOBODY)) || !filter ||
		    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(capset), 0) ||
		    seccomp_load(filter))
			_exit(126);
		_exit(-bl_privileges_drop(NULL, 0, &err));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void drop__nothing_to_give_up(void **state)
{
	(void)state;
	assert_int_equal(drop_without_capset(true), 0);
}

/* What cannot be given up is not kept in silence. */
static void drop__refused(void **state)
{
	(void)state;
	assert_true(bl_caps_effective() != 0); /* as root, as all tests run */
	assert_int_equal(drop_without_capset(false), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop__nothing_to_give_up),
		cmocka_unit_test(drop__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
