// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The fluid model of `lab run fct` (bench/fct/fct_fluid.c): by hand on one link, max-min fair on
 * several, and properties of all flows: nothing is lost or gained, and on one link no rule has a
 * smaller mean than shortest-first.
 */
#include <math.h>

#include "tests/unit/unit.h"

#include "bench/fct/fct_fluid.h"

#define N 300

static struct fct_fluid m;
static struct fct_fluid_flow f[N];
static double fct[N];

/* Racks of two hosts; a host's link has 1 byte/ns, and a rack's link has @rack. */
static int make_net(unsigned int hosts, double rack)
{
	unsigned int i;

	m = (struct fct_fluid){ .levels = 2, .hosts = hosts, .host_rate = 1, .limit = { 20 } };
	for (i = 0; i < FCT_HOSTS_MAX; i++) {
		m.rack[i] = i / 2;
		m.rack_rate[i] = rack;
	}
	return 0;
}

static void set_flow(uint32_t i, double start, double bytes, unsigned int src, unsigned int dst)
{
	f[i] = (struct fct_fluid_flow){ .start_ns = start, .bytes = bytes, .src = src, .dst = dst };
}

static void run__one_link(void **state)
{
	static const struct {
		enum fct_fluid_by by;
		double limit, start, bytes; /* of the second flow; the first one has 100 bytes */
		double first, second;
	} t[] = {
		{ FCT_FLUID_SHARE, 20, 50, 10, 110, 20 },
		{ FCT_FLUID_SIZE, 20, 50, 10, 110, 10 },
		{ FCT_FLUID_REMAINING, 20, 50, 10, 110, 10 },
		{ FCT_FLUID_REMAINING, 60, 50, 10, 110, 20 },
		{ FCT_FLUID_SERVED, 20, 50, 10, 110, 10 },
		{ FCT_FLUID_SHORTEST, 20, 50, 10, 110, 10 },
		{ FCT_FLUID_SHORTEST, 20, 95, 10, 100, 15 },
		{ FCT_FLUID_SIZE, 20, 95, 10, 110, 10 },
		{ FCT_FLUID_SHARE, 20, 10, 100, 190, 190 },
		{ FCT_FLUID_SIZE, 99, 10, 100, 190, 190 },
		/*
		 * 90 bytes are left against 100. The first flow is at 50 at 90 ns and is served
		 * alone until 140.
		 */
		{ FCT_FLUID_REMAINING, 50, 10, 100, 140, 190 },
		/*
		 * At 90 ns the first flow has had 50 bytes, the second one 40, and then 10 ns
		 * alone; after that they share.
		 */
		{ FCT_FLUID_SERVED, 50, 10, 100, 200, 190 },
		/* The first flow has ended when the second one starts. */
		{ FCT_FLUID_REMAINING, 50, 5000, 7, 100, 7 },
		{ FCT_FLUID_SIZE, 100, 0, 100, 200, 200 },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		make_net(2, 1);
		m.by = t[i].by;
		m.limit[0] = t[i].limit;
		set_flow(0, 0, 100, 0, 1);
		set_flow(1, t[i].start, t[i].bytes, 0, 1);
		assert_int_equal(fct_fluid_run(&m, f, 2, fct), 0);
		if (fabs(fct[0] - t[i].first) > 1e-3 || fabs(fct[1] - t[i].second) > 1e-3)
			fail_msg("row %u: %.3f and %.3f", i, fct[0], fct[1]);
	}
	assert_int_equal(fct_fluid_run(&m, f, 0, fct), 0);
}

/* Six hosts in three racks: what one link leaves unused goes to flows that can use it. */
static void run__max_min(void **state)
{
	(void)state;
	make_net(6, 2);
	m.by = FCT_FLUID_SHARE;
	/*
	 * h0 sends to h2, h3 and h4, with a third each. h1 sends to h4 and gets the rest of h4's
	 * link, 2/3.
	 */
	set_flow(0, 0, 30, 0, 2);
	set_flow(1, 0, 30, 0, 3);
	set_flow(2, 0, 30, 0, 4);
	set_flow(3, 0, 60, 1, 4);
	assert_int_equal(fct_fluid_run(&m, f, 4, fct), 0);
	assert_float_equal(fct[0], 90, 1e-3);
	assert_float_equal(fct[2], 90, 1e-3);
	assert_float_equal(fct[3], 90, 1e-3);
	/* The racks' links are narrow: half a byte/ns for everything that leaves the first rack. */
	make_net(6, 0.5);
	m.by = FCT_FLUID_SHARE;
	assert_int_equal(fct_fluid_run(&m, f, 4, fct), 0);
	assert_float_equal(fct[0], 240, 1e-3);
	assert_float_equal(fct[3], 300, 1e-3);
	m.by = FCT_FLUID_SIZE; /* The worse class gets what the better one cannot use. */
	m.limit[0] = 40;
	set_flow(3, 0, 60, 1, 0);
	assert_int_equal(fct_fluid_run(&m, f, 4, fct), 0);
	assert_float_equal(fct[0], 180, 1e-3);
	assert_float_equal(fct[3], 60, 1e-3);
}

static void run__random(void **state)
{
	struct rnd rnd = rnd_seeded("fluid__random");
	unsigned int run, i, k;

	(void)state;
	for (run = 0; run < 20; run++) {
		double mean[FCT_FLUID_SHORTEST + 1], end[FCT_FLUID_SHORTEST + 1], at = 0;
		bool one_link = run & 1;

		make_net(8, 1);
		m.levels = FCT_FLUID_CLASSES;
		for (i = 0; i < FCT_FLUID_CLASSES - 1; i++)
			m.limit[i] = 10 * pow(3, i);
		for (i = 0; i < N; i++) {
			unsigned int src = one_link ? 0 : rnd_below(&rnd, 8);
			unsigned int dst = (src + 1 + (one_link ? 0 : rnd_below(&rnd, 7))) % 8;

			at += rnd_below(&rnd, 200);
			set_flow(i, at, 1 + pow(2, rnd_below(&rnd, 1000) / 100.0), src, dst);
		}
		for (k = 0; k <= FCT_FLUID_SHORTEST; k++) {
			m.by = (enum fct_fluid_by)k;
			assert_int_equal(fct_fluid_run(&m, f, N, fct), 0);
			mean[k] = end[k] = 0;
			for (i = 0; i < N; i++) {
				assert_true(fct[i] > f[i].bytes - 1e-3); /* no faster than alone */
				mean[k] += fct[i] / N;
				end[k] = fmax(end[k], f[i].start_ns + fct[i]);
			}
			if (!one_link)
				continue;
			/* A link that has work is never idle. */
			assert_float_equal(end[k], end[0], 1e-2);
		}
		for (k = 0; k < FCT_FLUID_SHORTEST && one_link; k++)
			assert_true(mean[FCT_FLUID_SHORTEST] <= mean[k] + 1e-3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__one_link),
		cmocka_unit_test(run__max_min),
		cmocka_unit_test(run__random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
