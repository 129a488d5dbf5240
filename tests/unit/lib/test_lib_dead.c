// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A destination that does not answer is found out once, after a wait, and delays nothing
 * afterwards. Sends to it fail at once, it is asked in the background, and it is served again when
 * it answers. test_lib_tx_fail.c has the best-effort stream's part
 * (bl_tx_timers__probes_then_unreachable).
 */
#include <sys/syscall.h>

#include "tests/unit/lib/lib_rel.h"

static uint64_t ahead_ns;

/* The clock of library and test: @ahead_ns ahead of the machine's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += (time_t)(ahead_ns / 1000000000);
	ts->tv_nsec += (long)(ahead_ns % 1000000000);
	if (ts->tv_nsec >= 1000000000) {
		ts->tv_nsec -= 1000000000;
		ts->tv_sec++;
	}
	return rc;
}

static struct fake a, b, c;
static struct failures fs;

static struct bl_rtx *to_c(void)
{
	return &fake_peer(&a, &c)->rtx;
}

static int send_to(const struct fake *to, uint64_t cookie, unsigned int flags)
{
	struct bl_msg m = msg_to(to, "x", 1, cookie);

	return bl_send_reliable(a.ep, &m, 1, flags);
}

/* Count the OPENs that left for c, which does not read them. */
static int opens(void)
{
	struct seen s;
	int n = 0;

	while (fake_take(&c, &s)) {
		assert_int_equal(s.op, BL_OP_OPEN);
		n++;
	}
	return n;
}

/* Set-up: a has found out that c does not answer. */
static int dead_up(void **state)
{
	int i;

	(void)state;
	fs.n = 0;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	bl_on_send_fail(a.ep, on_fail, &fs);
	assert_int_equal(send_to(&c, 1, 0), 0);
	for (i = 0; i < 20 && !fs.n; i++) {
		to_c()->ask_ns = 1;
		bl_process(a.ep);
	}
	assert_int_equal(fs.n, 1);
	assert_int_equal(opens(), BL_PROBES_MAX);
	return 0;
}

static int dead_down(void **state)
{
	(void)state;
	drop(&a);
	drop(&b);
	drop(&c);
	return 0;
}

/* Let enough time pass that c is asked again. */
static void later(void)
{
	to_c()->retry_ns = 1;
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
}

static void dead__fails_at_once_and_holds_nobody_up(void **state)
{
	struct bl_delivery d;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		assert_int_equal(send_to(&c, 100 + (uint64_t)i, 0), 0);
		assert_int_equal(send_to(&b, 200, 0), 0);
		/* The message to b leaves at once, however long ago c was asked. */
		assert_int_equal(carry(&b, &a, true), 1);
		commit(&b, a.ep->last_ts + 1);
		assert_true(bl_recv_reliable(b.ep, &d, 1, 0) >= 0);
		carry(&a, &b, true);
		bl_process(a.ep);
		assert_int_equal(fs.n, 2 + i);
		assert_int_equal(fs.f[1 + i].cookie, 100 + i);
		assert_int_equal(fs.f[1 + i].why, BL_FAIL_UNREACHABLE);
		if (i % 2)
			later();
	}
	assert_int_equal(a.ep->rheld, false);
}

static void dead__takes_nothing_with_it(void **state)
{
	(void)state;
	assert_int_equal(send_to(&b, 5, BL_MORE), 0);
	assert_int_equal(send_to(&c, 6, BL_MORE), 0);
	assert_int_equal(send_to(&b, 7, 0), 0);
	bl_process(a.ep);
	assert_int_equal(carry(&b, &a, true), 1); /* 5 and 7 in one frame */
	assert_int_equal(fs.n, 2);
	assert_int_equal(fs.f[1].cookie, 6);
}

static void dead__asked_ever_more_rarely(void **state)
{
	uint64_t wait = BL_RETRY_NS, at;
	int i;

	(void)state;
	for (i = 0; i < BL_RETRIES_MAX; i++) {
		at = to_c()->retry_ns;
		a.ep->rtimer_ns = 1;
		bl_rtx_timers(a.ep, at + wait - 1);
		assert_int_equal(opens(), 0);
		a.ep->rtimer_ns = 1;
		bl_rtx_timers(a.ep, at + wait);
		assert_int_equal(opens(), 1);
		wait = 2 * wait < BL_RETRY_MAX_NS ? 2 * wait : BL_RETRY_MAX_NS;
	}
	/*
	 * From now on c is asked only when something is to be sent, and not more often than
	 * BL_RETRY_MIN_NS.
	 */
	a.ep->rtimer_ns = 1;
	bl_rtx_timers(a.ep, to_c()->retry_ns + 100 * BL_RETRY_MAX_NS);
	assert_int_equal(opens(), 0);
	to_c()->retry_ns = bl_mono() - BL_RETRY_MIN_NS - 1;
	assert_int_equal(send_to(&c, 2, 0), 0);
	assert_int_equal(send_to(&c, 2, 0), 0);
	assert_int_equal(opens(), 1);
}

static void dead__answers_again(void **state)
{
	(void)state;
	later();
	assert_int_equal(carry(&c, &a, true), 0);
	bl_process(c.ep);
	carry(&a, &c, true);
	bl_process(a.ep);
	assert_int_equal(a.ep->rdead, 0);
	assert_int_equal(send_to(&c, 9, 0), 0);
	assert_int_equal(carry(&c, &a, true), 1);
	assert_int_equal(fs.n, 1);
}

/*
 * A destination that was announced as failed delays as little as one that does not answer, however
 * long ago that was. A later owner of its port is found.
 */
static void announced__holds_nobody_up(void **state)
{
	int i;

	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&a, &c, 8);
	fs.n = 0;
	bl_on_send_fail(a.ep, on_fail, &fs);
	fail_peer(&a, 0, &c, fake_now());
	bl_process(a.ep);
	ahead_ns += BL_RETRY_NS + 100000000; /* a background OPEN would have been due since */
	for (i = 0; i < 3; i++) {
		assert_int_equal(send_to(&c, 100, 0), 0);
		assert_int_equal(send_to(&b, 200, 0), 0);
		assert_true(carry(&b, &a, true) >= 1);
		bl_process(b.ep);
		carry(&a, &b, true);
		bl_process(a.ep);
		assert_int_equal(fs.n, 1 + i);
		assert_int_equal(fs.f[i].why, BL_FAIL_UNREACHABLE);
	}
	assert_true(opens() >= 1); /* asked in the background */
	/* Another process is there now. */
	c.ep->incarnation++;
	later();
	assert_int_equal(carry(&c, &a, true), 0);
	bl_process(c.ep);
	carry(&a, &c, true);
	bl_process(a.ep);
	assert_int_equal(a.ep->rdead, 0);
	assert_int_equal(send_to(&c, 9, 0), 0);
	assert_true(carry(&c, &a, true) >= 1);
	assert_int_equal(fs.n, 3);
}

/* A process that was announced and never sent to is asked only when the application sends to it. */
static void announced__never_sent_to(void **state)
{
	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	fs.n = 0;
	bl_on_send_fail(a.ep, on_fail, &fs);
	fake_peer(&a, &c);
	fail_peer(&a, 0, &c, fake_now());
	bl_process(a.ep);
	later();
	assert_int_equal(opens(), 0);
	assert_int_equal(send_to(&c, 1, 0), 0);
	assert_int_equal(opens(), 1);
	bl_process(a.ep);
	assert_int_equal(fs.n, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, dead_up, dead_down)
	const struct CMUnitTest tests[] = {
		T(dead__fails_at_once_and_holds_nobody_up),
		T(dead__takes_nothing_with_it),
		T(dead__asked_ever_more_rarely),
		T(dead__answers_again),
		cmocka_unit_test_teardown(announced__holds_nobody_up, dead_down),
		cmocka_unit_test_teardown(announced__never_sent_to, dead_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
