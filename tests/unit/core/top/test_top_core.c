// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * core/top/top_core.h, the receiver's part: classes, both of ExpressPass's laws against the
 * published formulas in floating point, echoes, outgoing tokens, the choice of a slot, and incoming
 * signals.
 */
#include <math.h>

#include "tests/unit/core/top/top_util.h"

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
	} t[] = { { 0, 0 },   { 4, 0 },   { 5, 1 },   { 21, 1 },   { 22, 2 },   { 99, 2 },
		  { 100, 3 }, { 464, 3 }, { 465, 4 }, { 2154, 4 }, { 2155, 5 }, { ~0ULL - 1, 5 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_top_class(cfg.limit, t[i].frames), t[i].cls);
	for (i = 0; i < 5; i++)
		cfg.limit[i] = ~0ULL; /* ExpressPass: one class */
	assert_int_equal(bl_top_class(cfg.limit, 1ULL << 60), 0);
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
		/*
		 * The flow announced 4 frames. Frames that are sent twice do not count against it;
		 * 9999 frames make its size unknown.
		 */
		{ BL_TOP_BY_FCT, 4 * f, 16 * f, 0, 0, 0, 0 },
		{ BL_TOP_BY_FCT, 4 * f, 9999 * f, 0, 0, 0, 5 },
		{ BL_TOP_BY_FCT, 1, 100 * f, 0, 0, 0, 3 },
		{ BL_TOP_BY_FCT, 4 * f + 1, 0, 0, 0, 0, 1 },
		{ BL_TOP_BY_FCT, 0, 30 * f, 0, 0, 0, 2 },
		{ BL_TOP_BY_LAS, 9999 * f, 0, 0, 0, 0, 0 },
		{ BL_TOP_BY_LAS, 1, 2155 * f, 0, 0, 0, 5 },
		{ BL_TOP_BY_DEADLINE, 1, 1, 0, 0, 0, 5 },
		{ BL_TOP_BY_DEADLINE, 1, 1, now - 1, 0, 0, 5 },
		{ BL_TOP_BY_DEADLINE, 1, 1, now, 0, 0, 5 },
		{ BL_TOP_BY_DEADLINE, 1, 1, now + 1, 0, 0, 0 },
		{ BL_TOP_BY_DEADLINE, 1, 1, now + 5 * SLOT - 1, 0, 0, 0 },
		{ BL_TOP_BY_DEADLINE, 9999 * f, 1, now + 5 * SLOT, 0, 0, 1 },
		{ BL_TOP_BY_DEADLINE, 1, 1, now + 2155 * SLOT, 0, 0, 5 },
		{ BL_TOP_BY_COFLOW, f, f, 0, 7, 500 * f, 4 },
		{ BL_TOP_BY_COFLOW, 500 * f, f, 0, 7, f, 0 },
		{ BL_TOP_BY_COFLOW, 30 * f, f, 0, 0, 0, 2 },
		{ BL_TOP_BY_COFLOW, 0, 100 * f, 0, 0, 0, 3 },
		/* Headers are at least a 32nd of what was served. */
		{ BL_TOP_BY_REMAINING, 2155 * f, 0, 0, 0, 0, 5 },
		{ BL_TOP_BY_REMAINING, 2155 * f, 32 * f, 0, 0, 0, 4 },
		{ BL_TOP_BY_REMAINING, 2155 * f, 2200 * f, 0, 0, 0, 2 },
		{ BL_TOP_BY_REMAINING, 2155 * f, 2224 * f, 0, 0, 0, 0 },
		{ BL_TOP_BY_REMAINING, 2155 * f, 2400 * f, 0, 0, 0, 0 },
		{ BL_TOP_BY_REMAINING, 2155 * f, 2600 * f, 0, 0, 0, 5 },
		{ BL_TOP_BY_REMAINING, 4 * f, 16 * f, 0, 0, 0, 0 },
		{ BL_TOP_BY_REMAINING, 4 * f, 40 * f, 0, 0, 0, 2 },
		/*
		 * A class is given in place of a size; also one that is not in use, and with LAS,
		 * which ignores the announcement.
		 */
		{ BL_TOP_BY_REMAINING, BL_TOP_SAYS_CLASS + 2, 9999 * f, 0, 0, 0, 2 },
		{ BL_TOP_BY_FCT, BL_TOP_SAYS_CLASS, 9999 * f, 0, 0, 0, 0 },
		{ BL_TOP_BY_COFLOW, BL_TOP_SAYS_CLASS + 4, f, 0, 0, 0, 4 },
		{ BL_TOP_BY_FCT, BL_TOP_SAYS_CLASS + 7, 0, 0, 0, 0, 5 },
		{ BL_TOP_BY_LAS, BL_TOP_SAYS_CLASS + 2, f, 0, 0, 0, 0 },
		{ BL_TOP_BY_FCT, BL_TOP_SAYS_CLASS - 1, 0, 0, 0, 0, 5 },
		{ BL_TOP_BY_REMAINING, 0, 30 * f, 0, 0, 0, 2 },
		{ BL_TOP_BY_REMAINING, ~0ULL / 2, 1, 0, 0, 0, 5 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_rx r = { .bytes = t[i].bytes,
				       .served = t[i].served,
				       .deadline_ns = t[i].deadline,
				       .coflow = t[i].coflow };

		cfg.objective = t[i].objective;
		if (bl_top_class_of(&r, &cfg, cfg.limit, t[i].of_coflow, now) != t[i].cls)
			fail_msg("row %u: class %u, want %u", i,
				 bl_top_class_of(&r, &cfg, cfg.limit, t[i].of_coflow, now),
				 t[i].cls);
	}
	cfg.levels = 4; /* A flow without a deadline is in the last class in use. */
	cfg.objective = BL_TOP_BY_DEADLINE;
	assert_int_equal(
		bl_top_class_of(&(struct bl_top_rx){ .bytes = 1 }, &cfg, cfg.limit, 0, now), 3);
}

/* The edges of the buckets, and sizes beyond the last one. */
static void bl_top_bucket__edges(void **state)
{
	static const struct {
		uint64_t frames;
		uint32_t bucket;
	} t[] = { { 1, 0 },      { 2, 2 },           { 3, 3 },           { 4, 4 },
		  { 5, 4 },      { 6, 5 },           { 7, 5 },           { 8, 6 },
		  { 11, 6 },     { 12, 7 },          { 15, 7 },          { 16, 8 },
		  { 767, 18 },   { 768, 19 },        { 1023, 19 },       { 1024, 20 },
		  { 65535, 31 }, { 65536, 32 },      { 3ULL << 30, 63 }, { 1ULL << 31, 62 },
		  { ~0U, 63 },   { 1ULL << 32, 63 }, { ~0ULL, 63 } };
	struct bl_top_page p = { 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(bl_top_bucket(t[i].frames), t[i].bucket);
	bl_top_learn_flow(&p, 0); /* The flow brought no bytes. */
	for (i = 0; i < BL_TOP_SIZES; i++)
		assert_int_equal(p.sizes[i], 0);
	bl_top_learn_flow(&p, 1);
	bl_top_learn_flow(&p, 1514);
	bl_top_learn_flow(&p, 10 * 1514);
	assert_int_equal(p.sizes[0], 1);
	assert_int_equal(p.sizes[2], 1); /* a little more than 1460 bytes */
	assert_int_equal(p.sizes[6], 1);
}

/* ---- the feedback ---- */

static void bl_top_least__edges(void **state)
{
	(void)state;
	assert_int_equal(bl_top_rate_min(&cfg, 0), 1);
	assert_int_equal(bl_top_rate_min(&cfg, SLOT), BL_TOP_ONE);
	assert_int_equal(bl_top_rate_min(&cfg, SLOT / 2), BL_TOP_ONE);
	assert_int_equal(bl_top_rate_min(&cfg, 4 * SLOT), BL_TOP_ONE / 4);
	assert_int_equal(bl_top_rate_min(&cfg, 1ULL << 60), 1);
}

static void bl_top_got__table(void **state)
{
	static const struct {
		uint32_t n;
		uint64_t took;
		double rate;
	} t[] = { { 0, 100000, 0 },          { 1, SLOT, 1 },
		  { 10, 20 * SLOT, 0.5 },    { 1000, 1000 * SLOT, 1 },
		  { 1, 1000 * SLOT, 0.001 }, { 7, 0, 1 },
		  { 100, SLOT, 2 },          { 3000000, 4000000ULL * SLOT, 0.75 } };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++)
		assert_true(fabs(bl_top_rate_answered(&cfg, t[i].n, t[i].took) / ONE - t[i].rate) <
			    1e-4);
}

/* One step of each law as published, in floating point. */
struct model {
	double rate, w;
	bool grew;
};

static void model_step(struct model *m, bool ns2, double total, double dropped, double took_slots,
		       double least)
{
	double loss = total > 0 ? dropped / total : 0,
	       target = ns2 ? 0.125 * (1 - fmin(m->rate, 1)) : 0.1, most = ns2 ? 1 : 1.1, got;

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

static void run_feedback(struct bl_top_rx *r, uint32_t total, uint32_t dropped, uint64_t took)
{
	r->total = total;
	r->dropped = dropped;
	r->update_ns = 5 * MS;
	bl_top_feedback(r, &cfg, 5 * MS + took);
	assert_int_equal(r->total | r->dropped, 0);
	assert_int_equal(r->update_ns, 5 * MS + took);
}

/* Worked by hand: what xpass.cc computes for these inputs. */
static void law__ns2_table(void **state)
{
	static const struct {
		uint32_t total, dropped;
		double rate, w;
		uint32_t grew;
	} t[] = {
		{ 50, 0, 0.53125, 0.0625, 1 },  /* w is 1/16 of what is missing: 0.5 + 0.5 / 16 */
		{ 50, 0, 0.583984, 0.1125, 1 }, /* again, with w + 0.05 */
		{ 50, 2, 0.651587, 0.1625, 1 }, /* 4 % is allowed, and 5.2 % would be too much */
		/* 6 % is above 4.36 %: 47 answers in 100 slots, times 1.0436 */
		{ 50, 3, 0.490469, 0.08125, 0 },
		/* The first good step does not raise w. */
		{ 50, 0, 0.531869, 0.08125, 1 },
		{ 10, 10, 0.01, 0.040625, 0 }, /* all lost: one token per RTT of 100 slots */
	};
	struct bl_top_rx r = { .rate = BL_TOP_ONE / 2,
			       .weight = BL_TOP_ONE / 16,
			       .rtt_ns = 100 * SLOT };
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		run_feedback(&r, t[i].total, t[i].dropped, 100 * SLOT);
		if (fabs(r.rate / ONE - t[i].rate) > 2e-5 || fabs(r.weight / ONE - t[i].w) > 1e-5 ||
		    r.grew != t[i].grew)
			fail_msg("row %u: rate %.6f weight %.6f grew %u", i, r.rate / ONE,
				 r.weight / ONE, r.grew);
	}
	assert_int_equal(r.feedbacks, ARRAY_SIZE(t));
	assert_int_equal(r.lost, 15);
}

/* The same for the paper's Algorithm 1. */
static void law__paper_table(void **state)
{
	static const struct {
		uint32_t total, dropped;
		double rate, w;
		uint32_t grew;
	} t[] = {
		{ 50, 0, 0.5375, 0.0625, 1 },     /* 15/16 of 0.5, 1/16 of 1.1 */
		{ 50, 5, 0.695703, 0.28125, 1 },  /* A tenth is allowed; w goes half way to 0.5. */
		{ 50, 6, 0.673441, 0.140625, 0 }, /* times 0.88 times 1.1 */
		{ 50, 25, 0.370392, 0.0703125, 0 }, { 0, 0, 0.421693, 0.0703125, 1 },
		{ 9, 9, 0.01, 0.0351562, 0 },
	};
	struct bl_top_rx r = { .rate = BL_TOP_ONE / 2,
			       .weight = BL_TOP_ONE / 16,
			       .rtt_ns = 100 * SLOT };
	unsigned int i;

	(void)state;
	cfg.law = BL_TOP_LAW_PAPER;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		run_feedback(&r, t[i].total, t[i].dropped, 100 * SLOT);
		if (fabs(r.rate / ONE - t[i].rate) > 2e-5 || fabs(r.weight / ONE - t[i].w) > 1e-5 ||
		    r.grew != t[i].grew)
			fail_msg("row %u: rate %.6f weight %.6f grew %u", i, r.rate / ONE,
				 r.weight / ONE, r.grew);
	}
}

static void law__weight_floor(void **state)
{
	struct bl_top_rx r = { .rate = BL_TOP_ONE,
			       .weight = BL_TOP_ONE / 64,
			       .rtt_ns = 100 * SLOT };

	(void)state;
	run_feedback(&r, 10, 9, 100 * SLOT);
	assert_int_equal(r.weight, cfg.w_min);
	run_feedback(&r, 10, 9, 100 * SLOT);
	assert_int_equal(r.weight, cfg.w_min);
}

static void law__against_model(void **state)
{
	struct rnd rnd = rnd_seeded("law__against_model");
	unsigned int run, i;

	(void)state;
	for (run = 0; run < 400; run++) {
		struct bl_top_rx r = { .rate = BL_TOP_ONE / 2,
				       .weight = BL_TOP_ONE / 16,
				       .rtt_ns = (1 + rnd_below(&rnd, 1000)) * SLOT };
		struct model m = { 0.5, 0.0625, false };
		bool ns2 = run & 1;

		cfg.law = ns2 ? BL_TOP_LAW_NS2 : BL_TOP_LAW_PAPER;
		for (i = 0; i < 60; i++) {
			uint32_t total = 1 + rnd_below(&rnd, 2000),
				 dropped = rnd_below(&rnd, 3) ? 0 : rnd_below(&rnd, total + 1);
			uint64_t took =
				(uint64_t)total * SLOT / (1 + rnd_below(&rnd, 3)) + r.rtt_ns;

			/*
			 * The model must take the same branch as the core, so inputs within
			 * rounding of the target are left out.
			 */
			if (fabs((double)dropped / total -
				 (ns2 ? 0.125 * (1 - fmin(m.rate, 1)) : 0.1)) < 1e-4)
				continue;
			run_feedback(&r, total, dropped, took);
			model_step(&m, ns2, total, dropped, (double)took / SLOT,
				   fmin(1, (double)SLOT / r.rtt_ns));
			if (fabs(r.rate / ONE - m.rate) > 1e-3 || fabs(r.weight / ONE - m.w) > 1e-5)
				fail_msg("run %u step %u: rate %.6f, model %.6f; weight %.6f, %.6f",
					 run, i, r.rate / ONE, m.rate, r.weight / ONE, m.w);
			m.rate = r.rate / ONE; /* Rounding errors must not add up. */
			assert_true(r.rate <= BL_TOP_ONE + (ns2 ? 0 : BL_TOP_ONE / 10) &&
				    r.rate >= bl_top_rate_min(&cfg, r.rtt_ns) &&
				    r.weight >= cfg.w_min && r.weight <= cfg.w_max);
		}
	}
}

/* ---- echoes ---- */

static void bl_top_echo__table(void **state)
{
	static const struct {
		uint32_t seq;
		int rc;
		uint32_t total, dropped, echo;
		uint64_t late;
	} t[] = {
		/* 3 to 6 are missing. */
		{ 1, 0, 1, 0, 1, 0 },     { 2, 0, 2, 0, 2, 0 },
		{ 7, 0, 7, 4, 7, 0 },     { 5, 0, 7, 3, 7, 1 }, /* 5 was only late. */
		{ 7, 0, 7, 3, 7, 1 },                           /* a copy of a frame */
		{ 0, 0, 7, 3, 7, 1 },                           /* unscheduled */
		{ 21, -1, 7, 3, 7, 1 },                         /* Token 21 was never sent. */
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
		if (rc != t[i].rc || r.total != t[i].total || r.dropped != t[i].dropped ||
		    r.echo != t[i].echo || r.late != t[i].late || r.frames != frames ||
		    r.served != frames * 1000)
			fail_msg("row %u: %d, %u of %u, echo %u, late %llu", i, rc, r.dropped,
				 r.total, r.echo, (unsigned long long)r.late);
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
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS, &random), 1);
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 10, &random),
			 2); /* This token is not timed, since only one is timed at once. */
	assert_int_equal(bl_top_echo(&r, &cfg, 1, 100, MS + 5000), 0);
	assert_int_equal(r.rtt_ns, 5000);
	assert_int_equal(r.probe_ns, 0);
	assert_int_equal(r.feedbacks, 1); /* 5000 ns after the beginning, which is one RTT */
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 6000, &random), 3);
	/* This answers an earlier token. */
	assert_int_equal(bl_top_echo(&r, &cfg, 2, 100, MS + 6001), 0);
	assert_int_equal(r.rtt_ns, 5000);
	assert_true(r.probe_ns != 0);
	assert_int_equal(bl_top_echo(&r, &cfg, 3, 100, MS + 6000 + 10000), 0);
	assert_int_equal(r.rtt_ns, 6000); /* 4/5 of the old value and 1/5 of the new one */
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 20000, &random), 4);
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 20001, &random), 5);
	/* The timed token was lost. */
	assert_int_equal(bl_top_echo(&r, &cfg, 5, 100, MS + 90000), 0);
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

/* ---- outgoing tokens ---- */

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
	assert_true(least >= 0.8999 * 100 * SLOT && least < 0.901 * 100 * SLOT &&
		    most <= 1.1001 * 100 * SLOT && most > 1.099 * 100 * SLOT);
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
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS, &random), 1);
	assert_int_equal(r.next_ns, MS + 10 * SLOT);
	/* The token is late, but the next one is not. */
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 10 * SLOT + 500, &random), 2);
	assert_int_equal(r.next_ns, MS + 20 * SLOT);
	/* The token is much too late: only one is caught up. */
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 90 * SLOT, &random), 3);
	assert_int_equal(r.next_ns, MS + 90 * SLOT);
	r.seq = 0xffffffff;
	assert_int_equal(bl_top_token_sent(&r, &cfg, MS + 90 * SLOT, &random),
			 1); /* 0 means none. */
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
			bl_top_pick_consider(&p, i, &r[i], cls[i], &cfg);
		assert_int_equal(p.ready, 4);
		assert_int_equal(p.best >> 8, 1);
		order[n] = last = p.index;
		got[p.index]++;
	}
	assert_true(!got[0] && got[1] == 2 && got[2] == 2 && got[3] == 2 && order[0] == 3 &&
		    order[1] == 1 && order[2] == 2);
	r[1].next_ns = r[2].next_ns = r[3].next_ns = MS + 5;
	r[2].next_ns = MS + 3;
	bl_top_pick_begin(&p, last, MS);
	for (i = 0; i < 4; i++)
		bl_top_pick_consider(&p, i, &r[i], cls[i], &cfg);
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
	bl_top_pick_consider(&p, 9, &r, 0, &cfg);
	assert_int_equal(p.ready | p.gone, 0);
	assert_int_equal(p.next_ns, MS + cfg.dead_ns);
	bl_top_pick_begin(&p, 0, MS + cfg.dead_ns - 1);
	bl_top_pick_consider(&p, 9, &r, 0, &cfg);
	assert_int_equal(p.gone, 0);
	bl_top_pick_begin(&p, 0, MS + cfg.dead_ns);
	r.state = BL_TOP_RX_OPEN;
	bl_top_pick_consider(&p, 9, &r, 0, &cfg);
	assert_int_equal(p.gone, 10);
	assert_int_equal(p.ready, 0);
}

/* ---- signals ---- */

static void bl_top_begin__rates(void **state)
{
	static const struct {
		uint64_t bytes;
		uint32_t ramp;
		double rate;
	} t[] = { { 0, 40, 0.5 },
		  { 1, 40, 0.5 / 40 },
		  { 20 * BL_TOP_MSS, 40, 0.25 },
		  { 39 * BL_TOP_MSS, 40, 0.5 * 39 / 40 },
		  { 40 * BL_TOP_MSS, 40, 0.5 },
		  { 1ULL << 40, 40, 0.5 },
		  { 1, 1, 0.5 },
		  { 2 * BL_TOP_MSS, 3, 1.0 / 3 },
		  { 3 * BL_TOP_MSS, 3, 0.5 } };
	const struct bl_top_cfg was = cfg;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		struct bl_top_msg m = { .seq = 3,
					.tag = 9,
					.bytes = t[i].bytes,
					.deadline_us = 5,
					.coflow = 4,
					.frames = 2 };
		struct bl_top_rx r;

		memset(&r, 0xff, sizeof(r));
		cfg.ramp = t[i].ramp;
		bl_top_rx_begin(&r, &cfg, &m, BL_TOP_WAS_FREE, MS);
		assert_true(fabs(r.rate / ONE - t[i].rate) < 1e-6);
		assert_true(r.state == BL_TOP_RX_OPEN && r.tag == 9 && r.sig == 3 &&
			    r.weight == cfg.w_init && !r.seq && !r.echo && !r.forgiven &&
			    !r.rtt_ns && !r.served && !r.total && !r.dropped && !r.grew);
		assert_true(r.next_ns == MS && r.heard_ns == MS && r.update_ns == MS &&
			    r.deadline_ns == MS + 5000 && r.coflow == 4 && r.waiting == 2 &&
			    r.syncs == 1);
	}
	cfg = was;
}

static void signals__by_number(void **state)
{
	struct bl_top_rx r = flow_in(5000);
	struct bl_top_msg m = { .tag = 7, .frames = 9 };
	uint32_t random = 1;

	(void)state;
	m.seq = 1;
	bl_top_stop(&r, &m, 2 * MS); /* The STOP is older than the last known SYNC. */
	assert_int_equal(r.state, BL_TOP_RX_OPEN);
	assert_int_equal(r.heard_ns, 2 * MS);
	bl_top_token_sent(&r, &cfg, 2 * MS, &random);
	bl_top_token_sent(&r, &cfg, 2 * MS, &random);
	m.seq = 3;
	bl_top_stop(&r, &m, 3 * MS);
	assert_int_equal(r.state, BL_TOP_RX_STOPPED);
	m.seq = 2;
	assert_int_equal(bl_top_sync(&r, &m, 4 * MS), 0); /* The STOP has overtaken this SYNC. */
	assert_int_equal(r.state, BL_TOP_RX_STOPPED);
	m.seq = 4;
	r.total = 9;
	r.dropped = 3;
	assert_int_equal(bl_top_sync(&r, &m, 5 * MS), 1);
	assert_true(r.state == BL_TOP_RX_OPEN && r.forgiven == 2 && r.echo == 2 && !r.total &&
		    !r.dropped && !r.probe_ns && r.next_ns == 5 * MS && r.bytes == 5000 &&
		    r.waiting == 9 && r.heard_ns == 5 * MS);
	m.seq = 5;
	m.bytes = 6000;
	assert_int_equal(bl_top_sync(&r, &m, 6 * MS), 0); /* The flow gets tokens already. */
	assert_int_equal(r.bytes, 6000);
	/* An answer to a token from before the STOP is neither late nor lost. */
	assert_int_equal(bl_top_echo(&r, &cfg, 1, 100, 6 * MS), 0);
	assert_int_equal(r.late | r.total, 0);
	m.bytes = 7000;
	bl_top_fin(&r, &m, &cfg, 60 * MS);
	assert_int_equal(r.bytes, 6000); /* Number 5 has been received before. */
	m.seq = 6;
	bl_top_fin(&r, &m, &cfg, 60 * MS);
	assert_true(r.bytes == 7000 && r.state == BL_TOP_RX_STOPPED &&
		    r.heard_ns + cfg.dead_ns <= 60 * MS);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, setup)
	const struct CMUnitTest tests[] = {
		TEST(bl_top_frames__edges),
		TEST(bl_top_class__edges),
		TEST(bl_top_class_of__objectives),
		TEST(bl_top_bucket__edges),
		TEST(bl_top_least__edges),
		TEST(bl_top_got__table),
		TEST(law__ns2_table),
		TEST(law__paper_table),
		TEST(law__weight_floor),
		TEST(law__against_model),
		TEST(bl_top_echo__table),
		TEST(bl_top_echo__wrap),
		TEST(bl_top_echo__times_one_token),
		TEST(bl_top_echo__feedback_once_per_rtt),
		TEST(bl_top_gap__jitter),
		TEST(bl_top_random__never_zero),
		TEST(bl_top_sent__paces),
		TEST(bl_top_free_after__bucket),
		TEST(pick__class_then_turns),
		TEST(pick__stopped_and_gone),
		TEST(bl_top_begin__rates),
		TEST(signals__by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
