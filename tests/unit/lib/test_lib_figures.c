// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What an endpoint tells of itself in its page (lib/figures.c). */
#include "tests/unit/lib/lib_rel.h"

#include "core/figures_core.h"
#include "lib/figures.h"
#include "tests/unit/lib/lib_pair.h"

#define MS 1000000ULL

static int pair_up(void **state)
{
	(void)state;
	fake_at = 0;
	make_pair(&a, &b);
	/* What was needed to get here is not counted. */
	memset(&a.ep->fig->hist, 0, sizeof(a.ep->fig->hist));
	memset(&a.ep->fig->wait, 0, sizeof(a.ep->fig->wait));
	a.ep->fig->nwaits = 0;
	return 0;
}

static uint64_t counted(const struct fake *f, unsigned int kind)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < BL_FIG_BINS; i++)
		n += f->ep->fig->hist[kind].n[i];
	return n;
}

static void send_to_b(unsigned int flags)
{
	struct bl_msg m = msg_to(&b, "x", 1, 0);

	assert_int_equal(bl_send(a.ep, &m, 1, flags), 0);
}

/* What is staged in a stream was staged @ns earlier, and held back @held earlier. */
static void let_time_pass(bool reliable, uint64_t ns, uint64_t held)
{
	struct bl_fig_now *n = &a.ep->fig->now[reliable];

	assert_true(n->since_ns);
	n->since_ns -= ns;
	if (held)
		n->held_ns -= held;
}

/* The only entry of a's waits. */
static struct bl_fig_wait only_wait(void)
{
	struct bl_fig_wait e;

	assert_int_equal(a.ep->fig->nwaits, 1);
	assert_true(bl_fig_get(a.ep->fig->wait, 0, &e, sizeof(e)));
	return e;
}

static void send__at_once(void **state)
{
	(void)state;
	send_to_b(0);
	assert_int_equal(a.ep->fig->now[0].since_ns, 0);
	assert_int_equal(counted(&a, BL_FIG_SEND), 1);
	assert_int_equal(counted(&a, BL_FIG_SEND + 1), 0);
}

static void send__staged_for_more(void **state)
{
	struct bl_fig_wait e;

	(void)state;
	send_to_b(BL_MORE);
	let_time_pass(false, 3 * MS, 0);
	send_to_b(BL_MORE); /* the time counts from the first */
	assert_int_equal(counted(&a, BL_FIG_SEND), 0);
	assert_int_equal(bl_flush(a.ep), 0);
	e = only_wait();
	assert_true(e.ts == a.ep->last_ts && !e.reliable && e.why == BL_FIG_MORE);
	assert_true(e.staged_ns >= 3 * MS && !e.window_ns);
	assert_int_equal(counted(&a, BL_FIG_SEND), 1);
	assert_true(a.ep->fig->hist[BL_FIG_SEND].sum_ns >= 3 * MS);
}

static void send__window_closed(void **state)
{
	struct bl_fig_wait e;
	int i;

	(void)state;
	for (i = 0; i < BL_WINDOW_FIRST; i++)
		send_to_b(0);
	assert_int_equal(counted(&a, BL_FIG_SEND), BL_WINDOW_FIRST);
	memset(a.ep->fig->wait, 0, sizeof(a.ep->fig->wait));
	a.ep->fig->nwaits = 0; /* of a busy machine */
	send_to_b(0);
	assert_true(a.ep->fig->now[0].held_ns);
	assert_int_equal(a.ep->fig->now[0].why, BL_FIG_WINDOW);
	assert_int_equal(a.ep->fig->now[0].port, b.ep->self.port);
	assert_memory_equal(a.ep->fig->now[0].dst, b.ep->self.ip, 16);
	let_time_pass(false, 9 * MS, 7 * MS);
	fake_credit(&a, &b, fake_peer(&a, &b)->tx.next_psn, 16);
	bl_process(a.ep);
	assert_int_equal(a.ep->fig->now[0].since_ns, 0);
	e = only_wait();
	assert_true(e.ts == a.ep->last_ts && !e.reliable && e.why == BL_FIG_WINDOW);
	assert_true(e.port == b.ep->self.port && !memcmp(e.dst, b.ep->self.ip, 16));
	assert_true(e.staged_ns >= 2 * MS && e.window_ns >= 7 * MS);
}

static void send__dropped_is_not_staged_any_more(void **state)
{
	(void)state;
	fake_peer(&a, &b)->tx.dead = true;
	send_to_b(0);
	assert_int_equal(a.ep->fig->now[0].since_ns, 0);
	assert_int_equal(counted(&a, BL_FIG_SEND), 0);
}

static void send__void_clock(void **state)
{
	(void)state;
	send_to_b(BL_MORE);
	a.clock->void_after_ns = 1;
	assert_int_equal(bl_flush(a.ep), -ETIME);
	assert_true(a.ep->fig->now[0].held_ns);
	assert_int_equal(a.ep->fig->now[0].why, BL_FIG_CLOCK);
	a.clock->void_after_ns = UINT64_MAX;
	assert_int_equal(bl_flush(a.ep), 0);
	assert_int_equal(counted(&a, BL_FIG_SEND), 1);
}

static void send_reliable__waits_for_an_answer(void **state)
{
	struct bl_msg m = msg_to(&b, "x", 1, 0);
	struct bl_fig_wait e;

	(void)state;
	fake_peer(&a, &b)->rtx.open = false;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_equal(a.ep->fig->now[1].why, BL_FIG_WINDOW);
	assert_int_equal(a.ep->fig->now[1].port, b.ep->self.port);
	let_time_pass(true, 4 * MS, 4 * MS);
	carry(&b, &a, true);
	bl_process(b.ep);
	carry(&a, &b, true);
	bl_process(a.ep);
	e = only_wait();
	assert_true(e.ts == a.ep->last_ts && e.reliable && e.window_ns >= 4 * MS);
	assert_int_equal(counted(&a, BL_FIG_SEND + 1), 1);
	assert_int_equal(counted(&a, BL_FIG_SEND), 0);
}

/* Its receiver is announced as failed while it waits for that receiver's answer. */
static void send_reliable__dropped_is_not_staged_any_more(void **state)
{
	struct bl_msg m = msg_to(&b, "x", 1, 0);

	(void)state;
	fake_peer(&a, &b)->rtx.open = false;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	assert_int_not_equal(a.ep->fig->now[1].since_ns, 0);
	fail_peer(&a, 0, &b, a.ep->last_ts + 1);
	bl_process(a.ep);
	assert_int_equal(a.ep->rstaged, 0);
	assert_int_equal(a.ep->fig->now[1].since_ns, 0);
	assert_int_equal(counted(&a, BL_FIG_SEND + 1), 0);
}

static void recv__delivery_of_each_message(void **state)
{
	struct bl_msg m[3] = { msg_to(&b, "x", 1, 0), msg_to(&b, "y", 1, 0),
			       msg_to(&b, "z", 1, 0) };
	struct bl_delivery d[8];
	struct bl_fig_end e;

	(void)state;
	assert_int_equal(bl_send(a.ep, m, 3, 0), 0);
	carry(&b, &a, true);
	assert_int_equal(bl_recv(b.ep, d, 8, 0), 0);
	assert_int_equal(counted(&b, BL_FIG_DELIVERY), 0);
	assert_int_equal(b.ep->fig->nends, 0);
	fake_barrier(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv(b.ep, d, 8, 0), 3);
	assert_int_equal(counted(&b, BL_FIG_DELIVERY), 3);
	assert_int_equal(counted(&b, BL_FIG_DELIVERY + 1), 0);
	assert_int_equal(counted(&b, BL_FIG_HOLD), 0); /* was not measured */
	assert_int_equal(b.ep->fig->nends, 1);
	assert_true(bl_fig_get(b.ep->fig->end, 0, &e, sizeof(e)));
	assert_true(e.ts == a.ep->last_ts && e.port == a.ep->self.port && !e.reliable);
	assert_memory_equal(e.src, a.ep->self.ip, 16);
	assert_int_equal(e.hold_ns, 0);
	assert_true(e.total_ns > 0 && e.at_ns <= bl_mono());
}

static void recv__other_timestamps_apart(void **state)
{
	struct bl_delivery d[8];

	(void)state;
	/* The first is a second older than the second one. */
	send_to_b(0);
	carry(&b, &a, true);
	send_to_b(0);
	carry(&b, &a, true);
	bl_process(b.ep);
	fake_peer(&b, &a)->rq.head->ts -= 1000 * MS;
	fake_barrier(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv(b.ep, d, 8, 0), 2);
	assert_int_equal(counted(&b, BL_FIG_DELIVERY), 2);
	assert_int_equal(b.ep->fig->hist[BL_FIG_DELIVERY].n[BL_FIG_BINS - 1], 1);
}

/* A process that never sleeps reads the clock in one of sixteen calls, also when it copies. */
static void recv__a_sample_of_a_busy_process(void **state)
{
	const __u64 *copied = &b.ep->fig->count[BL_FIG_N_FRAMES_RECEIVED], before = *copied;
	struct bl_delivery d;
	int i;

	(void)state;
	b.ep->fig_slept = false; /* when it was introduced */
	b.ep->fig_calls = BL_FIG_EVERY - BL_FIG_SAMPLE / 2;
	for (i = 0; i < 2 * BL_FIG_SAMPLE; i++) {
		send_to_b(0);
		carry(&b, &a, true);
		fake_barrier(&b, a.ep->last_ts + 1);
		assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
		carry(&a, &b, true);
		bl_process(a.ep);
	}
	assert_int_equal(counted(&b, BL_FIG_DELIVERY), 2);
	assert_int_equal(b.ep->fig->nends, 2);
	assert_true(*copied > before);
}

static void recv__a_timestamp_ahead_is_no_time(void **state)
{
	struct bl_delivery d;

	(void)state;
	send_to_b(0);
	carry(&b, &a, true);
	bl_process(b.ep);
	fake_peer(&b, &a)->rq.head->ts += 1000 * MS;
	fake_barrier(&b, a.ep->last_ts + 2000 * MS);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(b.ep->fig->hist[BL_FIG_DELIVERY].n[0], 1);
	assert_int_equal(b.ep->fig->hist[BL_FIG_DELIVERY].sum_ns, 0);
}

static void recv__hold_of_a_measured_frame(void **state)
{
	struct bl_delivery d;
	struct bl_fig_end e;

	(void)state;
	fake_at = (uint32_t)((bl_mono() - 5 * MS) >> BL_REC_AT_SHIFT) | 1;
	send_to_b(0);
	carry(&b, &a, true);
	fake_at = 0;
	fake_barrier(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(counted(&b, BL_FIG_HOLD), 1);
	assert_in_range(b.ep->fig->hist[BL_FIG_HOLD].sum_ns, 4 * MS, 60000 * MS);
	assert_true(bl_fig_get(b.ep->fig->end, 0, &e, sizeof(e)));
	assert_int_equal(e.hold_ns, b.ep->fig->hist[BL_FIG_HOLD].sum_ns);
	/* A buffer that is used again has nothing of it. */
	assert_int_equal(bl_process(b.ep), 0);
	send_to_b(0);
	carry(&b, &a, true);
	fake_barrier(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv(b.ep, &d, 1, 0), 1);
	assert_int_equal(counted(&b, BL_FIG_HOLD), 1);
	assert_true(bl_fig_get(b.ep->fig->end, 1, &e, sizeof(e)));
	assert_int_equal(e.hold_ns, 0);
}

static void recv_reliable__both(void **state)
{
	struct bl_msg m = msg_to(&b, "x", 1, 0);
	struct bl_delivery d[2];

	(void)state;
	assert_int_equal(bl_send_reliable(a.ep, &m, 1, 0), 0);
	fake_at = (uint32_t)((bl_mono() - 5 * MS) >> BL_REC_AT_SHIFT) | 1;
	carry(&b, &a, true);
	commit(&b, a.ep->last_ts + 1);
	assert_int_equal(bl_recv_reliable(b.ep, d, 2, 0), 2); /* the greeting, too */
	assert_int_equal(counted(&b, BL_FIG_DELIVERY + 1), 2);
	assert_int_equal(counted(&b, BL_FIG_HOLD + 1), 1);
	assert_int_equal(counted(&b, BL_FIG_DELIVERY) + counted(&b, BL_FIG_HOLD), 0);
}

static void counters__copied_before_it_may_sleep(void **state)
{
	struct bl_stats st = { .size = sizeof(st) };
	const __u64 *count = b.ep->fig->count;

	(void)state;
	send_to_b(0);
	carry(&b, &a, true);
	bl_process(b.ep);
	assert_int_equal(bl_get_stats(b.ep, &st), 0);
#define SAME(sym, member) assert_int_equal(count[BL_FIG_N_##sym], st.member);
	BL_FIG_COUNTS(SAME)
#undef SAME
	assert_true(count[BL_FIG_N_FRAMES_RECEIVED] > 0);
	assert_int_equal(b.ep->fig->queued[0], 1);
	assert_int_equal(b.ep->fig->queued[1], 1); /* the greeting */
}

static void counters__copied_in_a_busy_process(void **state)
{
	struct bl_delivery d;
	int i;

	(void)state;
	send_to_b(0);
	carry(&b, &a, true);
	for (i = 0; i < BL_FIG_EVERY; i++)
		assert_int_equal(bl_recv(b.ep, &d, 1, 0), 0);
	assert_int_equal(b.ep->fig->count[BL_FIG_N_FRAMES_RECEIVED], b.ep->st.frames_received);
}

static void stats__last_timestamp(void **state)
{
	struct bl_stats st = { .size = sizeof(st) };

	(void)state;
	send_to_b(0);
	assert_int_equal(bl_get_stats(a.ep, &st), 0);
	assert_int_equal(st.sent_ts, a.ep->last_ts);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, pair_up, pair_down)
	const struct CMUnitTest tests[] = {
		T(send__at_once),
		T(send__staged_for_more),
		T(send__window_closed),
		T(send__dropped_is_not_staged_any_more),
		T(send__void_clock),
		T(send_reliable__waits_for_an_answer),
		T(send_reliable__dropped_is_not_staged_any_more),
		T(recv__delivery_of_each_message),
		T(recv__other_timestamps_apart),
		T(recv__a_sample_of_a_busy_process),
		T(recv__a_timestamp_ahead_is_no_time),
		T(recv__hold_of_a_measured_frame),
		T(recv_reliable__both),
		T(counters__copied_before_it_may_sleep),
		T(counters__copied_in_a_busy_process),
		T(stats__last_timestamp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
