// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/top/top_loss_core.h: which numbers have arrived, when a LOSS reports them, and what the
 * sender accepts of it. Also a network that loses and reorders data, tokens and signals, behind
 * which everything still arrives exactly once.
 */
#include "tests/unit/core/top/top_util.h"

#define RTT   1000000ULL
#define DEAD  (50 * RTT)
#define NEVER BL_DUE_NEVER

static struct bl_top_came make_came(uint32_t data)
{
	struct bl_top_came l;

	memset(&l, 0xff, sizeof(l));
	bl_came_begin(&l, data);
	return l;
}

/* ---- the receiver ---- */

static void bl_came_number__table(void **state)
{
	static const struct {
		uint32_t data;
		int rc;
		uint32_t highest, lost;
		uint64_t missing; /* bit k: number highest - k */
	} t[] = {
		{ 1, 0, 1, 0, 0 },
		{ 1, 1, 1, 0, 0 },
		{ 0xffffffff, 1, 1, 0, 0 }, /* from before the flow began */
		{ 3, 0, 3, 0, 2 },
		{ 2, 0, 3, 0, 0 },
		{ 2, 1, 3, 0, 0 },
		{ 5, 0, 5, 0, 2 },
		/*
		 * 4, the oldest that can be remembered, and 6 to 66 are missing; 5 between them has
		 * arrived.
		 */
		{ 67, 0, 67, 0, 1ULL << 63 | (~0ULL >> 2 & ~1ULL) },
		{ 3, 1, 67, 0, 1ULL << 63 | (~0ULL >> 2 & ~1ULL) },
		{ 4, 0, 67, 0, ~0ULL >> 2 & ~1ULL },
		{ 69, 0, 69, 0, ~7ULL | 2 }, /* 4 and 5 leave the window; both have arrived. */
		/* 6 leaves the window and has not arrived. @missing of 0 is not compared. */
		{ 70, 0, 70, 1, 0 },
		{ 134, 0, 134, 61, 0 }, /* 7 to 70 leave; 7 to 66 and 68 are lost */
		{ 134 + BL_TOP_AHEAD, 0, 134 + BL_TOP_AHEAD, 63 + BL_TOP_AHEAD - 64, 0 },
		{ 135 + 2 * BL_TOP_AHEAD, -1, 134 + BL_TOP_AHEAD, 0, 0 },
		{ 134 + BL_TOP_AHEAD - 63, 0, 134 + BL_TOP_AHEAD, 0, 0 },
		{ 134 + BL_TOP_AHEAD - 64, 1, 134 + BL_TOP_AHEAD, 0, 0 },
	};
	struct bl_top_came l = make_came(0);
	uint64_t lost = 0, repeated = 0;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		uint32_t gone = 0;
		int rc = bl_came_number(&l, t[i].data, RTT, MS, &gone);

		lost += gone;
		repeated += rc == 1;
		if (rc != t[i].rc || l.data != t[i].highest || gone != t[i].lost)
			fail_msg("row %u: %d, %u, %u lost", i, rc, l.data, gone);
		if (i < 11 && ~l.got != t[i].missing)
			fail_msg("row %u: missing %llx", i, (unsigned long long)~l.got);
		assert_true(l.lost == lost && l.repeated == repeated);
	}
}

static void bl_came_slide__edges(void **state)
{
	static const struct {
		uint32_t from, to, lost;
	} t[] = { { 10, 11, 0 },          { 10, 73, 0 },          { 10, 74, 0 },
		  { 10, 75, 1 },          { 0xffffffc0, 10, 10 }, { 0xffffffc0, 63, 63 },
		  { 0xffffffc0, 64, 63 }, { 0xffffffc0, 65, 64 }, { 0xfffffff0, 5, 0 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_came l = make_came(t[i].from);
		uint32_t lost = bl_came_slide(&l, t[i].to);

		if (lost != t[i].lost || l.lost != lost || l.data != t[i].to ||
		    bl_came_missing(&l) != t[i].to - t[i].from - (t[i].to < t[i].from) - lost)
			fail_msg("row %u: %u lost, %u missing", i, lost, bl_came_missing(&l));
	}
	assert_true(!bl_came_low(0) && bl_came_low(1) == 1 && bl_came_low(63) == ~0ULL >> 1 &&
		    !~bl_came_low(64) && !~bl_came_low(65));
}

/*
 * Against a set of all numbers that have arrived, and across the wrap, where there is no number 0.
 */
static void bl_came_number__against_model(void **state)
{
	struct rnd rnd = rnd_seeded("bl_came_number__against_model");
	static uint8_t here[1 << 16];
	const uint32_t base = 0xfffff000;
	struct bl_top_came l = make_came(base);
	uint32_t top = 0, i, k, lost = 0, want_lost = 0;

	(void)state;
	memset(here, 0, sizeof(here));
	here[(uint32_t)-base] = 1; /* number 0 */
	for (i = 0; i < 200000 && top < sizeof(here) - 200; i++) {
		uint32_t n = top + 30 - rnd_below(&rnd, 110), data = base + n, gone = 0, low;
		int rc;

		if (n > top + 30 || !n || !data)
			continue;
		low = top;
		rc = bl_came_number(&l, data, RTT, MS + i, &gone);
		lost += gone;
		assert_int_equal(rc, n > top || (top - n < 64 && !here[n]) ? 0 : 1);
		if (!rc) {
			here[n] = 1;
			top = n > top ? n : top;
		}
		for (k = low < 64 ? 1 : low - 63; low != top && (int32_t)k <= (int32_t)top - 64;
		     k++)
			want_lost += !here[k];
		for (k = 0; k < 64 && k < top; k++)
			assert_int_equal(l.got >> k & 1, here[top - k]);
	}
	assert_true(top > 0x2000 && l.data == base + top);
	assert_int_equal(lost, want_lost);
	assert_int_equal(l.lost, lost);
}

/* A frame counts as missing after eight later ones or after one RTT, and not before. */
static void bl_came_judge__when(void **state)
{
	struct bl_top_came l = make_came(100);
	uint32_t k, gone = 0;

	(void)state;
	bl_came_number(&l, 101, RTT, MS, &gone);
	assert_true(l.report_ns == NEVER && l.again_ns == NEVER); /* There is nothing to report. */
	for (k = 103; k < 110; k++) { /* 102 is missing, with up to seven later frames. */
		bl_came_number(&l, k, RTT, 2 * MS + k, &gone);
		assert_true(l.report_ns == 2 * MS + 103 + RTT && l.again_ns == l.report_ns &&
			    l.mark == 103 && l.since_ns == 2 * MS + 103);
	}
	bl_came_number(&l, 110, RTT, 3 * MS, &gone);
	assert_int_equal(l.report_ns, 3 * MS);
	/*
	 * The frame arrives after all, so nothing is missing. The sender hears of it only if it was
	 * asked for the frame.
	 */
	l.report_ns = l.again_ns;
	bl_came_number(&l, 102, RTT, 4 * MS, &gone);
	assert_true(l.again_ns == NEVER && !~l.got && l.report_ns == NEVER);
	bl_came_number(&l, 113, RTT, 5 * MS, &gone);
	l.told = 110;
	bl_came_number(&l, 111, RTT, 6 * MS, &gone); /* one of the two missing frames */
	assert_int_equal(l.report_ns, 5 * MS + RTT);
	l.told = 112;
	bl_came_number(&l, 112, RTT, 7 * MS, &gone);
	assert_true(l.again_ns == NEVER && l.report_ns == 7 * MS);
	/* The missing frame leaves the window, so there is nothing to report any more. */
	l = make_came(0);
	for (k = 2; k <= 65; k++) {
		struct bl_top_said s;

		bl_came_number(&l, k, RTT, k, &gone);
		if (l.report_ns <= k)
			bl_came_report(&l, RTT, 50 * RTT, k, &s);
		assert_int_equal(l.report_ns == NEVER, k == 65);
	}
	assert_int_equal(gone, 1);
	gone = 0;
	/* An acknowledgement is sent for 16 frames, with 8 behind them. */
	l = make_came(0);
	for (k = 1; k < 24; k++) {
		bl_came_number(&l, k, RTT, MS, &gone);
		assert_int_equal(l.report_ns, NEVER);
	}
	bl_came_number(&l, 24, RTT, 2 * MS, &gone);
	assert_int_equal(l.report_ns, 2 * MS);
	/* A copy shows that its sender does not know that the frame has arrived. */
	l = make_came(0);
	bl_came_number(&l, 1, RTT, MS, &gone);
	bl_came_number(&l, 1, RTT, 2 * MS, &gone);
	assert_int_equal(l.report_ns, 2 * MS);
	assert_int_equal(gone, 0);
}

static void bl_came_upto__signals(void **state)
{
	static const struct {
		uint32_t data;
		int ack;
		uint32_t lost, highest;
		uint64_t report, missing;
	} t[] = {
		{ 0, 1, 0, 10, NEVER, 0 }, /* announces nothing */
		{ 9, 0, 0, 10, NEVER, 0 }, /* overtaken */
		{ 10, 0, 0, 10, NEVER, 0 },
		{ 10, 1, 0, 10, 2 * MS, 0 },       /* All frames have arrived; reported at once. */
		{ 11, 1, 0, 11, 2 * MS + RTT, 1 }, /* A STOP may overtake data. */
		{ 13, 0, 0, 13, 2 * MS + RTT, 7 },
		{ 10 + 65, 0, 1, 75, 2 * MS, ~0ULL },
		{ 11 + BL_TOP_AHEAD, 1, 0, 10, 2 * MS, 0 }, /* not accepted */
	};
	unsigned int i;

	(void)state;
	{
		struct bl_top_came l = make_came(10);
		uint32_t gone = 0;

		bl_came_upto(&l, 100, RTT, 1, MS);
		assert_true(bl_came_number(&l, 36, RTT, MS, &gone) == 1 &&
			    bl_came_number(&l, 37, RTT, MS, &gone) == 0);
	}
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_came l = make_came(10);
		uint32_t lost = bl_came_upto(&l, t[i].data, RTT, t[i].ack, 2 * MS);

		if (lost != t[i].lost || l.data != t[i].highest || l.report_ns != t[i].report ||
		    ~l.got != t[i].missing)
			fail_msg("row %u: %u lost, %u, report at %llu, missing %llx", i, lost,
				 l.data, (unsigned long long)l.report_ns,
				 (unsigned long long)~l.got);
	}
}

static struct bl_top_said make_report(struct bl_top_came *l, uint64_t now)
{
	struct bl_top_said s;

	memset(&s, 0xff, sizeof(s));
	bl_came_report(l, RTT, DEAD, now, &s);
	return s;
}

/* The example at the top of the header. */
static void bl_came_report__example(void **state)
{
	struct bl_top_came l = make_came(0);
	struct bl_top_said s;
	uint32_t k, gone = 0;

	(void)state;
	for (k = 1; k <= 13; k++)
		if (k != 5)
			bl_came_number(&l, k, RTT, k, &gone);
	assert_int_equal(l.report_ns, 13);
	s = make_report(&l, 13);
	assert_true(s.data == 5 && s.missing == 1 && s.seq == 1 && !s.gone && l.told == 5 &&
		    l.losses == 1);
	for (k = 14; k <= 20; k++)
		if (k != 18)
			bl_came_number(&l, k, RTT, k, &gone);
	/* The report is not sent earlier: 5 is known, and 18 has too few frames behind it. */
	assert_int_equal(l.report_ns, 13 + RTT);
	s = make_report(&l, 13 + RTT);
	assert_true(s.data == 13 && s.missing == 1 << 8 && s.seq == 2 && l.mark == 20);
	assert_int_equal(l.report_ns, 13 + 2 * RTT);
	s = make_report(&l, l.report_ns);
	assert_true(s.data == 20 && s.missing == (1 << 2 | 1 << 15) && s.seq == 3);
	bl_came_number(&l, 18, RTT, 5 * RTT, &gone);
	bl_came_number(&l, 5, RTT, 5 * RTT, &gone);
	s = make_report(&l, l.report_ns);
	assert_true(s.data == 20 && !s.missing && s.seq == 4 && l.report_ns == NEVER &&
		    l.losses == 3 && !l.lost);
}

/*
 * Reports follow after one RTT, then 1, 2, 4 ... 64 of them, until the frame is given up. The count
 * begins anew when a frame arrives.
 */
static void bl_came_report__times(void **state)
{
	static const uint64_t after[] = { 1, 1, 2, 4, 8, 16, 18 }; /* 50 in all */
	struct bl_top_came l = make_came(0);
	struct bl_top_said s;
	uint64_t at = MS;
	uint32_t gone = 0;
	unsigned int i;

	(void)state;
	bl_came_upto(&l, 2, RTT, 1, at);
	for (i = 0; i < ARRAY_SIZE(after); i++) {
		at += after[i] * RTT;
		assert_int_equal(l.report_ns, at);
		s = make_report(&l, at);
		assert_int_equal(s.data, 2);
		assert_int_equal(s.missing, i + 1 < ARRAY_SIZE(after) ? 3 : 0);
		assert_int_equal(s.gone, i + 1 < ARRAY_SIZE(after) ? 0 : 2);
	}
	assert_true(l.lost == 2 && l.report_ns == NEVER && l.again_ns == NEVER &&
		    l.losses == ARRAY_SIZE(after) - 1);
	assert_int_equal(bl_came_number(&l, 2, RTT, at, &gone), 1); /* The frame is too late. */
	/* The interval never exceeds 64 RTTs. */
	l = make_came(0);
	bl_came_upto(&l, 2, RTT, 1, MS);
	for (i = 0; i < 20; i++)
		bl_came_report(&l, RTT, ~0ULL >> 2, l.report_ns, &s);
	at = l.report_ns;
	bl_came_report(&l, RTT, ~0ULL >> 2, at, &s);
	assert_int_equal(l.report_ns, at + 64 * RTT);
	/* One of the frames arrives: the time of the other one begins anew. */
	bl_came_number(&l, 1, RTT, at + 5, &gone);
	assert_true(l.report_ns == at + 5 + RTT && !l.tries && l.since_ns == at + 5);
}

/* What was reported before is not taken back, however far the window has moved. */
static void bl_came_report__never_back(void **state)
{
	struct bl_top_came l = make_came(0xfffffff0);
	struct bl_top_said s;
	uint32_t gone = 0;

	(void)state;
	bl_came_number(&l, 0xfffffff1, RTT, MS, &gone);
	bl_came_upto(&l, 0xfffffff1, RTT, 1, MS);
	s = make_report(&l, MS);
	assert_true(s.data == 0xfffffff1 && !s.missing);
	bl_came_number(&l, 0xfffffff3, RTT, MS, &gone);
	s = make_report(
		&l, MS + 1); /* The report is requested too early, so it repeats the last one. */
	assert_true(s.data == 0xfffffff1 && !s.missing);
	bl_came_number(&l, 100, RTT, MS, &gone);
	assert_int_equal(gone, 1 + 12 + 36); /* 0xfffffff2, 0xfffffff4 to 0xffffffff, 1 to 36 */
	s = make_report(&l, MS + 2);
	assert_true(s.data == 92 && s.missing == ~0ULL >> 8);
}

/* The pacer's choice: which flow's LOSS is due, and when the next one is. */
static void pick__loss(void **state)
{
	struct bl_top_rx r = flow_in(0);
	struct bl_top_pick p;

	(void)state;
	r.state = BL_TOP_RX_STOPPED;
	r.came.report_ns = 7 * MS;
	bl_top_pick_begin(&p, 0, 7 * MS - 1);
	bl_top_pick_consider(&p, 9, &r, 0, &cfg);
	assert_true(!p.loss && p.next_ns == 7 * MS && !p.ready);
	bl_top_pick_begin(&p, 0, 7 * MS);
	bl_top_pick_consider(&p, 9, &r, 0, &cfg);
	assert_true(p.loss == 10 && p.next_ns == 51 * MS && !p.ready && !p.gone);
}

/* ---- the sender ---- */

static struct bl_top_tx make_keeping_flow(uint32_t data)
{
	struct bl_top_tx t = flow_out(0);

	t.keep = 1;
	t.data = t.told = t.acked = data;
	t.state = BL_TOP_CREDITED;
	return t;
}

static void bl_top_lossy__reasons(void **state)
{
	static const struct {
		uint32_t tag, seq, data;
		uint64_t missing;
		enum bl_reason why;
		uint32_t acked, rtt;
		uint64_t loss_ns;
	} t[] = {
		{ 0x1235, 1, 100, 0, BL_R_LOSS_BAD, 90, 0, 0 },
		{ 0x1234, 1, 101, 0, BL_R_LOSS_BAD, 90, 0, 0 },
		{ 0x1234, 0, 100, 0, BL_R_LOSS, 90, 0, 0 },
		{ 0x1234, 1, 99, 1, BL_R_NONE, 90, 7, 5 * MS + 3 },
		{ 0x1234, 1, 100, 0, BL_R_LOSS, 90, 7, 5 * MS + 3 },
		{ 0x1234, 9, 95, 0, BL_R_NONE, 95, 7, 5 * MS + 3 },
		{ 0x1234, 8, 100, 0, BL_R_LOSS, 95, 7, 5 * MS + 3 },
		{ 0x1234, 10, 94, 0, BL_R_NONE, 95, 7, 5 * MS + 3 },
		{ 0x1234, 11, 100, 0, BL_R_NONE, 100, 7, 5 * MS + 3 },
	};
	struct bl_top_tx f = make_keeping_flow(100);
	unsigned int i;

	(void)state;
	f.acked = 90;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		enum bl_reason why = bl_top_loss_validate(&f, t[i].tag, t[i].seq, t[i].data,
							  t[i].missing, 7, 5 * MS + i);

		if (why != t[i].why || f.acked != t[i].acked || f.rtt_us != t[i].rtt ||
		    f.loss_ns != t[i].loss_ns)
			fail_msg("row %u: %d, acked %u", i, why, f.acked);
	}
	f.keep = 0;
	assert_int_equal(bl_top_loss_validate(&f, 0x1234, 99, 100, 0, 7, MS), BL_R_LOSS_BAD);
	f.keep = 1;
	f.state = BL_TOP_FREE;
	assert_int_equal(bl_top_loss_validate(&f, 0x1234, 99, 100, 0, 7, MS), BL_R_LOSS_BAD);
}

static void bl_top_flow__numbers_go_on(void **state)
{
	const struct bl_top_key key = { .proto = 17 };
	struct bl_top_hint hint = { .bytes = 1000, .flags = BL_TOP_F_RESEND };
	struct bl_top_tx t = make_keeping_flow(77);

	(void)state;
	cfg.unscheduled = 3;
	cfg.short_frames = 8;
	t.loss = 5;
	bl_top_tx_begin(&t, &cfg, &key, &hint, 1, MS);
	assert_true(t.keep == 1 && t.data == 77 && t.told == 77 && t.acked == 77 && !t.loss &&
		    !t.rtt_us && !t.unsched);
	hint.flags = 0;
	bl_top_tx_begin(&t, &cfg, &key, &hint, 1, MS);
	assert_true(!t.keep && t.unsched == 1);
}

static void bl_top_tail_ns__table(void **state)
{
	static const struct {
		uint32_t keep, told, acked, state, tries;
		uint64_t want; /* ms */
	} t[] = {
		{ 0, 1, 1, BL_TOP_IDLE, 0, NEVER },    { 1, 9, 10, BL_TOP_IDLE, 0, NEVER },
		{ 1, 9, 9, BL_TOP_IDLE, 0, 0 },        { 1, 9, 9, BL_TOP_CREDITED, 0, 12 * MS },
		{ 1, 10, 9, BL_TOP_IDLE, 0, 22 * MS }, { 1, 10, 9, BL_TOP_CREDITED, 0, 22 * MS },
		{ 1, 10, 9, BL_TOP_IDLE, 1, 24 * MS }, { 1, 10, 9, BL_TOP_IDLE, 2, 28 * MS },
		{ 1, 10, 9, BL_TOP_IDLE, 3, 28 * MS },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_tx f = make_keeping_flow(10);

		f.keep = t[i].keep;
		f.told = t[i].told;
		f.acked = t[i].acked;
		f.state = t[i].state;
		f.tries = t[i].tries;
		f.token_ns = 10 * MS;
		f.sync_ns = 20 * MS;
		if (bl_top_tail_ns(&f, &cfg) != t[i].want)
			fail_msg("row %u: %llu", i, (unsigned long long)bl_top_tail_ns(&f, &cfg));
	}
}

/*
 * The pacer's turns for a flow that holds nothing: the STOP is repeated until all data has arrived
 * or the flow has been idle for too long.
 */
static void bl_top_step__says_how_far(void **state)
{
	static const uint64_t at[] = { 10, 12, 16, 24, 32, 40 };
	struct bl_top_tx f = make_keeping_flow(5);
	struct bl_top_turn d = { 0 };
	unsigned int i;

	(void)state;
	f.state = BL_TOP_IDLE;
	f.frame_ns = f.token_ns = 10 * MS;
	f.told = f.acked = 3;
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		bl_top_tx_step(&f, &cfg, 0, at[i] * MS, 1, &d);
		assert_true(d.what == BL_TOP_DO_STOP && d.seq == i + 1 && d.data == 5 &&
			    d.tag == 0x1234 && f.state == BL_TOP_IDLE && f.told == 5 &&
			    f.stops == i + 1);
		assert_int_equal(d.next_ns, (i + 1 < ARRAY_SIZE(at) ? at[i + 1] : 48) * MS);
		bl_top_tx_step(&f, &cfg, 0, d.next_ns - 1, 1, &d);
		assert_int_equal(d.what, BL_TOP_NOTHING);
	}
	f.acked = 5;
	bl_top_tx_step(&f, &cfg, 0, 60 * MS, 1, &d);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 110 * MS);
	/* A frame is missing: the flow asks for tokens and says how far it has sent. */
	f.loss_ns = 61 * MS;
	bl_top_tx_step(&f, &cfg, 1, 61 * MS, 1, &d);
	assert_true(d.what == BL_TOP_DO_SYNC && d.frames == 1 && d.data == 5 && d.seq == 7 &&
		    f.told == 5);
	/* A LOSS is a sign of life. */
	bl_top_tx_step(&f, &cfg, 0, 160 * MS, 1, &d);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 161 * MS);
	f.acked = 4;
	bl_top_tx_step(&f, &cfg, 0, 161 * MS, 1, &d);
	assert_true(d.what == BL_TOP_DO_END && d.data == 5 && d.seq == 8);
	/*
	 * A SYNC says how far the flow has sent, too. When tokens stop arriving, a STOP says it,
	 * and the next frame asks for tokens after that.
	 */
	f = make_keeping_flow(5);
	f.told = 3;
	f.state = BL_TOP_IDLE;
	bl_top_tx_step(&f, &cfg, 1, 10 * MS, 1, &d);
	assert_true(d.what == BL_TOP_DO_SYNC && f.told == 5);
	f = make_keeping_flow(5);
	f.told = f.acked = 3;
	f.frame_ns = f.token_ns = 10 * MS;
	bl_top_tx_step(&f, &cfg, 0, 12 * MS - 1, 1, &d);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 12 * MS);
	bl_top_tx_step(&f, &cfg, 0, 12 * MS, 1, &d);
	assert_true(d.what == BL_TOP_DO_STOP && f.state == BL_TOP_IDLE &&
		    bl_top_frame_held(&f, 100, 13 * MS) == 1);
	/* A flow that keeps no frames has no data numbers. */
	f = make_keeping_flow(5);
	f.keep = 0;
	bl_top_tx_step(&f, &cfg, 1, 10 * MS, 1, &d);
	assert_true(d.what == BL_TOP_DO_SYNC && !d.data);
}

/*
 * A receiver that has forgotten the flow counts its tokens from 1 again. A sender that remembers
 * the old numbers would take them all for copies.
 */
static void bl_top_step__another_tag_after_silence(void **state)
{
	static const struct {
		uint64_t token, sync, now;
		uint32_t tag;
	} t[] = { { 10, 0, 59, 0x1234 },
		  { 10, 0, 60, 0x77 },
		  { 10, 11, 60, 0x1234 },
		  { 10, 11, 61, 0x77 },
		  { 0, 0, 90, 0x1234 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_tx f = make_keeping_flow(5);
		struct bl_top_turn d = { 0 };

		f.state = BL_TOP_IDLE;
		f.token_ns = t[i].token * MS;
		f.sync_ns = t[i].sync * MS;
		f.seq = 500;
		f.loss = 6;
		bl_top_tx_step(&f, &cfg, 1, t[i].now * MS, 0x77, &d);
		assert_true(d.what == BL_TOP_DO_SYNC && d.tag == t[i].tag && f.tag == d.tag);
		assert_true(f.tag == 0x1234 ? f.seq == 500 && f.loss == 6
					    : !f.seq && !~f.seen && !f.loss);
	}
}

/* ---- frames that are kept ---- */

static void bl_kept__times(void **state)
{
	const uint64_t t0 = (77ULL << 42) + 1000 * 1024;

	(void)state;
	assert_int_equal(bl_kept_at(t0, 0), 1000);
	assert_int_equal(bl_kept_at(t0 + 1024, 1), 1001);
	/* The frame was never sent again. */
	assert_true(bl_kept_may(1000, 1000, t0));
	/* 1024 us are 1000 units. */
	assert_false(bl_kept_may(1001, 1024, t0 + 999 * 1024));
	assert_true(bl_kept_may(1001, 1024, t0 + 1000 * 1024));
	assert_true(bl_kept_may(1001, 0, t0));
	assert_false(bl_kept_old(1000, 1024, t0 + 999 * 1024));
	assert_true(bl_kept_old(1000, 1024, t0 + 1000 * 1024));
	assert_true(bl_kept_old(0xfffffffe, 1, (78ULL << 42) + 2 * 1024)); /* across the wrap */
	assert_false(bl_kept_may(1001, 0xffffffff, t0 + 3600000000000ULL));
}

static void bl_kept_oldest__places(void **state)
{
	static const struct {
		uint64_t bits;
		uint32_t data, place;
	} t[] = { { 1, 5, 0 },
		  { 1ULL << 63, 5, 63 },
		  { 1ULL << 6 | 1ULL << 5, 5, 6 },
		  { 1ULL << 5, 5, 5 },
		  { 1ULL << 63 | 1, 5, 63 },
		  { ~0ULL, 63, 0 },
		  { ~0ULL, 62, 63 },
		  { 3, 64, 1 },
		  { ~0ULL, 0xffffffff, 0 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_kept_oldest(t[i].bits, t[i].data), t[i].place);
	assert_true(BL_KEPT_NUMBER(bl_kept_word(0x89abcdef, 0xfedcba98)) == 0x89abcdef &&
		    BL_KEPT_ENTRY(bl_kept_word(0x89abcdef, 0xfedcba98)) == 0xfedcba98);
}

/* ---- a whole transfer ---- */

/* A message on its way, in either direction. @op: BL_TOP_*, or 0: data. */
struct message {
	uint8_t op;
	uint32_t seq, number, frame, tag, data, frames, rtt_us;
	uint64_t missing, at;
};

static struct {
	struct message m[512];
	unsigned int n;
	struct rnd rnd;
	uint32_t loss, spread; /* of 1000; ns */
} wire;

static void put_on_wire(struct message m, uint64_t now)
{
	if (rnd_below(&wire.rnd, 1000) < wire.loss || wire.n == ARRAY_SIZE(wire.m))
		return;
	m.at = now + 10000 + rnd_below(&wire.rnd, wire.spread);
	wire.m[wire.n++] = m;
	if (!rnd_below(&wire.rnd, 50) && wire.n < ARRAY_SIZE(wire.m)) { /* a copy as well */
		m.at += rnd_below(&wire.rnd, 30000);
		wire.m[wire.n++] = m;
	}
}

/*
 * Bursts of frames, each sent when the previous one has arrived, over a network that loses up to a
 * fifth of everything, copies some and reorders the rest. The program's steps are simulated with
 * its own functions. All frames arrive, each is delivered once, and no frame is sent again within
 * an RTT of the last time; this also holds if the sender takes another tag now and then (@retags).
 */
static void run_transfer(uint32_t loss, uint32_t frames, uint32_t first, bool retags)
{
	static uint8_t got[5000];
	static uint64_t sent_again[5000];
	struct bl_top_tx f = make_keeping_flow(first);
	struct bl_top_rx r = { .state = BL_TOP_RX_FREE };
	struct bl_top_kept k = { 0 };
	uint64_t now = MS, turn = 0, end, steps = 0;
	uint32_t random = 1, tag = 0x1234, waiting = 0, next = 0, done = 0, resent = 0, gone = 0, i;
	bool known = false;

	cfg.dead_ns = cfg.idle_ns = ~0ULL >> 2;
	cfg.sync_ns = 200000;
	memset(got, 0, sizeof(got));
	memset(sent_again, 0, sizeof(sent_again));
	wire.n = 0;
	wire.loss = loss;
	f.state = BL_TOP_IDLE;
	f.tag = tag;
	for (end = 20000000; done < frames && steps < end; steps++) {
		struct bl_top_turn d = { 0 };
		uint64_t at = NEVER;
		unsigned int which = 0;

		if (!waiting && next < frames) { /* the application's next burst */
			uint32_t n = 1 + rnd_below(&wire.rnd, 100);

			n = n < frames - next ? n : frames - next;
			for (i = 0; i < n; i++)
				turn = bl_top_frame_held(&f, 1500, now)
					       ? now
					       : bl_min64(turn, now + cfg.sync_ns);
			waiting = n;
		}
		/* the next event */
		for (i = 0; i < wire.n; i++)
			if (wire.m[i].at < at) {
				at = wire.m[i].at;
				which = i;
			}
		if (known && r.state == BL_TOP_RX_OPEN)
			at = bl_min64(at, r.next_ns);
		if (known)
			at = bl_min64(at, r.came.report_ns);
		at = bl_min64(at, turn);
		assert_true(at != NEVER);
		now = bl_max64(now, at);
		if (turn <= now) {
			bl_top_tx_step(&f, &cfg, waiting + (uint32_t)__builtin_popcountll(k.marked),
				       now, 0x55, &d);
			turn = d.next_ns;
			/* as after many SYNCs without a token */
			if (retags && d.what == BL_TOP_DO_SYNC && !rnd_below(&wire.rnd, 10)) {
				bl_top_retag(&f, ++tag);
				d.tag = tag;
			}
			if (d.what == BL_TOP_DO_SYNC || d.what == BL_TOP_DO_STOP)
				put_on_wire((struct message){ .op = d.what == BL_TOP_DO_SYNC
									    ? BL_TOP_SYNC
									    : BL_TOP_STOP,
							      .seq = d.seq,
							      .tag = d.tag,
							      .data = d.data,
							      .frames = d.frames },
					    now);
			continue;
		}
		if (known && r.came.report_ns <= now) {
			struct bl_top_said s;

			bl_came_report(&r.came, bl_top_rtt_ns(&r, &cfg), cfg.dead_ns, now, &s);
			assert_int_equal(s.gone, 0);
			put_on_wire((struct message){ .op = BL_TOP_LOSS,
						      .seq = s.seq,
						      .tag = r.tag,
						      .data = s.data,
						      .missing = s.missing,
						      .rtt_us = (uint32_t)(bl_top_rtt_ns(&r, &cfg) /
									   1000) },
				    now);
			continue;
		}
		if (known && r.state == BL_TOP_RX_OPEN && r.next_ns <= now) {
			put_on_wire(
				(struct message){ .op = BL_TOP_TOKEN,
						  .seq = bl_top_token_sent(&r, &cfg, now, &random),
						  .tag = r.tag },
				now);
			continue;
		}
		{
			struct message m = wire.m[which];
			struct bl_top_msg msg = { .op = m.op,
						  .seq = m.seq,
						  .tag = m.tag,
						  .data = m.data,
						  .frames = m.frames,
						  .ts = now & BL_TS_MASK };

			wire.m[which] = wire.m[--wire.n];
			switch (m.op) {
			case BL_TOP_TOKEN: {
				uint32_t place = BL_KEPT_PLACE(f.data + 1);
				bool probe = false;

				if (bl_top_token(&f, &cfg, &msg, now, 0, now) != BL_R_NONE)
					break;
				if (k.marked) {
					place = bl_kept_oldest(k.marked, f.data);
					k.marked &= ~(1ULL << place);
				} else if (k.word[place] && waiting) {
					probe = bl_kept_old(
						k.at[place],
						f.rtt_us ? f.rtt_us : cfg.sync_ns / 1000, now);
					if (!probe)
						break;
				} else if (!waiting) {
					if (bl_top_token_wasted(&f))
						put_on_wire((struct message){ .op = BL_TOP_STOP,
									      .seq = f.sig,
									      .tag = f.tag },
							    now);
					turn = bl_min64(turn, bl_top_tail_ns(&f, &cfg));
					break;
				} else {
					uint32_t number = ++f.data ? f.data : ++f.data;

					waiting--;
					place = BL_KEPT_PLACE(number);
					assert_true(!k.word[place]);
					k.word[place] = bl_kept_word(number, next);
					k.at[place] = bl_kept_at(now, 0);
					put_on_wire((struct message){ .seq = m.seq,
								      .number = number,
								      .frame = next },
						    now);
					next++;
					break;
				}
				if (!k.word[place])
					break;
				i = BL_KEPT_ENTRY(k.word[place]);
				if (sent_again[i] && !probe)
					assert_true(now - sent_again[i] + 4096 >=
						    10000); /* the least RTT: 1.5 ways */
				sent_again[i] = now;
				k.at[place] = bl_kept_at(now, 1);
				resent++;
				put_on_wire((struct message){ .seq = m.seq,
							      .number =
								      BL_KEPT_NUMBER(k.word[place]),
							      .frame = i },
					    now);
				break;
			}
			case BL_TOP_LOSS:
				if (bl_top_loss_validate(&f, m.tag, m.seq, m.data, m.missing,
							 m.rtt_us, now) != BL_R_NONE)
					break;
				for (i = 0; i < 64; i++) {
					uint32_t place = BL_KEPT_PLACE(m.data - i);

					if (m.missing >> i & 1) {
						if (!k.word[place] ||
						    BL_KEPT_NUMBER(k.word[place]) != m.data - i) {
							gone++;
						} else if (bl_kept_may(k.at[place], m.rtt_us,
								       now)) {
							k.marked |= 1ULL << place;
							turn = bl_min64(turn, now);
						}
					} else if (k.word[place] &&
						   BL_KEPT_NUMBER(k.word[place]) == m.data - i) {
						/* No frame counts as arrived that has not. */
						assert_true(got[BL_KEPT_ENTRY(k.word[place])]);
						k.word[place] = 0;
						k.marked &= ~(1ULL << place);
					}
				}
				break;
			case BL_TOP_SYNC:
				if (!known || r.tag != m.tag) {
					assert_int_equal(bl_top_rx_begin(&r, &cfg, &msg,
									 known ? BL_TOP_WAS_AGAIN
									       : BL_TOP_WAS_FREE,
									 now),
							 0);
					known = true;
				} else {
					bl_came_upto(&r.came, m.data, bl_top_rtt_ns(&r, &cfg), 0,
						     now);
					bl_top_sync(&r, &msg, now);
				}
				break;
			case BL_TOP_STOP:
				if (!known)
					break;
				bl_came_upto(&r.came, m.data, bl_top_rtt_ns(&r, &cfg), 1, now);
				bl_top_stop(&r, &msg, now);
				break;
			default: {
				uint32_t lost = 0;
				int rc;

				rc = bl_top_echo(&r, &cfg, m.seq, 1514, now);
				/* the answer to a token with the previous tag */
				assert_true(!rc || retags);
				rc = bl_came_number(&r.came, m.number, bl_top_rtt_ns(&r, &cfg), now,
						    &lost);
				assert_true(rc >= 0 && !lost);
				/*
				 * The frame is delivered if and only if it was not delivered
				 * before.
				 */
				assert_int_equal(rc, got[m.frame]);
				done += !got[m.frame];
				got[m.frame] = 1;
			}
			}
		}
	}
	if (done != frames)
		fail_msg("%u of %u frames arrived, loss %u", done, frames, loss);
	assert_true(!gone && f.data - first == frames + (f.data < first));
	print_message("  loss %u of 1000: %u frames, %u sent again, %llu repeated\n", loss, frames,
		      resent, (unsigned long long)r.came.repeated);
}

static void network__complete_and_once(void **state)
{
	static const uint32_t loss[] = { 0, 1, 10, 50, 100, 200 }, spread[] = { 1, 5000, 40000 };
	unsigned int i, j;

	(void)state;
	wire.rnd = rnd_seeded("network__complete_and_once");
	for (i = 0; i < ARRAY_SIZE(loss); i++)
		for (j = 0; j < ARRAY_SIZE(spread); j++) {
			wire.spread = spread[j];
			run_transfer(loss[i], 4000, j == 1 ? 0xfffffff0 : 0, false);
			run_transfer(loss[i], 4000, j == 1 ? 0xfffffff0 : 0, true);
		}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(bl_came_number__table),
		TEST(bl_came_slide__edges),
		TEST(pick__loss),
		TEST(bl_came_number__against_model),
		TEST(bl_came_judge__when),
		TEST(bl_came_upto__signals),
		TEST(bl_came_report__example),
		TEST(bl_came_report__times),
		TEST(bl_came_report__never_back),
		TEST(bl_top_lossy__reasons),
		TEST(bl_top_flow__numbers_go_on),
		TEST(bl_top_tail_ns__table),
		TEST(bl_top_step__says_how_far),
		TEST(bl_top_step__another_tag_after_silence),
		TEST(bl_kept__times),
		TEST(bl_kept_oldest__places),
		TEST(network__complete_and_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
