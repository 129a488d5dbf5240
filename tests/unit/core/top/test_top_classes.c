// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * TOP's thresholds from the sizes of flows (core/top/top_classes_core.h): each class gets the same
 * load, also at the edges. What was learnt ages, stays in use while it is close enough, and
 * survives new maps.
 */
#include "tests/unit/unit.h"

#include "core/top/top_classes_core.h"

static double flows[BL_TOP_SIZES];
static uint64_t limit[BL_TOP_CLASSES - 1];

static int setup(void **state)
{
	(void)state;
	memset(flows, 0, sizeof(flows));
	memset(limit, 0xff, sizeof(limit));
	return 0;
}

static void add_flows(uint64_t frames, double n)
{
	flows[bl_top_bucket(frames)] += n;
}

static void edge__fits_bucket(void **state)
{
	uint64_t frames;

	(void)state;
	for (frames = 1; frames < 100000; frames++) {
		uint32_t b = bl_top_bucket(frames);

		assert_true((double)frames > bl_top_bucket_edge(b));
		assert_true((double)frames <= bl_top_bucket_edge(b + 1));
	}
	assert_float_equal(bl_top_bucket_edge(BL_TOP_SIZES), 4294967295.0, 0);
}

static void equal_load__by_hand(void **state)
{
	(void)state;
	assert_int_equal(bl_top_equal_load(flows, false, 6, limit), -1);
	add_flows(4, 100);
	add_flows(1000, 1);
	/* The example at the top of the header. */
	assert_int_equal(bl_top_equal_load(flows, false, 2, limit), 0);
	assert_int_equal(limit[0], 249);
	assert_true(limit[1] == ~0ULL && limit[4] == ~0ULL);
	assert_int_equal(bl_top_equal_load(flows, true, 2, limit), 0);
	assert_int_equal(limit[0], 847);
	assert_int_equal(bl_top_equal_load(flows, false, 1, limit), 0); /* ExpressPass: one class */
	assert_true(limit[0] == ~0ULL);
}

/* All flows have one size: the thresholds still divide them, by what is left, and always rise. */
static void equal_load__one_size(void **state)
{
	unsigned int c;

	(void)state;
	add_flows(1, 1000);
	assert_int_equal(bl_top_equal_load(flows, false, 6, limit), 0);
	for (c = 0; c < 5; c++)
		assert_int_equal(limit[c], c + 2); /* One frame is in class 0. */
	assert_int_equal(bl_top_equal_load(flows, true, 6, limit), 0);
	for (c = 0; c < 5; c++)
		assert_int_equal(limit[c], c + 2);
	setup(NULL);
	add_flows(1ULL << 40, 1); /* In the last bucket nothing overflows. */
	assert_int_equal(bl_top_equal_load(flows, false, 6, limit), 0);
	for (c = 0; c < 5; c++)
		assert_true(limit[c] > (c ? limit[c - 1] : 1) && limit[c] < 1ULL << 32);
}

/* Returns how many frames of one flow the classes below threshold @at carry. */
static double frames_below(double size, double at, bool by_size)
{
	if (by_size)
		return size <= at - 1 ? size : 0;
	return fmin(size, at - 1);
}

#define PIECES 1024

/*
 * The same for all flows that were counted, with the flows of each bucket spread evenly, as the
 * code assumes.
 */
static double load_below(double at, bool by_size)
{
	double sum = 0;
	unsigned int b, k;

	for (b = 0; b < BL_TOP_SIZES; b++) {
		double e = bl_top_bucket_edge(b), wide = bl_top_bucket_edge(b + 1) - e;

		for (k = 0; flows[b] > 0 && k < PIECES; k++)
			sum += frames_below(e + wide * (k + 0.5) / PIECES, at, by_size) * flows[b] /
			       PIECES;
	}
	return sum;
}

/*
 * Returns by how much the true load below @at can differ from that, since a bucket hides where its
 * flows are.
 */
static double hidden_below(double at, bool by_size)
{
	double sum = 0;
	unsigned int b;

	for (b = 0; b < BL_TOP_SIZES && bl_top_bucket_edge(b) < at - 1; b++) {
		double e = bl_top_bucket_edge(b), to = bl_top_bucket_edge(b + 1);

		/* By size, all flows of the threshold's bucket may be on one side of it. */
		sum += flows[b] * (by_size && to > at - 1 ? to : (to - e) / 2);
	}
	return sum;
}

/*
 * Sizes of a heavy tail, of random shape. If flows are spread evenly within their bucket, each
 * threshold is within one frame of the one that divides the load. For the real flows the loads
 * differ by no more than the buckets hide. This holds for every distribution, not only for those
 * that were drawn.
 */
static void equal_load__random(void **state)
{
	struct rnd rnd = rnd_seeded("equal_load__random");
	static uint64_t size[20000];
	unsigned int run, i, c;

	(void)state;
	for (run = 0; run < 100; run++) {
		double shape = 0.3 + rnd_below(&rnd, 120) / 100.0, all = 0, evenly, hidden;
		double most = 200 + rnd_below(&rnd, 20000);
		bool by_size = run & 1;

		setup(NULL);
		for (i = 0; i < ARRAY_SIZE(size); i++) {
			/* a bounded Pareto distribution */
			double u = (rnd_below(&rnd, 1000000) + 0.5) / 1e6;

			size[i] = (uint64_t)ceil(pow(1 - u * (1 - pow(most, -shape)), -1 / shape));
			add_flows(size[i], 1);
			all += (double)size[i];
		}
		assert_int_equal(bl_top_equal_load(flows, by_size, 6, limit), 0);
		evenly = load_below(1e18, by_size);
		hidden = hidden_below(1e18, by_size);
		assert_true(fabs(evenly - all) <= hidden);
		for (c = 1; c < 6; c++) {
			double share = c / 6.0, at = (double)limit[c - 1], load = 0;
			double least = c > 1 ? (double)limit[c - 2] + 1 : BL_TOP_LIMIT_LEAST;
			double slack = evenly * 0.002; /* the steps of PIECES */
			double hides = hidden_below(at, by_size) + hidden * share;

			assert_true(at >= least);
			for (i = 0; i < ARRAY_SIZE(size); i++)
				load += frames_below((double)size[i], at, by_size);
			/* A threshold that had to rise above the one before it may be too high. */
			if (load_below(at + 1, by_size) >= evenly * share - slack &&
			    (at == least ||
			     (load_below(at - 1, by_size) <= evenly * share + slack &&
			      fabs(load - all * share) <= hides + 2 * ARRAY_SIZE(size))))
				continue;
			fail_msg("run %u, shape %.2f to %.0f, %s: %.4f below class %u, %.0f frames",
				 run, shape, most, by_size ? "size" : "left", load / all, c, at);
		}
	}
}

static struct bl_top_learn l;
static uint64_t sizes[BL_TOP_SIZES], none[BL_TOP_SIZES];

static int learn_setup(void **state)
{
	(void)state;
	memset(&l, 0, sizeof(l));
	memset(sizes, 0, sizeof(sizes));
	memset(none, 0, sizeof(none));
	return 0;
}

static bool learn_step(void)
{
	return bl_top_learn_step(&l, sizes, none, false, 6);
}

static void learn__not_before_enough(void **state)
{
	(void)state;
	sizes[bl_top_bucket(100)] = BL_TOP_LEARN_LEAST - 1;
	assert_false(learn_step());
	assert_int_equal(l.limit[0], 0);
	assert_false(learn_step()); /* The same flows are not counted twice. */
	sizes[bl_top_bucket(100)]++;
	assert_true(learn_step());
	assert_true(l.limit[0] >= 12 && l.limit[0] <= 24); /* a sixth of 96 to 127 */
	assert_false(learn_step());
}

/* A little more of one size changes nothing; a different distribution does, within two windows. */
static void learn__hysteresis_and_age(void **state)
{
	uint64_t was[BL_TOP_CLASSES - 1];
	unsigned int i;

	(void)state;
	sizes[bl_top_bucket(100)] = 4000;
	assert_true(learn_step());
	memcpy(was, l.limit, sizeof(was));
	sizes[bl_top_bucket(128)] += 400;
	assert_false(learn_step());
	assert_memory_equal(was, l.limit, sizeof(was));
	for (i = 0; i < 16; i++) {
		sizes[bl_top_bucket(3)] += 2000; /* From now on all flows are short. */
		learn_step();
	}
	assert_true(l.limit[0] <= 3 && l.limit[4] < was[4] / 2);
}

static void learn__window(void **state)
{
	double all;
	unsigned int b;

	(void)state;
	sizes[4] = 2 * BL_TOP_LEARN_WINDOW;
	assert_float_equal(bl_top_learn_add(&l, sizes), 2.0 * BL_TOP_LEARN_WINDOW, 0);
	sizes[6]++;
	assert_true(bl_top_learn_add(&l, sizes) < BL_TOP_LEARN_WINDOW + 1);
	assert_float_equal(l.flows[4], BL_TOP_LEARN_WINDOW, 0);
	assert_float_equal(l.flows[6], 0.5, 0);
	sizes[7] = 1ULL << 40; /* more than ten thousand flows at once */
	all = bl_top_learn_add(&l, sizes);
	assert_true(all > BL_TOP_LEARN_WINDOW && all <= 2 * BL_TOP_LEARN_WINDOW);
	for (b = 0; b < BL_TOP_SIZES; b++)
		assert_true(l.flows[b] >= 0);
}

/* The counters of new maps start at zero again. */
static void learn__counts_go_back(void **state)
{
	(void)state;
	sizes[8] = 1000;
	assert_float_equal(bl_top_learn_add(&l, sizes), 1000, 0);
	sizes[8] = 10;
	assert_float_equal(bl_top_learn_add(&l, sizes), 1010, 0);
	sizes[8] = 11;
	assert_float_equal(bl_top_learn_add(&l, sizes), 1011, 0);
}

/* A flow that has not ended, however long it is, counts while it exists and no longer. */
static void learn__open_flows(void **state)
{
	uint64_t open[BL_TOP_SIZES] = { 0 }, without[BL_TOP_CLASSES - 1];

	(void)state;
	sizes[bl_top_bucket(10)] = 1000;
	assert_true(learn_step());
	memcpy(without, l.limit, sizeof(without));
	open[bl_top_bucket(100000)] = 1;
	assert_true(bl_top_learn_step(&l, sizes, open, false, 6));
	assert_true(l.limit[1] > 1000);
	assert_true(learn_step());
	assert_memory_equal(without, l.limit, sizeof(without));
}

#define LEARN(fn) cmocka_unit_test_setup(fn, learn_setup)
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(edge__fits_bucket, setup),
		cmocka_unit_test_setup(equal_load__by_hand, setup),
		cmocka_unit_test_setup(equal_load__one_size, setup),
		cmocka_unit_test_setup(equal_load__random, setup),
		LEARN(learn__not_before_enough),
		LEARN(learn__hysteresis_and_age),
		LEARN(learn__window),
		LEARN(learn__counts_go_back),
		LEARN(learn__open_flows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
