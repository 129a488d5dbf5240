// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bpf/top_core.h: classes, both of ExpressPass's laws against the published formulas in floating point, echoes, tokens out and in, the sender's turns; and a network that loses, repeats and
 * reorders, in which one token is one packet all the same.
 */
#include "unit.h"

#include <math.h>

#include "../../bpf/top_core.h"

#define SLOT 1298u
#define ONE  ((double)BL_TOP_ONE)
#define MS   1000000ULL

static struct bl_top_cfg cfg;

static int setup(void **state)
{
	(void)state;
	cfg = (struct bl_top_cfg){ .law = BL_TOP_LAW_NS2, .levels = 6, .slot_ns = SLOT, .alpha = BL_TOP_ONE / 2, .w_init = BL_TOP_ONE / 16, .w_min = BL_TOP_ONE / 100, .w_max = BL_TOP_ONE / 2,
				   .jitter = BL_TOP_ONE / 10, .limit = { 5, 22, 100, 465, 2155 }, .expiry_ns = 26000, .sync_ns = 2 * MS, .idle_ns = 100 * MS, .dead_ns = 50 * MS };
	return 0;
}

/* ---- classes ---- */

static void bl_top_frames__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_top_frames(0), 0);
	assert_int_equal(bl_top_frames(1), 1);
	assert_int_equal(bl_top_frames(1460), 1);
	assert_int_equal(bl_top_frames(1461), 2);
	assert_int_equal(bl_top_frames(14600), 10);
}

static void bl_top_class__edges(void **state)
{
	static const struct {
		uint64_t frames;
		uint32_t cls;
	} t[] = { { 0, 0 }, { 4, 0 }, { 5, 1 }, { 21, 1 }, { 22, 2 }, { 99, 2 }, { 100, 3 }, { 464, 3 }, { 465, 4 }, { 2154, 4 }, { 2155, 5 }, { ~0ULL - 1, 5 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_top_class(&cfg, t[i].frames), t[i].cls);
	for (i = 0; i < 5; i++)
		cfg.limit[i] = ~0ULL; /* ExpressPass: one class */
	assert_int_equal(bl_top_class(&cfg, 1ULL << 60), 0);
}

static void bl_top_class_of__objectives(void **state)
{
	const uint64_t now = 1000 * MS, f = BL_TOP_MSS;
	const struct {
		uint32_t objective;
		uint64_t bytes, served, deadline;
		uint32_t coflow;
		uint64_t of_coflow;
		uint32_t cls;
	} t[] = {
		{ BL_TOP_BY_FCT, 4 * f, 9999 * f, 0, 0, 0, 0 },	 { BL_TOP_BY_FCT, 4 * f + 1, 0, 0, 0, 0, 1 },	{ BL_TOP_BY_FCT, 0, 30 * f, 0, 0, 0, 2 },
		{ BL_TOP_BY_LAS, 9999 * f, 0, 0, 0, 0, 0 },	 { BL_TOP_BY_LAS, 1, 2155 * f, 0, 0, 0, 5 },
		{ BL_TOP_BY_DEADLINE, 1, 1, 0, 0, 0, 5 },	 { BL_TOP_BY_DEADLINE, 1, 1, now - 1, 0, 0, 5 },	{ BL_TOP_BY_DEADLINE, 1, 1, now, 0, 0, 5 },
		{ BL_TOP_BY_DEADLINE, 1, 1, now + 1, 0, 0, 0 },	 { BL_TOP_BY_DEADLINE, 1, 1, now + 5 * SLOT - 1, 0, 0, 0 },
		{ BL_TOP_BY_DEADLINE, 9999 * f, 1, now + 5 * SLOT, 0, 0, 1 }, { BL_TOP_BY_DEADLINE, 1, 1, now + 2155 * SLOT, 0, 0, 5 },
		{ BL_TOP_BY_COFLOW, f, f, 0, 7, 500 * f, 4 },	 { BL_TOP_BY_COFLOW, 500 * f, f, 0, 7, f, 0 },	{ BL_TOP_BY_COFLOW, 30 * f, f, 0, 0, 0, 2 },
		{ BL_TOP_BY_COFLOW, 0, 100 * f, 0, 0, 0, 3 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_rx r = { .bytes = t[i].bytes, .served = t[i].served, .deadline_ns = t[i].deadline, .coflow = t[i].coflow };

		cfg.objective = t[i].objective;
		if (bl_top_class_of(&r, &cfg, t[i].of_coflow, now) != t[i].cls)
			fail_msg("row %u: class %u, want %u", i, bl_top_class_of(&r, &cfg, t[i].of_coflow, now), t[i].cls);
	}
	cfg.levels = 4; /* what has no deadline is in the last one in use */
	cfg.objective = BL_TOP_BY_DEADLINE;
	assert_int_equal(bl_top_class_of(&(struct bl_top_rx){ .bytes = 1 }, &cfg, 0, now), 3);
}

/* ---- the feedback ---- */

static void bl_top_least__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_top_least(&cfg, 0), 1);
	assert_int_equal(bl_top_least(&cfg, SLOT), BL_TOP_ONE);
	assert_int_equal(bl_top_least(&cfg, SLOT / 2), BL_TOP_ONE);
	assert_int_equal(bl_top_least(&cfg, 4 * SLOT), BL_TOP_ONE / 4);
	assert_int_equal(bl_top_least(&cfg, 1ULL << 60), 1);
}

static void bl_top_got__table(void **state)
{
	static const struct {
		uint32_t n;
		uint64_t took;
		double rate;
	} t[] = { { 0, 100000, 0 }, { 1, SLOT, 1 }, { 10, 20 * SLOT, 0.5 }, { 1000, 1000 * SLOT, 1 }, { 1, 1000 * SLOT, 0.001 }, { 7, 0, 1 }, { 100, SLOT, 2 }, { 3000000, 4000000ULL * SLOT, 0.75 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_true(fabs(bl_top_got(&cfg, t[i].n, t[i].took) / ONE - t[i].rate) < 1e-4);
}

/* One step of each law as published, in floating point. */
struct model {
	double rate, w;
	bool grew;
};

static void model_step(struct model *m, bool ns2, double total, double dropped, double took_slots, double least)
{
	double loss = total > 0 ? dropped / total : 0, target = ns2 ? 0.125 * (1 - fmin(m->rate, 1)) : 0.1, most = ns2 ? 1 : 1.1, got;

	if (loss > target) {
		got = (total - dropped) / took_slots * (1 + target);
		m->rate = ns2 ? fmin(m->rate, got) : m->rate * (1 - loss) * (1 + target);
		m->w = fmax(m->w / 2, 0.01);
		m->grew = false;
	} else {
		if (m->grew)
			m->w = ns2 ? fmin(m->w + 0.05, 0.5) : (m->w + 0.5) / 2;
		m->grew = true;
		if (ns2 && m->rate < 1)
			m->rate = m->w + (1 - m->w) * m->rate;
		else if (!ns2)
			m->rate = m->w * (1 + target) + (1 - m->w) * m->rate;
	}
	m->rate = fmax(fmin(m->rate, most), least);
}

static void feed(struct bl_top_rx *r, uint32_t total, uint32_t dropped, uint64_t took)
{
	r->total = total;
	r->dropped = dropped;
	r->update_ns = 5 * MS;
	bl_top_feedback(r, &cfg, 5 * MS + took);
	assert_int_equal(r->total | r->dropped, 0);
	assert_int_equal(r->update_ns, 5 * MS + took);
}

/* Worked by hand: what xpass.cc makes of these. */
static void law__ns2_table(void **state)
{
	static const struct {
		uint32_t total, dropped;
		double rate, w;
		uint32_t grew;
	} t[] = {
		{ 50, 0, 0.53125, 0.0625, 1 },	     /* w 1/16 of what is missing: 0.5 + 0.5 / 16 */
		{ 50, 0, 0.583984, 0.1125, 1 },	     /* again: w + 0.05 */
		{ 50, 2, 0.651587, 0.1625, 1 },	     /* 4 %, 5.2 % would be too much */
		{ 50, 3, 0.490469, 0.08125, 0 },	     /* 6 %, above 4.36 %: 47 answers in 100 slots, times 1.0436 */
		{ 50, 0, 0.531869, 0.08125, 1 },	     /* the first good one does not raise w */
		{ 10, 10, 0.01, 0.040625, 0 },	     /* all lost: one token per RTT, 100 slots */
	};
	struct bl_top_rx r = { .rate = BL_TOP_ONE / 2, .weight = BL_TOP_ONE / 16, .rtt_ns = 100 * SLOT };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		feed(&r, t[i].total, t[i].dropped, 100 * SLOT);
		if (fabs(r.rate / ONE - t[i].rate) > 2e-5 || fabs(r.weight / ONE - t[i].w) > 1e-5 || r.grew != t[i].grew)
			fail_msg("row %u: rate %.6f weight %.6f grew %u", i, r.rate / ONE, r.weight / ONE, r.grew);
	}
	assert_int_equal(r.feedbacks, ARRAY_SIZE(t));
	assert_int_equal(r.lost, 15);
}

/* And the paper's Algorithm 1. */
static void law__paper_table(void **state)
{
	static const struct {
		uint32_t total, dropped;
		double rate, w;
		uint32_t grew;
	} t[] = {
		{ 50, 0, 0.5375, 0.0625, 1 },	    /* 15/16 of 0.5, 1/16 of 1.1 */
		{ 50, 5, 0.695703, 0.28125, 1 },    /* a tenth is allowed; w half way to 0.5 */
		{ 50, 6, 0.673441, 0.140625, 0 },   /* times 0.88 times 1.1 */
		{ 50, 25, 0.370392, 0.0703125, 0 },
		{ 0, 0, 0.421693, 0.0703125, 1 },
		{ 9, 9, 0.01, 0.0351562, 0 },
	};
	struct bl_top_rx r = { .rate = BL_TOP_ONE / 2, .weight = BL_TOP_ONE / 16, .rtt_ns = 100 * SLOT };
	unsigned int i;

	(void)state;
	cfg.law = BL_TOP_LAW_PAPER;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		feed(&r, t[i].total, t[i].dropped, 100 * SLOT);
		if (fabs(r.rate / ONE - t[i].rate) > 2e-5 || fabs(r.weight / ONE - t[i].w) > 1e-5 || r.grew != t[i].grew)
			fail_msg("row %u: rate %.6f weight %.6f grew %u", i, r.rate / ONE, r.weight / ONE, r.grew);
	}
}

static void law__weight_floor(void **state)
{
	struct bl_top_rx r = { .rate = BL_TOP_ONE, .weight = BL_TOP_ONE / 64, .rtt_ns = 100 * SLOT };

	(void)state;
	feed(&r, 10, 9, 100 * SLOT);
	assert_int_equal(r.weight, cfg.w_min);
	feed(&r, 10, 9, 100 * SLOT);
	assert_int_equal(r.weight, cfg.w_min);
}

static void law__against_model(void **state)
{
	struct rnd rnd = rnd_seeded("law__against_model");
	unsigned int run, i;

	(void)state;
	for (run = 0; run < 400; run++) {
		struct bl_top_rx r = { .rate = BL_TOP_ONE / 2, .weight = BL_TOP_ONE / 16, .rtt_ns = (1 + rnd_below(&rnd, 1000)) * SLOT };
		struct model m = { 0.5, 0.0625, false };
		bool ns2 = run & 1;

		cfg.law = ns2 ? BL_TOP_LAW_NS2 : BL_TOP_LAW_PAPER;
		for (i = 0; i < 60; i++) {
			uint32_t total = 1 + rnd_below(&rnd, 2000), dropped = rnd_below(&rnd, 3) ? 0 : rnd_below(&rnd, total + 1);
			uint64_t took = (uint64_t)total * SLOT / (1 + rnd_below(&rnd, 3)) + r.rtt_ns;

			/* the model's branch must be the core's: not within rounding of the target */
			if (fabs((double)dropped / total - (ns2 ? 0.125 * (1 - fmin(m.rate, 1)) : 0.1)) < 1e-4)
				continue;
			feed(&r, total, dropped, took);
			model_step(&m, ns2, total, dropped, (double)took / SLOT, fmin(1, (double)SLOT / r.rtt_ns));
			if (fabs(r.rate / ONE - m.rate) > 1e-3 || fabs(r.weight / ONE - m.w) > 1e-5)
				fail_msg("run %u step %u: rate %.6f, model %.6f; weight %.6f, %.6f", run, i, r.rate / ONE, m.rate, r.weight / ONE, m.w);
			m.rate = r.rate / ONE; /* rounding does not add up */
			assert_true(r.rate <= BL_TOP_ONE + (ns2 ? 0 : BL_TOP_ONE / 10) && r.rate >= bl_top_least(&cfg, r.rtt_ns) && r.weight >= cfg.w_min && r.weight <= cfg.w_max);
		}
	}
}

/* ---- echoes ---- */

static struct bl_top_rx flow_in(uint32_t bytes)
{
	const struct bl_top_msg m = { .op = BL_TOP_SYNC, .seq = 1, .tag = 7, .bytes = bytes, .frames = 3 };
	struct bl_top_rx r = { 0 };

	bl_top_begin(&r, &cfg, &m, MS);
	return r;
}

static void bl_top_echo__table(void **state)
{
	static const struct {
		uint32_t seq;
		int rc;
		uint32_t total, dropped, echo;
		uint64_t late;
	} t[] = {
		{ 1, 0, 1, 0, 1, 0 },  { 2, 0, 2, 0, 2, 0 },   { 7, 0, 7, 4, 7, 0 }, /* 3 to 6 are missing */
		{ 5, 0, 7, 3, 7, 1 },			       /* no, 5 was only late */
		{ 7, 0, 7, 3, 7, 1 },			       /* a copy of a frame */
		{ 0, 0, 7, 3, 7, 1 },			       /* unscheduled */
		{ 21, -1, 7, 3, 7, 1 },			       /* token 21 was never sent */
		{ 20, 0, 20, 15, 20, 1 },
	};
	struct bl_top_rx r = flow_in(0);
	uint64_t frames = 0;
	unsigned int i;

	(void)state;
	r.seq = 20;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		int rc = bl_top_echo(&r, &cfg, t[i].seq, 1000, 2 * MS + i);

		frames += !rc;
		if (rc != t[i].rc || r.total != t[i].total || r.dropped != t[i].dropped || r.echo != t[i].echo || r.late != t[i].late || r.frames != frames || r.served != frames * 1000)
			fail_msg("row %u: %d, %u of %u, echo %u, late %llu", i, rc, r.dropped, r.total, r.echo, (unsigned long long)r.late);
		assert_int_equal(r.heard_ns, rc ? 2 * MS + i - 1 : 2 * MS + i);
	}
}

static void bl_top_echo__wrap(void **state)
{
	struct bl_top_rx r = flow_in(0);

	(void)state;
	r.seq = 3;
	r.echo = r.forgiven = 0xfffffffe;
	assert_int_equal(bl_top_echo(&r, &cfg, 2, 100, 2 * MS), 0);
	assert_int_equal(r.total, 4);
	assert_int_equal(r.dropped, 3);
	assert_int_equal(bl_top_echo(&r, &cfg, 0xffffffff, 100, 2 * MS), 0);
	assert_int_equal(r.dropped, 2);
}

static void bl_top_echo__times_one_token(void **state)
{
	struct bl_top_rx r = flow_in(0);
	uint32_t random = 1;

	(void)state;
	assert_int_equal(bl_top_sent(&r, &cfg, MS, &random), 1);
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 10, &random), 2); /* not timed: one at a time */
	assert_int_equal(bl_top_echo(&r, &cfg, 1, 100, MS + 5000), 0);
	assert_int_equal(r.rtt_ns, 5000);
	assert_int_equal(r.probe_ns, 0);
	assert_int_equal(r.feedbacks, 1); /* 5000 ns since it began: an RTT */
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 6000, &random), 3);
	assert_int_equal(bl_top_echo(&r, &cfg, 2, 100, MS + 6001), 0); /* answers one before it */
	assert_int_equal(r.rtt_ns, 5000);
	assert_true(r.probe_ns != 0);
	assert_int_equal(bl_top_echo(&r, &cfg, 3, 100, MS + 6000 + 10000), 0);
	assert_int_equal(r.rtt_ns, 6000); /* 4/5 and 1/5 */
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 20000, &random), 4);
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 20001, &random), 5);
	assert_int_equal(bl_top_echo(&r, &cfg, 5, 100, MS + 90000), 0); /* the timed one got lost */
	assert_int_equal(r.rtt_ns, 6000);
	assert_int_equal(r.probe_ns, 0);
}

static void bl_top_echo__feedback_once_per_rtt(void **state)
{
	struct bl_top_rx r = flow_in(0);
	unsigned int i;

	(void)state;
	r.seq = 1000;
	r.rtt_ns = 10000;
	for (i = 1; i <= 100; i++) /* from MS on, one per microsecond */
		bl_top_echo(&r, &cfg, i, 100, MS + i * 1000);
	assert_int_equal(r.feedbacks, 10);
	assert_int_equal(r.lost, 0);
}

/* ---- tokens out ---- */

static void bl_top_gap__jitter(void **state)
{
	struct rnd rnd = rnd_seeded("bl_top_gap__jitter");
	double sum = 0, least = 1e9, most = 0;
	unsigned int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		double g = bl_top_gap(&cfg, BL_TOP_ONE / 100, (uint32_t)rnd64(&rnd));

		sum += g;
		least = fmin(least, g);
		most = fmax(most, g);
	}
	assert_true(fabs(sum / i - 100.0 * SLOT) < 0.002 * 100 * SLOT);
	assert_true(least >= 0.8999 * 100 * SLOT && least < 0.901 * 100 * SLOT && most <= 1.1001 * 100 * SLOT && most > 1.099 * 100 * SLOT);
	cfg.jitter = 0;
	assert_int_equal(bl_top_gap(&cfg, BL_TOP_ONE, 0x12345678), SLOT);
	assert_int_equal(bl_top_gap(&cfg, BL_TOP_ONE / 4, ~0U), 4 * SLOT);
	assert_int_equal(bl_top_gap(&cfg, 0, 0), (uint64_t)SLOT << 24);
}

static void bl_top_random__never_zero(void **state)
{
	uint32_t s = 1, i;
	double ones = 0;

	(void)state;
	for (i = 0; i < 100000; i++) {
		assert_true(bl_top_random(&s) != 0);
		ones += __builtin_popcount(s);
	}
	assert_true(fabs(ones / i - 16) < 0.1);
}

static void bl_top_sent__paces(void **state)
{
	struct bl_top_rx r = flow_in(0);
	uint32_t random = 1;

	(void)state;
	cfg.jitter = 0;
	r.rate = BL_TOP_ONE / 10;
	assert_int_equal(bl_top_sent(&r, &cfg, MS, &random), 1);
	assert_int_equal(r.next_ns, MS + 10 * SLOT);
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 10 * SLOT + 500, &random), 2); /* late: the next one not */
	assert_int_equal(r.next_ns, MS + 20 * SLOT);
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 90 * SLOT, &random), 3); /* much too late: one is caught up */
	assert_int_equal(r.next_ns, MS + 90 * SLOT);
	r.seq = 0xffffffff;
	assert_int_equal(bl_top_sent(&r, &cfg, MS + 90 * SLOT, &random), 1); /* 0 means none */
}

static void bl_top_free_after__bucket(void **state)
{
	const uint64_t free = 10 * MS;

	(void)state;
	assert_int_equal(bl_top_free_after(&cfg, free, free), free + SLOT);
	assert_int_equal(bl_top_free_after(&cfg, free, free + SLOT), free + SLOT);
	assert_int_equal(bl_top_free_after(&cfg, free, free + 2 * SLOT), free + SLOT);
	assert_int_equal(bl_top_free_after(&cfg, free, free + 2 * SLOT + 1), free + SLOT + 1);
	assert_int_equal(bl_top_free_after(&cfg, 0, 100), SLOT);
}

static void pick__class_then_turns(void **state)
{
	struct bl_top_rx r[4];
	static const uint32_t cls[4] = { 2, 1, 1, 1 };
	uint32_t last = 2, got[4] = { 0 }, order[6], n, i;
	struct bl_top_pick p;

	(void)state;
	for (i = 0; i < 4; i++)
		r[i] = flow_in(0);
	for (n = 0; n < 6; n++) {
		bl_top_pick_begin(&p, last, MS);
		for (i = 0; i < 4; i++)
			bl_top_look(&p, i, &r[i], cls[i], &cfg);
		assert_int_equal(p.ready, 4);
		assert_int_equal(p.best >> 8, 1);
		order[n] = last = p.index;
		got[p.index]++;
	}
	assert_true(!got[0] && got[1] == 2 && got[2] == 2 && got[3] == 2 && order[0] == 3 && order[1] == 1 && order[2] == 2);
	r[1].next_ns = r[2].next_ns = r[3].next_ns = MS + 5;
	r[2].next_ns = MS + 3;
	bl_top_pick_begin(&p, last, MS);
	for (i = 0; i < 4; i++)
		bl_top_look(&p, i, &r[i], cls[i], &cfg);
	assert_int_equal(p.ready, 1);
	assert_int_equal(p.index, 0);
	assert_int_equal(p.next_ns, MS + 3);
}

static void pick__stopped_and_gone(void **state)
{
	struct bl_top_rx r = flow_in(0);
	struct bl_top_pick p;

	(void)state;
	r.state = BL_TOP_RX_STOPPED;
	bl_top_pick_begin(&p, 0, 2 * MS);
	bl_top_look(&p, 9, &r, 0, &cfg);
	assert_int_equal(p.ready | p.gone, 0);
	assert_int_equal(p.next_ns, MS + cfg.dead_ns);
	bl_top_pick_begin(&p, 0, MS + cfg.dead_ns - 1);
	bl_top_look(&p, 9, &r, 0, &cfg);
	assert_int_equal(p.gone, 0);
	bl_top_pick_begin(&p, 0, MS + cfg.dead_ns);
	r.state = BL_TOP_RX_OPEN;
	bl_top_look(&p, 9, &r, 0, &cfg);
	assert_int_equal(p.gone, 10);
	assert_int_equal(p.ready, 0);
}

/* ---- signals ---- */

static void bl_top_begin__rates(void **state)
{
	static const struct {
		uint64_t bytes;
		double rate;
	} t[] = { { 0, 0.5 }, { 1, 0.5 / 40 }, { 20 * BL_TOP_MSS, 0.25 }, { 39 * BL_TOP_MSS, 0.5 * 39 / 40 }, { 40 * BL_TOP_MSS, 0.5 }, { 1ULL << 40, 0.5 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_msg m = { .seq = 3, .tag = 9, .bytes = t[i].bytes, .deadline_us = 5, .coflow = 4, .frames = 2 };
		struct bl_top_rx r;

		memset(&r, 0xff, sizeof(r));
		bl_top_begin(&r, &cfg, &m, MS);
		assert_true(fabs(r.rate / ONE - t[i].rate) < 1e-6);
		assert_true(r.state == BL_TOP_RX_OPEN && r.tag == 9 && r.sig == 3 && r.weight == cfg.w_init && !r.seq && !r.echo && !r.forgiven && !r.rtt_ns && !r.served && !r.total && !r.dropped && !r.grew);
		assert_true(r.next_ns == MS && r.heard_ns == MS && r.update_ns == MS && r.deadline_ns == MS + 5000 && r.coflow == 4 && r.waiting == 2 && r.syncs == 1);
	}
}

static void signals__by_number(void **state)
{
	struct bl_top_rx r = flow_in(5000);
	struct bl_top_msg m = { .tag = 7, .frames = 9 };
	uint32_t random = 1;

	(void)state;
	m.seq = 1;
	bl_top_stop(&r, &m, 2 * MS); /* before the SYNC that is known */
	assert_int_equal(r.state, BL_TOP_RX_OPEN);
	assert_int_equal(r.heard_ns, 2 * MS);
	bl_top_sent(&r, &cfg, 2 * MS, &random);
	bl_top_sent(&r, &cfg, 2 * MS, &random);
	m.seq = 3;
	bl_top_stop(&r, &m, 3 * MS);
	assert_int_equal(r.state, BL_TOP_RX_STOPPED);
	m.seq = 2;
	assert_int_equal(bl_top_sync(&r, &m, 4 * MS), 0); /* overtaken by the STOP */
	assert_int_equal(r.state, BL_TOP_RX_STOPPED);
	m.seq = 4;
	r.total = 9;
	r.dropped = 3;
	assert_int_equal(bl_top_sync(&r, &m, 5 * MS), 1);
	assert_true(r.state == BL_TOP_RX_OPEN && r.forgiven == 2 && r.echo == 2 && !r.total && !r.dropped && !r.probe_ns && r.next_ns == 5 * MS && r.bytes == 5000 && r.waiting == 9 && r.heard_ns == 5 * MS);
	m.seq = 5;
	m.bytes = 6000;
	assert_int_equal(bl_top_sync(&r, &m, 6 * MS), 0); /* it gets tokens already */
	assert_int_equal(r.bytes, 6000);
	/* an answer to a token from before the STOP is neither late nor lost */
	assert_int_equal(bl_top_echo(&r, &cfg, 1, 100, 6 * MS), 0);
	assert_int_equal(r.late | r.total, 0);
	m.bytes = 7000;
	bl_top_fin(&r, &m, &cfg, 60 * MS);
	assert_int_equal(r.bytes, 6000); /* number 5 came */
	m.seq = 6;
	bl_top_fin(&r, &m, &cfg, 60 * MS);
	assert_true(r.bytes == 7000 && r.state == BL_TOP_RX_STOPPED && r.heard_ns + cfg.dead_ns <= 60 * MS);
}

/* ---- the sender ---- */

static struct bl_top_tx flow_out(uint64_t bytes)
{
	const struct bl_top_key key = { .sport = 1, .dport = 2, .proto = 6 };
	const struct bl_top_hint hint = { .bytes = bytes, .deadline_us = 8, .coflow = 9 };
	struct bl_top_tx t;

	memset(&t, 0xff, sizeof(t));
	bl_top_flow(&t, &cfg, &key, &hint, 0x1234, MS);
	return t;
}

static void bl_top_flow__unscheduled(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t want;
	} t[] = { { 0, 0 }, { 1, 1 }, { 3 * BL_TOP_MSS, 3 }, { 4 * BL_TOP_MSS, 3 }, { 6 * BL_TOP_MSS, 3 }, { 6 * BL_TOP_MSS + 1, 0 } };
	unsigned int i;

	(void)state;
	cfg.unscheduled = 3;
	cfg.short_frames = 6;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_tx f = flow_out(t[i].bytes);

		assert_int_equal(f.unsched, t[i].want);
		assert_true(f.state == BL_TOP_IDLE && f.tag == 0x1234 && !f.seq && !~f.seen && !f.sig && !f.tokens && f.bytes == t[i].bytes && f.deadline_us == 8 && f.coflow == 9 && f.key.proto == 6);
	}
}

static void bl_top_token__reasons(void **state)
{
	const uint64_t bus = (6000ULL << 48) + 500000, bound = 100;
	const struct {
		uint32_t tag, cls, seq;
		uint64_t ts;
		enum bl_reason why;
	} t[] = {
		{ 0x1234, 0, 0xffffffff, bus, BL_R_TOKEN_REPLAYED }, /* numbers begin at 1 */
		{ 0x1234, 0, 0xffffffc0, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 1, bus, BL_R_NONE },
		{ 0x1234, 5, 2, bus - 26000 - 200, BL_R_NONE }, /* as old as it may be */
		{ 0x1234, 5, 3, bus - 26000 - 201, BL_R_TOKEN_EXPIRED },
		{ 0x1234, 5, 3, bus, BL_R_TOKEN_REPLAYED },	   /* an expired one is gone, too */
		{ 0x1234, 0, 4, bus + 200, BL_R_NONE },
		{ 0x1234, 0, 5, bus + 201, BL_R_TOKEN_AHEAD },
		{ 0x1234, 0, 5, bus, BL_R_NONE },		   /* which took no number */
		{ 0x1235, 0, 6, bus, BL_R_TOKEN_FORGED },
		{ 0x1234, 6, 6, bus, BL_R_TOKEN_CLASS },
		{ 0x1234, 255, 6, bus, BL_R_TOKEN_CLASS },
		{ 0x1234, 0, 0, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 5, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 5 + BL_TOP_AHEAD + 1, bus, BL_R_TOKEN_REPLAYED },
		{ 0x1234, 0, 5 + BL_TOP_AHEAD, bus, BL_R_NONE },
	};
	struct bl_top_tx f = flow_out(0), before;
	unsigned int i, ok = 0, bad = 0, old = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_top_msg m = { .op = BL_TOP_TOKEN, .cls = (__u8)t[i].cls, .seq = t[i].seq, .tag = t[i].tag, .ts = t[i].ts & BL_TS_MASK };
		enum bl_reason why;

		f.tries = 3;
		before = f;
		why = bl_top_token(&f, &cfg, &m, bus, bound, 7 * MS + i);
		if (why != t[i].why)
			fail_msg("row %u: %d, want %d", i, why, t[i].why);
		ok += why == BL_R_NONE;
		old += why == BL_R_TOKEN_EXPIRED;
		bad += why != BL_R_NONE && why != BL_R_TOKEN_EXPIRED;
		assert_true(f.tokens == ok && f.expired == old && f.refused == bad);
		assert_int_equal(f.tries, why == BL_R_NONE ? 0 : 3);
		assert_int_equal(f.token_ns, why == BL_R_NONE ? 7 * MS + i : before.token_ns);
		assert_int_equal(f.state, ok ? BL_TOP_CREDITED : BL_TOP_IDLE);
	}
	f.state = BL_TOP_FREE;
	assert_int_equal(bl_top_token(&f, &cfg, &(struct bl_top_msg){ .seq = 99, .tag = 0x1234 }, bus, bound, MS), BL_R_TOKEN_UNKNOWN);
}

/* The window against a set of all numbers that were ever taken. */
static void bl_top_new__against_model(void **state)
{
	struct rnd rnd = rnd_seeded("bl_top_new__against_model");
	static uint8_t taken[1 << 16];
	struct bl_top_tx f = flow_out(0);
	uint32_t base = 0xffffff00, top = 0, i;

	(void)state;
	memset(taken, 0, sizeof(taken));
	f.seq = base;
	f.seen = ~0ULL;
	for (i = 0; i < 100000 && top < sizeof(taken) - 200; i++) {
		uint32_t n = top + 20 > 110 ? top + 20 - rnd_below(&rnd, 110) : 1 + rnd_below(&rnd, 100), seq = base + n;
		bool want = seq && (n > top || (top - n < BL_TOP_WINDOW && !taken[n]));

		if (!n)
			continue;
		assert_int_equal(bl_top_new(&f, seq), want);
		if (want) {
			taken[n] = 1;
			top = n > top ? n : top;
		}
	}
	assert_int_equal(f.seq, base + top);
}

static void bl_top_held__wakes(void **state)
{
	static const struct {
		uint32_t state, after;
		int wakes;
	} t[] = { { BL_TOP_FREE, BL_TOP_FREE, 1 }, { BL_TOP_IDLE, BL_TOP_ASKING, 1 }, { BL_TOP_ASKING, BL_TOP_ASKING, 0 }, { BL_TOP_CREDITED, BL_TOP_CREDITED, 0 }, { BL_TOP_OUTSIDE, BL_TOP_OUTSIDE, 1 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_tx f = flow_out(0);

		f.state = t[i].state;
		f.wasted_run = 5;
		f.tries = 2;
		assert_int_equal(bl_top_held(&f, 1000, 9 * MS), t[i].wakes);
		assert_true(f.state == t[i].after && f.frames == 1 && f.sent_bytes == 1000 && f.frame_ns == 9 * MS && !f.wasted_run);
		assert_int_equal(f.tries, t[i].state == BL_TOP_IDLE ? 0 : 2);
	}
}

static void bl_top_wasted__stops(void **state)
{
	struct bl_top_tx f = flow_out(0);
	unsigned int i, stops = 0;

	(void)state;
	f.tokens = 100;
	for (i = 0; i < 20; i++) {
		int stop = bl_top_wasted(&f);

		assert_int_equal(stop, i % BL_TOP_STOP_EACH == 0);
		stops += (unsigned int)stop;
		assert_true(f.state == BL_TOP_IDLE && f.wasted == i + 1 && f.tokens == 99 - i && f.stops == stops && f.sig == stops);
	}
	bl_top_held(&f, 100, MS);
	assert_int_equal(bl_top_wasted(&f), 1); /* a new run */
}

static struct bl_top_turn step(struct bl_top_tx *f, uint32_t frames, uint64_t now)
{
	struct bl_top_turn d;

	memset(&d, 0xff, sizeof(d));
	bl_top_step(f, &cfg, frames, now, 0x77, &d);
	return d;
}

static void bl_top_step__asks_until_tokens_come(void **state)
{
	static const uint64_t at[] = { 0, 2, 6, 14, 22, 30 }; /* ms: 2, twice that, four times that, and so on */
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;
	uint64_t t0 = 10 * MS;
	unsigned int i;

	(void)state;
	bl_top_held(&f, 100, t0);
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		if (i) {
			d = step(&f, 1, t0 + at[i] * MS - 1);
			assert_int_equal(d.what, BL_TOP_NOTHING);
			assert_int_equal(d.next_ns, t0 + at[i] * MS);
		}
		d = step(&f, 1 + i, t0 + at[i] * MS);
		assert_true(d.what == BL_TOP_DO_SYNC && d.seq == i + 1 && d.tag == 0x1234 && d.frames == 1 + i && f.syncs == i + 1);
		assert_int_equal(d.next_ns, t0 + (i + 1 < ARRAY_SIZE(at) ? at[i + 1] : 38) * MS);
	}
	/* a token: from now on a SYNC only if no other one comes for a while */
	assert_int_equal(bl_top_token(&f, &cfg, &(struct bl_top_msg){ .seq = 1, .tag = 0x1234, .ts = 1000 }, 1000, 0, t0 + 31 * MS), BL_R_NONE);
	d = step(&f, 1, t0 + 32 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == t0 + 33 * MS);
	d = step(&f, 1, t0 + 33 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && d.seq == 7 && f.state == BL_TOP_ASKING && f.tries == 1);
}

static void bl_top_step__idle_and_end(void **state)
{
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;

	(void)state;
	bl_top_held(&f, 100, 10 * MS);
	d = step(&f, 0, 11 * MS); /* a token from before took it */
	assert_true(d.what == BL_TOP_NOTHING && f.state == BL_TOP_IDLE && d.next_ns == 110 * MS);
	f.token_ns = 30 * MS;
	d = step(&f, 0, 110 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 130 * MS);
	d = step(&f, 0, 130 * MS);
	assert_true(d.what == BL_TOP_DO_END && d.next_ns == BL_DUE_NEVER && d.seq == 1 && d.tag == 0x1234 && f.state == BL_TOP_FREE);
	d = step(&f, 0, 140 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == BL_DUE_NEVER);
	d = step(&f, 1, 140 * MS); /* a frame that came when the number was given back */
	assert_int_equal(d.what, BL_TOP_DO_AT_ONCE);
	/* an idle flow with a frame that nobody asked for */
	f = flow_out(0);
	d = step(&f, 1, 10 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && f.state == BL_TOP_ASKING);
}

static void bl_top_step__unscheduled_after_the_sync(void **state)
{
	struct bl_top_tx f;
	struct bl_top_turn d;

	(void)state;
	cfg.unscheduled = 2;
	cfg.short_frames = 8;
	f = flow_out(8 * BL_TOP_MSS);
	bl_top_held(&f, 1000, 10 * MS);
	d = step(&f, 3, 10 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && d.next_ns == 10 * MS && f.unsched == 2);
	d = step(&f, 3, 10 * MS);
	assert_true(d.what == BL_TOP_DO_UNSCHED && d.next_ns == 10 * MS);
	d = step(&f, 2, 10 * MS);
	assert_int_equal(d.what, BL_TOP_DO_UNSCHED);
	d = step(&f, 1, 10 * MS);
	assert_true(d.what == BL_TOP_NOTHING && d.next_ns == 12 * MS && f.unscheduled == 2 && !f.unsched);
}

static void bl_top_step__outside(void **state)
{
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;
	unsigned int i;

	(void)state;
	cfg.outside_tries = 3;
	for (i = 0; i < 3; i++)
		assert_int_equal(step(&f, 1, (1 + i) * 100 * MS).what, BL_TOP_DO_SYNC);
	d = step(&f, 1, 301 * MS);
	assert_true(d.what == BL_TOP_DO_AT_ONCE && f.state == BL_TOP_OUTSIDE);
	assert_int_equal(bl_top_held(&f, 100, 302 * MS), 1);
	/* somebody is there after all */
	assert_int_equal(bl_top_token(&f, &cfg, &(struct bl_top_msg){ .seq = 1, .tag = 0x1234, .ts = 1000 }, 1000, 0, 303 * MS), BL_R_NONE);
	assert_int_equal(step(&f, 1, 304 * MS).what, BL_TOP_NOTHING);
	f.tries = 9; /* and is only slow: it had tokens once */
	f.state = BL_TOP_ASKING;
	assert_int_equal(step(&f, 1, 900 * MS).what, BL_TOP_DO_SYNC);
}

static void bl_top_step__another_tag(void **state)
{
	struct bl_top_tx f = flow_out(0);
	struct bl_top_turn d;
	unsigned int i;

	(void)state;
	f.seq = 500;
	f.seen = 3;
	for (i = 1; i < BL_TOP_TAG_TRIES; i++)
		assert_int_equal(step(&f, 1, i * 100 * MS).tag, 0x1234);
	assert_int_equal(f.seq, 500);
	d = step(&f, 1, i * 100 * MS);
	assert_true(d.what == BL_TOP_DO_SYNC && d.tag == 0x77 && f.tag == 0x77 && !f.seq && !~f.seen);
}

/* ---- messages and keys ---- */

static void bl_top_parse__lengths(void **state)
{
	uint8_t b[sizeof(struct bl_top_hdr) + sizeof(struct bl_top_sync)] = { 0 };
	struct bl_top_hdr *h = (void *)b;
	struct bl_top_sync *s = (void *)(h + 1);
	static const struct {
		uint8_t op;
		uint32_t len;
	} t[] = { { BL_TOP_TOKEN, 18 }, { BL_TOP_SYNC, 42 }, { BL_TOP_FIN, 26 }, { BL_TOP_LOSS, 18 }, { BL_TOP_STOP, 18 } };
	struct bl_top_msg m;
	unsigned int i;

	(void)state;
	h->cls = 3;
	h->flow = BL_BE16(0x1234);
	BL_HALVES_SET(h, seq, 0x89abcdef);
	BL_HALVES_SET(h, tag, 0x01234567);
	bl_put48(h->ts, 0xa1b2c3d4e5f6);
	bl_put48(s->bytes, 0x010203040506);
	BL_HALVES_SET(s, frames, 0x11223344);
	BL_HALVES_SET(s, deadline, 0x55667788);
	BL_HALVES_SET(s, coflow, 0x99aabbcc);
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		h->opcode = BL_TOP_OPCODE_BYTE(t[i].op);
		assert_int_equal(bl_top_parse(h, b + t[i].len, t[i].len, &m), 0);
		assert_true(m.op == t[i].op && m.cls == 3 && m.flow == 0x1234 && m.seq == 0x89abcdef && m.tag == 0x01234567 && m.ts == 0xa1b2c3d4e5f6);
		assert_true(m.bytes == (t[i].len > 18 ? 0x010203040506u : 0));
		assert_true(m.frames == (t[i].op == BL_TOP_SYNC ? 0x11223344u : 0) && m.deadline_us == (t[i].op == BL_TOP_SYNC ? 0x55667788u : 0) &&
			    m.coflow == (t[i].op == BL_TOP_SYNC ? 0x99aabbccu : 0));
		assert_int_equal(bl_top_parse(h, b + t[i].len - 1, t[i].len, &m), -1);
		assert_int_equal(bl_top_parse(h, b + t[i].len, t[i].len - 1, &m), -1);
	}
	h->opcode = BL_TOP_OPCODE_BYTE(BL_TOP_OPCODE_LIMIT);
	assert_int_equal(bl_top_parse(h, b + 42, 42, &m), -1);
	h->opcode = BL_TOP_OPCODE_BYTE(0);
	assert_int_equal(bl_top_parse(h, b + 42, 42, &m), -1);
	h->opcode = 2 << 4 | BL_TOP_TOKEN;
	assert_int_equal(bl_top_parse(h, b + 42, 42, &m), -1);
}

static void bl_top_rule__first_that_fits(void **state)
{
	static const struct {
		uint16_t sport, dport;
		uint8_t proto;
		int fits;
		uint64_t bytes;
	} t[] = { { 40000, 80, 6, 1, 1 }, { 80, 40000, 6, 1, 1 }, { 40000, 80, 17, 1, 3 }, { 40000, 443, 6, 1, 2 }, { 40000, 443, 17, 0, 0 }, { 40000, 9, 6, 0, 0 }, { 0, 0, 1, 0, 0 } };
	unsigned int i;

	(void)state;
	cfg.rules[0] = (struct bl_top_rule){ .port = 80, .proto = 6, .bytes = 1, .deadline_us = 5, .coflow = 6 };
	cfg.rules[1] = (struct bl_top_rule){ .port = 443, .proto = 6, .bytes = 2 };
	cfg.rules[2] = (struct bl_top_rule){ .port = 80, .bytes = 3 };
	cfg.rules[4] = (struct bl_top_rule){ .port = 9, .bytes = 4 }; /* behind the end */
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		const struct bl_top_key k = { .sport = BL_BE16(t[i].sport), .dport = BL_BE16(t[i].dport), .proto = t[i].proto };
		struct bl_top_hint h = { 0 };

		assert_int_equal(bl_top_rule(&cfg, &k, &h), t[i].fits);
		assert_int_equal(h.bytes, t[i].bytes);
		assert_int_equal(h.deadline_us, h.bytes == 1 ? 5 : 0);
	}
	for (i = 0; i < BL_TOP_RULES; i++) /* a full list */
		cfg.rules[i] = (struct bl_top_rule){ .port = (uint16_t)(100 + i), .bytes = i };
	{
		const struct bl_top_key k = { .dport = BL_BE16(100 + BL_TOP_RULES - 1) };
		struct bl_top_hint h = { 0 };

		assert_true(bl_top_rule(&cfg, &k, &h) && h.bytes == BL_TOP_RULES - 1);
	}
}

static void bl_top_hint_hash__spreads(void **state)
{
	static uint8_t used[BL_TOP_HINTS];
	unsigned int i, n = 0;

	(void)state;
	for (i = 0; i < BL_TOP_HINTS; i++) {
		const struct bl_top_key k = { .sport = BL_BE16(32768 + i), .dport = BL_BE16(5001), .proto = 6 };

		assert_true(bl_top_hint_hash(&k) < BL_TOP_HINTS);
		n += !used[bl_top_hint_hash(&k)]++;
	}
	assert_true(n > BL_TOP_HINTS * 55 / 100); /* 63 % by chance */
}

/* ---- one token is one packet ---- */

/*
 * A sender and a receiver across a network that loses tokens and data, repeats tokens and lets them overtake each other. What holds at every step: no more frames than tokens were believed, each number
 * answered once; and in the end the receiver's numbers add up.
 */
static void network__one_token_one_packet(void **state)
{
	struct rnd rnd = rnd_seeded("network__one_token_one_packet");
	unsigned int run;

	(void)state;
	for (run = 0; run < 40; run++) {
		struct bl_top_rx r = flow_in(0);
		struct bl_top_tx f = flow_out(0);
		static uint32_t wire[64];
		static uint8_t answered[1 << 14];
		uint32_t n = 0, random = 1 + run, i, loss = rnd_below(&rnd, 400), sent = 0, came = 0, copies = 0;
		uint64_t now = MS, judged;

		cfg.law = run & 1 ? BL_TOP_LAW_PAPER : BL_TOP_LAW_NS2;
		memset(answered, 0, sizeof(answered));
		r.tag = f.tag;
		for (i = 0; i < 8000; i++) {
			uint32_t k, seq;

			now = bl_max64(now + 1, r.next_ns);
			wire[n++] = bl_top_sent(&r, &cfg, now, &random);
			if (rnd_below(&rnd, 20) == 0 && n < 63) {
				wire[n] = wire[n - 1];
				n++;
				copies++;
			}
			while (n > 20 || (n && rnd_below(&rnd, 3))) {
				struct bl_top_msg m = { .op = BL_TOP_TOKEN, .tag = f.tag, .ts = 100 };
				enum bl_reason why;

				k = rnd_below(&rnd, n < 4 ? n : 4); /* one of the first overtakes */
				seq = wire[k];
				memmove(wire + k, wire + k + 1, (--n - k) * sizeof(wire[0]));
				if (rnd_below(&rnd, 1000) < loss)
					continue;
				m.seq = seq;
				why = bl_top_token(&f, &cfg, &m, 100, 0, now);
				assert_true(why == BL_R_NONE || (why == BL_R_TOKEN_REPLAYED && answered[seq]));
				if (why != BL_R_NONE)
					continue;
				assert_int_equal(answered[seq]++, 0);
				sent++;
				if (rnd_below(&rnd, 1000) < 5)
					continue; /* data lost */
				judged = r.feedbacks;
				assert_int_equal(bl_top_echo(&r, &cfg, seq, 1514, now + 7), 0);
				came++;
				if (r.feedbacks != judged)
					assert_true(r.rate <= BL_TOP_ONE + BL_TOP_ONE / 10 && r.rate >= bl_top_least(&cfg, r.rtt_ns));
			}
			assert_true(f.tokens == sent && sent <= r.seq && r.dropped <= r.total);
		}
		assert_true(r.frames == came && copies > 100 && f.refused <= copies);
		assert_true(r.echo <= r.seq && r.lost + r.dropped <= r.echo);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(bl_top_frames__edges), TEST(bl_top_class__edges), TEST(bl_top_class_of__objectives), TEST(bl_top_least__edges), TEST(bl_top_got__table), TEST(law__ns2_table),
		TEST(law__paper_table), TEST(law__weight_floor), TEST(law__against_model), TEST(bl_top_echo__table), TEST(bl_top_echo__wrap), TEST(bl_top_echo__times_one_token),
		TEST(bl_top_echo__feedback_once_per_rtt), TEST(bl_top_gap__jitter), TEST(bl_top_random__never_zero), TEST(bl_top_sent__paces), TEST(bl_top_free_after__bucket),
		TEST(pick__class_then_turns), TEST(pick__stopped_and_gone), TEST(bl_top_begin__rates), TEST(signals__by_number), TEST(bl_top_flow__unscheduled), TEST(bl_top_token__reasons),
		TEST(bl_top_new__against_model), TEST(bl_top_held__wakes), TEST(bl_top_wasted__stops), TEST(bl_top_step__asks_until_tokens_come), TEST(bl_top_step__idle_and_end),
		TEST(bl_top_step__unscheduled_after_the_sync), TEST(bl_top_step__outside), TEST(bl_top_step__another_tag), TEST(bl_top_parse__lengths), TEST(bl_top_rule__first_that_fits),
		TEST(bl_top_hint_hash__spreads), TEST(network__one_token_one_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
