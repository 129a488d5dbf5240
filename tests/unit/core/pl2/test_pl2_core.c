// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/pl2/pl2_core.h: every state against every event that can happen in it, GRTs with false
 * contents, equation 1, and at the end a host and a switch that lose, repeat and refuse at random:
 * each frame passes once, in order.
 */
#include "tests/unit/unit.h"

#include "core/pl2/pl2_core.h"

#define T0    1000000000ULL
#define RETRY 200000ULL
#define SEQ   7
#define BYTES (2 * 1538)                     /* two full frames, in byte times */
#define OTHER (BYTES - 1024 - BL_WIRE_EXTRA) /* the rest, beside a frame of 1000 bytes */

static struct bl_hold_cfg cfg;
static struct bl_pl2_dest d;
static struct bl_pl2_turn t;

/*
 * Puts the destination into @state with number SEQ and a burst of two frames, asked for at T0, of
 * which @sent were sent.
 */
static void setup_dest(enum bl_pl2_state state, __u32 sent)
{
	cfg = (struct bl_hold_cfg){ .on = 1,
				    .policy = BL_POLICY_PL2,
				    .k_frames = 4,
				    .k_bytes = 4 * 1538,
				    .t_ns = 50000,
				    .recent_ns = 1000000,
				    .retry_ns = RETRY,
				    .coming_ns = 500000 };
	d = (struct bl_pl2_dest){ .word = BL_PL2_WORD(SEQ, state),
				  .n = 2,
				  .sent = sent,
				  .bytes = BYTES,
				  .asked_ns = { T0 },
				  .entry = { 11, 12 } };
	d.unsolicited = state == BL_PL2_EARLY;
	memset(&t, 0, sizeof(t));
}

static __u32 pacer_step(__u64 now)
{
	memset(&t, 0, sizeof(t));
	return bl_pl2_step(&d, &cfg, 0, now, &t);
}

static void expect_rest(__u64 now, __u64 next)
{
	assert_int_equal(pacer_step(now), BL_DO_NOTHING);
	assert_int_equal(t.next_ns, next);
}

static void expect_frame(__u64 now, __u32 entry, __u32 early, __u64 due)
{
	assert_int_equal(pacer_step(now), BL_DO_FRAME);
	assert_int_equal(t.entry, entry);
	assert_int_equal(t.early, early);
	assert_int_equal(t.due_ns, due);
	assert_int_equal(t.next_ns, due); /* The frame that was due first is sent first. */
	bl_pl2_frame_sent(&d);
}

static void expect_state(enum bl_pl2_state state, __u32 seq)
{
	assert_int_equal(BL_PL2_STATE(d.word), state);
	assert_int_equal(BL_PL2_SEQ(d.word), seq);
}

static struct bl_pl2_grt make_grt(__u32 in, __u32 out, __u32 flags)
{
	return (struct bl_pl2_grt){
		.seq = SEQ, .bytes = BYTES, .in_wait_ns = in, .out_wait_ns = out, .flags = flags
	};
}

/* ---- equation 1 ---- */

static void bl_pl2_wait__equation_1(void **state)
{
	static const struct {
		__u64 in, out, delay, pending, want;
	} rows[] = {
		{ 0, 0, 0, 0, 0 },
		{ 60000, 90000, 20000, 0, 70000 },
		{ 90000, 60000, 20000, 12000, 58000 },
		{ 100, 0, 50, 50, 0 },
		{ 101, 0, 50, 50, 1 },
		{ 99, 0, 50, 50, 0 },
		{ 0, 0, ~0ULL >> 1, 5, 0 },
		{ 0xffffffff, 0, 0, 1, 0xfffffffe },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(bl_pl2_wait(rows[i].in, rows[i].out, rows[i].delay,
					     rows[i].pending),
				 rows[i].want);
}

static void bl_pl2_may_early__edges(void **state)
{
	static const struct {
		__u64 last, wait, now, t_ns;
		int want;
	} rows[] = {
		{ 0, 0, T0, 50000, 0 },        { T0, 0, T0, 50000, 1 },
		{ T0, 49999, T0, 50000, 1 },   { T0, 50000, T0, 50000, 0 },
		{ T0, 0, T0 + 1000000, 1, 1 }, { T0, 0, T0 + 1000001, 1, 0 },
		{ T0, 0, T0, 0, 0 },         /* t is 0: never. */
		{ T0 + 1, 0, T0, 50000, 0 }, /* The GRT arrived after the turn began. */
	};
	size_t i;

	(void)state;
	setup_dest(BL_PL2_IDLE, 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		d.last_ns = rows[i].last;
		d.last_wait_ns = rows[i].wait;
		cfg.t_ns = rows[i].t_ns;
		assert_int_equal(bl_pl2_may_early(&d, &cfg, rows[i].now), rows[i].want);
	}
}

/*
 * The times are multiples of the slot where slots are long, and never less than the machines need.
 * Their order is the same at every rate.
 */
static void bl_pl2_times__follow_the_slot(void **state)
{
	static const struct {
		__u64 slot_ns;
		struct bl_pl2_times want;
	} rows[] = {
		{ 0, { 100000, 200000, 100000, 1000000, 2000000 } },   /* no rate */
		{ 123, { 100000, 200000, 100000, 1000000, 2000000 } }, /* 100 Gbit/s */
		{ 4999, { 100000, 200000, 100000, 1000000, 2000000 } },
		{ 5000, { 100000, 200000, 100000, 1000000, 2000000 } },
		{ 5001, { 100020, 200040, 100020, 1000200, 2000400 } },
		{ 10001, { 200020, 400040, 200020, 2000200, 4000400 } },
		{ 49216, { 984320, 1968640, 984320, 9843200, 19686400 } }, /* 250 Mbit/s */
		/* 2 Mbit/s */
		{ 6152000, { 123040000, 246080000, 123040000, 1230400000, 2460800000 } },
	};
	struct bl_pl2_times t_;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&t_, 0xee, sizeof(t_));
		bl_pl2_times(rows[i].slot_ns, &t_);
		assert_memory_equal(&t_, &rows[i].want, sizeof(t_));
		assert_true(2 * t_.late_ns < t_.coming_ns && t_.coming_ns < t_.lapse_ns);
		/* An RSV and its GRT may each wait for a frame. */
		assert_true(t_.retry_ns > 4 * rows[i].slot_ns);
	}
}

static void bl_pl2_room__frames_and_bytes(void **state)
{
	static const struct {
		__u32 n, bytes, k_frames, k_bytes, len;
		int want;
	} rows[] = {
		{ 0, 0, 4, 6152, 1514, 1 },
		{ 3, 4614, 4, 6152, 1514, 1 },
		{ 4, 6152, 4, 9999, 60, 0 },
		{ 3, 4615, 4, 6152, 1514, 0 },
		/* One frame always fits. */
		{ 0, 0, 1, 60, 1514, 1 },
		{ 1, 84, 1, 6152, 60, 0 },
		{ 15, 900, 99, 99999, 60, 1 },
		{ 16, 960, 99, 99999, 60, 0 },
		{ 0, 0, 0, 0, 60, 1 },
		{ 1, 84, 0, 99999, 60, 0 },
		/* The frame is padded. */
		{ 3, 6068, 4, 6152, 42, 1 },
		{ 3, 6069, 4, 6152, 42, 0 },
	};
	size_t i;

	(void)state;
	setup_dest(BL_PL2_IDLE, 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		d.n = rows[i].n;
		d.bytes = rows[i].bytes;
		cfg.k_frames = rows[i].k_frames;
		cfg.k_bytes = rows[i].k_bytes;
		assert_int_equal(!!bl_pl2_burst_room(&d, &cfg, rows[i].len), rows[i].want);
	}
}

/* ---- the pacer, state by state ---- */

static void step__idle(void **state)
{
	(void)state;
	setup_dest(BL_PL2_IDLE, 0);
	d.n = d.bytes = 0;
	assert_int_equal(pacer_step(T0), BL_DO_COLLECT);
	bl_pl2_frame_added(&d, 21, 1514);
	bl_pl2_frame_added(&d, 22, 60);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.bytes, 1538 + 84);
	assert_int_equal(d.entry[0], 21);
	assert_int_equal(d.entry[1], 22);
	assert_int_equal(pacer_step(T0), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, SEQ + 1);
	assert_int_equal(bl_pl2_rsv_flags(&d), 0);
	assert_int_equal(t.next_ns, T0 + RETRY);
	assert_int_equal(d.asked_ns[0], T0);
	assert_int_equal(d.rsvs, 1);
	assert_int_equal(d.early, 0);
	/* A burst that was refused may ask again at send_ns. */
	setup_dest(BL_PL2_IDLE, 0);
	d.send_ns = T0 + 5;
	expect_rest(T0 + 4, T0 + 5);
	assert_int_equal(pacer_step(T0 + 5), BL_DO_RSV);
	/* The very first number is not always the same, and numbers wrap. */
	setup_dest(BL_PL2_IDLE, 0);
	d.word = 0;
	assert_int_equal(pacer_step(T0 + 3), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, (__u32)(T0 + 3));
	setup_dest(BL_PL2_IDLE, 0);
	d.word = BL_PL2_WORD(~0U, BL_PL2_IDLE);
	assert_int_equal(pacer_step(T0), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, 0);
}

static void step__asked(void **state)
{
	int i;

	(void)state;
	setup_dest(BL_PL2_ASKED, 0);
	expect_rest(T0, T0 + RETRY);
	expect_rest(T0 + RETRY - 1, T0 + RETRY);
	for (i = 1; i < BL_PL2_TRIES; i++) {
		__u64 now = T0 + (__u64)i * (RETRY + 3);

		assert_int_equal(pacer_step(now), BL_DO_RSV);
		assert_int_equal(t.next_ns, now + RETRY);
		expect_state(BL_PL2_ASKED, SEQ);
		assert_int_equal(d.retries, i);
		assert_int_equal(d.asked_ns[i], now);
		assert_int_equal(d.timeouts, i);
		expect_rest(now + RETRY - 1, now + RETRY);
	}
	assert_int_equal(pacer_step(T0 + 9 * RETRY), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, SEQ + 1);
	assert_int_equal(d.retries, 0);
	assert_int_equal(d.asked_ns[0], T0 + 9 * RETRY);
	assert_int_equal(d.timeouts, BL_PL2_TRIES);
	assert_int_equal(d.rsvs, BL_PL2_TRIES);
	assert_int_equal(d.n, 2);
}

static void step__early(void **state)
{
	(void)state;
	setup_dest(BL_PL2_IDLE, 0);
	d.last_ns = T0 - 10;
	d.last_wait_ns = 0;
	assert_int_equal(pacer_step(T0), BL_DO_RSV);
	expect_state(BL_PL2_EARLY, SEQ + 1);
	assert_int_equal(t.next_ns, T0);
	assert_int_equal(d.early, 1);
	expect_frame(T0 + 1, 11, 1, T0);
	expect_frame(T0 + 2, 12, 1, T0);
	expect_rest(T0 + 3, T0 + RETRY);
	assert_int_equal(bl_pl2_rsv_flags(&d), BL_RSV_EARLY);
	assert_int_equal(pacer_step(T0 + RETRY), BL_DO_RSV);
	expect_state(BL_PL2_EARLY, SEQ + 1);
	assert_int_equal(bl_pl2_rsv_flags(&d), 0);
	d.retries = BL_PL2_TRIES - 1;
	d.asked_ns[BL_PL2_TRIES - 1] = T0 + RETRY;
	/*
	 * No GRT arrives: the whole burst is asked for again, and not sent unsolicited however
	 * recent the last GRT looks.
	 */
	d.last_ns = T0 + 2 * RETRY;
	assert_int_equal(pacer_step(T0 + 2 * RETRY), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, SEQ + 2);
	assert_int_equal(d.sent, 0);
	assert_int_equal(d.unsolicited, 0);
	assert_int_equal(d.resent, 1);
}

static void step__granted(void **state)
{
	(void)state;
	setup_dest(BL_PL2_GRANTED, 0);
	d.send_ns = T0 + 70;
	d.refusals = 3;
	expect_rest(T0 + 69, T0 + 70);
	expect_frame(T0 + 70, 11, 0, T0 + 70);
	expect_frame(T0 + 99, 12, 0, T0 + 70);
	assert_int_equal(d.refusals, 0);
	expect_state(BL_PL2_GRANTED, SEQ);
	assert_int_equal(pacer_step(T0 + 99), BL_DO_DONE);
	bl_pl2_burst_done(&d);
	expect_state(BL_PL2_IDLE, SEQ);
	assert_int_equal(d.n | d.sent | d.bytes | d.unsolicited, 0);
	assert_int_equal(pacer_step(T0 + 99), BL_DO_COLLECT);
}

static void step__granted_passed(void **state)
{
	__u32 sent;

	(void)state;
	/*
	 * Wherever in the burst the GRT arrives, the rest is sent unsolicited at once, and nothing
	 * is sent twice.
	 */
	for (sent = 0; sent <= 2; sent++) {
		setup_dest(BL_PL2_GRANTED, sent);
		d.unsolicited = 1;
		d.verdict = BL_GRT_PASSED;
		d.send_ns = T0 + 1000000;
		if (sent < 1)
			expect_frame(T0 + 5, 11, 1, T0);
		if (sent < 2)
			expect_frame(T0 + 6, 12, 1, T0);
		assert_int_equal(pacer_step(T0 + 7), BL_DO_DONE);
		assert_int_equal(d.resent, 0);
	}
}

static void step__granted_not_passed(void **state)
{
	__u32 sent;

	(void)state;
	for (sent = 0; sent <= 2; sent++) {
		setup_dest(BL_PL2_GRANTED, sent);
		d.unsolicited = 1;
		d.send_ns = T0 + 70;
		expect_rest(T0 + 5, T0 + 70);
		assert_int_equal(d.resent, sent > 0);
		expect_frame(T0 + 70, 11, 0, T0 + 70);
		expect_frame(T0 + 70, 12, 0, T0 + 70);
		assert_int_equal(pacer_step(T0 + 71), BL_DO_DONE);
		assert_int_equal(d.resent, sent > 0);
	}
}

static void step__granted_refused(void **state)
{
	static const __u32 times[] = { 1, 2, 4, 8, 16, 16, 16 };
	size_t i;

	(void)state;
	setup_dest(BL_PL2_GRANTED, 2);
	d.unsolicited = 1;
	for (i = 0; i < ARRAY_SIZE(times); i++) {
		d.word = BL_PL2_WORD(SEQ, BL_PL2_GRANTED);
		d.verdict = BL_GRT_REFUSED;
		expect_rest(T0, T0 + RETRY * times[i]);
		expect_state(BL_PL2_IDLE, SEQ);
		assert_int_equal(d.n, 2);
		assert_int_equal(d.sent, 0);
		assert_int_equal(d.resent, 1);
		expect_rest(T0 + RETRY * times[i] - 1, T0 + RETRY * times[i]);
	}
	assert_int_equal(pacer_step(T0 + 16 * RETRY), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, SEQ + 1);
}

static void step__policy_was_changed(void **state)
{
	enum bl_pl2_state s;

	(void)state;
	for (s = BL_PL2_IDLE; s <= BL_PL2_GRANTED; s++) {
		setup_dest(s, 1);
		d.send_ns = T0 + 1000000;
		cfg.policy = BL_POLICY_NONE;
		expect_frame(T0 + 5, 12, 0, T0 + 5);
		assert_int_equal(pacer_step(T0 + 6), BL_DO_DONE);
		bl_pl2_burst_done(&d);
		assert_int_equal(pacer_step(T0 + 6), BL_DO_DONE);
		cfg.policy = BL_POLICY_PL2;
		assert_int_equal(pacer_step(T0 + 7), BL_DO_COLLECT);
	}
}

static void bl_pl2_over__only_when_nothing_comes_back(void **state)
{
	static const struct {
		enum bl_pl2_state state;
		__u32 sent, unsolicited, verdict;
		int want;
	} rows[] = {
		{ BL_PL2_GRANTED, 2, 0, 0, 1 },
		{ BL_PL2_GRANTED, 1, 0, 0, 0 },
		{ BL_PL2_GRANTED, 2, 1, BL_GRT_PASSED, 1 },
		{ BL_PL2_GRANTED, 2, 1, 0, 0 },
		{ BL_PL2_GRANTED, 2, 1, BL_GRT_REFUSED, 0 },
		{ BL_PL2_GRANTED, 2, 0, BL_GRT_REFUSED, 0 },
		{ BL_PL2_EARLY, 2, 1, BL_GRT_PASSED, 0 },
		{ BL_PL2_ASKED, 2, 0, 0, 0 },
		{ BL_PL2_IDLE, 2, 0, 0, 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		setup_dest(rows[i].state, rows[i].sent);
		d.unsolicited = rows[i].unsolicited;
		d.verdict = rows[i].verdict;
		assert_int_equal(bl_pl2_burst_over(&d), rows[i].want);
	}
}

/* ---- GRTs ---- */

static void bl_pl2_grant__believed(void **state)
{
	struct bl_pl2_grt g = make_grt(60000, 90000, 0);

	(void)state;
	setup_dest(BL_PL2_ASKED, 0);
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 20000), BL_R_GRT);
	expect_state(BL_PL2_GRANTED, SEQ);
	assert_int_equal(d.send_ns, T0 + 90000);
	assert_int_equal(d.last_wait_ns, 90000);
	assert_int_equal(d.last_ns, T0 + 20000);
	assert_int_equal(d.grts, 1);
	assert_int_equal(d.delay_ns, 20000);
	assert_int_equal(d.delay_min_ns, 20000);
	assert_int_equal(d.delay_max_ns, 20000);
	/* The same GRT a second time changes nothing. */
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 20001), BL_R_GRT_BAD);
	assert_int_equal(d.bad, 1);
	assert_int_equal(d.grts, 1);
	assert_int_equal(d.last_ns, T0 + 20000);
	/* The delay is smoothed by an eighth. The NIC is busy for 12 us. The slot may be now. */
	d.word = BL_PL2_WORD(SEQ, BL_PL2_ASKED);
	assert_int_equal(bl_pl2_grant(&d, &g, 12000, 10 * RETRY, T0 + 28000), BL_R_GRT);
	assert_int_equal(d.send_ns, T0 + 78000);
	assert_int_equal(d.delay_ns, 21000);
	assert_int_equal(d.delay_min_ns, 20000);
	assert_int_equal(d.delay_max_ns, 28000);
	d.word = BL_PL2_WORD(SEQ, BL_PL2_ASKED);
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 95000), BL_R_GRT);
	assert_int_equal(d.send_ns, T0 + 95000);
}

static void bl_pl2_grant__answers_one_of_the_tries(void **state)
{
	struct bl_pl2_grt g = make_grt(90000, 0, 0);

	(void)state;
	/* The wait counts from the attempt that the switch answered, not from the last one. */
	setup_dest(BL_PL2_ASKED, 0);
	d.retries = 1;
	d.asked_ns[1] = T0 + RETRY;
	g.try = 1;
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + RETRY + 10000), BL_R_GRT);
	assert_int_equal(d.send_ns, T0 + RETRY + 90000);
	d.word = BL_PL2_WORD(SEQ, BL_PL2_ASKED);
	g.in_wait_ns = 300000;
	g.try = 0;
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + RETRY + 10000), BL_R_GRT);
	assert_int_equal(d.send_ns, T0 + 300000);
}

static void bl_pl2_grant__verdicts(void **state)
{
	struct bl_pl2_grt g = make_grt(10, 20, BL_GRT_PASSED);

	(void)state;
	setup_dest(BL_PL2_EARLY, 1);
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 100), BL_R_GRT);
	assert_int_equal(d.verdict, BL_GRT_PASSED);
	setup_dest(BL_PL2_EARLY, 1);
	g.flags = 0;
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 100), BL_R_GRT);
	assert_int_equal(d.verdict, 0);
	setup_dest(BL_PL2_ASKED, 0);
	d.last_ns = T0 - 5;
	g.flags = BL_GRT_REFUSED;
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 100), BL_R_GRT);
	expect_state(BL_PL2_GRANTED, SEQ);
	assert_int_equal(d.verdict, BL_GRT_REFUSED);
	assert_int_equal(d.refused, 1);
	assert_int_equal(d.grts, 0);
	assert_int_equal(d.last_ns, 0); /* A host that was refused does not send unsolicited. */
}

static void bl_pl2_grant__not_believed(void **state)
{
	static const struct {
		const char *what;
		enum bl_pl2_state state;
		struct bl_pl2_grt g;
		bool ok;
	} rows[] = {
		{ "good", BL_PL2_ASKED, { SEQ, BYTES, 1, 1, 0, 0 }, true },
		{ "good, early", BL_PL2_EARLY, { SEQ, BYTES, 1, 1, BL_GRT_PASSED, 0 }, true },
		{ "nobody asked", BL_PL2_IDLE, { SEQ, BYTES, 1, 1, 0, 0 }, false },
		{ "twice", BL_PL2_GRANTED, { SEQ, BYTES, 1, 1, 0, 0 }, false },
		{ "an older one", BL_PL2_ASKED, { SEQ - 1, BYTES, 1, 1, 0, 0 }, false },
		{ "one to come", BL_PL2_ASKED, { SEQ + 1, BYTES, 1, 1, 0, 0 }, false },
		{ "fewer bytes", BL_PL2_ASKED, { SEQ, BYTES - 1, 1, 1, 0, 0 }, false },
		{ "more bytes", BL_PL2_EARLY, { SEQ, BYTES + 1, 1, 1, 0, 0 }, false },
		{ "a second away", BL_PL2_ASKED, { SEQ, BYTES, 1000000000, 1, 0, 0 }, true },
		{ "more than a second", BL_PL2_ASKED, { SEQ, BYTES, 1000000001, 1, 0, 0 }, false },
		{ "more at the output", BL_PL2_ASKED, { SEQ, BYTES, 1, 1000000001, 0, 0 }, false },
		{ "a try that was not made", BL_PL2_ASKED, { SEQ, BYTES, 1, 1, 0, 1 }, false },
		{ "no try at all", BL_PL2_ASKED, { SEQ, BYTES, 1, 1, 0, 255 }, false },
		{ "passed, but nothing was sent",
		  BL_PL2_ASKED,
		  { SEQ, BYTES, 1, 1, BL_GRT_PASSED, 0 },
		  false },
		{ "passed and refused",
		  BL_PL2_EARLY,
		  { SEQ, BYTES, 1, 1, BL_GRT_PASSED | BL_GRT_REFUSED, 0 },
		  false },
		{ "a copy", BL_PL2_ASKED, { SEQ, BYTES, 1, 1, BL_GRT_COPY, 0 }, false },
		{ "an RSV's flag", BL_PL2_EARLY, { SEQ, BYTES, 1, 1, BL_RSV_EARLY, 0 }, false },
		{ "a flag from the future", BL_PL2_ASKED, { SEQ, BYTES, 1, 1, 0x80, 0 }, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bl_pl2_dest was;

		setup_dest(rows[i].state, 0);
		was = d;
		if (bl_pl2_grant(&d, &rows[i].g, 0, 10 * RETRY, T0 + 100) !=
		    (rows[i].ok ? BL_R_GRT : BL_R_GRT_BAD))
			fail_msg("%s", rows[i].what);
		was.bad += !rows[i].ok;
		if (!rows[i].ok)
			assert_memory_equal(&d, &was, sizeof(d));
	}
	/* Every attempt up to the last one is accepted. */
	setup_dest(BL_PL2_ASKED, 0);
	d.retries = BL_PL2_TRIES - 1;
	d.asked_ns[BL_PL2_TRIES - 1] = T0;
	assert_int_equal(bl_pl2_grant(&d,
				      &(struct bl_pl2_grt){ SEQ, BYTES, 1, 1, 0, BL_PL2_TRIES - 1 },
				      0, 10 * RETRY, T0 + 100),
			 BL_R_GRT);
	setup_dest(BL_PL2_ASKED, 0);
	d.retries = ~0U;
	assert_int_equal(bl_pl2_grant(&d, &(struct bl_pl2_grt){ SEQ, BYTES, 1, 1, 0, BL_PL2_TRIES },
				      0, 10 * RETRY, T0 + 100),
			 BL_R_GRT_BAD);
}

static void bl_pl2_ask__a_grt_was_faster(void **state)
{
	struct bl_pl2_dest was;

	(void)state;
	/* The pacer has read EARLY, and the GRT arrives before its compare-and-swap. */
	setup_dest(BL_PL2_GRANTED, 2);
	d.unsolicited = 1;
	d.verdict = BL_GRT_PASSED;
	was = d;
	assert_int_equal(bl_pl2_rsv_new(&d, &cfg, T0 + 99, BL_PL2_WORD(SEQ, BL_PL2_EARLY), 0, &t),
			 BL_DO_NOTHING);
	assert_int_equal(t.next_ns, T0 + 99);
	assert_memory_equal(&d, &was, sizeof(d));
}

/* ---- switches that promise nothing ---- */

/*
 * The answer is OFF: the burst is sent, later bursts are sent without an RSV, and after a while one
 * of them asks again.
 */
static void apart__answered_off(void **state)
{
	struct bl_pl2_grt g = make_grt(0, 0, BL_GRT_REFUSED | BL_GRT_OFF);

	(void)state;
	setup_dest(BL_PL2_ASKED, 0);
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 100), BL_R_GRT_OFF);
	assert_int_equal(d.apart_ns, T0 + 100 + 10 * RETRY);
	expect_frame(T0 + 200, 11, 0, T0 + 200);
	/* A burst that began this way also ends this way, however long it takes. */
	expect_frame(T0 + 200 + 20 * RETRY, 12, 0, T0 + 200 + 20 * RETRY);
	assert_int_equal(pacer_step(T0 + 300), BL_DO_DONE);
	bl_pl2_burst_done(&d);
	assert_int_equal(pacer_step(T0 + 300), BL_DO_COLLECT);
	bl_pl2_frame_added(&d, 13, 60);
	bl_pl2_frame_added(&d, 14, 60);
	expect_frame(T0 + 300, 13, 0, T0 + 300);
	expect_frame(d.apart_ns + 1, 14, 0, d.apart_ns + 1); /* 13 is not sent again. */
	assert_int_equal(pacer_step(d.apart_ns + 1), BL_DO_DONE);
	bl_pl2_burst_done(&d);
	assert_int_equal(pacer_step(d.apart_ns), BL_DO_COLLECT);
	bl_pl2_frame_added(&d, 15, 60);
	assert_int_equal(pacer_step(d.apart_ns), BL_DO_RSV);
	expect_state(BL_PL2_ASKED, SEQ + 1);
	/* The switch promises again. */
	assert_int_equal(bl_pl2_grant(&d, &(struct bl_pl2_grt){ .seq = SEQ + 1, .bytes = d.bytes },
				      0, 10 * RETRY, d.apart_ns + 100),
			 BL_R_GRT);
	expect_frame(d.apart_ns + 100, 15, 0, d.send_ns);
	assert_true(bl_pl2_burst_over(&d));
	/* OFF is accepted only together with REFUSED. */
	setup_dest(BL_PL2_ASKED, 0);
	g.flags = BL_GRT_OFF;
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 100), BL_R_GRT_BAD);
	assert_int_equal(d.apart_ns, 0);
}

/* An unsolicited burst that a switch without reservations let through is not sent again. */
static void apart__off_to_an_unsolicited_burst(void **state)
{
	struct bl_pl2_grt g = make_grt(0, 0, BL_GRT_REFUSED | BL_GRT_OFF);

	(void)state;
	setup_dest(BL_PL2_EARLY, 1);
	assert_int_equal(bl_pl2_grant(&d, &g, 0, 10 * RETRY, T0 + 100), BL_R_GRT_OFF);
	expect_frame(T0 + 200, 12, 0, T0 + 200);
	assert_int_equal(pacer_step(T0 + 300), BL_DO_DONE);
}

/*
 * No switch answers at all: after BL_PL2_SILENT RSVs the frames are sent. Any GRT in between
 * restarts the count.
 */
static void apart__silence(void **state)
{
	__u64 now = T0;
	__u32 asked = 0, what;

	(void)state;
	setup_dest(BL_PL2_ASKED, 0);
	do {
		now += RETRY;
		what = pacer_step(now);
		asked += what == BL_DO_RSV;
	} while (what == BL_DO_RSV);
	assert_int_equal(asked, BL_PL2_SILENT - 1);
	assert_int_equal(what, BL_DO_FRAME);
	assert_int_equal(t.entry, 11);
	assert_int_equal(d.apart_ns, now + 10 * RETRY);
	bl_pl2_frame_sent(&d);
	expect_frame(now, 12, 0, now);
	assert_int_equal(pacer_step(now), BL_DO_DONE);
	/* What bl_host_xdp may find: its compare-and-swap is too late; and the other way round. */
	setup_dest(BL_PL2_ASKED, 0);
	d.silent = BL_PL2_SILENT - 1;
	assert_int_equal(bl_pl2_grant(&d, &(struct bl_pl2_grt){ .seq = SEQ, .bytes = BYTES }, 0,
				      10 * RETRY, T0 + 100),
			 BL_R_GRT);
	assert_int_equal(d.silent, 0);
	expect_frame(T0 + RETRY, 11, 0, d.send_ns);
}

/*
 * A switch that announces reservations and does not answer is slow. It would drop frames that are
 * sent without a promise.
 */
static void apart__slow_is_not_silent(void **state)
{
	__u64 now = T0;
	__u32 asked = 0;

	(void)state;
	setup_dest(BL_PL2_ASKED, 0);
	while (d.silent < BL_PL2_SILENT_SURE - 1) {
		now += RETRY;
		memset(&t, 0, sizeof(t));
		assert_int_equal(bl_pl2_step(&d, &cfg, 1, now, &t), BL_DO_RSV);
		assert_int_equal(d.apart_ns, 0);
		assert_true(++asked < BL_PL2_SILENT_SURE);
	}
	now += RETRY;
	assert_int_equal(bl_pl2_step(&d, &cfg, 1, now, &t), BL_DO_FRAME);
	assert_int_equal(d.apart_ns, now + 10 * RETRY);
}

/* ---- bursts that missed their slots ---- */

static void step__late(void **state)
{
	static const struct {
		enum bl_pl2_state state;
		__u32 verdict, unsolicited, sent, base, missed;
		__u64 late_ns, now;
		enum bl_pl2_do what;
		__u32 bytes, anew; /* what the new RSV is for */
	} rows[] = {
		/* In its slot, at the end of late_ns, and after it. */
		{ BL_PL2_GRANTED, 0, 0, 0, 0, 0, 1000, T0 + 50000 + 1000, BL_DO_FRAME, BYTES, 0 },
		{ BL_PL2_GRANTED, 0, 0, 0, 0, 0, 1000, T0 + 50000 + 1001, BL_DO_RSV, BYTES, 1 },
		/* 0: never */
		{ BL_PL2_GRANTED, 0, 0, 0, 0, 0, 0, T0 + 50000 + 1001, BL_DO_FRAME, BYTES, 0 },
		/* Each frame has its own time: the second one is due a full frame later. */
		{ BL_PL2_GRANTED, 0, 0, 1, 0, 0, 1000, T0 + 50000 + 1000 + 8 * 1538, BL_DO_FRAME,
		  BYTES, 0 },
		{ BL_PL2_GRANTED, 0, 0, 1, 0, 0, 1000, T0 + 50000 + 1001 + 8 * 1538, BL_DO_RSV,
		  BYTES - 1024, 1 },
		/* The third time the burst is sent, however late it is. */
		{ BL_PL2_GRANTED, 0, 0, 0, 0, 1, 1000, T0 + 99999999, BL_DO_RSV, BYTES, 1 },
		{ BL_PL2_GRANTED, 0, 0, 0, 0, 2, 1000, T0 + 99999999, BL_DO_FRAME, BYTES, 0 },
		/* The first frame was sent in an earlier slot. */
		{ BL_PL2_GRANTED, 0, 0, 1, 1, 1, 1000, T0 + 50000 + 1001, BL_DO_RSV, BYTES - 1024,
		  1 },
		/*
		 * Unsolicited: the time counts from the RSV. Before its GRT the burst waits; after
		 * it the burst asks again.
		 */
		{ BL_PL2_EARLY, 0, 1, 1, 0, 0, 1000, T0 + 1000 + 8 * 1538, BL_DO_FRAME, BYTES, 0 },
		{ BL_PL2_EARLY, 0, 1, 1, 0, 0, 1000, T0 + 1001 + 8 * 1538, BL_DO_NOTHING, BYTES,
		  0 },
		{ BL_PL2_GRANTED, BL_GRT_PASSED, 1, 1, 0, 0, 1000, T0 + 1000 + 8 * 1538,
		  BL_DO_FRAME, BYTES, 0 },
		{ BL_PL2_GRANTED, BL_GRT_PASSED, 1, 1, 0, 0, 1000, T0 + 1001 + 8 * 1538, BL_DO_RSV,
		  BYTES - 1024, 1 },
		/* Not passed: none of the burst passed, so all of it is asked for. */
		{ BL_PL2_GRANTED, 0, 1, 1, 0, 0, 1000, T0 + 50000 + 1001, BL_DO_RSV, BYTES, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		setup_dest(rows[i].state, rows[i].sent);
		d.entry[0] = BL_RING_ENTRY(11, 1000);
		d.entry[1] = BL_RING_ENTRY(12, OTHER);
		d.bytes = rows[i].base ? BYTES - 1024 : BYTES;
		d.base = (__u16)rows[i].base;
		d.missed = (__u16)rows[i].missed;
		d.verdict = rows[i].verdict;
		d.unsolicited = rows[i].unsolicited;
		d.send_ns = T0 + 50000;
		cfg.late_ns = rows[i].late_ns;
		cfg.link.ns_q20 = 8 << 20;
		assert_int_equal(pacer_step(rows[i].now), rows[i].what);
		assert_int_equal(d.bytes, rows[i].bytes);
		assert_int_equal(d.late, rows[i].anew);
		if (!rows[i].anew)
			continue;
		expect_state(BL_PL2_ASKED, SEQ + 1);
		assert_int_equal(bl_pl2_rsv_flags(&d), 0);
		assert_int_equal(d.missed, rows[i].missed + 1);
		assert_int_equal(d.sent, d.base);
		/* Granted again: the rest is sent, and then the burst is over. */
		assert_int_equal(
			bl_pl2_grant(&d, &(struct bl_pl2_grt){ .seq = SEQ + 1, .bytes = d.bytes },
				     0, 10 * RETRY, rows[i].now),
			BL_R_GRT);
		if (!d.base)
			expect_frame(rows[i].now, BL_RING_ENTRY(11, 1000), 0, d.send_ns);
		expect_frame(rows[i].now, BL_RING_ENTRY(12, OTHER), 0, d.send_ns);
		assert_true(bl_pl2_burst_over(&d));
		bl_pl2_burst_done(&d);
		assert_int_equal(d.base | d.missed | d.sent | d.n, 0);
	}
}

/* ---- copies and releases ---- */

static void bl_pl2_coming__life(void **state)
{
	struct bl_pl2_grt g = make_grt(10000, 20000, BL_GRT_COPY);
	struct bl_pl2_coming c = { 0 };

	(void)state;
	setup_dest(BL_PL2_IDLE, 0);
	assert_int_equal(bl_pl2_coming_at(&c), BL_DUE_NEVER);
	assert_int_equal(bl_pl2_missing(&c, ~0ULL), 0);
	bl_pl2_arrived(&c, 1514); /* This frame was not announced. */
	assert_int_equal(c.bytes, 0);
	assert_int_equal(bl_pl2_announce(&c, &cfg, &g, T0), T0 + 520000);
	assert_int_equal(c.bytes, BYTES);
	assert_int_equal(c.seq, SEQ);
	assert_int_equal(bl_pl2_coming_at(&c), T0 + 520000);
	bl_pl2_arrived(&c, 1514);
	assert_int_equal(c.bytes, 1538);
	/* A second burst with an earlier slot does not shorten the time of the first one. */
	g.out_wait_ns = g.in_wait_ns = 0;
	assert_int_equal(bl_pl2_announce(&c, &cfg, &g, T0 + 100), T0 + 520000);
	assert_int_equal(c.bytes, 1538 + BYTES);
	assert_int_equal(bl_pl2_missing(&c, T0 + 519999), 0);
	assert_int_equal(bl_pl2_missing(&c, T0 + 520000), 1538 + BYTES);
	assert_int_equal(bl_pl2_missing(&c, T0 + 520000), 0);
	assert_int_equal(bl_pl2_coming_at(&c), BL_DUE_NEVER);
	/* More than was announced has arrived. */
	g.in_wait_ns = 5;
	assert_int_equal(bl_pl2_announce(&c, &cfg, &g, T0 + 600000), T0 + 1100005);
	bl_pl2_arrived(&c, BYTES - BL_WIRE_EXTRA - 1);
	bl_pl2_arrived(&c, 60);
	assert_int_equal(c.bytes, 0);
	assert_int_equal(bl_pl2_missing(&c, ~0ULL >> 1), 0);
	/* A burst takes its time at the rate of the link: 8 ns per byte. */
	cfg.link.ns_q20 = 8 << 20;
	assert_int_equal(bl_pl2_announce(&c, &cfg, &g, T0 + 2000000), T0 + 2500005 + 8 * BYTES);
	c.bytes = 0;
	/* Releases are switched off; then nothing is announced. */
	cfg.coming_ns = 0;
	assert_int_equal(bl_pl2_announce(&c, &cfg, &g, T0), 0);
	cfg.coming_ns = 1;
	g.bytes = 0;
	assert_int_equal(bl_pl2_announce(&c, &cfg, &g, T0), 0);
	assert_int_equal(c.bytes, 0);
}

/* ---- a host and a switch ---- */

/* The state of the model's switch: its answer to the last number, and what may still pass. */
static struct {
	__u32 seq, bytes, flags, left, early;
	bool valid;
} sw;

/*
 * Frames are numbers from 1 on; each must leave the switch once and in order. RSVs and GRTs are
 * lost, GRTs are late or arrive twice, RSVs are refused, and bursts are let through or not. Frames
 * are not lost here: those of a burst follow their RSV in order, as on a link.
 */
static void model__each_frame_once(void **state)
{
	struct rnd r = rnd_seeded("pl2");
	struct {
		struct bl_pl2_grt g;
		__u64 at;
		bool there;
	} air[8] = { 0 };
	__u64 now = T0, wake = T0, early = 0, resent = 0, refused = 0, anew = 0;
	__u32 made = 0, out = 0, ops = 0, twice = 0, i, what;
	bool unanswered = false;

	(void)state;
	setup_dest(BL_PL2_IDLE, 0);
	d.n = d.bytes = 0;
	d.word = 0;
	cfg.t_ns = 1000000;
	memset(&sw, 0, sizeof(sw));
	while (out < 200000) {
		assert_true(ops++ < 30000000);
		now += rnd_below(&r, 4) ? rnd_below(&r, 20000) : rnd_below(&r, 400000);
		for (i = 0; i < ARRAY_SIZE(air); i++) {
			if (!air[i].there || air[i].at > now)
				continue;
			air[i].there = rnd_below(&r, 50) == 0; /* The GRT arrives a second time. */
			if (bl_pl2_grant(&d, &air[i].g, rnd_below(&r, 3) ? 0 : 12000, 10 * RETRY,
					 now) == BL_R_GRT)
				wake = bl_min64(wake, now); /* a refusal, or a slot that is now */
		}
		if (wake > now)
			continue;
		i = d.unsolicited && d.retries == BL_PL2_TRIES - 1;
		what = pacer_step(now);
		unanswered |= what == BL_DO_RSV && i;
		wake = t.next_ns;
		if (what == BL_DO_DONE) {
			unanswered = false;
			for (i = 0; i < d.n; i++)
				/* No slot is returned before its frame has passed. */
				assert_true(d.entry[i] <= out);
			bl_pl2_burst_done(&d);
			what = pacer_step(now);
			wake = t.next_ns;
		}
		if (what == BL_DO_COLLECT) {
			__u32 k = 1 + rnd_below(&r, 20);

			while (k-- && bl_pl2_burst_room(&d, &cfg, 1514)) {
				made++;
				bl_pl2_frame_added(&d, made, 60 + made % 1455);
			}
			what = pacer_step(now);
			wake = t.next_ns;
			assert_int_equal(what, BL_DO_RSV);
		}
		/* This switch makes reservations; apart__silence covers one that never does. */
		d.silent = 0;
		if (what == BL_DO_RSV) {
			__u32 seq = BL_PL2_SEQ(d.word), e = bl_pl2_rsv_flags(&d) == BL_RSV_EARLY;
			struct bl_pl2_grt g = { .seq = seq, .bytes = d.bytes, .try = d.retries };

			anew += d.retries == BL_PL2_TRIES - 1;
			if (rnd_below(&r, 5) == 0)
				continue; /* The RSV is lost; a burst behind it finds no promise. */
			if (!(sw.valid && sw.seq == seq)) {
				sw.seq = seq;
				sw.bytes = d.bytes;
				sw.flags = rnd_below(&r, 6) == 0   ? BL_GRT_REFUSED
					   : e && rnd_below(&r, 2) ? BL_GRT_PASSED
								   : 0;
				sw.valid = sw.flags != BL_GRT_REFUSED;
				sw.left = sw.valid ? sw.bytes : 0;
				sw.early = sw.flags & BL_GRT_PASSED ? sw.bytes : 0;
			}
			g.flags = sw.flags;
			g.in_wait_ns = rnd_below(&r, 2) * rnd_below(&r, 300000);
			g.out_wait_ns = rnd_below(&r, 100000);
			i = rnd_below(&r, ARRAY_SIZE(air));
			if (rnd_below(&r, 5) && !air[i].there) { /* Otherwise the answer is lost. */
				air[i].g = g;
				air[i].at = now + rnd_below(&r, 3 * RETRY);
				air[i].there = true;
			}
		} else if (what == BL_DO_FRAME) {
			__u32 len = bl_wire_bytes(60 + t.entry % 1455);
			bool pass = t.early ? sw.seq == BL_PL2_SEQ(d.word) && sw.early >= len
					    : sw.left >= len;

			if (!t.early)
				assert_true(pass); /* A frame in its slot is never refused. */
			if (pass) {
				/*
				 * A frame is sent a second time only if its burst passed and no
				 * answer that said so arrived.
				 */
				assert_true(t.entry == out + 1 || (unanswered && t.entry <= out));
				twice += t.entry <= out;
				out = t.entry > out ? t.entry : out;
				sw.left -= len;
				sw.early -= t.early ? len : 0;
			}
			bl_pl2_frame_sent(&d);
			if (bl_pl2_burst_over(&d)) {
				/* All of the burst has passed. */
				assert_int_equal(d.entry[d.n - 1], out);
				bl_pl2_burst_done(&d);
				unanswered = false;
			}
		}
		assert_true(wake != BL_DUE_NEVER);
	}
	early = d.early;
	resent = d.resent;
	refused = d.refused;
	assert_true(early > 1000 && resent > 100 && refused > 1000 && anew > 100 && d.bad > 100 &&
		    d.timeouts > 1000 && twice < out / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_pl2_wait__equation_1),
		cmocka_unit_test(bl_pl2_may_early__edges),
		cmocka_unit_test(bl_pl2_times__follow_the_slot),
		cmocka_unit_test(bl_pl2_room__frames_and_bytes),
		cmocka_unit_test(step__idle),
		cmocka_unit_test(step__asked),
		cmocka_unit_test(step__early),
		cmocka_unit_test(step__granted),
		cmocka_unit_test(step__granted_passed),
		cmocka_unit_test(step__granted_not_passed),
		cmocka_unit_test(step__granted_refused),
		cmocka_unit_test(step__policy_was_changed),
		cmocka_unit_test(apart__answered_off),
		cmocka_unit_test(apart__off_to_an_unsolicited_burst),
		cmocka_unit_test(apart__silence),
		cmocka_unit_test(apart__slow_is_not_silent),
		cmocka_unit_test(step__late),
		cmocka_unit_test(bl_pl2_over__only_when_nothing_comes_back),
		cmocka_unit_test(bl_pl2_grant__believed),
		cmocka_unit_test(bl_pl2_grant__answers_one_of_the_tries),
		cmocka_unit_test(bl_pl2_grant__verdicts),
		cmocka_unit_test(bl_pl2_grant__not_believed),
		cmocka_unit_test(bl_pl2_ask__a_grt_was_faster),
		cmocka_unit_test(bl_pl2_coming__life),
		cmocka_unit_test(model__each_frame_once),
	};

	return cmocka_run_group_tests_name("pl2_core", tests, NULL, NULL);
}
