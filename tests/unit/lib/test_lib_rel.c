// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reliable stream (lib/rstage.c, lib/rtx.c, lib/rrx.c, lib/prepared.c) without a kernel
 * program: the test carries frames from socket to ring, closes slots as the host's program does,
 * and moves the commit barrier.
 */
#include "tests/unit/lib/lib_rel.h"

#include "lib/frame.h"
#include "maps/forward_abi.h"

static void bl_send_reliable__asks_first_then_takes_slots(void **state)
{
	struct fake a, b;
	struct bl_delivery d[4];

	(void)state;
	make_pair(&a, &b);
	assert_int_equal(word(&a), 1ULL << 32 | 1);
	assert_int_equal(a.ep->line->ts, BL_TIME_NONE);
	/* Prepared, not committed. */
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 0);
	commit(&b, a.ep->last_ts);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 0); /* strictly below */
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(d[0].ts, a.ep->last_ts);
	assert_int_equal(d[0].len, sizeof(int));
	assert_int_equal(*(const int *)d[0].data, 7);
	drop(&a);
	drop(&b);
}

/*
 * The first message to a receiver must not be below what any node may use when the receiver answers
 * the OPEN. It waits for the clock to get there, since a later timestamp than the clock's could be
 * refused. What best effort sends meanwhile does not wait.
 */
static void bl_send_reliable__not_below_what_may_have_passed(void **state)
{
	const uint64_t bound = 1000000000000ULL; /* longer than any pause of the test */
	uint64_t before, opened;
	struct fake a, b;
	struct bl_msg m, best;
	struct seen s;
	int x = 9;

	(void)state;
	make(&a, "127.0.0.1", 0);
	make(&b, "127.0.0.2", 1);
	m = msg_to(&b, &x, sizeof(x), 1);
	best = msg_to(&b, &x, sizeof(x), 2);
	a.clock->bound_ns = bound;
	a.ep->beacon_us = 100;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 0);
	bl_process(b.ep);
	assert_int_equal(carry(&a, &b, true), 0);
	before = fake_now();
	bl_process(a.ep);
	opened = a.ep->peers->rtx.least_ts;
	assert_true(opened >= before + 2 * bound + 150000 &&
		    opened <= fake_now() + 2 * bound + 150000);
	assert_true(a.ep->peers->rtx.open && a.ep->rheld);
	assert_int_equal(carry(&b, &a, true), 0);
	assert_int_equal(a.ep->line->ts, BL_TIME_NONE);
	assert_int_not_equal(a.ep->rtimer_ns, 0);
	/* The other stream does not wait, and is not ahead either. */
	assert_int_equal(bl_send(a.ep, &best, 1, 0), 0);
	assert_true(fake_take(&b, &s));
	assert_int_equal(s.op, BL_OP_DATA);
	assert_true(a.ep->last_ts <= fake_now());
	bl_process(a.ep);
	assert_int_equal(carry(&b, &a, true), 0);
	/* The clock gets there. */
	bl_clock_start(a.clock, bl_mono(), opened);
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
	assert_int_equal(carry(&b, &a, true), 1);
	assert_true(a.ep->last_ts >= opened && a.ep->last_ts <= bl_clock_at(a.clock, bl_mono()));
	/* Not again, before its window is opened anew. */
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 1);
	drop(&a);
	drop(&b);
}

/* A frame that is not acknowledged is sent again, and accepted once. */
static void bl_rtx_timers__sends_again_until_acknowledged(void **state)
{
	struct fake a, b;
	struct bl_delivery d[4];
	struct bl_msg m;
	int x = 9, tries;

	(void)state;
	make_pair(&a, &b);
	m = msg_to(&b, &x, sizeof(x), 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, false), 1);
	for (tries = 0; tries < 3; tries++) {
		a.ep->rsent[1]->sent_ns -= 1000000000;
		a.ep->rtimer_ns = 1;
		bl_process(a.ep);
		assert_int_equal(carry(&b, &a, tries == 2), 1);
	}
	bl_process(a.ep);
	assert_int_equal(a.ep->st.retransmits, 3);
	assert_int_equal(word(&a), 2ULL << 32 | 2);
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
	assert_int_equal(carry(&b, &a, true), 0); /* no slot is open */
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 2);
	assert_int_equal(b.ep->st.duplicates, 3);
	drop(&a);
	drop(&b);
}

/*
 * A frame that does not pass for long is given to the daemon, each frame once in a while. An
 * endpoint that hears by way of the controller answers that way.
 */
static void bl_rtx_timers__asks_the_daemon(void **state)
{
	struct bl_forward_msg f;
	struct fake a, b;
	struct bl_msg m;
	int x = 9, way[2], tries;
	ssize_t n;

	(void)state;
	make_pair(&a, &b);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, way), 0);
	a.ep->daemon = way[0];
	m = msg_to(&b, &x, sizeof(x), 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	for (tries = 2; tries < 7; tries++) {
		a.ep->rsent[1]->sent_ns -= 1000000000;
		a.ep->rsent[1]->first_ns -= 100 * 1000000;
		a.ep->rtimer_ns = 1;
		bl_process(a.ep);
		n = recv(way[1], &f, sizeof(f), 0);
		if ((n > 0) != (tries == 5))
			fail_msg("try %d: %zd bytes", tries, n);
		if (tries != 5)
			continue;
		assert_int_equal(n, sizeof(f) - sizeof(f.frame) + a.ep->rsent[1]->len);
		assert_int_equal(f.magic, BL_SOCK_FORWARD);
		assert_int_equal(f.port, b.ep->self.port);
		assert_memory_equal(f.addr, b.ep->self.ip, 16);
		assert_memory_equal(f.frame, a.ep->rsent[1]->data, a.ep->rsent[1]->len);
	}
	a.ep->rsent[1]->fwd_ns -= 100 * 1000000;
	a.ep->rsent[1]->sent_ns -= 1000000000;
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
	assert_true(recv(way[1], &f, sizeof(f), 0) > 0);
	assert_int_equal(a.ep->st.forwarded, 2);
	assert_int_equal(carry(&b, &a, true), 7); /* all go to the network, too */
	/* A daemon that accepts nothing stops nobody. */
	close(way[1]);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	a.ep->rsent[2]->sent_ns -= 1000000000;
	a.ep->rtimer_ns = 1;
	bl_process(a.ep);
	assert_int_equal(a.ep->st.forwarded, 2);
	assert_int_equal(carry(&b, &a, true), 2);
	drop(&a);
	drop(&b);
}

/* Nobody answers: what is staged fails as a whole, and nothing of it has left. */
static void bl_send_reliable__nobody_answers(void **state)
{
	static struct failures fs;
	struct fake a, b, c;
	struct bl_msg m[2];
	int x = 1, i;

	(void)state;
	fs.n = 0;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	bl_on_send_fail(a.ep, on_fail, &fs);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &x, sizeof(x), 12);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	for (i = 0; i < 20 && !fs.n; i++) {
		fake_peer(&a, &c)->rtx.ask_ns = 1;
		bl_process(a.ep);
		carry(&c, &a, true); /* c has them in its ring, and does not look */
	}
	assert_int_equal(fs.n, 2);
	assert_int_equal(fs.f[0].why, BL_FAIL_UNREACHABLE);
	assert_int_equal(fs.f[0].ts, 0);
	assert_int_equal(carry(&b, &a, true), 0);
	assert_int_equal(word(&a), 1ULL << 32 | 1);
	/* The other destinations are not delayed. */
	assert_int_equal(bl_send_reliable(a.ep, m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 1);
	drop(&a);
	drop(&b);
	drop(&c);
}

/* A large message enters the window piece by piece; meanwhile C is held at its timestamp. */
static void bl_send_reliable__large(void **state)
{
	static uint8_t big[BL_MESSAGE_MAX];
	struct fake a, b;
	struct bl_delivery d[4];
	struct bl_msg m;
	int i, frames = 0;

	(void)state;
	make_pair(&a, &b);
	for (i = 0; i < (int)sizeof(big); i++)
		big[i] = (uint8_t)(i * 31 + i / 1000);
	m = msg_to(&b, big, sizeof(big), 1);
	commit(&b, a.ep->last_ts + 1);
	/* Something waits at the receiver: it is asked, and answers when nothing waits any more. */
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 0);
	assert_int_equal(bl_process(b.ep), 1);
	carry(&a, &b, true);
	bl_process(a.ep);
	assert_true(a.ep->rts == 0 && !bl_rtx_room(a.ep));
	assert_int_equal(carry(&b, &a, true), 0);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	carry(&a, &b, true);
	bl_process(a.ep);
	assert_int_equal(a.ep->line->hold, a.ep->rts);
	assert_true(a.ep->rts != 0);
	for (i = 0; i < 1000 && !bl_rtx_empty(a.ep); i++) {
		if (a.ep->rts)
			assert_int_equal(a.ep->line->hold, a.ep->rts);
		frames += carry(&b, &a, true);
		bl_process(b.ep);
		carry(&a, &b, true);
		bl_process(a.ep);
	}
	assert_true(bl_rtx_empty(a.ep));
	assert_int_equal(a.ep->line->hold, BL_TIME_NONE);
	assert_true(frames > 720);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(d[0].len, sizeof(big));
	assert_memory_equal(d[0].data, big, sizeof(big));
	drop(&a);
	drop(&b);
}

/*
 * What may wait together is what the window of the other receiver has room for; messages to oneself
 * need none.
 */
static void bl_send_reliable__to_oneself_too(void **state)
{
	static const uint8_t data[1000]; /* one in a frame */
	struct bl_delivery d[64];
	struct fake a, b;
	struct bl_msg m[2];
	uint32_t w, cap, k;
	int self;

	(void)state;
	for (self = 0; self < 2; self++) {
		make_pair(&a, &b);
		commit(&b, a.ep->last_ts + 1);
		assert_int_equal(bl_recv_reliable(b.ep, d, 64, 0), 1);
		carry(&a, &b, true);
		bl_process(a.ep);
		w = fake_peer(&a, &b)->rtx.window;
		cap = w - (w + 3) / 4 + 1;
		assert_true(cap > 4 * BL_WINDOW_FIRST);
		m[0] = msg_to(&b, data, sizeof(data), 1);
		m[1] = msg_to(&a, data, sizeof(data), 2);
		for (k = 0; k < cap; k++)
			assert_int_equal(bl_send_reliable(a.ep, m, 1 + self, BL_MORE), 0);
		assert_int_equal(carry(&b, &a, true), 0); /* all of them wait */
		assert_int_equal(bl_send_reliable(a.ep, m, 1 + self, BL_MORE), 0);
		assert_int_equal(carry(&b, &a, true), cap); /* all have left */
		/* They have one timestamp, also for oneself. */
		commit(&a, a.ep->last_ts);
		assert_int_equal(bl_recv_reliable(a.ep, d, 64, 0), 0);
		commit(&a, a.ep->last_ts + 1);
		assert_int_equal(bl_recv_reliable(a.ep, d, 64, 0), self ? cap : 0);
		drop(&a);
		drop(&b);
	}
}

/* Each stream waits for its own barrier. */
static void streams__are_apart(void **state)
{
	struct fake a, b;
	struct bl_delivery d[4];
	struct bl_msg m;
	int x = 5;

	(void)state;
	make_pair(&a, &b);
	m = msg_to(&b, &x, sizeof(x), 1);
	assert_int_equal(bl_send(a.ep, &m, 1, 0), 0);
	carry(&b, &a, true);
	fake_barrier(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 0);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 1);
	assert_int_equal(*(const int *)d[0].data, 5);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv(b.ep, d, 4, 0), 0);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(*(const int *)d[0].data, 7);
	drop(&a);
	drop(&b);
}

/* ---- failures ---- */

static struct bl_addr told;
static uint64_t told_ts;
static int times;

static void on_proc(void *ctx, const struct bl_addr *who, uint64_t ts)
{
	(void)ctx;
	told = *who;
	told_ts = ts;
	times++;
}

/*
 * c does not acknowledge and is announced as failed: b drops its frame, and a hears that both
 * messages failed.
 */
static void recall__example_of_the_header(void **state)
{
	static struct failures fs;
	struct fake a, b, c;
	struct bl_delivery d[4];
	struct bl_msg m[2];
	int x = 1, y = 2;
	uint64_t ts;

	(void)state;
	fs.n = 0;
	times = 0;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&a, &c, 8);
	bl_on_send_fail(a.ep, on_fail, &fs);
	bl_on_proc_fail(a.ep, on_proc, NULL);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &y, sizeof(y), 12);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	ts = a.ep->last_ts;
	assert_int_equal(carry(&b, &a, true), 1);
	assert_int_equal(carry(&c, &a, false), 1);
	bl_process(b.ep);
	assert_int_equal(b.ep->rrq.frames, 2);
	fail_peer(&a, 0, &c, ts + 100);
	bl_process(a.ep);
	assert_int_equal(fs.n, 0);
	assert_int_equal(times, 0);
	assert_int_equal(a.ep->wake->done, 0);
	/* A late ACK of c closes nothing any more. */
	assert_int_equal(bl_rslot_close(bl_rwin_slot(a.ep->rwin, bl_rwin_head(word(&a))),
					bl_rwin_head(word(&a))),
			 0);
	assert_int_equal(bl_rwin_used(word(&a)) > 0, 1);
	/*
	 * From now on nothing is sent to c, though it may still answer: that could not be recalled.
	 */
	m[1].cookie = 99;
	assert_int_equal(bl_send_reliable(a.ep, &m[1], 1, 0), 0);
	bl_process(a.ep);
	assert_int_equal(carry(&c, &a, false), 0);
	assert_int_equal(bl_rwin_used(word(&a)), 2);
	assert_int_equal(fs.n, 1);
	assert_int_equal(fs.f[0].why, BL_FAIL_UNREACHABLE);
	assert_int_equal(fs.f[0].cookie, 99);
	fs.n = 0;
	carry(&b, &a, true); /* RECALL */
	bl_process(b.ep);
	assert_int_equal(b.ep->rrq.frames, 1);
	assert_int_equal(b.ep->st.recalled, 1);
	carry(&a, &b, true); /* RECALLED */
	bl_process(a.ep);
	assert_int_equal(fs.n, 2);
	assert_int_equal(fs.f[0].why, BL_FAIL_FAILED);
	assert_int_equal(fs.f[0].ts, ts);
	assert_int_equal(fs.f[0].cookie + fs.f[1].cookie, 23);
	assert_int_equal(times, 1);
	assert_int_equal(told_ts, ts + 100);
	assert_int_equal(told.port, c.ep->self.port);
	assert_int_equal(a.ep->wake->done, 1);
	assert_int_equal(bl_rwin_used(word(&a)), 0);
	/* b delivers what was committed, and not the recalled frame, even if that comes again. */
	commit(&b, ts + 1000);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(*(const int *)d[0].data, 7);
	drop(&a);
	drop(&b);
	drop(&c);
}

/*
 * b has never seen the frame that it drops: a copy that comes later, and that its program stores,
 * is not delivered.
 */
static void recall__before_the_frame_comes(void **state)
{
	static struct failures fs;
	struct fake a, b, c;
	struct bl_delivery d[4];
	struct bl_msg m[2];
	struct seen late;
	int x = 1;
	uint64_t ts;

	(void)state;
	fs.n = 0;
	make_pair(&a, &b);
	make(&c, "127.0.0.3", 2);
	introduce(&a, &c, 8);
	bl_on_send_fail(a.ep, on_fail, &fs);
	m[0] = msg_to(&b, &x, sizeof(x), 11);
	m[1] = msg_to(&c, &x, sizeof(x), 12);
	assert_int_equal(bl_send_reliable(a.ep, m, 2, 0), 0);
	ts = a.ep->last_ts;
	assert_true(fake_take(&b, &late));
	assert_int_equal(late.op, BL_OP_PREP);
	fail_peer(&a, 0, &c, ts + 100);
	bl_process(a.ep);
	carry(&b, &a, true); /* RECALL */
	bl_process(b.ep);
	assert_int_equal(b.ep->st.recalled, 1);
	carry(&a, &b, true); /* RECALLED */
	bl_process(a.ep);
	assert_int_equal(fs.n, 2);
	assert_true(fake_put(&b, &late.from, BL_OP_PREP, ts, late.psn, late.body, late.body_len));
	commit(&b, ts + 1000);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(*(const int *)d[0].data, 7);
	assert_int_equal(b.ep->st.duplicates, 1);
	drop(&a);
	drop(&b);
	drop(&c);
}

/*
 * a failed at T: what it sent below T is delivered, the rest is not, and later frames of that life
 * are not accepted.
 */
static void discard__from_the_failure_timestamp_on(void **state)
{
	struct fake a, b;
	struct bl_delivery d[4];
	struct bl_msg m;
	int x = 1, i;
	uint64_t first;

	(void)state;
	times = 0;
	make_pair(&a, &b);
	first = a.ep->last_ts;
	m = msg_to(&b, &x, sizeof(x), 1);
	for (i = 0; i < 2; i++)
		assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(carry(&b, &a, true), 2);
	bl_on_proc_fail(b.ep, on_proc, NULL);
	fail_peer(&b, 1, &a, first + 1);
	bl_process(b.ep);
	assert_int_equal(times, 1);
	assert_int_equal(b.ep->st.discarded, 2);
	assert_int_equal(b.ep->wake->done, 1);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	carry(&b, &a, true);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 4, 0), 1);
	assert_int_equal(*(const int *)d[0].data, 7);
	assert_int_equal(b.ep->st.discarded, 3);
	drop(&a);
	drop(&b);
}

/* An endpoint that was announced itself, or has missed too much, is out. */
static void outcast__begins_anew(void **state)
{
	struct bl_delivery d[1];
	struct bl_msg m;
	struct fake a;
	int x = 1;

	(void)state;
	make(&a, "127.0.0.1", 0);
	m = msg_to(&a, &x, sizeof(x), 1);
	fail_peer(&a, 0, &a, 5);
	bl_process(a.ep);
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), -ESTALE);
	assert_int_equal(bl_recv_reliable(a.ep, d, 1, 0), -ESTALE);
	drop(&a);
	make(&a, "127.0.0.1", 0);
	pages[0].last = BL_FAILS_MAX + 1;
	bl_process(a.ep);
	assert_int_equal(bl_recv_reliable(a.ep, d, 1, 0), -ESTALE);
	drop(&a);
}

/*
 * A reliable send holds C by a word of its own, so that it is not lost if the host gives up waiting
 * for it. A timestamp that became void while it was taken is not used.
 */
static void bl_tx_stamp__void_while_it_is_taken(void **state)
{
	struct fake a;
	uint64_t ts, upto;

	(void)state;
	make(&a, "127.0.0.1", 0);
	ts = bl_tx_stamp(a.ep, false);
	assert_true(a.ep->line->ts <= ts && a.ep->line->ts > FAKE_BUS);
	assert_true(!a.ep->line->hold || a.ep->line->hold == BL_TIME_NONE);
	ts = bl_tx_stamp(a.ep, true);
	assert_int_equal(a.ep->line->hold, ts);
	upto = fake_now() + 2000000;
	fake_word(&a)->upto = upto;
	ts = bl_tx_stamp(a.ep, true);
	assert_true(ts > upto && a.ep->line->ts > upto);
	assert_int_equal(a.ep->line->hold, ts);
	a.ep->line->ts = a.ep->line->hold = BL_TIME_NONE;
	drop(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_tx_stamp__void_while_it_is_taken),
		cmocka_unit_test(bl_send_reliable__asks_first_then_takes_slots),
		cmocka_unit_test(bl_rtx_timers__sends_again_until_acknowledged),
		cmocka_unit_test(bl_rtx_timers__asks_the_daemon),
		cmocka_unit_test(bl_send_reliable__not_below_what_may_have_passed),
		cmocka_unit_test(bl_send_reliable__nobody_answers),
		cmocka_unit_test(bl_send_reliable__large),
		cmocka_unit_test(bl_send_reliable__to_oneself_too),
		cmocka_unit_test(streams__are_apart),
		cmocka_unit_test(recall__example_of_the_header),
		cmocka_unit_test(recall__before_the_frame_comes),
		cmocka_unit_test(discard__from_the_failure_timestamp_on),
		cmocka_unit_test(outcast__begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
