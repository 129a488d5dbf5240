// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench/kill/kill_flow.c: what a stopped or leaving process costs the others, computed from diaries
 * of which every line is known here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "bench/kill/kill.h"

#define MS 1000000ULL

static struct kill_ctl *c;

/* Not calloc(), since most of its pages are never touched. */
static int set_up(void **state)
{
	(void)state;
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c == MAP_FAILED)
		return -1;
	c->n = 3;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return munmap(c, sizeof(*c));
}

static void add_delivery(unsigned int receiver, unsigned int sender, uint64_t at_ms)
{
	struct kill_worker *w = &c->w[receiver];

	w->got[w->ngot].sender = sender;
	w->got[w->ngot].at_ns = at_ms * MS;
	w->ngot++;
}

static void flow__longest_gap_and_rate(void **state)
{
	struct kill_flow f;

	(void)state;
	add_delivery(0, 0, 100);
	add_delivery(0, 1, 102);
	add_delivery(0, 1, 107);
	add_delivery(0, 0, 108);
	add_delivery(1, 0, 101);
	add_delivery(1, 1, 109);
	f = kill_flow(c, 3, 100 * MS, 110 * MS);
	assert_float_equal(f.gap_ms, 8, 1e-9); /* the gap of the second one, from 101 to 109 */
	assert_int_equal(f.gap_end_ns, 109 * MS);
	assert_float_equal(f.per_s, 300, 1e-9); /* four and two in 10 ms */
}

/*
 * Messages sent by a process that was expelled, and messages delivered by it, do not count as flow
 * of the others.
 */
static void flow__of_the_correct_only(void **state)
{
	struct kill_flow f;

	(void)state;
	add_delivery(0, 0, 100);
	add_delivery(0, 2, 104);
	add_delivery(0, 1, 108);
	add_delivery(2, 0, 100);
	f = kill_flow(c, 1 | 2, 100 * MS, 108 * MS);
	/*
	 * The second process has delivered nothing at all, and the message at 104 does not end a
	 * gap.
	 */
	assert_float_equal(f.gap_ms, 8, 1e-9);
	f = kill_flow(c, 1, 100 * MS, 110 * MS);
	assert_float_equal(f.gap_ms, 10, 1e-9);
	assert_float_equal(f.per_s, 100, 1e-9);
}

static void flow__edges(void **state)
{
	struct kill_flow f;

	(void)state;
	f = kill_flow(c, 7, 100 * MS, 130 * MS); /* No process delivered anything. */
	assert_float_equal(f.gap_ms, 30, 1e-9);
	assert_int_equal(f.gap_end_ns, 130 * MS);
	assert_float_equal(f.per_s, 0, 1e-9);
	f = kill_flow(c, 0, 100 * MS, 130 * MS); /* No process is correct. */
	assert_float_equal(f.gap_ms, 0, 1e-9);
	assert_float_equal(f.per_s, 0, 1e-9);
	f = kill_flow(c, 7, 100 * MS, 100 * MS); /* no time */
	assert_float_equal(f.gap_ms, 0, 1e-9);
	add_delivery(0, 0, 99); /* before and after the span */
	add_delivery(0, 0, 131);
	f = kill_flow(c, 1, 100 * MS, 130 * MS);
	assert_float_equal(f.gap_ms, 30, 1e-9);
	assert_float_equal(f.per_s, 0, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flow__longest_gap_and_rate, set_up, tear_down),
		cmocka_unit_test_setup_teardown(flow__of_the_correct_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(flow__edges, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
