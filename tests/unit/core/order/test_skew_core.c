// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Clocks that differ (core/order/skew_core.h): windows, intervals, and the vote. */
#include "tests/unit/unit.h"
#include "core/order/skew_core.h"

#define US     1000LL
#define BUCKET BL_SKEW_BUCKET_NS
#define NONE   BL_DELAY_NONE

static void bl_skew_add__window(void **state)
{
	const uint64_t t = 77 * BUCKET;
	static const struct {
		uint64_t at; /* since t */
		int64_t delay, least;
	} s[] = {
		{ 0, 500, 500 },
		{ 1, 700, 500 },
		{ 2, -300, -300 },
		{ BUCKET - 1, 0, -300 },
		{ BUCKET, 900, -300 }, /* the bucket before still counts */
		{ 2 * BUCKET - 1, 800, -300 },
		{ 2 * BUCKET, 950, 800 },
		{ 4 * BUCKET - 1, 990, 950 },
		{ 6 * BUCKET - 1, 1500, 1500 }, /* nothing came for two buckets */
		{ 5 * BUCKET, 100, 100 },       /* the clock was set back */
	};
	struct bl_link l = { 0 };
	size_t i;

	(void)state;
	assert_int_equal(bl_skew_least(&l, t), NONE);
	for (i = 0; i < sizeof(s) / sizeof(*s); i++) {
		bl_skew_add(&l, s[i].delay, t + s[i].at);
		assert_int_equal(bl_skew_least(&l, t + s[i].at), s[i].least);
	}
	/* with age, first the bucket before is forgotten, and then all */
	l = (struct bl_link){ .least_ns = { 7, 3 }, .bucket_ns = t };
	assert_int_equal(bl_skew_least(&l, t + BUCKET - 1), 3);
	assert_int_equal(bl_skew_least(&l, t + BUCKET), 7);
	assert_int_equal(bl_skew_least(&l, t + 2 * BUCKET - 1), 7);
	assert_int_equal(bl_skew_least(&l, t + 2 * BUCKET), NONE);
	/* a bucket that another CPU has begun since the clock was read, or before it was set back
	 */
	assert_int_equal(bl_skew_least(&l, t - 1), 3);
	assert_int_equal(bl_skew_least(&l, t - BUCKET + 1), 3);
	assert_int_equal(bl_skew_least(&l, t - BUCKET), NONE);
}

static void bl_skew_echo__edges(void **state)
{
	static const struct {
		int64_t least;
		int32_t echo;
		int64_t out;
	} t[] = {
		{ NONE, BL_ECHO_NONE, NONE },
		{ 0, 0, 0 },
		{ -1, -1, -1 },
		{ 2147483646, 2147483646, 2147483646 },
		{ 2147483647, 2147483647, NONE }, /* cut: it says nothing about the upper end */
		{ 2147483648LL, 2147483647, NONE },
		{ -2147483647, -2147483647, -2147483647 },
		{ -2147483648LL, -2147483647, -2147483647 }, /* as far as it can be said */
		{ -(1LL << 40), -2147483647, -2147483647 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		assert_int_equal(bl_skew_echo(t[i].least), t[i].echo);
		assert_int_equal(bl_skew_out(t[i].echo), t[i].out);
	}
}

static void bl_skew_interval__edges(void **state)
{
	static const struct {
		int64_t in, out;
		uint64_t bound, own;
		int64_t low, high, off;
		uint32_t counts;
	} t[] = {
		{ 10, 10, 50, 50, -10, 10, 0, 1 },
		/* the example: 940 us ahead */
		{ -930 * US, 950 * US, 50 * US, 50 * US, 930 * US, 950 * US, 830 * US, 1 },
		{ 950 * US, -930 * US, 50 * US, 50 * US, -950 * US, -930 * US, -830 * US, 1 },
		{ -100, 120, 60, 40, 100, 120, 0, 1 },
		{ -101, 120, 60, 40, 101, 120, 1, 1 },
		{ 120, -100, 60, 40, -120, -100, 0, 1 },
		{ 120, -101, 60, 40, -120, -101, -1, 1 },
		{ -101, NONE, 60, 40, 101, BL_SKEW_MAX, 1, 1 },
		{ NONE, -101, 60, 40, -BL_SKEW_MAX, -101, -1, 1 },
		{ NONE, NONE, 60, 40, -BL_SKEW_MAX, BL_SKEW_MAX, 0, 0 },
		{ -101, 100, 60, 40, 101, 100, 1, 1 }, /* a clock moved within the window */
		{ 101, -100, 60, 40, -101, -100, 0, 1 },
		{ 101, -101, 60, 40, -101, -101, -1, 1 },
		{ -95, 90, 60, 40, 95, 90, 0, 1 },
		{ -900, -900, UINT64_MAX, 40, 900, -900, 0, 1 },
		{ -900, 900, UINT64_MAX, UINT64_MAX, 900, 900, 0, 1 },
		{ INT64_MIN, 900, 5, 5, BL_SKEW_MAX, 900, BL_SKEW_MAX - 10, 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct bl_skew_vote v = { .in = t[i].in, .out = t[i].out, .bound = t[i].bound };

		bl_skew_interval(&v, t[i].own);
		assert_int_equal(v.low, t[i].low);
		assert_int_equal(v.high, t[i].high);
		assert_int_equal(v.off, t[i].off);
		assert_int_equal(v.counts, t[i].counts);
	}
}

/* A neighbour whose clock is @off ahead, with a delay of @d each way. */
static struct bl_skew_vote at(int64_t off, int64_t d, uint64_t bound)
{
	return (struct bl_skew_vote){ .in = d - off, .out = d + off, .bound = bound };
}

static void bl_skew_judge__switch(void **state)
{
	struct bl_skew_vote v[4] = { at(0, 10, 50), at(3, 10, 50), at(940, 10, 50),
				     at(-5, 10, 50) };
	struct bl_skew_self s;

	(void)state;
	bl_skew_judge(v, 4, 50, 0, 0, &s);
	assert_int_equal(s.votes, 5);
	assert_int_equal(s.agree, 4);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.proven, 0);
	assert_true(!v[0].wrong && !v[1].wrong && v[2].wrong && !v[3].wrong);
	assert_int_equal(v[2].off, 830);
	assert_int_equal(v[0].off, 0);
	/* the true time is within this */
	assert_true(s.low <= 0 && s.high >= 0 && s.low >= -65 && s.high <= 65);
}

/* All others agree that this node is 2000 ahead of them. */
static void bl_skew_judge__self(void **state)
{
	struct bl_skew_vote v[3] = { at(-2000, 10, 50), at(-2004, 10, 50), at(-1990, 10, 50) };
	struct bl_skew_self s;
	int k;

	(void)state;
	for (k = 0; k < 2; k++) {
		bl_skew_judge(v, 3, 50, k, 0, &s);
		assert_int_equal(s.votes, 4);
		assert_int_equal(s.agree, 3);
		assert_int_equal(s.wrong, 1);
		assert_true(!v[0].wrong && !v[1].wrong && !v[2].wrong);
		/* intervals are [-2060, -1940], [-2064, -1944], [-2050, -1930]: true time is there
		 */
		assert_int_equal(s.low, -2050);
		assert_int_equal(s.high, -1944);
		assert_int_equal(s.proven, 2000); /* with its bound: 2050 */
	}
}

/* Half of all is no majority: a wide interval that allows both does not save a node. */
static void bl_skew_judge__half(void **state)
{
	struct bl_skew_vote v[3] = { at(1000, 10, 50), at(1000, 10, 50), at(500, 2000, 50) };
	struct bl_skew_self s;

	(void)state;
	bl_skew_judge(v, 3, 50, 0, 0, &s);
	assert_int_equal(s.votes, 4);
	assert_int_equal(s.agree, 3);
	assert_int_equal(s.wrong, 1);
	assert_int_equal(s.proven, 1010);
	assert_true(!v[0].wrong && !v[1].wrong && !v[2].wrong);
	/* nor a neighbour */
	v[0] = at(0, 10, 50);
	bl_skew_judge(v, 3, 50, 0, 0, &s);
	assert_int_equal(s.wrong, 0);
	assert_true(!v[0].wrong && v[1].wrong && !v[2].wrong);
}

/* One liar, or two that differ, change nothing at a switch with an honest majority. */
static void bl_skew_judge__liars(void **state)
{
	struct rnd r = rnd_seeded("skew liars");
	struct bl_skew_vote v[9];
	struct bl_skew_self s;
	int i, k, n, liars;

	(void)state;
	for (i = 0; i < 20000; i++) {
		int64_t far = (int64_t)(rnd64(&r) % (1ULL << (10 + i % 40)));

		n = 2 + (int)((uint32_t)rnd64(&r) % 8);
		liars = (int)((uint32_t)rnd64(&r) %
			      ((uint32_t)n / 2 + 1)); /* honest ones and this node: more */
		for (k = 0; k < n; k++) {
			if (k >= liars)
				v[k] = at((int64_t)((uint32_t)rnd64(&r) % 101) - 50,
					  (uint32_t)rnd64(&r) % 1000, 100);
			else
				v[k] = (struct bl_skew_vote){
					.in = i & 1 ? far : -far,
					.out = i & 2 ? far : -far,
					.bound = i & 4 ? 0 : (uint32_t)rnd64(&r)
				};
		}
		bl_skew_judge(v, (uint32_t)n, 100, 0, 0, &s);
		assert_int_equal(s.wrong, 0);
		assert_int_equal(s.proven, 0);
		for (k = liars; k < n; k++)
			assert_true(!v[k].off && !v[k].wrong);
		/* true time, 0 by this node's clock here, is in what the majority allows */
		assert_true(s.low <= 100 && s.high >= -100);
	}
}

#define MOMENTS 8 /* of the last seconds */

/*
 * What this node finds out of a neighbour whose error is @e at these moments, while its own is
 * @own; both in ns.
 */
static struct bl_skew_vote over_time(struct rnd *r, const int64_t *e, const int64_t *own,
				     uint64_t bound)
{
	struct bl_skew_vote v = { .in = NONE, .out = NONE, .bound = bound };
	int64_t in = (int64_t)(rnd64(r) % 100), out = (int64_t)(rnd64(r) % 100);
	int i;

	for (i = 0; i < MOMENTS; i++) {
		int64_t queue = rnd64(r) % 3 ? 0 : (int64_t)(rnd64(r) % 1000), o = e[i] - own[i];

		v.in = in + queue - o < v.in ? in + queue - o : v.in;
		v.out = out + queue + o < v.out ? out + queue + o : v.out;
	}
	return v;
}

/* An error that goes from anywhere to anywhere within +-@most, at a constant rate or at random. */
static void walk(struct rnd *r, int64_t *e, int64_t most)
{
	uint64_t span = 2 * (uint64_t)most + 1;
	int64_t from = (int64_t)(rnd64(r) % span) - most, to = (int64_t)(rnd64(r) % span) - most;
	uint64_t how = rnd64(r);
	int i;

	for (i = 0; i < MOMENTS; i++)
		e[i] = how & 1 ? (int64_t)(rnd64(r) % span) - most
			       : from + (to - from) * i / (MOMENTS - 1);
}

/*
 * Clocks move within their bounds, and those of fewer than half anyhow. Whoever is right is never
 * taken to be wrong, be it this node or a neighbour, by a node that is right or wrong; and a node
 * that finds itself wrong knows all of its error.
 */
static void bl_skew_judge__moving(void **state)
{
	struct rnd r = rnd_seeded("skew moving");
	struct bl_skew_vote v[9];
	struct bl_skew_self s;
	int64_t own[MOMENTS], e[9][MOMENTS];
	int i, k, j, found = 0, named = 0;

	(void)state;
	for (i = 0; i < 40000; i++) {
		int n = 2 + (int)(rnd64(&r) % 8), self = i & 1;
		/* with this node; fewer than half */
		int liars = (int)(rnd64(&r) % (uint64_t)((n + 2) / 2)), first = liars - self;
		int64_t least = 1LL << 40, most = -least, far = 0;
		int64_t wild = 1LL << (8 + rnd64(&r) % 8);

		if (first < 0)
			first = self = 0;
		walk(&r, own, self ? wild : 100);
		for (j = 0; j < MOMENTS; j++) {
			least = own[j] < least ? own[j] : least;
			most = own[j] > most ? own[j] : most;
			far = llabs(own[j]) > far ? llabs(own[j]) : far;
		}
		for (k = 0; k < n; k++) {
			walk(&r, e[k], k < first ? wild : 50);
			v[k] = over_time(&r, e[k], own, 50);
		}
		bl_skew_judge(v, (uint32_t)n, 100, 0, (uint64_t)(most - least), &s);
		for (k = first; k < n; k++) {
			assert_false(v[k].wrong);
			assert_true(self || !v[k].off);
		}
		for (k = 0; k < first; k++)
			named += (int)v[k].wrong;
		if (!self)
			assert_int_equal(s.wrong, 0);
		found += (int)s.wrong;
		assert_true(!s.wrong || 100 + (int64_t)s.proven >= far);
	}
	assert_true(found > 1000 && named > 1000);
}

/* Two clocks that drift apart: both ends are true, each of its moment. */
static void bl_skew_judge__drifting(void **state)
{
	/* 20 us each way, own clock 100 ppm slow: 400 us in four seconds */
	struct bl_skew_vote v[3] = { { .in = -980, .out = 620, .bound = 50 },
				     { .in = -980, .out = 620, .bound = 50 },
				     { .in = -980, .out = 620, .bound = 50 } };
	struct bl_skew_self s;

	(void)state;
	bl_skew_judge(v, 3, 50, 0, 400, &s);
	assert_true(v[0].low == 980 && v[0].high == 620 && v[0].off == 880 && v[0].counts);
	assert_int_equal(s.off, 3);
	assert_int_equal(s.wrong, 1);
	assert_int_equal(s.proven, 980 + 50 + 400 - 50);
	assert_true(!v[0].wrong && !v[1].wrong && !v[2].wrong);
	/* one of three drifts */
	v[0] = v[1] = at(0, 20, 50);
	bl_skew_judge(v, 3, 50, 0, 0, &s);
	assert_int_equal(s.off, 1);
	assert_int_equal(s.wrong, 0);
	assert_true(!v[0].wrong && !v[1].wrong && v[2].wrong);
	/* two of them do: a tie, in which nobody is known to be wrong */
	v[1] = v[2];
	bl_skew_judge(v, 3, 50, 0, 0, &s);
	assert_int_equal(s.off, 2);
	assert_int_equal(s.wrong, 0);
	assert_true(!v[0].wrong && !v[1].wrong && !v[2].wrong);
}

/* A node with one neighbour: nobody can say who is wrong. A host takes it to be itself. */
static void bl_skew_judge__one_neighbour(void **state)
{
	struct bl_skew_vote v[2] = { at(1000, 10, 50), { .in = NONE, .out = NONE } };
	struct bl_skew_self s;

	(void)state;
	bl_skew_judge(v, 2, 50, 0, 0, &s);
	assert_int_equal(s.votes, 2);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(v[0].wrong, 0);
	assert_int_equal(v[0].off, 890);
	bl_skew_judge(v, 2, 50, 1, 0, &s);
	assert_int_equal(s.wrong, 1);
	assert_int_equal(v[0].wrong, 0);
	assert_int_equal(s.proven, 1010); /* with its bound: 1060 = 1000 + 10 + 50 */
	/* on the one side only, as long as nothing says more */
	v[0].out = NONE;
	bl_skew_judge(v, 1, 50, 1, 0, &s);
	assert_int_equal(s.proven, 890);
	v[0] = at(-1000, 10, 50);
	v[0].in = NONE;
	bl_skew_judge(v, 1, 50, 1, 0, &s);
	assert_int_equal(s.proven, 890);
	/* within the bounds */
	v[0] = at(90, 10, 50);
	bl_skew_judge(v, 1, 50, 1, 0, &s);
	assert_int_equal(s.wrong, 0);
	assert_int_equal(s.agree, 2);
	/* nobody has said anything */
	v[0] = (struct bl_skew_vote){ .in = NONE, .out = NONE };
	bl_skew_judge(v, 1, 50, 1, 0, &s);
	assert_int_equal(s.votes, 1);
	assert_int_equal(s.wrong, 0);
	bl_skew_judge(v, 0, 50, 1, 0, &s);
	assert_int_equal(s.votes, 1);
	assert_int_equal(s.agree, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bl_skew_add__window),
		cmocka_unit_test(bl_skew_echo__edges),
		cmocka_unit_test(bl_skew_interval__edges),
		cmocka_unit_test(bl_skew_judge__switch),
		cmocka_unit_test(bl_skew_judge__self),
		cmocka_unit_test(bl_skew_judge__half),
		cmocka_unit_test(bl_skew_judge__liars),
		cmocka_unit_test(bl_skew_judge__moving),
		cmocka_unit_test(bl_skew_judge__drifting),
		cmocka_unit_test(bl_skew_judge__one_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
