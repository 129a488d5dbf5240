// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The library on a host that is drained: nothing new is sent, and the endpoint says that it is
 * quiet when nothing that it has sent is open (lib/drain.c).
 */
#include "tests/unit/lib/lib_rel.h"

#include <errno.h>

#define TOKEN 77

static struct fake a, b;

static int up(void **state)
{
	(void)state;
	make_pair(&a, &b);
	return 0;
}

static int down(void **state)
{
	(void)state;
	drop(&a);
	drop(&b);
	return 0;
}

static void send__is_refused(void **state)
{
	const struct bl_msg m = msg_to(&b, "x", 1, 0);
	uint64_t before = a.ep->st.scatterings;

	(void)state;
	a.page->drained = TOKEN;
	assert_int_equal(bl_send(a.ep, &m, 1, 0), -ESHUTDOWN);
	assert_non_null(strstr(bl_strerror(a.ep), "undrain"));
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), -ESHUTDOWN);
	assert_int_equal(a.ep->st.scatterings, before);
	a.page->drained = 0;
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
}

/* An endpoint with nothing open is quiet at once; each order is answered anew. */
static void quiet__at_once(void **state)
{
	(void)state;
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, 0);
	a.page->drained = TOKEN;
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, TOKEN);
	a.page->drained = TOKEN + 1;
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, TOKEN + 1);
}

/* What BL_MORE has held back is sent, and each stream has to be answered. */
static void quiet__when_nothing_is_open(void **state)
{
	const struct bl_msg m = msg_to(&b, "x", 1, 0);

	(void)state;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, BL_MORE), 0);
	assert_int_equal(bl_send(a.ep, &m, 1, BL_MORE), 0);
	assert_int_equal(carry(&b, &a, true), 0);
	a.page->drained = TOKEN;
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, 0);
	assert_int_equal(carry(&b, &a, true), 1); /* acknowledged; DATA has no CREDIT yet */
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, 0);
	fake_credit(&a, &b, fake_peer(&a, &b)->tx.next_psn, 64);
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, TOKEN);
}

/* A reliable message that is not acknowledged is open. */
static void quiet__not_before_the_ack(void **state)
{
	const struct bl_msg m = msg_to(&b, "x", 1, 0);

	(void)state;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	a.page->drained = TOKEN;
	bl_process(a.ep);
	assert_int_equal(carry(&b, &a, false), 1);
	bl_process(a.ep);
	assert_int_equal(a.ep->line->quiet, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(send__is_refused, up, down),
		cmocka_unit_test_setup_teardown(quiet__at_once, up, down),
		cmocka_unit_test_setup_teardown(quiet__when_nothing_is_open, up, down),
		cmocka_unit_test_setup_teardown(quiet__not_before_the_ack, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
