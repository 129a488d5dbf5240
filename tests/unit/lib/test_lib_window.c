// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Numbers that no sender that keeps the rules can have: a single frame must not end a flow, of
 * either stream, and frames of a sender that keeps the rules are never refused, whatever the
 * network loses, repeats and reorders.
 */
#include "tests/unit/lib/lib_pair.h"

static int pair_up(void **state)
{
	struct bl_delivery d;

	(void)state;
	fake_key[0] = 0x0706050403020100;
	make_pair(&a, &b);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, &d, 1, 0), 1);
	return 0;
}

/* ---- what a stranger puts into b's ring in a's name ---- */

static void forged_data(uint32_t psn, uint64_t ts)
{
	uint8_t body[64];

	assert_true(fake_put(&b, &a.ep->self, BL_OP_DATA, ts, psn, body,
			     body_one(body, a.ep->incarnation, "x", 1)));
}

static void forged_prep(uint16_t incarnation, uint32_t psn, uint64_t ts)
{
	uint8_t body[100] = { 0 };

	bl_store16(body, incarnation);
	bl_store16(body + 2, 1);
	bl_store16(body + 8, b.ep->incarnation);
	bl_item_put(body + BL_ACK_BODY, "x", 1);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_PREP, ts, psn, body, sizeof(body)));
}

static void forged_open(uint16_t incarnation, uint32_t psn)
{
	uint8_t body[4] = { 0 };

	bl_store16(body, incarnation);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_OPEN, 0, psn, body, sizeof(body)));
}

static void forged_recall(uint64_t ts, uint32_t psn, uint32_t count)
{
	uint8_t body[16] = { 0 };

	bl_store16(body, a.ep->incarnation);
	bl_store16(body + 2, b.ep->incarnation);
	bl_store32(body + 4, count);
	bl_put48(body + 8, ts);
	assert_true(fake_put(&b, &a.ep->self, BL_OP_RECALL, 0, psn, body, sizeof(body)));
}

/* ---- a flow ---- */

/* Send @n messages from a reliably, one after the other. Returns how many of them b delivers. */
static int reliable_flow(int n)
{
	struct bl_delivery d[64];
	int i, k, got, sum = 0;

	for (i = 0; i < n; i++) {
		struct bl_msg m = msg_to(&b, &i, sizeof(i), (uint64_t)i);

		assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
		for (k = 0; k < 20 && !bl_rtx_empty(a.ep); k++) {
			carry(&b, &a, true);
			bl_process(b.ep);
			carry(&a, &b, true);
			a.ep->rtimer_ns = 1;
			fake_peer(&a, &b)->rtx.ask_ns = 1;
			bl_process(a.ep);
		}
		commit(&b, a.ep->last_ts + 1);
		while ((got = bl_recv_reliable(b.ep, d, 64, 0)) > 0)
			for (k = 0; k < got; k++)
				sum += d[k].len == sizeof(i);
	}
	return sum;
}

static int best_effort_flow(int n)
{
	struct bl_delivery d[64];
	int i, k, got, sum = 0;

	for (i = 0; i < n; i++) {
		struct bl_msg m = msg_to(&b, &i, sizeof(i), (uint64_t)i);
		int rc = bl_send(a.ep, &m, 1, 0);

		assert_true(rc == 0 || rc == -EAGAIN);
		for (k = 0; k < 3; k++) {
			fake_carry(&b);
			bl_process(b.ep);
			fake_carry(&a);
			fake_peer(&a, &b)->tx.progress_ns = 1; /* 25 ms later */
			a.ep->timers_ns = 1;
			bl_process(a.ep);
		}
		fake_barrier(&b, a.ep->last_ts + 1);
		while ((got = bl_recv(b.ep, d, 64, 0)) > 0)
			for (k = 0; k < got; k++)
				sum += d[k].len == sizeof(i);
	}
	return sum;
}

static void data__far_beyond(void **state)
{
	uint32_t next;

	(void)state;
	assert_int_equal(best_effort_flow(10), 10);
	next = fake_peer(&a, &b)->tx.next_psn;
	forged_data(next + (1u << 30), a.ep->last_ts + 5);
	assert_int_equal(best_effort_flow(50), 50);
	assert_int_equal(b.ep->st.refused, 1);
	assert_int_equal(b.ep->st.lost_frames, 0);
	/* The same frame again, as often as one likes. */
	forged_data(next + (1u << 30), a.ep->last_ts + 5);
	forged_data(next + (1u << 30), a.ep->last_ts + 5);
	assert_int_equal(best_effort_flow(50), 50);
	/* Two frames that follow one another: two frames of the real sender lead back. */
	forged_data(next + (1u << 30), a.ep->last_ts + 5);
	forged_data(next + (1u << 30) + 1, a.ep->last_ts + 5);
	assert_true(best_effort_flow(50) >= 48);
	assert_int_equal(best_effort_flow(50), 50);
}

static void data__within_the_window(void **state)
{
	(void)state;
	assert_int_equal(best_effort_flow(10), 10);
	forged_data(fake_peer(&a, &b)->tx.next_psn + BL_AHEAD_MAX - 1, a.ep->last_ts + 5);
	/*
	 * The receiver goes there, and takes what the sender sends now for old, until the sender
	 * hears of it.
	 */
	assert_true(best_effort_flow(20) >= 15);
	assert_int_equal(best_effort_flow(50), 50);
}

static void data__before_anything_else(void **state)
{
	(void)state;
	forged_data(1u << 30, a.ep->last_ts + 5);
	assert_true(best_effort_flow(20) >= 18);
	assert_int_equal(best_effort_flow(50), 50);
}

/*
 * A sender that has given up a destination does not count beyond what the receiver knows, so it
 * continues at once when the destination is back.
 */
static void give_up_peer__counts_on_after_a_credit(void **state)
{
	static struct failures fs;
	struct bl_tx *t = &fake_peer(&a, &b)->tx;
	struct bl_msg m = msg_to(&b, "x", 1, 1);
	struct seen s;
	int i, k;

	(void)state;
	fs.n = 0;
	bl_on_send_fail(a.ep, on_fail, &fs);
	assert_int_equal(best_effort_flow(3), 3);
	t->progress_ns = 1; /* a last PROBE: all of that is credited */
	a.ep->timers_ns = 1;
	bl_process(a.ep);
	fake_carry(&b);
	bl_process(b.ep);
	fake_carry(&a);
	bl_process(a.ep);
	assert_int_equal(t->credited, t->next_psn);
	for (i = 0; i < 30; i++) { /* the link is down */
		assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
		for (k = 0; !i && k < BL_PROBES_MAX + 2; k++) {
			t->progress_ns = t->patience.since_ns = 1;
			a.ep->timers_ns = 1;
			while (fake_take(&b, &s)) /* it has left the host */
				;
			bl_process(a.ep);
		}
		bl_process(a.ep);
		while (fake_take(&b, &s))
			;
	}
	assert_int_equal(fs.n, 30);
	assert_int_equal(fs.f[0].why, BL_FAIL_UNKNOWN);
	assert_int_equal(fs.f[29].why, BL_FAIL_UNREACHABLE);
	assert_true(t->next_psn - t->credited <= BL_AHEAD_MAX);
	assert_true(t->dead);
	/* The link is up: the next PROBE is answered, and nothing is refused. */
	t->progress_ns = 1;
	a.ep->timers_ns = 1;
	bl_process(a.ep);
	fake_carry(&b);
	bl_process(b.ep);
	fake_carry(&a);
	bl_process(a.ep);
	assert_false(t->dead);
	assert_int_equal(best_effort_flow(20), 20);
	assert_int_equal(b.ep->st.refused, 0);
	assert_int_equal(fs.n, 30);
}

static void prep__far_beyond(void **state)
{
	uint32_t next;

	(void)state;
	assert_int_equal(reliable_flow(10), 10);
	next = fake_peer(&a, &b)->rtx.next_psn;
	forged_prep(a.ep->incarnation, next + (1u << 30), a.ep->last_ts + 5);
	assert_int_equal(reliable_flow(100), 100);
	assert_int_equal(b.ep->st.refused, 1);
	assert_int_equal(b.ep->st.duplicates, 0);
	/* The first number that is refused, and the last one that is not. */
	forged_prep(a.ep->incarnation, fake_peer(&b, &a)->rrx.seq.done + BL_RELIABLE_MAX,
		    a.ep->last_ts + 5);
	forged_prep(a.ep->incarnation, fake_peer(&b, &a)->rrx.seq.done + BL_RELIABLE_MAX - 1,
		    a.ep->last_ts + 5);
	bl_process(b.ep);
	assert_int_equal(b.ep->st.refused, 2);
	assert_int_equal(b.ep->rrq.frames, 1);
}

/*
 * Another life, and frames of it, do not make the receiver forget what it has: copies of that are
 * still copies.
 */
static void prep__of_another_life(void **state)
{
	struct bl_delivery d[4];
	struct bl_msg m;
	struct seen s;
	int x = 5;

	(void)state;
	assert_int_equal(reliable_flow(10), 10);
	m = msg_to(&b, &x, sizeof(x), 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	fake_expect(&b, &s, BL_OP_PREP);
	assert_true(fake_put(&b, &s.from, BL_OP_PREP, a.ep->last_ts, s.psn, s.body, s.body_len));
	forged_open((uint16_t)(a.ep->incarnation + 1), 77);
	forged_open((uint16_t)(a.ep->incarnation + 2), 78);
	forged_open(a.ep->incarnation, 1u << 30);
	forged_open(a.ep->incarnation, 1u << 29);
	forged_prep((uint16_t)(a.ep->incarnation + 3), 5, a.ep->last_ts + 100);
	assert_true(fake_put(&b, &s.from, BL_OP_PREP, a.ep->last_ts, s.psn, s.body, s.body_len));
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(b.ep->st.duplicates, 1);
	assert_int_equal(b.ep->st.refused, 0);
}

static void open__from_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(reliable_flow(10), 10);
	forged_open(a.ep->incarnation, 1u << 30);
	assert_int_equal(reliable_flow(50), 50);
	assert_int_equal(b.ep->st.refused, 0);
	forged_open(a.ep->incarnation, 1u << 30);
	forged_open(a.ep->incarnation, 1u << 29);
	assert_int_equal(reliable_flow(50), 50);
	assert_int_equal(b.ep->st.refused, 0);
}

/* The forged frame comes first, in the name of a sender that the receiver does not know yet. */
static void open__before_anything_else(void **state)
{
	static const int which[] = { 0, 1, 2 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(which); i++) {
		struct fake old = b;

		make(&b, "127.0.0.4", 2);
		if (which[i] != 1)
			forged_open(a.ep->incarnation, 1u << 30);
		if (which[i] != 0)
			forged_prep(a.ep->incarnation, 1u << 30, fake_now());
		bl_process(b.ep);
		assert_int_equal(reliable_flow(30), 30);
		assert_int_equal(b.ep->st.refused, 0);
		drop(&b);
		b = old;
	}
}

/*
 * A RECALL of what was committed, or of numbers that do not exist, is refused. One with another
 * timestamp drops nothing.
 */
static void recall__forged(void **state)
{
	uint32_t next;
	int k;

	(void)state;
	assert_int_equal(reliable_flow(10), 10);
	next = fake_peer(&a, &b)->rtx.next_psn;
	forged_recall(0, next, 512);
	assert_int_equal(reliable_flow(100), 100);
	next = fake_peer(&a, &b)->rtx.next_psn;
	forged_recall(a.ep->last_ts, next, 10);
	assert_int_equal(reliable_flow(100), 100);
	assert_int_equal(b.ep->st.refused, 2);
	/* Of the future, and of numbers that may come. */
	next = fake_peer(&a, &b)->rtx.next_psn;
	forged_recall(a.ep->last_ts + 50000000000ULL, next, 200);
	forged_recall(a.ep->last_ts + 50000000000ULL, next + 5000, 20);
	assert_int_equal(reliable_flow(400), 400);
	assert_int_equal(b.ep->st.refused, 4);
	assert_int_equal(b.ep->st.duplicates, 0);
	/* Within the bound, but of no scattering, one after the other. */
	for (k = 0; k < 40; k++) {
		next = fake_peer(&b, &a)->rrx.seq.done;
		forged_recall(a.ep->last_ts + 50000 + (uint64_t)k, next, 290);
		bl_process(b.ep);
	}
	next = fake_peer(&a, &b)->rtx.next_psn;
	assert_true(fake_peer(&b, &a)->rrx.seq.next - next <= BL_RELIABLE_MAX);
	assert_int_equal(reliable_flow(400), 400);
	assert_int_equal(b.ep->st.duplicates, 0);
}

/* ---- properties ---- */

struct held {
	struct seen s;
	bool used;
};

/*
 * A network between a and b that loses, repeats and reorders PREPs. What it stores is acknowledged,
 * or the ACK is lost.
 */
static void mixed(struct rnd *r, struct held *h, int n, bool rest)
{
	struct seen s;
	int i;

	while (fake_take(&b, &s))
		if (rest || rnd_below(r, 100) >= 20)
			h[rnd_below(r, (uint32_t)n)] =
				(struct held){ s, true }; /* what is held there already is lost */
	for (i = 0; i < n; i++) {
		uint64_t ts;
		uint32_t slot;

		if (!h[i].used || (!rest && rnd_below(r, 3)))
			continue;
		s = h[i].s;
		h[i].used = rnd_below(r, 10) == 0 && !rest;
		ts = bl_ext48(bl_get48(s.h->ts), FAKE_BUS);
		/* prep_late of the program */
		if (s.op == BL_OP_PREP && ts < b.page->commit)
			continue;
		assert_true(fake_put(&b, &s.from, s.op, s.op == BL_OP_PREP ? ts : 0, s.psn, s.body,
				     s.body_len));
		if (s.op != BL_OP_PREP || (!rest && rnd_below(r, 100) < 20))
			continue;
		slot = bl_load32(s.body + 4);
		if (bl_rwin_slot(a.ep->rwin, slot)->psn == s.psn &&
		    bl_rwin_slot(a.ep->rwin, slot)->ts == ts &&
		    bl_rslot_close(bl_rwin_slot(a.ep->rwin, slot), slot))
			while (bl_rwin_step(&a.ep->line->state, a.ep->rwin))
				;
	}
}

static void hostile(struct rnd *r)
{
	uint32_t next = fake_peer(&a, &b)->rtx.next_psn,
		 far = 2000 + (uint32_t)(rnd64(r) % (UINT32_MAX - 4000));

	switch (rnd_below(r, 4)) {
	case 0:
		forged_prep(a.ep->incarnation, next + far, fake_now() + 1000000);
		break;
	case 1:
		forged_open(rnd_below(r, 2) ? a.ep->incarnation : (uint16_t)rnd64(r), next + far);
		break;
	case 2:
		forged_recall(fake_now() + rnd_below(r, 100000000), next - 50 + rnd_below(r, 300),
			      1 + rnd_below(r, 200));
		break;
	case 3:
		forged_recall(rnd64(r) & BL_TS_MASK, (uint32_t)rnd64(r), 1 + rnd_below(r, 2000));
		break;
	}
}

/* Everything that was sent is delivered once, in order, and nothing of it is refused. */
static void property(bool with_strangers)
{
	static uint8_t data[9000];
	struct held h[40] = { 0 };
	struct rnd r = rnd_seeded(__func__);
	struct bl_delivery d[64];
	uint32_t sent = 0, got = 0, step;
	int n, i;

	for (step = 0; step < 4000 && (step < 3000 || got != sent); step++) {
		bool rest = step >= 3000;

		if (!rest && rnd_below(&r, 3)) {
			struct bl_msg m = msg_to(&b, data,
						 rnd_below(&r, 20) ? 8 + rnd_below(&r, 1300)
								   : 1500 + rnd_below(&r, 7000),
						 sent);
			int rc;

			memset(data, 0, 8);
			memcpy(data, &sent, sizeof(sent));
			rc = bl_send_reliable(a.ep, &m, 1, rnd_below(&r, 2) ? BL_MORE : 0);
			assert_true(rc == 0 || rc == -EAGAIN);
			sent += !rc;
		}
		mixed(&r, h, (int)ARRAY_SIZE(h), rest);
		if (with_strangers && !rest && rnd_below(&r, 10) == 0)
			hostile(&r);
		if (rnd_below(&r, 2))
			bl_process(b.ep);
		carry(&a, &b, true);
		for (n = (int)a.ep->rreaped; n != (int)a.ep->rtail; n++)
			if (a.ep->rsent[n % BL_RWIN])
				a.ep->rsent[n % BL_RWIN]->sent_ns -= 20000000;
		a.ep->rtimer_ns = 1;
		fake_peer(&a, &b)->rtx.ask_ns = fake_peer(&a, &b)->rtx.ask_ns ? 1 : 0;
		fake_peer(&a, &b)->rtx.asks = 0;
		if (rest)
			bl_flush(a.ep);
		bl_process(a.ep);
		/* C, by a's window. */
		commit(&b, a.ep->rts ? a.ep->rts
			   : bl_rwin_used(word(&a))
				   ? bl_rwin_slot(a.ep->rwin, bl_rwin_head(word(&a)))->ts
				   : a.ep->last_ts + 1);
		if (rnd_below(&r, 3))
			continue;
		n = bl_recv_reliable(b.ep, d, 64, 0);
		assert_true(n >= 0);
		for (i = 0; i < n; i++) {
			uint32_t number;

			if (d[i].len == 1)
				continue; /* a forged one */
			memcpy(&number, d[i].data, sizeof(number));
			assert_int_equal(number, got);
			got++;
		}
	}
	assert_true(sent > 500);
	assert_int_equal(got, sent);
	if (!with_strangers)
		assert_int_equal(b.ep->st.refused, 0);
	assert_int_equal(b.ep->st.malformed, 0);
}

static void property__nothing_is_refused(void **state)
{
	(void)state;
	property(false);
}

static void property__strangers_end_no_flow(void **state)
{
	(void)state;
	property(true);
	assert_true(b.ep->st.refused > 0);
}

/* The best-effort stream continues beside random frames in its sender's name. */
static void property__best_effort_goes_on(void **state)
{
	struct rnd r = rnd_seeded(__func__);
	int i, k, sum = 0;

	(void)state;
	for (i = 0; i < 200; i++) {
		uint32_t far = (uint32_t)rnd64(&r);

		for (k = (int)rnd_below(&r, 4); k; k--)
			forged_data(far + rnd_below(&r, 3), fake_now() + rnd_below(&r, 1000));
		sum += best_effort_flow(10);
	}
	assert_true(sum > 1400);
	assert_int_equal(best_effort_flow(10) + best_effort_flow(10) >= 18, 1);
	assert_int_equal(best_effort_flow(20), 20);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, pair_up, pair_down)
	const struct CMUnitTest tests[] = {
		T(data__far_beyond),
		T(data__within_the_window),
		T(data__before_anything_else),
		T(give_up_peer__counts_on_after_a_credit),
		T(prep__far_beyond),
		T(prep__of_another_life),
		T(open__from_elsewhere),
		T(open__before_anything_else),
		T(recall__forged),
		T(property__nothing_is_refused),
		T(property__strangers_end_no_flow),
		T(property__best_effort_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
