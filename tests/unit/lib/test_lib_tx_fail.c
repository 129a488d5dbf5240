// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a best-effort sender is told of messages that were not delivered (lib/send_fail.c), and what
 * it does when a receiver is silent (lib/tx.c). test_lib_tx.c has the rest.
 */
#include "tests/unit/lib/lib_tx.h"

/* ---- send_fail ---- */

static void bl_tx_nak__cookies(void **state)
{
	struct failures *fs = calloc(1, sizeof(*fs));
	struct seen s[3];
	int i;

	(void)state;
	assert_non_null(fs);
	bl_on_send_fail(a.ep, on_fail, fs);
	for (i = 0; i < 3; i++) {
		assert_int_equal(send_one(&b, "x", 1, 100 + 10 * (uint64_t)i, BL_MORE), 0);
		assert_int_equal(send_one(&b, "y", 1, 101 + 10 * (uint64_t)i, 0), 0);
		fake_expect(&b, &s[i], BL_OP_DATA);
	}
	/* One item. */
	fake_nak(&a, &b, 1, 1, BL_NAK_INCOMPLETE, 1);
	bl_process(a.ep);
	assert_int_equal(fs->n, 1);
	assert_int_equal(fs->f[0].cookie, 111);
	assert_int_equal(fs->f[0].ts, s[1].ts);
	assert_int_equal(fs->f[0].why, BL_FAIL_INCOMPLETE);
	assert_memory_equal(&fs->f[0].dst, &b.ep->self, sizeof(struct bl_addr));
	/* An item that the frame did not have. */
	fake_nak(&a, &b, 1, 1, BL_NAK_INCOMPLETE, 2);
	/* Several frames; the item does not matter then. */
	fake_nak(&a, &b, 0, 2, BL_NAK_LOST, 0);
	bl_process(a.ep);
	assert_int_equal(fs->n, 5);
	assert_int_equal(fs->f[1].cookie, 100);
	assert_int_equal(fs->f[2].cookie, 101);
	assert_int_equal(fs->f[3].cookie, 110);
	assert_int_equal(fs->f[4].cookie, 111);
	assert_int_equal(fs->f[4].why, BL_FAIL_LOST);
	/* Reported once; never sent; of another life. */
	fake_nak(&a, &b, 0, 2, BL_NAK_LOST, BL_NAK_WHOLE);
	fake_nak(&a, &b, 3, 5, BL_NAK_LOST, BL_NAK_WHOLE);
	a.ep->incarnation++;
	fake_nak(&a, &b, 2, 1, BL_NAK_LATE, BL_NAK_WHOLE);
	a.ep->incarnation--;
	bl_process(a.ep);
	assert_int_equal(fs->n, 5);
	fake_nak(&a, &b, 2, 1, BL_NAK_LATE, BL_NAK_WHOLE);
	bl_process(a.ep);
	assert_int_equal(fs->n, 7);
	assert_int_equal(fs->f[6].why, BL_FAIL_LATE);
	assert_int_equal(a.ep->st.send_failed, 7);
	/* A forged count that would take minutes. */
	fake_nak(&a, &b, 0, 0xffffffff, BL_NAK_LOST, BL_NAK_WHOLE);
	bl_process(a.ep);
	assert_int_equal(a.ep->st.malformed, 1);
	free(fs);
}

static void send_again(void *ctx, uint64_t ts, const struct bl_addr *dst, uint64_t cookie,
		       enum bl_fail_reason why)
{
	struct bl_msg m = { .dst = *dst, .data = "again", .len = 5, .cookie = cookie + 1 };

	(void)ts;
	assert_int_equal(why, BL_FAIL_LOST);
	++*(int *)ctx;
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
}

static void bl_tx_nak__the_callback_may_send(void **state)
{
	struct seen s;
	int calls = 0;

	(void)state;
	bl_on_send_fail(a.ep, send_again, &calls);
	assert_int_equal(send_one(&b, "once", 4, 1, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	fake_nak(&a, &b, 0, 1, BL_NAK_LOST, BL_NAK_WHOLE);
	bl_process(a.ep);
	assert_int_equal(calls, 1);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_memory_equal(s.body + 6, "again", 5);
}

/* ---- silence ---- */

static void bl_tx_timers__probes_then_unreachable(void **state)
{
	struct failures *fs = calloc(1, sizeof(*fs));
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	uint64_t now, due, rto = BL_RTO_NS;
	struct seen s;
	uint32_t i;

	(void)state;
	assert_non_null(fs);
	bl_on_send_fail(a.ep, on_fail, fs);
	for (i = 0; i < BL_WINDOW_FIRST + 2; i++) /* two of them wait */
		assert_int_equal(send_one(&b, "x", 1, i, 0), 0);
	assert_int_equal(send_one(&b, pattern, 5000, 77, 0), 0);
	while (fake_take(&b, &s))
		;
	due = t->progress_ns + rto;
	a.ep->timers_ns = 1;
	assert_int_equal(bl_tx_timers(a.ep, due - 1), due);
	fake_silent(&b);
	for (i = 0; i < BL_PROBES_MAX; i++) {
		now = due;
		rto = rto * 2 < BL_RTO_MAX_NS ? rto * 2 : BL_RTO_MAX_NS;
		due = now + rto;
		assert_int_equal(bl_tx_timers(a.ep, now), due);
		fake_expect(&b, &s, BL_OP_PROBE);
		assert_int_equal(s.psn, t->next_psn);
		assert_int_equal(bl_load16(s.body), a.ep->incarnation);
		fake_silent(&b);
		assert_int_equal(bl_tx_timers(a.ep, due - 1), due);
		fake_silent(&b);
	}
	assert_int_equal(a.ep->st.probes_sent, BL_PROBES_MAX);
	assert_int_equal(fs->n, 0);
	assert_int_equal(bl_tx_timers(a.ep, due), due + BL_RETRY_NS);
	fake_expect(&b, &s, BL_OP_PROBE);
	fake_silent(&b);
	bl_process(a.ep);
	/* Outstanding: 0 to 3, whose fate is unknown; staged: 4, 5 and the large message. */
	assert_int_equal(fs->n, BL_WINDOW_FIRST + 3);
	for (i = 0; i < fs->n; i++) {
		assert_int_equal(fs->f[i].why,
				 i < BL_WINDOW_FIRST ? BL_FAIL_UNKNOWN : BL_FAIL_UNREACHABLE);
		assert_int_equal(fs->f[i].cookie, i < BL_WINDOW_FIRST + 2 ? i : 77);
	}
	assert_int_equal(a.ep->staged_bytes, 0);
	assert_false(a.ep->held);
	/* Until it answers, sends to it fail at once; other destinations are served. */
	assert_int_equal(send_one(&b, "x", 1, 500, 0), 0);
	assert_int_equal(send_one(&c, "x", 1, 501, 0), 0);
	bl_process(a.ep);
	assert_int_equal(fs->n, BL_WINDOW_FIRST + 4);
	assert_int_equal(fs->f[fs->n - 1].cookie, 500);
	assert_int_equal(fs->f[fs->n - 1].why, BL_FAIL_UNREACHABLE);
	fake_silent(&b);
	fake_expect(&c, &s, BL_OP_DATA);
	/* It is asked in the background, ever more rarely, and delays nothing. */
	for (due = t->progress_ns + BL_RETRY_NS, rto = BL_RETRY_NS; rto < 4 * BL_RETRY_MAX_NS;
	     rto *= 2) {
		a.ep->timers_ns = 1;
		now = due;
		due = now + (2 * rto < BL_RETRY_MAX_NS ? 2 * rto : BL_RETRY_MAX_NS);
		bl_tx_timers(a.ep, now);
		fake_expect(&b, &s, BL_OP_PROBE);
		assert_int_equal(s.psn, BL_WINDOW_FIRST);
		bl_tx_timers(a.ep, due - 1);
		fake_silent(&b);
	}
	/* It is also asked when there is something to send, if the last time was not just now. */
	t->progress_ns = bl_mono() - BL_RETRY_MIN_NS - 1;
	for (i = 0; i < 2; i++) {
		assert_int_equal(send_one(&b, "x", 1, 502, 0), 0);
		assert_int_equal(fs->f[fs->n - 1].cookie, i ? 502 : 500);
		bl_process(a.ep);
	}
	fake_expect(&b, &s, BL_OP_PROBE);
	fake_silent(&b);
	/* It answers: the numbers continue where they were. */
	fake_credit(&a, &b, BL_WINDOW_FIRST, 8);
	bl_process(a.ep);
	assert_int_equal(send_one(&b, "x", 1, 503, 0), 0);
	fake_expect(&b, &s, BL_OP_DATA);
	assert_int_equal(s.psn, BL_WINDOW_FIRST);
	free(fs);
}

static void bl_tx_timers__a_credit_ends_the_silence(void **state)
{
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	struct seen s;

	(void)state;
	send_frames(&b, 2);
	a.ep->timers_ns = 1;
	bl_tx_timers(a.ep, t->progress_ns + BL_RTO_NS);
	assert_int_equal(t->probes, 1);
	fake_credit(&a, &b, 1, 4);
	bl_process(a.ep);
	assert_int_equal(t->probes, 0);
	assert_int_equal(t->rto_ns, BL_RTO_NS);
	/* With everything credited there is nothing to ask for. */
	fake_credit(&a, &b, 2, 4);
	bl_process(a.ep);
	a.ep->timers_ns = 1;
	assert_int_equal(bl_tx_timers(a.ep, bl_mono() + 10 * BL_RTO_NS), 0);
	while (fake_take(&b, &s))
		assert_int_not_equal(s.psn, 3);
	assert_int_equal(a.ep->st.probes_sent, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, three_up, three_down)
		T(bl_tx_nak__cookies),
		T(bl_tx_nak__the_callback_may_send),
		T(bl_tx_timers__probes_then_unreachable),
		T(bl_tx_timers__a_credit_ends_the_silence),
	};

	fill_pattern();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
