// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * lib/patience_core.h, and lib/tx.c with it: a destination that is slow, or loses frames, is not
 * called unreachable; a silent one is.
 */
#include "tests/unit/lib/lib_fake.h"

#define MS 1000000ULL

static void patience__follows_the_slowest_answer(void **state)
{
	struct bl_patience p = { 0 };
	__u64 now = 1000 * MS;
	int i;

	(void)state;
	/* Nothing is known: given up whenever the PROBEs are used up. */
	bl_patience_begin(&p, now);
	assert_true(bl_patience_over(&p, now + 2300 * MS, 0));
	/* An answer after 1.5 s: four times that. */
	now += 1500 * MS;
	bl_patience_heard(&p, now, 1);
	assert_int_equal(p.slow_ns, 1500 * MS);
	assert_false(bl_patience_over(&p, now + 6000 * MS - 1, 0));
	assert_true(bl_patience_over(&p, now + 6000 * MS, 0));
	/*
	 * An answer without outstanding frames measures nothing, and one fast answer forgets
	 * little.
	 */
	now += 100000 * MS;
	bl_patience_heard(&p, now, 0);
	assert_int_equal(p.slow_ns, 1500 * MS);
	for (i = 0; i < 22; i++) {
		now += 10 * MS;
		bl_patience_heard(&p, now, 1);
	}
	assert_true(p.slow_ns < 100 * MS && p.slow_ns >= 10 * MS);
	/* Nobody is given up while frames have not left the host, but there is a limit. */
	assert_false(bl_patience_over(&p, now + 15000 * MS, 1));
	assert_true(bl_patience_over(&p, now + BL_PATIENCE_MAX_NS, 1));
	p.slow_ns = 60000 * MS;
	assert_true(bl_patience_over(&p, now + BL_PATIENCE_MAX_NS, 0));
	/* A clock that was read earlier. */
	assert_false(bl_patience_over(&p, now - MS, 0));
	bl_patience_heard(&p, now - MS, 1);
	assert_true(p.slow_ns < 60000 * MS);
}

/* Let @probes PROBEs go unanswered; returns how many were sent. */
static int silence(struct fake *a, struct fake *b, int probes)
{
	struct bl_tx *t = &fake_peer(a, b)->tx;
	struct seen s;
	int sent = 0, i;

	for (i = 0; i < probes; i++) {
		t->progress_ns = 0; /* its time has come */
		a->ep->timers_ns = 1;
		bl_process(a->ep);
		while (fake_take(b, &s))
			sent += s.op == BL_OP_PROBE;
	}
	return sent;
}

static void bl_tx_timers__slow_is_not_unreachable(void **state)
{
	struct failures *fs = calloc(1, sizeof(*fs));
	struct fake a, b;
	struct bl_msg m;
	struct bl_tx *t;

	(void)state;
	assert_non_null(fs);
	fake_make(&a, "127.0.0.1", FAKE_RING);
	fake_make(&b, "127.0.0.2", FAKE_RING);
	bl_on_send_fail(a.ep, on_fail, fs);
	t = &fake_peer(&a, &b)->tx;
	/* Its last CREDIT took 3 s. */
	m = msg_to(&b, "x", 1, 1);
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	t->patience.since_ns -= 3000 * MS;
	fake_credit(&a, &b, 1, 64);
	bl_process(a.ep);
	/* More PROBEs than 2.3 s have room for, and the answer is 10 s late: PROBEs go on. */
	m = msg_to(&b, "y", 1, 2);
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	t->patience.since_ns -= 10000 * MS;
	assert_true(silence(&a, &b, 20) >= 20);
	assert_int_equal(fs->n, 0);
	assert_int_equal(a.ep->st.send_failed, 0);
	/* After 12 s and more it is given up. */
	t->patience.since_ns -= 2100 * MS;
	silence(&a, &b, 1);
	bl_process(a.ep);
	assert_int_equal(fs->n, 1);
	assert_int_equal(fs->f[0].cookie, 2);
	fake_free(&a);
	fake_free(&b);
	free(fs);
}

/*
 * Seven of ten frames are lost in each direction, CREDITs and PROBEs included: PROBEs go on until a
 * CREDIT comes.
 */
static void bl_tx_timers__lost_credits(void **state)
{
	static const char data[1200];
	struct rnd r = { 20261122 };
	struct bl_delivery d[64];
	struct fake a, b;
	uint64_t got = 0;
	int i, sent = 0, step;

	(void)state;
	fake_make(&a, "127.0.0.1", FAKE_RING);
	fake_make(&b, "127.0.0.2", FAKE_RING);
	fake_peer(&a, &b)->tx.patience.slow_ns = 5000 * MS;
	for (step = 0;
	     step < 4000 && (sent < 200 || !a.ep->st.credits_received || !bl_tx_room(a.ep));
	     step++) {
		struct seen s;

		while (sent < 200) {
			struct bl_msg m = msg_to(&b, data, sizeof(data), (uint64_t)sent);

			if (bl_send(a.ep, &m, 1, 0))
				break;
			sent++;
		}
		while (fake_take(&b, &s))
			if (rnd_below(&r, 10) < 3)
				fake_put(&b, &s.from, s.op, s.op == BL_OP_DATA ? s.ts : 0, s.psn,
					 s.body, s.body_len);
		fake_barrier_now(&b);
		while ((i = bl_recv(b.ep, d, 64, 0)) > 0)
			got += (uint64_t)i;
		while (fake_take(&a, &s))
			if (rnd_below(&r, 10) < 3)
				fake_put(&a, &s.from, s.op, 0, s.psn, s.body, s.body_len);
		fake_peer(&a, &b)->tx.progress_ns = 0;
		a.ep->timers_ns = a.ep->timers_ns ? 1 : 0;
		bl_process(a.ep);
	}
	assert_true(step < 4000);
	assert_int_equal(sent, 200);
	assert_true(bl_tx_room(a.ep));
	assert_true(a.ep->st.probes_sent > 8);
	assert_true(got > 0);
	assert_false(fake_peer(&a, &b)->tx.dead);
	fake_free(&a);
	fake_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patience__follows_the_slowest_answer),
		cmocka_unit_test(bl_tx_timers__slow_is_not_unreachable),
		cmocka_unit_test(bl_tx_timers__lost_credits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
