// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/rtx.c on a slow link: a destination whose answers take seconds is not called unreachable
 * after two, and frames that wait in a queue are not sent again every 200 ms.
 */
#include "tests/unit/lib/lib_rel.h"

#define MS 1000000ULL

static struct fake a, b;
static struct failures *fs;

static int up(void **state)
{
	(void)state;
	fs = calloc(1, sizeof(*fs));
	assert_non_null(fs);
	make_pair(&a, &b);
	bl_on_send_fail(a.ep, on_fail, fs);
	return 0;
}

static int down(void **state)
{
	(void)state;
	drop(&a);
	drop(&b);
	free(fs);
	return 0;
}

static void say(uint32_t v)
{
	struct bl_msg m = msg_to(&b, &v, sizeof(v), v);

	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
}

/* Let the time of the next OPEN come @n times without an answer. Returns how many were sent. */
static int ask_for(int n)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;
	struct seen s;
	int opens = 0;

	while (n--) {
		t->ask_ns = 1;
		a.ep->rtimer_ns = 1;
		bl_process(a.ep);
		while (fake_take(&b, &s))
			opens += s.op == BL_OP_OPEN;
	}
	return opens;
}

/* Its window is closed, and @silence ms have passed since the first OPEN. */
static void wait_for_window(uint64_t silence)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;

	t->open = false;
	say(1);
	t->patience.since_ns -= silence * MS;
}

static void bl_rtx_flush__slow_is_not_unreachable(void **state)
{
	struct bl_rtx *t = &fake_peer(&a, &b)->rtx;

	/* Its last answer took 3 s. */
	wait_for_window(3000);
	carry(&b, &a, true);
	bl_process(b.ep);
	carry(&a, &b, true);
	bl_process(a.ep);
	assert_true(bl_rtx_room(a.ep));
	/* So it is asked for longer than the 2 s that eight OPENs take. */
	wait_for_window(10000);
	assert_true(ask_for(20) >= 20);
	assert_int_equal(fs->n, 0);
	assert_false(t->dead);
	/* For four times as long as it has ever taken. */
	t->patience.since_ns -= 2100 * MS;
	ask_for(1);
	assert_true(t->dead);
	bl_process(a.ep);
	assert_int_equal(fs->n, 1);
	assert_int_equal(fs->f[0].why, BL_FAIL_UNREACHABLE);
}

/* A destination that was never slow is given up as soon as before. */
static void bl_rtx_flush__fast_is(void **state)
{
	wait_for_window(2300);
	ask_for(12);
	assert_true(fake_peer(&a, &b)->rtx.dead);
}

/*
 * ACKs took 3 s, of frames that were sent again meanwhile: the next frames are not sent again
 * before that.
 */
static void bl_rtx_timers__waits_for_slow_acks(void **state)
{
	struct bl_peer *p = fake_peer(&a, &b);
	struct bl_rframe *f;
	struct seen s;
	int i, again = 0;

	say(2);
	f = a.ep->rsent[a.ep->rreaped % BL_RWIN];
	for (i = 0; i < 12; i++) {
		f->sent_ns = 0; /* its time has come */
		a.ep->rtimer_ns = 1;
		bl_process(a.ep);
	}
	f->first_ns = 1; /* it was first sent when this machine was started */
	bl_rwin_slot(a.ep->rwin, a.ep->rreaped)->ack_ns = 3000 * MS;
	while (fake_take(&b, &s))
		;
	assert_true(bl_rslot_close(bl_rwin_slot(a.ep->rwin, a.ep->rreaped), a.ep->rreaped));
	while (bl_rwin_step(&a.ep->line->state, a.ep->rwin))
		;
	bl_process(a.ep);
	assert_int_equal(bl_rto_due(&p->rtx.rto, 0, 1), 3000 * MS - 1);
	/* One more, which waits for its ACK for 2.5 s. */
	say(3);
	f = a.ep->rsent[a.ep->rreaped % BL_RWIN];
	while (fake_take(&b, &s))
		;
	for (i = 0; i < 10; i++) {
		f->sent_ns = bl_mono() - 2500 * MS;
		a.ep->rtimer_ns = 1;
		bl_process(a.ep);
		while (fake_take(&b, &s))
			again += s.op == BL_OP_PREP;
	}
	assert_int_equal(again, 0);
	/* And then it is sent again. */
	f->sent_ns = bl_mono() - 3000 * MS;
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
	fake_expect(&b, &s, BL_OP_PREP);
}

/*
 * A path that was out for 3 s: the ACK answers a later copy and says so, so the program gives no
 * time for it. Other frames that were lost meanwhile, also of a sender that sends nothing new, do
 * not wait for seconds.
 */
static void bl_rtx_timers__outage_is_no_slow_way(void **state)
{
	const size_t at = sizeof(struct bl_data) + offsetof(struct bl_prep, copy);
	struct bl_peer *p = fake_peer(&a, &b);
	struct bl_rframe *f;
	struct seen s;
	uint32_t i;

	(void)state;
	say(2);
	fake_expect(&b, &s, BL_OP_PREP);
	assert_int_equal(bl_load16(s.body + at), 0);
	f = a.ep->rsent[a.ep->rreaped % BL_RWIN];
	for (i = 1; i <= 12; i++) {
		f->sent_ns = 0; /* its time has come */
		a.ep->rtimer_ns = 1;
		bl_process(a.ep);
		fake_expect(&b, &s, BL_OP_PREP);
		assert_int_equal(bl_load16(s.body + at), i);
	}
	f->tries = UINT16_MAX + 1;
	f->sent_ns = 0;
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
	fake_expect(&b, &s, BL_OP_PREP);
	assert_int_equal(bl_load16(s.body + at), UINT16_MAX);
	/* The ACK of that copy. */
	f->first_ns = bl_mono() - 3000 * MS;
	assert_int_equal(bl_rwin_slot(a.ep->rwin, a.ep->rreaped)->ack_ns, 0);
	assert_true(bl_rslot_close(bl_rwin_slot(a.ep->rwin, a.ep->rreaped), a.ep->rreaped));
	while (bl_rwin_step(&a.ep->line->state, a.ep->rwin))
		;
	bl_process(a.ep);
	assert_int_equal(bl_rto_due(&p->rtx.rto, 0, 12), BL_RTX_MAX_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bl_rtx_flush__slow_is_not_unreachable, up, down),
		cmocka_unit_test_setup_teardown(bl_rtx_flush__fast_is, up, down),
		cmocka_unit_test_setup_teardown(bl_rtx_timers__waits_for_slow_acks, up, down),
		cmocka_unit_test_setup_teardown(bl_rtx_timers__outage_is_no_slow_way, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
