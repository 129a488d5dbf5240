// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the cores do when another CPU always wins the race: at each access to shared memory the test
 * changes what is read next, so that the retries are exhausted.
 */
#include "tests/unit/unit.h"

#include "tests/unit/core/order/access_hooks.h"

#include "core/order/commit_core.h"
#include "core/queue/queue_core.h"

static void (*change_memory)(int nth);
static int accesses;

static void before_access(void)
{
	if (change_memory)
		change_memory(++accesses);
}

static void change_at_accesses(void (*fn)(int nth))
{
	change_memory = fn;
	accesses = 0;
}

/* ---- a head that moves all the time ---- */

static struct bl_rwin win;
static __u64 word;

static void move_head(int nth)
{
	if (nth > 1)
		word = bl_rwin_next(word);
}

static void bl_rwin_commit__head_never_stands_still(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < BL_RWIN; i++) {
		win.slot[i].wait = BL_RSLOT_OPEN | i;
		win.slot[i].ts = 1000 + i;
	}
	word = bl_rwin_added(BL_RWIN);
	change_at_accesses(move_head);
	/* The result is no more than what was sent before, since frames are open. */
	assert_int_equal(bl_rwin_commit(&word, &win, 900), 900);
	change_memory = NULL;
	assert_true(bl_rwin_used(word) > 0 && accesses >= 3 * BL_COMMIT_TRIES);
}

/* ---- a time that other CPUs change ---- */

static __u64 due;

static void change_due(int nth)
{
	due = 1000 - (__u64)nth;
}

static void bl_lower__loses_every_try(void **state)
{
	(void)state;
	due = 1000;
	change_at_accesses(change_due);
	assert_int_equal(bl_time_lower(&due, 1000, 10), 1);
	change_memory = NULL;
	assert_int_equal(accesses, BL_DUE_TRIES);
	assert_int_equal(due, 0); /* due at once: too early, but never too late */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_rwin_commit__head_never_stands_still),
		cmocka_unit_test(bl_lower__loses_every_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
