// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long the data of a delivery is valid: until the next call of the same function, bl_recv() or
 * bl_recv_reliable(), whatever else is called meanwhile. A buffer that was reused too early would
 * be overwritten by the next frame, so every case lets a frame of the same size come.
 */
#include "tests/unit/lib/lib_pair.h"

enum { BEST = 0x11111111, OTHER = 0x22222222, REL = 0x33333333, LATER = 0x44444444 };

static int pair_up(void **state)
{
	struct bl_delivery d;

	(void)state;
	make_pair(&a, &b);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1); /* the greeting */
	return 0;
}

/* Let @value come to b by the best-effort stream, deliverable. */
static void best_effort(int value)
{
	struct bl_msg m = msg_to(&b, &value, sizeof(value), 0);

	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	carry(&b, &a, true);
	fake_barrier(&b, a.ep->last_ts + 1);
}

static void reliable(int value)
{
	struct bl_msg m = msg_to(&b, &value, sizeof(value), 0);

	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 1);
	bl_process(a.ep);
	commit(&b, a.ep->last_ts + 1);
}

static int value_of(const struct bl_delivery *d)
{
	assert_int_equal(d->len, sizeof(int));
	return *(const int *)d->data;
}

/* The natural loop: take from one stream, take from the other, use both. */
static void bl_recv__not_ended_by_the_reliable_stream(void **state)
{
	struct bl_delivery d, e;

	(void)state;
	best_effort(BEST);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	best_effort(OTHER);
	reliable(REL);
	assert_int_equal(bl_recv_reliable(b.ep, &e, 1, 0), 1);
	assert_int_equal(value_of(&d), BEST);
	assert_int_equal(value_of(&e), REL);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(value_of(&d), OTHER);
	assert_int_equal(value_of(&e), REL);
}

static void bl_recv_reliable__not_ended_by_best_effort(void **state)
{
	struct bl_delivery d, e;

	(void)state;
	reliable(REL);
	assert_int_equal(bl_recv_reliable(b.ep, &e, 1, 0), 1);
	reliable(LATER);
	best_effort(BEST);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(value_of(&e), REL);
	assert_int_equal(value_of(&d), BEST);
	assert_int_equal(bl_recv_reliable(b.ep, &e, 1, 0), 1);
	assert_int_equal(value_of(&e), LATER);
	assert_int_equal(value_of(&d), BEST);
}

/* Nothing but bl_exit() ends it either. */
static void bl_process__ends_nothing(void **state)
{
	struct bl_delivery d, e;

	(void)state;
	best_effort(BEST);
	reliable(REL);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(bl_recv_reliable(b.ep, &e, 1, 0), 1);
	best_effort(OTHER);
	reliable(LATER);
	assert_int_equal(bl_process(b.ep), 2);
	assert_int_equal(bl_wait(b.ep, BL_WAIT_RECV, 0), BL_WAIT_RECV);
	assert_int_equal(bl_flush(b.ep), 0);
	assert_int_equal(value_of(&d), BEST);
	assert_int_equal(value_of(&e), REL);
}

/* A message in parts has memory of its own, with the same rule. */
static void large__not_ended_by_the_other_stream(void **state)
{
	static uint8_t big[3000];
	struct bl_delivery d, e;
	struct bl_msg m = msg_to(&b, big, sizeof(big), 0);
	int i;

	(void)state;
	memset(big, 0x5a, sizeof(big));
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	for (i = 0; i < 20 && !bl_rtx_empty(a.ep); i++) {
		carry(&b, &a, true);
		bl_process(b.ep);
		carry(&a, &b, true);
		bl_process(a.ep);
	}
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &e, 1, 0), 1);
	best_effort(BEST);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(bl_process(b.ep), 0);
	assert_int_equal(e.len, sizeof(big));
	for (i = 0; i < (int)sizeof(big);
	     i++) /* not by cmocka's memcmp(), which no sanitizer checks */
		assert_int_equal(((const uint8_t *)e.data)[i], big[i]);
}

/*
 * Buffers that are given back at the next call are used again: the loop of a receiver does not
 * grow.
 */
static void bl_recv__buffers_come_back(void **state)
{
	struct bl_delivery d;
	const void *first;
	int i;

	(void)state;
	best_effort(BEST);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	first = d.data;
	for (i = 0; i < 10; i++) {
		best_effort(i);
		assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
		assert_int_equal(value_of(&d), i);
		if (d.data == first)
			break;
	}
	assert_true(i < 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_recv__not_ended_by_the_reliable_stream, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(bl_recv_reliable__not_ended_by_best_effort, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(bl_process__ends_nothing, pair_up, pair_down),
		cmocka_unit_test_setup_teardown(large__not_ended_by_the_other_stream, pair_up,
						pair_down),
		cmocka_unit_test_setup_teardown(bl_recv__buffers_come_back, pair_up, pair_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
