// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The tests of test_lib_helper.c under the thread sanitizer, which cannot be combined with the
 * address sanitizer of the other unit tests. The Makefile compiles test_lib_helper.c and the
 * library a second time for this binary; this file has the settings of the sanitizer.
 */

const char *__tsan_default_options(void);

/* A report of a lock inversion shows the stacks of both locks. */
const char *__tsan_default_options(void)
{
	return "second_deadlock_stack=1";
}
