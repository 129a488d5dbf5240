// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/order/line_core.h by itself, and against the library: a process that its daemon expels
 * continues with whatever it was doing, and C does not pass T. The process learns that it is out
 * and no longer writes anything that may belong to another process.
 */
#include "tests/unit/lib/lib_rel.h"

#include "core/order/line_core.h"

#define T 1000ULL

/* ---- the line alone ---- */

static struct bl_ep_word decided;

static void expect_least(const struct bl_inflight *line, int in_flight, uint64_t b, uint64_t c,
			 int window)
{
	const struct bl_pair none = { 0, 0 };
	__u64 got_b = T, got_c = T;

	assert_int_equal(bl_line_least(line, &decided, in_flight, &none, &got_b, &got_c), window);
	assert_int_equal(got_b, b);
	assert_int_equal(got_c, c);
}

static void bl_line_least__each_word(void **state)
{
	const struct bl_inflight idle = { .ts = BL_TIME_NONE,
					  .hold = BL_TIME_NONE,
					  .state = 7ULL << 32 | 7 };
	struct bl_inflight l = idle;

	(void)state;
	expect_least(&l, 1, T, T, 0);
	l = (struct bl_inflight){ 0 }; /* a new map */
	expect_least(&l, 1, T, T, 0);
	l = idle;
	l.ts = T - 1;
	expect_least(&l, 1, T - 1, T, 0);
	expect_least(&l, 0, T, T, 0); /* The frame in flight is the sender's own. */
	l.hold = T - 2;
	expect_least(&l, 1, T - 1, T - 2, 0);
	l.state = 8ULL << 32 | 7;
	expect_least(&l, 1, T - 1, T - 2, 1);
	/*
	 * The line is stopped but not final: frames in flight may still leave, so @ts counts, and
	 * apart from it only @out does.
	 */
	decided.out = T - 5;
	expect_least(&l, 1, T - 1, T - 5, 0);
	decided.out = T + 5;
	expect_least(&l, 1, T - 1, T, 0);
	/* The line is final: nothing that the process writes counts. */
	decided.out_why = BL_OUT_RING;
	expect_least(&l, 1, T, T, 0);
	decided.out = 1;
	expect_least(&l, 1, T, 1, 0);
	/* The line is over. */
	decided.out = BL_OUT_OVER;
	expect_least(&l, 1, T, T, 0);
	decided.out_why = 0;
	expect_least(&l, 1, T, T, 0);
	/* The line belongs to another process. */
	decided = (struct bl_ep_word){ 0 };
	bl_line_clear(&l);
	expect_least(&l, 1, T, T, 0);
	l.ts = T - 1;
	l.state = 1ULL << 32;
	expect_least(&l, 1, T - 1, T, 1);
}

/* What is void does not hold B or C; the hold and the window beside it do. */
static void bl_line_least__void(void **state)
{
	static const struct {
		uint64_t ts, hold, over, last, b, c;
	} t[] = {
		{ T - 5, 0, T - 6, 0, T - 5, T },
		{ T - 5, 0, T - 5, 0, T, T },
		{ T - 5, 0, T - 4, 0, T, T },
		{ T - 5, T - 3, T - 5, 0, T, T - 3 },
		{ 1, 0, T, 0, T, T },
		{ BL_TIME_NONE, 0, T, 0, T, T },
		/* a hold below the C that was sent */
		{ 0, T - 3, 0, T - 4, T, T - 3 },
		{ 0, T - 3, 0, T - 3, T, T - 3 },
		{ 0, T - 3, 0, T - 2, T, T },
		{ 0, 1, 0, T - 2, T, T },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_inflight l = { .ts = t[i].ts, .hold = t[i].hold };
		const struct bl_ep_word w = { .upto = t[i].over, .over = t[i].over };
		__u64 b = T, c = T;

		assert_int_equal(
			bl_line_least(&l, &w, 1, &(struct bl_pair){ 0, t[i].last }, &b, &c), 0);
		assert_int_equal(b, t[i].b);
		assert_int_equal(c, t[i].c);
	}
	/* a time in flight below the B that was sent, next to it, and above it */
	for (i = 0; i < 4; i++) {
		struct bl_inflight l = { .ts = i ? T - 7 + i : 1 };
		const struct bl_ep_word w = { 0 };
		__u64 b = T, c = T;

		bl_line_least(&l, &w, 1, &(struct bl_pair){ T - 5, 0 }, &b, &c);
		assert_int_equal(b, i < 3 ? T - 5 : T - 4);
		/* never more than was promised */
		b = T - 8;
		bl_line_least(&l, &w, 1, &(struct bl_pair){ T - 5, 0 }, &b, &c);
		assert_int_equal(b, T - 8);
	}
	assert_false(bl_line_void(0, T));
	assert_false(bl_line_void(BL_TIME_NONE, T));
	assert_false(bl_line_void(1, 0));
}

static void bl_line_holds__each_word(void **state)
{
	struct bl_inflight l = { 0 }; /* a new map */

	(void)state;
	assert_int_equal(bl_line_holds(&l), 0);
	l.hold = BL_TIME_NONE;
	l.state = 7ULL << 32 | 7;
	assert_int_equal(bl_line_holds(&l), 0);
	l.hold = T;
	assert_int_equal(bl_line_holds(&l), 1);
	l.hold = BL_TIME_NONE;
	l.state = 8ULL << 32 | 7;
	assert_int_equal(bl_line_holds(&l), 1);
}

static void bl_life_pick__edges(void **state)
{
	static const struct {
		uint16_t drawn, left, want;
	} t[] = {
		{ 0, 0, 1 },         { 1, 0, 1 },         { 7, 0, 7 }, { 7, 6, 7 },
		{ 7, 7, 8 },         { 0, 1, 2 },         { 0, 2, 1 }, { 65535, 65534, 65535 },
		{ 65535, 1, 65535 }, { 65535, 65535, 1 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_life_pick(t[i].drawn, t[i].left), t[i].want);
}

static void bl_line_stop__edges(void **state)
{
	struct bl_ep_word l = { 0 };

	(void)state;
	/* The host has never sent a C. The line still counts as out, since 0 becomes 1. */
	bl_line_stop(&l, 0, 7);
	assert_true(l.out == 1 && l.out_upto == 0);
	bl_line_stop(&l, 50, 40);
	assert_true(l.out == 1 && l.out_upto == 0);
	l.out = 0;
	/*
	 * The received C is never taken as higher than the sent one, and therefore not higher than
	 * T.
	 */
	bl_line_stop(&l, 50, 51);
	assert_true(l.out == 50 && l.out_upto == 50);
	l.out = 0;
	bl_line_stop(&l, 50, 49);
	assert_true(l.out == 50 && l.out_upto == 49);
	bl_line_out(&l, 60, BL_OUT_WINDOW);
	assert_true(l.out == 60 && l.out_why == BL_OUT_WINDOW);
	bl_line_stop(&l, 50, 50);
	assert_true(l.out == 60 && l.out_upto == 49);
	bl_line_over(&l);
	bl_line_stop(&l, 50, 50);
	assert_true(l.out == BL_OUT_OVER && l.out_upto == 49);
}

static void bl_line_clear__each_word(void **state)
{
	const struct bl_inflight idle = { .ts = BL_TIME_NONE, .hold = BL_TIME_NONE };
	struct bl_inflight l;

	(void)state;
	memset(&l, 0x5a, sizeof(l));
	bl_line_clear(&l);
	assert_memory_equal(&l, &idle, sizeof(l));
}

static void bl_line_failed_at__edges(void **state)
{
	static const struct {
		uint32_t head, tail;
		uint64_t hold;
		uint64_t wait0, wait1; /* Bits of the slots at the head and behind it; 0: closed. */
		uint64_t want;
	} v[] = {
		{ 5, 5, 0, 0, 0, 900 },
		{ 5, 5, BL_TIME_NONE, 0, 0, 900 },
		{ 5, 5, 40, 0, 0, 40 },
		{ 5, 5, 901, 0, 0, 900 },
		{ 5, 7, 0, BL_RSLOT_OPEN, BL_RSLOT_OPEN, 100 },
		{ 5, 7, 0, BL_RSLOT_LOCKED, BL_RSLOT_OPEN, 100 },
		{ 5, 7, 0, 0, BL_RSLOT_OPEN, 130 },
		{ 5, 7, 0, 0, BL_RSLOT_LOCKED, 130 },
		{ 5, 7, 0, 0, 0, 900 },
		{ 5, 7, 120, 0, BL_RSLOT_OPEN, 120 },
		{ 5, 7, 140, 0, BL_RSLOT_OPEN, 130 },
		{ 0xffffffff, 1, 0, 0, BL_RSLOT_OPEN, 130 },
		{ 0xffffffff, 1, 0, BL_RSLOT_OPEN, 0, 100 },
	};
	static struct bl_rwin w;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		struct bl_inflight l = { .hold = v[i].hold,
					 .state = (uint64_t)v[i].tail << 32 | v[i].head };

		*bl_rwin_slot(&w, v[i].head) =
			(struct bl_rslot){ .wait = v[i].wait0 | v[i].head, .ts = 100 };
		*bl_rwin_slot(&w, v[i].head + 1) =
			(struct bl_rslot){ .wait = v[i].wait1 | (v[i].head + 1), .ts = 130 };
		assert_int_equal(bl_line_failed_at(&l, &w, 0, 900), v[i].want);
		/* never below what was sent, nor 0, and nothing that is open lies ahead of all */
		assert_int_equal(bl_line_failed_at(&l, &w, 899, 900), bl_max64(899, v[i].want));
		assert_int_equal(bl_line_failed_at(&l, &w, 0, 0), 1);
	}
}

/* ---- against the library ---- */

/*
 * Computes C from the line as least_inflight() of bpf/host/host.bpf.c does, with a clock that is
 * far ahead.
 */
static uint64_t line_commit(const struct fake *f)
{
	const struct bl_inflight *line = f->ep->line;
	__u64 b = BL_TIME_NONE, c = BL_TIME_NONE;

	if (bl_line_least(line, fake_word(f), 1, &(struct bl_pair){ 0, 0 }, &b, &c))
		c = bl_min64(c, bl_rwin_commit(&line->state, f->ep->rwin, 0));
	return bl_min64(b, c);
}

static struct bl_inflight *line_of(const struct fake *f)
{
	return f->ep->line;
}

/* Does what the daemon does to put the endpoint out; nothing else runs meanwhile. */
static uint64_t expel_endpoint(const struct fake *f)
{
	uint64_t t;

	bl_line_stop(fake_word(f), bl_min64(line_commit(f), fake_now()), f->page->commit);
	t = bl_line_failed_at(line_of(f), f->ep->rwin, 0, fake_now());
	bl_line_out(fake_word(f), t, BL_OUT_ANSWER);
	return t;
}

/*
 * The reproducer from a code review: a process is expelled in the middle of its recall. The recall
 * ends, and the process sends on.
 */
static void expel__T_holds_C(void **state)
{
	static const int x = 1, y = 2;
	struct fake a, b, c;
	struct bl_msg m[2];
	uint64_t ts1, ts2, t;

	(void)state;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&a, &c, 8);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &y, sizeof(y), 12);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	ts1 = a.ep->last_ts;
	assert_int_equal(carry(&b, &a, true), 1);
	assert_int_equal(carry(&c, &a, false), 1);
	/* sent to b alone, which acknowledges it */
	assert_int_equal(bl_send_reliable(a.ep, &m[0], 1, 0), 0);
	ts2 = a.ep->last_ts;
	assert_int_equal(carry(&b, &a, true), 1);
	bl_process(b.ep);
	fail_peer(&a, 0, &c, ts1 + 100);
	bl_process(a.ep); /* RECALL goes to b; the process has locked the slot at the head. */
	t = expel_endpoint(&a);
	assert_int_equal(t, ts1);
	assert_int_equal(line_commit(&a), t);
	/*
	 * The process does not know yet that it is out and continues: the answer arrives, the slots
	 * are closed, and the head moves.
	 */
	carry(&b, &a, true);
	bl_process(b.ep);
	carry(&a, &b, true);
	fake_word(&a)->out = 0; /* The process has read @out before it was set. */
	bl_rx_drain(a.ep);
	bl_recall_work(a.ep, pages[0].last);
	fake_word(&a)->out = t;
	assert_int_equal(bl_rwin_used(word(&a)), 0);
	assert_int_equal(line_commit(&a), t);
	/* The process is in the middle of a flush and writes in flight, hold and window. */
	m[0].cookie = 13;
	a.ep->rts = 0;
	bl_rtx_flush(a.ep);
	line_of(&a)->ts = ts2 + 1;
	line_of(&a)->hold = BL_TIME_NONE;
	assert_int_equal(line_commit(&a), t);
	/* Now the process reads @out. */
	assert_int_equal(bl_send_reliable(a.ep, &m[0], 1, 0), -ESTALE);
	assert_non_null(strstr(bl_strerror(a.ep), "put this endpoint out: it did not process in "
						  "time"));
	bl_line_over(fake_word(&a));
	assert_int_equal(line_commit(&a), BL_TIME_NONE);
	drop(&a);
	drop(&b);
	drop(&c);
}

static void estale_all(struct bl_endpoint *ep, const struct bl_msg *m)
{
	struct bl_delivery d;

	assert_int_equal(bl_process(ep), -ESTALE);
	assert_int_equal(bl_send(ep, m, 1, 0), -ESTALE);
	assert_int_equal(bl_send_reliable(ep, m, 1, 0), -ESTALE);
	assert_int_equal(bl_flush(ep), -ESTALE);
	assert_int_equal(bl_recv(ep, &d, 1, 0), -ESTALE);
	assert_int_equal(bl_recv(ep, &d, 1, -1), -ESTALE);
	assert_int_equal(bl_recv_reliable(ep, &d, 1, 0), -ESTALE);
	assert_int_equal(bl_recv_reliable(ep, &d, 1, -1), -ESTALE);
	assert_int_equal(bl_wait(ep, BL_WAIT_RECV, -1), -ESTALE);
	assert_int_equal(bl_wait(ep, BL_WAIT_ACKED, -1), -ESTALE);
}

/*
 * C does not depend on the words of the line after RESUME either. An earlier daemon wrote 0 into
 * the window of a living process, and the process crashed.
 */
static void expel__resume_then_the_process_goes_on(void **state)
{
	static const int x = 1;
	struct bl_inflight was;
	struct fake a, b;
	struct bl_msg m;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		make_pair(&a, &b);
		m = msg_to(&b, &x, sizeof(x), 11);
		assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
		assert_int_equal(carry(&b, &a, i == 2), 1);
		if (i)
			expel_endpoint(&a);
		bl_line_over(fake_word(&a));
		if (!i)
			line_of(&a)->state = 0;
		was = *line_of(&a);
		/*
		 * The result is the same whether or not the process has received its own
		 * announcement.
		 */
		fail_peer(&a, 0, &a, 1);
		estale_all(a.ep, &m);
		assert_memory_equal(&was, line_of(&a), sizeof(was));
		fake_silent(&b);
		drop(&a); /* calls bl_exit() */
		drop(&b);
	}
}

/*
 * Messages that only RESUME commits are not delivered by the process that was expelled, even if it
 * reads @out between the two.
 */
static void expel__looks_again_before_it_delivers(void **state)
{
	struct bl_delivery d[4];
	struct fake a, b;
	struct bl_msg m;
	int x = 1;

	(void)state;
	make_pair(&a, &b);
	m = msg_to(&b, &x, sizeof(x), 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 1);
	expel_endpoint(&b);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), -ESTALE);
	drop(&a);
	drop(&b);
}

/*
 * The endpoint is announced as failed but not expelled: best effort goes on, and calls of the
 * reliable stream do not block for ever.
 */
static void outcast__does_not_sleep(void **state)
{
	struct bl_delivery d[1];
	struct fake a;

	(void)state;
	make(&a, "127.0.0.1", 0);
	fail_peer(&a, 0, &a, 5);
	assert_int_equal(bl_recv_reliable(a.ep, d, 1, -1), -ESTALE);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_ACKED, -1), -ESTALE);
	assert_int_equal(bl_wait(a.ep, BL_WAIT_RECV, 0), 0);
	drop(&a);
}

static uint64_t work_and_get_turn(const struct fake *f)
{
	f->ep->turn_ns = 0; /* a time long ago */
	bl_wait(f->ep, BL_WAIT_ACKED, 0);
	return line_of(f)->turn;
}

/*
 * The library raises @turn when it works while its window is open, and only then; not in every
 * call.
 */
static void turn__while_the_window_is_open(void **state)
{
	struct fake a, b;
	struct bl_msg m;
	uint64_t was;
	int x = 1;

	(void)state;
	make_pair(&a, &b);
	was = work_and_get_turn(&a);
	assert_int_equal(work_and_get_turn(&a), was);
	m = msg_to(&b, &x, sizeof(x), 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(work_and_get_turn(&a), was + 1);
	assert_int_equal(work_and_get_turn(&a), was + 2);
	line_of(&a)->turn = ~0ULL;
	assert_int_equal(work_and_get_turn(&a), 0); /* The counter wraps. */
	assert_int_equal(carry(&b, &a, true), 1);
	work_and_get_turn(&a); /* Takes the ACK out of the ring. */
	was = work_and_get_turn(&a);
	assert_int_equal(work_and_get_turn(&a), was);
	drop(&a);
	drop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_line_least__each_word),
		cmocka_unit_test(bl_line_least__void),
		cmocka_unit_test(bl_line_holds__each_word),
		cmocka_unit_test(bl_life_pick__edges),
		cmocka_unit_test(bl_line_stop__edges),
		cmocka_unit_test(bl_line_clear__each_word),
		cmocka_unit_test(bl_line_failed_at__edges),
		cmocka_unit_test(expel__T_holds_C),
		cmocka_unit_test(expel__resume_then_the_process_goes_on),
		cmocka_unit_test(expel__looks_again_before_it_delivers),
		cmocka_unit_test(outcast__does_not_sleep),
		cmocka_unit_test(turn__while_the_window_is_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
